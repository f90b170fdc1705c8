#!/bin/bash
# Makes the private environment .venv with what building and testing need.
# In:  $PYTHON (optional) names the interpreter; "check" as argument adds the tools of `make check`.
# Out: .venv/.ready (or .venv/.ready-check).
# A missing system package is installed with apt when root or sudo allows, else named with the command.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "simt setup: $*" >&2; }

# Name of the first interpreter that is 3.11 or later; empty if there is none.
find_python() {
    local name
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
}

# Debian's package prefix of an interpreter: python3 for the system's own, else python3.X.
package_prefix() {
    local version
    version=$("$1" -c 'import sys; print("python3.%d" % sys.version_info[1])')
    if [ "$(readlink -f "$(command -v python3)")" = "/usr/bin/$version" ]; then echo python3; else echo "$version"; fi
}

# Sets `missing` to the Debian packages that are still needed.
find_missing() {
    missing=()
    local py
    py=$(find_python)
    if [ -z "$py" ]; then
        if command -v python3 >/dev/null; then # there is one, but too old
            missing+=(python3.11 python3.11-venv python3.11-dev)
        else
            missing+=(python3 python3-venv python3-dev)
        fi
    else
        "$py" -c 'import venv, ensurepip' 2>/dev/null || missing+=("$(package_prefix "$py")-venv")
        "$py" -c 'import os, sys, sysconfig as s
sys.exit(not os.path.exists(s.get_path("include") + "/Python.h"))' || missing+=("$(package_prefix "$py")-dev")
    fi
    echo 'int main(void) { return 0; }' | ${CC:-cc} -x c - -o /dev/null >/dev/null 2>&1 || missing+=(gcc libc6-dev)
    if [ "${1:-}" = check ]; then
        command -v cppcheck >/dev/null || missing+=(cppcheck)
    fi
}

# Runs a command; what it says is shown only if it fails.
quietly() {
    local log status=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [ $status != 0 ]; then tail -20 "$log" >&2; fi
    rm -f "$log"
    return $status
}

install_missing() {
    local apt=(apt-get install -y --no-install-recommends "${missing[@]}") root=()
    if ! command -v apt-get >/dev/null; then
        say "missing: ${missing[*]} (Debian's names); install them with your system's package manager, then type make again"
        exit 1
    elif [ "$(id -u)" = 0 ]; then
        root=()
    elif ! command -v sudo >/dev/null; then
        say "missing: ${missing[*]}; type this as root, then make again as yourself:"
        say "    apt-get update && ${apt[*]}"
        exit 1
    elif sudo -n true 2>/dev/null; then
        root=(sudo -n)
    else
        say "missing: ${missing[*]}; type this, then make again:"
        say "    sudo apt-get update && sudo ${apt[*]}"
        exit 1
    fi
    say "installing ${missing[*]}"
    quietly "${root[@]}" apt-get update -q || true
    quietly "${root[@]}" env DEBIAN_FRONTEND=noninteractive "${apt[@]}" -q -o Dpkg::Use-Pty=0
}

find_missing "${1:-}"
if [ ${#missing[@]} -gt 0 ]; then
    install_missing
    find_missing "${1:-}"
    if [ ${#missing[@]} -gt 0 ]; then
        say "still missing after the install: ${missing[*]}"
        exit 1
    fi
fi

# A .venv that does not run (moved folder, interpreter gone) is made anew.
if [ -d .venv ] && ! .venv/bin/python -c 'import pip' >/dev/null 2>&1; then
    rm -rf .venv
fi
if [ ! -d .venv ]; then
    say "making .venv with $(find_python)"
    "$(find_python)" -m venv .venv
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1
say "installing the Python packages of tools/requirements-${1:-test}.txt"
.venv/bin/python -m pip install -q -r "tools/requirements-${1:-test}.txt" </dev/null
if [ "${1:-}" = check ]; then touch .venv/.ready-check; else touch .venv/.ready; fi
