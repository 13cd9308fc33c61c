# Makes .venv with the pinned dependencies; does nothing when it is there and up to date.
# To be sourced from the root of the repository, under `set -euo pipefail`; sets $venv:
#   . scripts/lib/venv.sh                        # what users need
#   extras=dev,postgres . scripts/lib/venv.sh    # and what developers need
# PYTHON names the interpreter to use, when python3 is not the one.

venv=.venv
hybrid_stamps=$venv/hybrid-stamps

hybrid_say() { printf '%s\n' "$*" >&2; }

# Print the first Python that is new enough. Of an environment that is activated, ours among them, the
# one that it was made from: it stays the same when the environment is left, or made again.
hybrid_find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14 python; do
    if "$candidate" -c 'import os, sys
if sys.version_info < (3, 11): sys.exit(1)
print(os.path.realpath(sys._base_executable))' 2>/dev/null; then return; fi
  done
  hybrid_say "Python 3.11 or newer is needed; none of python3, python3.11 ... python3.14 is there and new enough."
  hybrid_say "Install it (Debian 12, Ubuntu 24.04: apt-get install python3 python3-venv), or name it: PYTHON=/path/to/python3 $0"
  return 1
}

# Print what the environment was made from: when that changes, it is made again.
hybrid_stamp() {
  { "$1" -c 'import sys; print(sys.version)'; cat pyproject.toml constraints.txt; } | sha256sum | cut -d' ' -f1
}

# Make the environment unless there is one that works and was made here, with this Python.
hybrid_make_venv() {
  local python=$1 place="$PWD $1" said
  if "$venv/bin/python" -m pip --version >/dev/null 2>&1 &&
    [ "$(cat "$hybrid_stamps/place" 2>/dev/null || printf '%s' "$place")" = "$place" ]; then
    return
  fi
  if ! said=$("$python" -m venv --clear "$venv" 2>&1); then
    hybrid_say "$said"
    hybrid_say "$python cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv"
    return 1
  fi
  mkdir -p "$hybrid_stamps"
  printf '%s' "$place" >"$hybrid_stamps/place"
}

hybrid_install() {
  local pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt)
  local said
  # The build tool comes first and pinned, so that pip fetches no other of its own choice.
  if ! said=$({ "${pip[@]}" setuptools && "${pip[@]}" --no-build-isolation --editable ".${1:+[$1]}"; } 2>&1); then
    hybrid_say "$said"
    hybrid_say "pip could not install the pinned dependencies; what it said is above."
    hybrid_say "Can it reach a package registry, and is there a ray for $("$venv/bin/python" --version)?"
    return 1
  fi
}

hybrid_ready() {
  local extras=$1 python stamp made
  python=$(hybrid_find_python) || return 1
  stamp=$(hybrid_stamp "$python")
  # What developers install includes what users need.
  for made in "$hybrid_stamps/for-$extras" "$hybrid_stamps/for-dev,postgres"; do
    if [ "$(cat "$hybrid_stamps/place" "$made" 2>/dev/null)" = "$PWD $python$stamp" ]; then return; fi
  done
  hybrid_say "Making $venv with the pinned dependencies; a minute or two the first time ..."
  hybrid_make_venv "$python" || return 1
  mkdir -p "$hybrid_stamps"
  rm -f "$hybrid_stamps"/for-*
  hybrid_install "$extras" || return 1
  printf '%s' "$PWD $python" >"$hybrid_stamps/place"
  printf '%s' "$stamp" >"$hybrid_stamps/for-$extras"
}

hybrid_ready "${extras:-}"
