#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests that are for every change: all but
# those with the label lab-long, which scripts/soak.sh runs. A test that fails is run a second time;
# if it passes then, it is named at the end.
#   SHMEMCTL_FUZZ_SECONDS  seconds for each fuzz target (default 5; 0 skips fuzzing)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages $test_packages $lab_packages
CMAKE_ARGS="-DSHMEMCTL_TESTS=ON" scripts/build.sh release

echo "== fuzz: each parser over its corpus ($SECONDS s)" >&2
# One seed, so that a change is judged by itself; scripts/soak.sh looks for what is new.
SHMEMCTL_FUZZ_SEED=1 SHMEMCTL_FUZZ_RUNTIME=OFF scripts/fuzz.sh "${SHMEMCTL_FUZZ_SECONDS:-5}"

# The lines of ctest's output $1 that name a test which passed after it had failed.
passed_at_second_try() {
  awk '/ Test +#[0-9]+: / {
         name = $0
         sub(/.* Test +#[0-9]+: /, "", name)
         sub(/ \.\.+.*/, "", name)
         if ($0 ~ /\*\*\*(Failed|Timeout|Exception)/) failed[name] = 1
         else if ($0 ~ / Passed +[0-9.]+ sec$/ && name in failed)
           print "tests: " name ": failed, passed at the second try"
       }' "$1"
}

echo "== tests ($SECONDS s)" >&2
log=build/tests.log
status=0
ctest --test-dir build --output-on-failure -j "$(nproc)" -LE lab-long --repeat until-pass:2 |
  tee "$log" || status=$?
passed_at_second_try "$log"
echo "== done in $SECONDS s" >&2
exit "$status"
