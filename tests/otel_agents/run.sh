#!/usr/bin/env bash
# Nine agents that are instrumented with Python packages of others, whose model is scripted, report to a service. Makes a
# virtual environment with the packages and runs the tests of tests/gate/otel.test.ts, which are skipped without it.
#
#     bash tests/otel_agents/run.sh [DIRECTORY]
#
# DIRECTORY is where the environment goes, and is kept; without one, nothing is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

TEMPORARY=$(mktemp -d "${TMPDIR:-/tmp}/annals-otel.XXXXXX")
trap 'rm -rf "$TEMPORARY"' EXIT
VENV=${1:-$TEMPORARY}/venv
if [ ! -x "$VENV/bin/python" ]; then
  python3 -m venv "$VENV"
  "$VENV/bin/pip" install -q --disable-pip-version-check -r tests/otel_agents/requirements.txt
fi
npm run --silent build
OTEL_AGENTS_PYTHON=$VENV/bin/python npx vitest run --project 'gate*' tests/gate/otel.test.ts
