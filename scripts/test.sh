#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests that are for every change: all but
# those with the labels lab-long, hosts-long and portable, which scripts/soak.sh runs. No test is
# repeated until it passes; what tests/quarantine.txt names is run and reported, but does not fail
# the run.
#   SHMEMCTL_FUZZ_SECONDS  seconds for each fuzz target (default 5; 0 skips fuzzing)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
# shellcheck disable=SC2086 # lists of words
install_packages $build_packages $test_packages $lab_packages $hosts_packages
CMAKE_ARGS="-DSHMEMCTL_TESTS=ON" scripts/build.sh release

echo "== fuzz: each parser over its corpus ($SECONDS s)" >&2
# One seed, so that a change is judged by itself; scripts/soak.sh looks for what is new.
SHMEMCTL_FUZZ_SEED=1 SHMEMCTL_FUZZ_RUNTIME=OFF scripts/fuzz.sh "${SHMEMCTL_FUZZ_SECONDS:-5}"

echo "== tests ($SECONDS s)" >&2
status=0
scripts/run_tests.sh build -j "$((2 * $(nproc)))" -LE 'lab-long|hosts-long|portable' || status=$?
echo "== done in $SECONDS s" >&2
exit "$status"
