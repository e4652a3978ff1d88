#!/usr/bin/env bash
# Installs what `npm run pack` made into empty folders, as an ordinary user where it runs as root, and uses it as a
# stranger would: `npx annals serve`, `npx annals demo`, the README's program as .mjs and as .ts, the wheel, and each
# package's own README with its framework. The last line is `N passed, N failed`.
# Everything runs on this Node and this Python. On others, too:
#     NODES="20.20.2 22.23.3 24.21.0" PYTHONS="python3.10 python3.13" bash release/check.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ROOT=$PWD
PACKS=$ROOT/release/dist
# The download of a stranger, without the binaries of PostgreSQL.
DOWNLOAD_MB_MAX=60
# It is looked for beside Node, where another Node has none.
GLOBALCONFIG=$(npm config get globalconfig)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/annals-release.XXXXXX")
passed=0
failed=0

# Waits for its PostgreSQL as well, which has its data below $WORK.
stop_service() {
  if [ -z "${SERVICE:-}" ]; then return; fi
  kill "$SERVICE" 2>/dev/null || true
  SERVICE=
  for _ in $(seq 150); do
    if [ ! -e "$WORK/app/.annals/postgres/postmaster.pid" ]; then return; fi
    sleep 0.2
  done
}
trap 'stop_service; rm -rf "$WORK"' EXIT

# As an ordinary user, with nothing of this environment but the way to Node and to the registry, for a bounded time.
stranger() {
  local as=()
  if [ "$(id -u)" = 0 ]; then as=(runuser -u nobody --); fi
  (cd "${PROJECT:-$WORK/app}" && "${as[@]}" timeout --kill-after=10 "${SECONDS_MAX:-900}" env -i PATH="$PATH" HOME="$WORK/home" LANG=C.UTF-8 \
    ${npm_config_registry:+npm_config_registry="$npm_config_registry"} npm_config_cache="$WORK/cache" npm_config_globalconfig="$GLOBALCONFIG" \
    ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} "$@")
}

check() {
  local name=$1 code=0
  shift
  printf -- '-- %s\n' "$name"
  "$@" >"$WORK/output" 2>&1 || code=$?
  if [ "$code" = 0 ]; then passed=$((passed + 1)); return; fi
  failed=$((failed + 1))
  printf 'FAILED %s: %s\n' "$code" "$name"
  tail -n 30 "$WORK/output"
}

install_packages() {
  stranger npm init -y
  # The service and what it depends on of ours. An adapter needs its framework, and is checked with it.
  local name tarballs=("$PACKS"/annals-[0-9]*.tgz)
  for name in $(node -p 'Object.keys(require("./packages/server/package.json").dependencies).join(" ")'); do
    case $name in @annals/*) tarballs+=("$PACKS/annals-${name#@annals/}"-[0-9]*.tgz) ;; esac
  done
  stranger npm install --no-audit --no-fund "${tarballs[@]}"
}

downloads_little() {
  local all database
  all=$(du -sm "$WORK/cache/_cacache/content-v2" | cut -f1)
  database=$(find "$WORK/cache/_cacache/content-v2" -type f -size +15M -printf '%s\n' | sort -n | tail -n 1)
  all=$((all - ${database:-0} / 1048576))
  printf '%s MB without PostgreSQL, at most %s\n' "$all" "$DOWNLOAD_MB_MAX"
  [ "$all" -le "$DOWNLOAD_MB_MAX" ]
}

has_no_development_tools() {
  for name in typescript vitest vite @biomejs rolldown playwright-core; do
    if [ -e "$WORK/app/node_modules/$name" ]; then printf '%s is installed\n' "$name"; return 1; fi
  done
}

# What few need is not downloaded by all; who needs it is told what to install.
names_packages_of_s3() {
  local said
  said=$(stranger ANNALS_S3_BUCKET=any npx --no-install annals serve 2>&1) && return 1
  printf '%s\n' "$said"
  [[ $said == *'npm install @aws-sdk/client-s3 @aws-sdk/s3-request-presigner'* ]]
}

serve() {
  SECONDS_MAX=0 stranger PORT=0 npx --no-install annals serve >"$WORK/service.log" 2>&1 &
  SERVICE=$!
  local started=$SECONDS
  # The log's lines and those for people are written apart: either may come first.
  until grep -qs '^Ready after' "$WORK/service.log" && grep -qs 'Server listening' "$WORK/service.log"; do
    if ! kill -0 "$SERVICE" 2>/dev/null || [ $((SECONDS - started)) -gt 60 ]; then cat "$WORK/service.log"; return 1; fi
    sleep 0.2
  done
  URL=$(sed -n 's/^Annals is ready at //p' "$WORK/service.log")
  KEY=$(sed -n 's/^API key: //p' "$WORK/service.log")
  # To the service itself, if it is known: npx need not pass a signal on.
  local pid
  pid=$(sed -nE 's/^\{.*"pid":([0-9]+).*Server listening.*/\1/p' "$WORK/service.log" | head -n 1)
  SERVICE=${pid:-$SERVICE}
  [ -n "$URL" ] && [ -n "$KEY" ] && [ -n "$pid" ]
}

demo() {
  stranger npx --no-install annals demo
  stranger npx --no-install annals sessions list --limit 3
}

# The README's program for the client, as a user would paste it.
paste_program() {
  awk '/^```ts$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' README.md >"$1"
  grep -q '@annals/client' "$1"
}

runs_as_mjs() {
  paste_program "$WORK/app/program.mjs"
  stranger ANNALS_URL="$URL" ANNALS_API_KEY="$KEY" node program.mjs
}

# Checked and compiled by the repository's TypeScript with the settings of a new project.
runs_as_ts() {
  mkdir -p "$WORK/app/ts"
  paste_program "$WORK/app/ts/program.ts"
  printf '{"type":"module"}\n' >"$WORK/app/ts/package.json"
  node node_modules/typescript/bin/tsc --strict --target es2022 --module nodenext --moduleResolution nodenext \
    --types node --typeRoots node_modules/@types "$WORK/app/ts/program.ts"
  stranger ANNALS_URL="$URL" ANNALS_API_KEY="$KEY" node ts/program.js
}

wheel_works() {
  stranger "$1" -m venv --clear "$WORK/app/venv"
  stranger "$WORK/app/venv/bin/pip" install -q --disable-pip-version-check "$PACKS"/annals-*.whl
  awk '/^```python$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' README.md >"$WORK/app/program.py"
  stranger ANNALS_URL="$URL" ANNALS_API_KEY="$KEY" "$WORK/app/venv/bin/python" program.py
}

# npm's package of a Node, in a folder of its own. The install script that picks one for this machine may be switched off.
install_node() {
  local script=node_modules/node/installArchSpecificPackage.js
  npm install --prefix "$WORK/node-$1" --no-audit --no-fund "node@$1"
  [ -x "$WORK/node-$1/node_modules/node/bin/node" ] || (cd "$WORK/node-$1" && node "$script")
  chmod -R a+rX "$WORK/node-$1"
  "$WORK/node-$1/node_modules/node/bin/node" --version
}

# A package of ours and its framework in an empty project, and the program of its README.
readme_runs() {
  local PROJECT=$WORK/readmes/$2-$(basename "$1")
  node release/readme_project.js "$1" "$PACKS" "$PROJECT" || return
  if [ "$(id -u)" = 0 ]; then chown -R nobody "$PROJECT"; fi
  stranger npm install --no-audit --no-fund && stranger ANNALS_URL="$URL" ANNALS_API_KEY="$KEY" node program.mjs
}

readmes_run() {
  local folder
  for folder in packages/client packages/react packages/adapters/*; do
    if [ -f "$folder/package.json" ]; then check "the README of $folder, on Node $1" readme_runs "$folder" "$1"; fi
  done
}

mkdir "$WORK/app" "$WORK/readmes" "$WORK/home" "$WORK/cache"
chmod 755 "$WORK"
if [ "$(id -u)" = 0 ]; then chown nobody "$WORK/app" "$WORK/readmes" "$WORK/home" "$WORK/cache"; fi
# A folder that the stranger may read, wherever the clone is.
cp -r "$PACKS" "$WORK/packs"
chmod -R a+rX "$WORK/packs"
PACKS=$WORK/packs

check 'the packages install into an empty folder' install_packages
check 'the download is small' downloads_little
check 'no development tools come along' has_no_development_tools
check 'a bucket without its packages is refused' names_packages_of_s3
check 'npx annals serve' serve
if [ -n "${KEY:-}" ]; then
  check 'npx annals demo' demo
  check "the README's program as .mjs" runs_as_mjs
  check "the README's program as .ts" runs_as_ts
  for python in ${PYTHONS:-python3}; do check "the wheel, with $python" wheel_works "$python"; done
  if [ -z "${NODES:-}" ]; then readmes_run "$(node -p process.versions.node)"; fi
  for version in ${NODES:-}; do
    check "Node $version is installed" install_node "$version"
    PATH=$WORK/node-$version/node_modules/node/bin:$PATH readmes_run "$version"
  done
fi
stop_service
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
