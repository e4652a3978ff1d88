#!/usr/bin/env bash
# The checks of the Python client, from nothing: a virtual environment with the client, a server on an embedded
# PostgreSQL of its own, the checks, and the server stopped again. The last line is `N passed, N failed`.
#
#     bash tests/python_client/run.sh [DIRECTORY]
#
# DIRECTORY is where the environment goes, and is kept; without one, nothing is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

READY_WITHIN_S=120
TEMPORARY=$(mktemp -d "${TMPDIR:-/tmp}/annals-python.XXXXXX")
VENV=${1:-$TEMPORARY}/venv
SERVER_OUT=$TEMPORARY/server.out
SERVER_ERR=$TEMPORARY/server.err
server=''

stop_server() {
  local code=0
  [ -n "$server" ] || return 0
  kill -TERM "$server" 2>/dev/null || true
  wait "$server" || code=$?
  server=''
  return $code
}

clean_up() {
  stop_server || true
  rm -rf "$TEMPORARY"
}
trap clean_up EXIT
# Only so does what ends this script also stop the server.
trap 'exit 130' INT TERM

# Without what the caller's environment may say of another server.
start_server() {
  env -u DATABASE_URL -u ANNALS_API_KEY HOST=127.0.0.1 PORT=0 ANNALS_DATA_DIR="$TEMPORARY/data" \
    node packages/server/bin/annals.js serve >"$SERVER_OUT" 2>"$SERVER_ERR" &
  server=$!
  until grep -qs '^Ready after' "$SERVER_OUT"; do
    if ! kill -0 "$server" 2>/dev/null || [ "$SECONDS" -ge "$1" ]; then
      echo 'The server did not become ready:' >&2
      cat "$SERVER_OUT" "$SERVER_ERR" >&2
      return 1
    fi
    sleep 0.1
  done
}

# PostgreSQL does not run as root: the account that it gets must be able to pass through to its data.
chmod 711 "$TEMPORARY"
python3 -m venv "$VENV"
"$VENV/bin/pip" install -q --disable-pip-version-check -r tests/python_client/requirements.txt
npm run --silent build
start_server $((SECONDS + READY_WITHIN_S))
ANNALS_URL=$(sed -n 's/^Annals is ready at //p' "$SERVER_OUT")
ANNALS_API_KEY=$(sed -n 's/^API key: //p' "$SERVER_OUT")
export ANNALS_URL ANNALS_API_KEY

code=0
"$VENV/bin/python" tests/python_client/check.py >"$TEMPORARY/checks.out" || code=$?
# A server that does not stop cleanly is a failure too, and the counts stay the last line.
stop_server || { code=1 && echo 'The server did not stop cleanly:' && cat "$SERVER_ERR"; } >&2
cat "$TEMPORARY/checks.out"
exit $code
