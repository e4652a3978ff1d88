# shellcheck shell=bash
# A server of a script's own, on an embedded PostgreSQL in a temporary directory, and its end with the script: what the
# checks that are written in Python share. Source it in the root of the repository, then call `make_room NAME`.

# shellcheck source=.ci/python_environment.sh
source .ci/python_environment.sh

READY_WITHIN_S=120
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

# make_room NAME: the directory TEMPORARY, and the files SERVER_OUT and SERVER_ERR in it.
make_room() {
  TEMPORARY=$(mktemp -d "${TMPDIR:-/tmp}/annals-$1.XXXXXX")
  SERVER_OUT=$TEMPORARY/server.out
  SERVER_ERR=$TEMPORARY/server.err
  trap clean_up EXIT
  # Only so does what ends this script also stop the server.
  trap 'exit 130' INT TERM
  # PostgreSQL does not run as root: the account that it gets must be able to pass through to its data.
  chmod 711 "$TEMPORARY"
}

# start_server VARIABLE=VALUE…: returns when it is ready, without what the caller's environment says of another server.
start_server() {
  local until_s=$((SECONDS + READY_WITHIN_S))
  env -u DATABASE_URL -u ANNALS_API_KEY HOST=127.0.0.1 PORT=0 ANNALS_DATA_DIR="$TEMPORARY/data" "$@" \
    node packages/server/bin/annals.js serve >"$SERVER_OUT" 2>"$SERVER_ERR" &
  server=$!
  until grep -qs '^Ready after' "$SERVER_OUT"; do
    if ! kill -0 "$server" 2>/dev/null || [ "$SECONDS" -ge "$until_s" ]; then
      echo 'The server did not become ready:' >&2
      cat "$SERVER_OUT" "$SERVER_ERR" >&2
      return 1
    fi
    sleep 0.1
  done
}

server_url() { sed -n 's/^Annals is ready at //p' "$SERVER_OUT"; }

# A server that does not stop cleanly is a failure too.
stop_server_cleanly() {
  stop_server && return 0
  { echo 'The server did not stop cleanly:' && cat "$SERVER_ERR"; } >&2
  return 1
}
