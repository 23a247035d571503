#!/usr/bin/env bash
# Everything in one command: the environment, the inputs, the runs, the tables.
# Options are those of `python -m benchmark.run`, e.g. ./run_all.sh --profile compact --seeds 0
set -euo pipefail
cd "$(dirname "$0")"
. benchmark/environment.sh

inputs=()    # what prepare and report need to know, too
reported=()
previous=""
for word in "$@"; do
  case $previous in
    --profile | --experiments | --results-dir) inputs+=("$previous" "$word"); reported+=("$previous" "$word") ;;
    --data-dir | --encoder-dir) inputs+=("$previous" "$word") ;;
  esac
  case $word in
    --profile=* | --experiments=* | --results-dir=*) inputs+=("$word"); reported+=("$word") ;;
    --data-dir=* | --encoder-dir=*) inputs+=("$word") ;;
    -h | --help) exec "$PYTHON" -m benchmark.run --help ;;
    --dry-run) exec "$PYTHON" -m benchmark.run "$@" ;;
  esac
  previous=$word
done

"$PYTHON" -m benchmark.prepare ${inputs[@]+"${inputs[@]}"}
code=0
"$PYTHON" -m benchmark.run "$@" || code=$?
if [ "$code" -gt 1 ]; then exit "$code"; fi
"$PYTHON" -m benchmark.report --format latex ${reported[@]+"${reported[@]}"} > /dev/null
"$PYTHON" -m benchmark.report --claims ${reported[@]+"${reported[@]}"} > /dev/null
"$PYTHON" -m benchmark.report --figures ${reported[@]+"${reported[@]}"}
"$PYTHON" -m benchmark.report --format html ${reported[@]+"${reported[@]}"}
exit "$code"
