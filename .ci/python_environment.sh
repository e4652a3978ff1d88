# shellcheck shell=bash
# Environments of Python's packages. Source it.

UV_VERSION=0.13.9

# install_uv DIRECTORY: an installer that needs a fifth of pip's processor time; UV names it from then on, if it came.
install_uv() {
  if [ -n "${UV:-}" ]; then return; fi
  if python3 -m venv "$1" && "$1/bin/pip" install -q --no-compile --disable-pip-version-check "uv==$UV_VERSION"; then
    export UV=$1/bin/uv
  fi
}

# with_uv COMMAND…: where pip's settings say that packages are.
with_uv() {
  env UV_NO_PROGRESS=1 ${PIP_INDEX_URL:+UV_DEFAULT_INDEX="$PIP_INDEX_URL"} ${PIP_EXTRA_INDEX_URL:+UV_INDEX="$PIP_EXTRA_INDEX_URL"} \
    ${PIP_FIND_LINKS:+UV_FIND_LINKS="$PIP_FIND_LINKS"} ${PIP_CERT:+SSL_CERT_FILE="$PIP_CERT"} "$UV" "$@"
}

# keep_bytecode DIRECTORY: each module is compiled once, when it is first imported, and nothing of that is in the working tree.
keep_bytecode() {
  unset PYTHONDONTWRITEBYTECODE
  export PYTHONPYCACHEPREFIX=$1
}

# install_python DIRECTORY REQUIREMENTS [PYTHON]: a virtual environment, by uv where there is one, or else by pip.
install_python() {
  local python=${3:-python3}
  if [ -n "${UV:-}" ]; then
    if with_uv venv -q --python "$(command -v "$python")" "$1" && with_uv pip install -q --python "$1/bin/python" -r "$2"; then return; fi
    rm -rf "$1"
  fi
  "$python" -m venv "$1"
  "$1/bin/pip" install -q --disable-pip-version-check -r "$2"
}
