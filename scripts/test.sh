#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test.
#   SHMEMCTL_FUZZ_SECONDS  seconds for each fuzz target (default 5; 0 skips fuzzing)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages $test_packages $lab_packages
CMAKE_ARGS="-DSHMEMCTL_TESTS=ON" scripts/build.sh release

echo "== fuzz: each parser over its corpus" >&2
# One seed, so that a change is judged by itself; scripts/soak.sh looks for what is new.
SHMEMCTL_FUZZ_SEED=1 scripts/fuzz.sh "${SHMEMCTL_FUZZ_SECONDS:-5}"

echo "== tests" >&2
exec ctest --test-dir build --output-on-failure -j "$(nproc)"
