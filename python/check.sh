#!/usr/bin/env bash
# Checks the Python client, from nothing: a virtual environment, what is generated, ruff, pyright in strict mode, and
# the tests, which start services of their own. The last line is `N passed, N failed`.
#
#     bash python/check.sh [DIRECTORY [ARGUMENT…]]
#
# DIRECTORY is where the environment goes, and is kept; without one, nothing is. The arguments are pytest's. PYTHON
# (python3) is the interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# shellcheck source=.ci/python_environment.sh
source ../.ci/python_environment.sh

TEMPORARY=$(mktemp -d "${TMPDIR:-/tmp}/annals-check-python.XXXXXX")
trap 'rm -rf "$TEMPORARY"' EXIT
VENV=${1:-$TEMPORARY}/venv
shift || true
export PYTHONPATH=$PWD/src
# A run leaves nothing in the working tree.
keep_bytecode "$TEMPORARY/pycache"
export RUFF_NO_CACHE=true HYPOTHESIS_STORAGE_DIRECTORY=$TEMPORARY/hypothesis
passed=0
failed=0

check() {
  printf -- '-- %s\n' "$*"
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# Each test counts. A run that fails though no test did counts as one failure.
run_tests() {
  local code=0 counts ok bad
  "$VENV/bin/python" -m pytest -q --durations=5 "$@" | tee "$TEMPORARY/pytest.log" || code=$?
  counts=$(tail -n 1 "$TEMPORARY/pytest.log")
  ok=$(sed -nE 's/^(.* )?([0-9]+) passed.*/\2/p' <<<"$counts")
  bad=$(awk '{ for (i = 2; i <= NF; i++) if ($i ~ /^(failed|error)/) sum += $(i - 1) } END { print sum + 0 }' <<<"$counts")
  if [ "$code" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
  passed=$((passed + ${ok:-0}))
  failed=$((failed + bad))
}

if [ ! -x "$VENV/bin/pytest" ]; then
  install_python "$VENV" requirements.txt "${PYTHON:-python3}"
fi
npm run --silent --prefix .. build
check "$VENV/bin/python" generate_sync.py --check
check "$VENV/bin/ruff" check .
check "$VENV/bin/ruff" format --check .
# What it is told to look at beside the client is what the pages show: to read the frameworks takes most of its time.
mkdir "$TEMPORARY/pages"
"$VENV/bin/python" -m tests.test_docs "$TEMPORARY/pages"
check node ../node_modules/pyright/index.js --pythonpath "$VENV/bin/python" src tests examples generate_sync.py "$TEMPORARY/pages"
run_tests "$@"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
