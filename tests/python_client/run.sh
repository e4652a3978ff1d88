#!/usr/bin/env bash
# The checks of the Python client, from nothing: a virtual environment with the client, a server on an embedded
# PostgreSQL of its own, the checks, and the server stopped again. The last line is `N passed, N failed`.
#
#     bash tests/python_client/run.sh [DIRECTORY]
#
# DIRECTORY is where the environment goes, and is kept; without one, nothing is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# shellcheck source=tests/own_server.sh
source tests/own_server.sh

make_room python
VENV=${1:-$TEMPORARY}/venv
keep_bytecode "$TEMPORARY/pycache"
install_python "$VENV" tests/python_client/requirements.txt
npm run --silent build
start_server
ANNALS_URL=$(server_url)
ANNALS_API_KEY=$(sed -n 's/^API key: //p' "$SERVER_OUT")
export ANNALS_URL ANNALS_API_KEY

code=0
"$VENV/bin/python" tests/python_client/check.py >"$TEMPORARY/checks.out" || code=$?
# The counts stay the last line.
stop_server_cleanly || code=1
cat "$TEMPORARY/checks.out"
exit $code
