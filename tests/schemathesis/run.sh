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

# shellcheck source=tests/own_server.sh
source tests/own_server.sh

LOOK_S=${1:-60}
SEED=${2:-1}

random_token() { node -e 'console.log(require("node:crypto").randomBytes(32).toString("hex"))'; }

make_room schemathesis
VENV=${3:-$TEMPORARY}/venv
keep_bytecode "$TEMPORARY/pycache"
install_python "$VENV" tests/schemathesis/requirements.txt
npm run --silent build
ANNALS_API_KEY=$(random_token)
ANNALS_ADMIN_TOKEN=$(random_token)
export ANNALS_API_KEY ANNALS_ADMIN_TOKEN
start_server LOG_LEVEL=warn ANNALS_API_KEY="$ANNALS_API_KEY"
url=$(server_url)

code=0
SETTINGS=$PWD/tests/schemathesis
cd "$TEMPORARY"
# look PHASES SECONDS OPTION…
look() {
  local phases=$1 seconds=$2
  shift 2
  SCHEMATHESIS_HOOKS=hooks PYTHONPATH="$SETTINGS" \
    "$VENV/bin/st" --config-file "$SETTINGS/schemathesis.toml" run "$url/openapi.json" --phases "$phases" \
    --checks all --max-time "$seconds" --seed "$SEED" --continue-on-failure --no-color "$@" || code=$?
}
# These refuse what no schema can say: a pin that nobody gave out, two ways to name a thing at once, or none, a range
# that ends before it begins, a session twice, an answer beside another decision, an entry with the id of an input,
# bytes that are no OTLP, what only looks like a URL, bytes that the path does not name, or a file that is no zip of a skill. So only that
# valid requests are accepted is left to the acceptance tests and the fuzzer.
refusing=(
  addInput appendEntries appendToSessions compactSession createSkill createWebhook downloadAsset getContext openRequest putBlob
  readLatest readTimeline resolveRequest resolveRequests retractEntries takeLogs takeTraces
)
# Several looks, so that a slow machine leaves time for the links, too.
look examples,coverage,fuzzing $((LOOK_S / 2)) "${refusing[@]/#/--exclude-operation-id=}"
look examples,coverage,fuzzing $((LOOK_S / 6)) --exclude-checks positive_data_acceptance \
  "${refusing[@]/#/--include-operation-id=}"
look stateful $((LOOK_S / 2))
stop_server_cleanly || code=1
if grep '"level":[56]0' "$SERVER_ERR"; then
  echo 'The server logged faults, see above.'
  code=1
fi
exit $code
