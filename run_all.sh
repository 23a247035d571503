#!/usr/bin/env bash
# Everything in one command: the environment, the inputs, the runs, the tables.
# Options are those of `python -m benchmark.run`, e.g. ./run_all.sh --profile compact --seeds 0
set -euo pipefail
PROJECT=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$PROJECT/benchmark/environment.sh"
# Paths among the options are the caller's, so the package is found from whichever folder that is, and never another one there.
export PYTHONPATH="$PROJECT${PYTHONPATH:+:$PYTHONPATH}" PYTHONSAFEPATH=1

inputs=()  # what prepare needs to know, too
tables=()  # what the tables' report does
common=()  # and every report
option=""
for word in "$@"; do
  case $word in
    -h | --help) exec "$PYTHON" -m benchmark.run --help ;;
    --*=*) option=${word%%=*} value=${word#*=} ;;
    --*) option=$word value="" ;;
    *) value=$word ;;
  esac
  case $option in
    # these only say something, end with a report of their own, or need one that says which of them to settle on
    --dry-run | --list | --data | --search) exec "$PYTHON" -m benchmark.run "$@" ;;
  esac
  if [ -z "$value" ]; then continue; fi
  case $option in
    --profile | --experiments | --results-dir | --data-dir | --encoder-dir)
      inputs+=("$option" "$value")
      common+=("$option" "$value")
      ;;
    --tables-dir) common+=("$option" "$value") ;;
    --table) tables+=("$value") ;;
  esac
done
if [ ${#tables[@]} -gt 0 ]; then tables=(--table "${tables[@]}"); fi

"$PYTHON" -m benchmark.run "$@" --dry-run > /dev/null  # a mistake in the options is said before anything is fetched
"$PYTHON" -m benchmark.prepare ${inputs[@]+"${inputs[@]}"}
code=0
"$PYTHON" -m benchmark.run "$@" || code=$?
if [ "$code" -gt 1 ]; then exit "$code"; fi
"$PYTHON" -m benchmark.report --format latex ${tables[@]+"${tables[@]}"} ${common[@]+"${common[@]}"} > /dev/null
"$PYTHON" -m benchmark.report --differences ${tables[@]+"${tables[@]}"} ${common[@]+"${common[@]}"} > /dev/null
"$PYTHON" -m benchmark.report --claims ${common[@]+"${common[@]}"} > /dev/null
"$PYTHON" -m benchmark.report --figures ${tables[@]+"${tables[@]}"} ${common[@]+"${common[@]}"}
"$PYTHON" -m benchmark.report --format html ${tables[@]+"${tables[@]}"} ${common[@]+"${common[@]}"}
exit "$code"
