#!/usr/bin/env bash
# Writes constraints.txt: the version of everything that a fresh environment gets today.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"${PYTHON:-python3}" -m venv "$fresh"
"$fresh/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev,postgres]'
{
  echo "# Exact versions of everything that \`pip install -e .[dev,postgres]\` brings, on Linux with"
  echo "# $("$fresh/bin/python" --version). Written by scripts/lib/pin.sh (make pins); not by hand."
  "$fresh/bin/python" -m pip list --format=freeze --exclude-editable --exclude pip | LC_ALL=C sort -f
} >"$fresh/constraints.txt"
mv "$fresh/constraints.txt" constraints.txt
