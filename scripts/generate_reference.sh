#!/usr/bin/env bash
# Writes the generated pages of docs/reference from the program's own tables: one page for each
# subcommand, options, findings, exit codes, keys of the report. Man pages are not kept in the tree:
# `cmake --install` asks the program for them. --man FOLDER writes them to look at.
# Usage: scripts/generate_reference.sh [--man FOLDER] [BINARY]   (default build/shmemctl)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
man=
if [ "${1:-}" = --man ]; then
  man=${2:?--man takes a folder}
  shift 2
fi
binary=${1:-$root/build/shmemctl}
[ -x "$binary" ] || { echo "generate_reference: no $binary: run scripts/build.sh first" >&2; exit 2; }
if [ -n "$man" ]; then
  "$binary" reference man "$man"
  echo "man pages are in $man: man -l $man/man1/shmemctl.1"
  exit
fi
# A page of a subcommand that is gone goes too.
rm -rf "$root/docs/reference/commands"
"$binary" reference markdown "$root/docs/reference"
echo "docs/reference is that of $("$binary" --version | head -n 1)"
