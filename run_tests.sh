#!/usr/bin/env bash
# All tests, after the style and type checks, files side by side on up to four cores. Options are those of pytest, e.g.
# ./run_tests.sh -k metrics, and -n 0 for one process.
# Tests on real data and a real encoder run where BENCHMARK_DATA_DIR and BENCHMARK_ENCODER_DIR say where those are.
set -euo pipefail
cd "$(dirname "$0")"
PROJECT=$PWD
. benchmark/environment.sh

"$PYTHON" -m ruff check .
"$PYTHON" -m ruff format --check --quiet .
"$PYTHON" -m mypy
"$PYTHON" -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder "$@"
