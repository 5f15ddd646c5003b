#!/usr/bin/env bash
# Start the collection as readers do, each time in an empty folder, and say which start failed:
#
#     tests/fresh_start.sh [WORD]      only the starts whose name has the word
#
# Only the environments are made: the tests are collected, not run. Takes about half an hour, and 20 GB,
# which it deletes. A start that would download an interpreter fails, as it does where that is not allowed.
set -uo pipefail
chosen=${1:-}
source=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export UV_PYTHON_DOWNLOADS=never
failed=0

# The README's two lines with `$1` as Python; the second one only collects.
typed() { "$1" -m pip install tox && "$1" -m tox run -e site && "$1" -m tox run -e test -- --collect-only -q; }

start() { # NAME FUNCTION [ARGUMENT …]: run the function in a new clone, in a folder called $folder
    name=$1
    shift
    [[ $name == *"$chosen"* ]] || return 0
    rm -rf "${work:?}"/*
    git clone --quiet "$source" "$work/${folder:-clone}"
    began=$SECONDS
    if (cd "$work/${folder:-clone}" && "$@") >"$work/log" 2>&1; then
        echo "starts ($((SECONDS - began)) s): $name"
    else
        echo "FAILS ($((SECONDS - began)) s): $name"
        tail -n 25 "$work/log"
        failed=1
    fi
}

python_of() { # the interpreter of a version, without pyenv's shims
    if command -v pyenv >/dev/null; then echo "$(pyenv prefix "$(pyenv latest "$1")")/bin/python"; else command -v "python$1"; fi
}
shims() { PYENV_VERSION=$(pyenv latest "$1") typed python; }
in_venv() { "$(python_of "$1")" -m venv ../venv && typed ../venv/bin/python; }
system() { # nothing but the system's Python on PATH
    PATH=/usr/bin:/bin
    /usr/bin/python3 -m venv .venv && . .venv/bin/activate && typed python
}
without_home() { "$(python_of 3.13)" -m venv ../venv && (unset HOME && typed ../venv/bin/python); }
by_pip() {
    "$(python_of 3.13)" -m venv ../venv && . ../venv/bin/activate &&
        python -m pip install --upgrade pip && python -m pip install -r requirements.txt -c constraints.txt &&
        pytest --nbval --collect-only -q
}
by_uv() {
    "$(python_of 3.13)" -m venv ../venv && . ../venv/bin/activate && python -m pip install uv &&
        uv pip install -r requirements.txt -c constraints.txt && pytest --nbval --collect-only -q
}
from_archive() {
    "$(python_of 3.13)" -m venv ../venv && git archive --prefix=release/ HEAD | tar -x -C .. && cd ../release &&
        ../venv/bin/python -m pip install tox && ../venv/bin/python -m tox run -e test -- notebooks --collect-only -q
}
only() { # what the page of the lesson says, in an environment that has nothing else but a kernel
    "$(python_of 3.13)" -m venv ../venv && . ../venv/bin/activate && python -m pip install nbclient ipykernel filelock &&
        eval "python -m $(grep -om1 'pip install [^`]*' "md/$1.md")" && python offline/lay_out.py &&
        cd notebooks && HF_HUB_OFFLINE=1 jupyter execute --timeout=600 "$1.ipynb"
}
refuses() { # where what readers see would be stored from an older Python
    "$(python_of 3.11)" -m venv ../venv && ../venv/bin/python -m pip install tox || return 1
    ! said=$(../venv/bin/python -m tox run -e execute -- grain 2>&1) && echo "$said" &&
        [[ $said == *"python3.13 -m tox run -e execute"* ]]
}

for version in 3.11 3.12 3.13; do
    if command -v pyenv >/dev/null; then start "pyenv's shims, $version" shims "$version"; fi
    start "a virtual environment that is not on PATH, $version" in_venv "$version"
done
start "the system's Python alone" system
folder="für JAX" start "a folder with a blank and an umlaut" in_venv 3.13
start "no HOME" without_home
start "no tox, pip" by_pip
start "no tox, uv" by_uv
start "the archive of a release" from_archive
for lesson in huggingface_datasets tf_data_to_numpy grain; do
    start "only what $lesson says" only "$lesson"
done
start "execute on an older Python is refused" refuses
exit $failed
