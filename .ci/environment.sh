# shellcheck shell=bash
# What the steps need beside npm's packages, installed where it is missing. Source it after steps.sh.

POSTGRES_BIN=/usr/lib/postgresql/15/bin

# shellcheck source=.ci/python_environment.sh
source .ci/python_environment.sh

# PostgreSQL does not run as root.
as_postgres() { (cd "$WORK" && if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi); }

# with_python KIND NAME COMMAND…: a step of a kind (check or counted) that needs the Python that the client supports.
with_python() {
  if python3 -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    "$@"
  else
    skip "$2" 'there is no python3 of 3.10 or newer with venv'
  fi
}

# What some tests use and a bare image may lack: without it they would be skipped.
install_tools() {
  local missing=()
  for program in curl zsh fish; do command -v "$program" >/dev/null || missing+=("$program"); done
  # Scores the unit.
  command -v systemd-analyze >/dev/null || missing+=(systemd)
  # Sets the clocks of torture's processes.
  command -v faketime >/dev/null || missing+=(faketime)
  if [ ${#missing[@]} = 0 ]; then return; fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" ca-certificates
}

# For the tests of the console, which are skipped where there is none. They take longer with all of Chromium.
install_chromium() {
  if [ -x /usr/bin/chromium-headless-shell ]; then return; fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium-headless-shell || [ -x /usr/bin/chromium ]
}

tools() {
  if [ "$(id -u)" != 0 ]; then return; fi
  check 'shells, curl and faketime are installed' install_tools
  check 'Chromium is installed' install_chromium
}

install_postgres_15() {
  if [ -x "$POSTGRES_BIN/initdb" ] && [ -x /usr/sbin/pgbouncer ]; then return; fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql-15 pgbouncer
}

# For the tests of vectors, which are skipped where there is none: not every mirror has it.
install_pgvector() {
  [ -f /usr/share/postgresql/15/extension/vector.control ] && return
  [ "$(id -u)" = 0 ] && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-15-pgvector
}

# A cluster of our own, on a Unix socket only, with fsync as it comes (on). None that exists is touched.
start_postgres_15() {
  if [ "$(id -u)" = 0 ]; then chown postgres "$WORK"; fi
  as_postgres "$POSTGRES_BIN/initdb" --pgdata="$WORK/cluster" --username=annals --auth=trust \
    --encoding=UTF8 --no-locale >"$WORK/initdb.log" 2>&1 || { cat "$WORK/initdb.log"; return 1; }
  as_postgres "$POSTGRES_BIN/pg_ctl" start --wait --silent --pgdata="$WORK/cluster" --log="$WORK/cluster.log" \
    --options="-c listen_addresses='' -c unix_socket_directories='$WORK' -c max_connections=300" || { cat "$WORK/cluster.log"; return 1; }
}

# npm's package of Node 24, in a folder of its own. The install script that picks one for this machine may be switched off.
install_node_24() {
  local script=node_modules/node/installArchSpecificPackage.js
  npm install --prefix "$WORK/node24" --no-audit --no-fund node@24.21.0
  [ -x "$WORK/node24/node_modules/node/bin/node" ] || (cd "$WORK/node24" && node "$script")
  "$WORK/node24/node_modules/node/bin/node" --version
}

# promtool comes with it.
install_prometheus() {
  if command -v promtool >/dev/null; then return; fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus
}

# on_postgres_15 TEST…: runs these tests there.
on_postgres_15() {
  if [ "$(id -u)" != 0 ] && [ ! -x "$POSTGRES_BIN/initdb" ]; then
    skip 'PostgreSQL 15' 'it is not installed, and only root can install it'
    return
  fi
  if [ "$(id -u)" = 0 ]; then check 'PostgreSQL 15 is installed' install_postgres_15; fi
  install_pgvector >"$WORK/pgvector.log" 2>&1 || skip 'tests of vectors' 'postgresql-15-pgvector cannot be installed here'
  check 'PostgreSQL 15 starts' start_postgres_15
  if [ -f "$WORK/cluster/postmaster.pid" ]; then
    suite 'tests on PostgreSQL 15' TEST_DATABASE_URL="postgresql://annals@/postgres?host=$WORK&port=5432" \
      -- "$@"
    # Why it refused or ended connections, where a test says that it could not be reached.
    grep -hE 'FATAL|PANIC|by signal|recover' "$WORK/cluster.log" | tail -n 20 || true
  fi
}
