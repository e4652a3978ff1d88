#!/usr/bin/env bash
# The conformance suite of the Model Context Protocol against /mcp of a server of its own, in both versions of the
# protocol. It needs Node 22 or newer. A scenario that fails and is not listed as expected to, or that is listed and
# passes, fails this script.
#
#     bash tests/mcp_conformance/run.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# shellcheck source=tests/own_server.sh
source tests/own_server.sh

SUITE=@modelcontextprotocol/conformance
make_room mcp
npm install --prefix "$TEMPORARY" --no-audit --no-fund --ignore-scripts --silent $SUITE@0.2.0-alpha.12
npm run --silent build
start_server
ANNALS_API_KEY=$(sed -n 's/^API key: //p' "$SERVER_OUT")
export ANNALS_API_KEY

code=0
for version in 2026-07-28 2025-11-25; do
  node tests/mcp_conformance/with_key.mjs "$(server_url)" \
    "$TEMPORARY/node_modules/$SUITE/dist/index.js" server --suite all --spec-version $version \
    --expected-failures tests/mcp_conformance/not_applicable_$version.yml -o "$TEMPORARY/results-$version" \
    >"$TEMPORARY/$version.out" 2>&1 || { code=1 && cat "$TEMPORARY/$version.out"; }
  sed -n '/=== SUMMARY ===/,$p' "$TEMPORARY/$version.out"
done
stop_server_cleanly || code=1
exit $code
