#!/bin/sh
# Runs the interoperability tests: other people's NDN tools against the built `trunkline`.
# TRUNKLINE_BIN names the binary (default dist/bin/trunkline). Arguments go to pytest.
# What must be downloaded lies under .cache/interop and is made once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache="$root/.cache/interop"
TRUNKLINE_BIN=${TRUNKLINE_BIN:-"$root/dist/bin/trunkline"}
export TRUNKLINE_BIN
if [ ! -x "$TRUNKLINE_BIN" ]; then
    echo "$TRUNKLINE_BIN: no such program; run make build or set TRUNKLINE_BIN" >&2
    exit 2
fi

mkdir -p "$cache"
venv="$cache/venv"
if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
    rm -rf "$venv"
    "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/requirements.txt"
fi

# NDNts is a second witness; its tests are skipped where there is no Node.js.
if command -v npm >/dev/null 2>&1; then
    ndnts="$cache/ndnts"
    if ! cmp -s "$here/ndnts/package-lock.json" "$ndnts/installed-lock.json"; then
        rm -rf "$ndnts"
        mkdir -p "$ndnts"
        cp "$here/ndnts/package.json" "$here/ndnts/package-lock.json" "$ndnts/"
        if (cd "$ndnts" && npm ci --silent --no-audit --no-fund >/dev/null 2>&1); then
            cp "$here/ndnts/package-lock.json" "$ndnts/installed-lock.json"
        fi
    fi
    if [ -f "$ndnts/installed-lock.json" ]; then
        cp "$here"/ndnts/*.mjs "$ndnts/"
        NDNTS_DIR="$ndnts"
        export NDNTS_DIR
    fi
fi

exec "$venv/bin/python" -m pytest -o cache_dir="$cache/pytest" "$here" "$@"
