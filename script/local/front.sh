#!/bin/sh
# Finds a Python that works and hands over to bootstrap.py: front.sh COMMAND [ARGUMENTS].
# The environment is made with Python >= 3.12; a name on the path may be a shim that does not run,
# so each is run.
set -eu

local_folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
clone=$(CDPATH='' cd -- "$local_folder/../.." && pwd -P)

runs() {
    "$1" -c 'import sys, ssl, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' \
        </dev/null >/dev/null 2>&1
}

find_python() {
    for name in python3.14 python3.13 python3.12 python3; do
        if path=$(command -v "$name" 2>/dev/null) && runs "$path"; then
            printf '%s\n' "$path"
            return 0
        fi
    done
    for version in 3.14 3.13 3.12; do
        for path in "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$version"*/bin/python3; do
            if [ -x "$path" ] && runs "$path"; then
                printf '%s\n' "$path"
                return 0
            fi
        done
    done
    return 1
}

install_uv() {
    "$clone/.uv/bin/python" -m pip install --quiet --require-hashes \
        -r "$local_folder/uv.txt" "$@" </dev/null >/dev/null 2>&1
}

# uv can fetch a Python where the network allows; an older Python can fetch uv.
fetch_python() {
    uv=$(command -v uv 2>/dev/null || true)
    if [ -z "$uv" ]; then
        uv=$clone/.uv/bin/uv
        "$uv" --version >/dev/null 2>&1 || {
            python3 -m venv --clear "$clone/.uv" >/dev/null 2>&1 || return 1
            # The second time with what the system trusts; see bootstrap.py.
            install_uv || install_uv --cert /etc/ssl/certs/ca-certificates.crt || return 1
        }
    fi
    UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-1}
    export UV_SYSTEM_CERTS
    "$uv" python install 3.13 </dev/null >/dev/null 2>&1 || return 1
    found=$("$uv" python find --managed-python 3.13 2>/dev/null) && runs "$found" &&
        printf '%s\n' "$found"
}

python=$clone/.venv/bin/python
if ! runs "$python"; then
    if ! python=$(find_python); then
        echo "No Python 3.12 or newer found; asking uv for one." >&2
        if ! python=$(fetch_python); then
            echo "Recollect needs Python 3.12 or newer with its venv module, and neither this" \
                "machine has one nor could uv fetch it: install it (on Debian python3 and" \
                "python3-venv, or from python.org), then start again." >&2
            exit 1
        fi
    fi
fi
exec "$python" "$local_folder/bootstrap.py" "$@"
