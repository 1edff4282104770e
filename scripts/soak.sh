#!/usr/bin/env bash
# What is too long for every change: ten minutes of fuzzing for each parser, the whole test suite
# under AddressSanitizer + UndefinedBehaviorSanitizer and under ThreadSanitizer, and clang-tidy.
#   SHMEMCTL_FUZZ_SECONDS  seconds for each fuzz target (default 600)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages $test_packages clang-tidy
for preset in asan tsan; do
  echo "== tests under $preset" >&2
  CMAKE_ARGS="-DSHMEMCTL_TESTS=ON" scripts/build.sh "$preset"
  ctest --test-dir "build-$preset" --output-on-failure -j "$(nproc)"
done
echo "== clang-tidy" >&2
scripts/build.sh tidy tidy
echo "== fuzz" >&2
scripts/fuzz.sh "${SHMEMCTL_FUZZ_SECONDS:-600}"
echo "soak: clean" >&2
