#!/usr/bin/env bash
# Schemathesis against a server of its own, from nothing: a virtual environment, a server on an embedded PostgreSQL,
# every check in every phase (examples, coverage, fuzzing, stateful along the links), and the server stopped again.
# Any finding is a failure.
#
#     bash tests/schemathesis/run.sh [SECONDS [SEED [DIRECTORY]]]
#
# SECONDS (60) is how long it may look; DIRECTORY is where the environment goes, and is kept; without one, nothing is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

LOOK_S=${1:-60}
SEED=${2:-1}
READY_WITHIN_S=120
TEMPORARY=$(mktemp -d "${TMPDIR:-/tmp}/annals-schemathesis.XXXXXX")
VENV=${3:-$TEMPORARY}/venv
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

random_token() { node -e 'console.log(require("node:crypto").randomBytes(32).toString("hex"))'; }

# Without what the caller's environment may say of another server.
start_server() {
  env -u DATABASE_URL HOST=127.0.0.1 PORT=0 LOG_LEVEL=warn ANNALS_DATA_DIR="$TEMPORARY/data" \
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
"$VENV/bin/pip" install -q --disable-pip-version-check -r tests/schemathesis/requirements.txt
npm run --silent build
ANNALS_API_KEY=$(random_token)
ANNALS_ADMIN_TOKEN=$(random_token)
export ANNALS_API_KEY ANNALS_ADMIN_TOKEN
start_server $((SECONDS + READY_WITHIN_S))
url=$(sed -n 's/^Annals is ready at //p' "$SERVER_OUT")

code=0
SETTINGS=$PWD/tests/schemathesis
cd "$TEMPORARY"
look() {
  SCHEMATHESIS_HOOKS=hooks PYTHONPATH="$SETTINGS" PYTHONDONTWRITEBYTECODE=1 \
    "$VENV/bin/st" --config-file "$SETTINGS/schemathesis.toml" run "$url/openapi.json" --phases "$1" \
    --checks all --max-time $((LOOK_S / 2)) --seed "$SEED" --continue-on-failure --no-color || code=$?
}
# Two looks, so that a slow machine leaves time for the links, too.
look examples,coverage,fuzzing
look stateful
stop_server || { code=1 && echo 'The server did not stop cleanly:' && cat "$SERVER_ERR"; } >&2
if grep '"level":[56]0' "$SERVER_ERR"; then
  echo 'The server logged faults, see above.'
  code=1
fi
exit $code
