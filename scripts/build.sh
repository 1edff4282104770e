#!/usr/bin/env bash
# Builds a preset: scripts/build.sh [release|debug|asan|tsan|no-cuda|fuzz|tidy|portable] [ninja arguments...]
# CMAKE_ARGS in the environment holds further arguments for cmake.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
. scripts/progress.sh
preset=${1:-release}
[ $# -eq 0 ] || shift
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages
unpack_packages
build="build-$preset"
[ "$preset" != release ] || build=build
if [ ! -f "$build/build.ninja" ] || [ -n "${CMAKE_ARGS:-}" ]; then
  log=$(mktemp)
  # shellcheck disable=SC2086
  if ! cmake --preset "$preset" ${CMAKE_ARGS:-} >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    exit 3
  fi
  rm -f "$log"
  echo "scripts: building into $build/ (from nothing on two cores: a quarter of an hour, with tests half an hour)" >&2
fi
ninja_with_progress -C "$build" "$@"
