# Sourced by run_all.sh and run_tests.sh, which set PROJECT to this folder's parent: sets PYTHON to an interpreter that has all of
# requirements.txt. Makes .venv where there is none or where requirements.txt has changed since. BENCHMARK_PYTHON names an interpreter to
# use as it is.

if [ -n "${BENCHMARK_PYTHON:-}" ]; then
  PYTHON=$BENCHMARK_PYTHON
else
  # one whose Python is gone, as after an upgrade of the system, is made anew
  if ! [ -x "$PROJECT/.venv/bin/python" ] || ! cmp -s "$PROJECT/requirements.txt" "$PROJECT/.venv/requirements.installed"; then
    base=""
    for candidate in python3.12 python3.11 python3.13 python3 python; do
      if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
        base=$candidate
        break
      fi
    done
    if [ -z "$base" ]; then
      echo "error: Python 3.11, 3.12 or 3.13 is needed; install one, or name an interpreter by BENCHMARK_PYTHON." >&2
      exit 2
    fi
    echo "Making .venv with $("$base" --version) and installing requirements.txt; this takes a few minutes, once." >&2
    "$base" -m venv $([ -x "$PROJECT/.venv/bin/python" ] || echo --clear) "$PROJECT/.venv"
    "$PROJECT/.venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$PROJECT/requirements.txt"
    cp "$PROJECT/requirements.txt" "$PROJECT/.venv/requirements.installed"
  fi
  PYTHON=$PROJECT/.venv/bin/python
fi
