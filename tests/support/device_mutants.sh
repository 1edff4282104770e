#!/usr/bin/env bash
# Compiles the tests on threads of the host with each mutant of the device headers in turn
# (tests/mutants/table.py); they must then fail under ThreadSanitizer.
# Usage: device_mutants.sh [MUTANT...], where "none" is the headers as they are
set -euo pipefail
cd "$(dirname "$0")/../.."
mutants=("$@")
if [[ ${#mutants[@]} -eq 0 ]]; then
  list=$(python3 tests/mutants/mutate.py list host)
  mapfile -t mutants <<<"none"$'\n'"$list"
fi
device=(tests/unit/kernels/device_plan/on_host_test.cpp tests/unit/kernels/device_plan/collectives_on_host_test.cpp
        tests/unit/kernels/device_plan/fences_on_host_test.cpp tests/unit/kernels/device_plan/operations_on_host_test.cpp)
moe=(-DFMT_HEADER_ONLY tests/unit/kernels/device_plan/moe_internode_test.cpp
     tests/unit/kernels/device_plan/moe_low_latency_internode_test.cpp tests/unit/kernels/device_plan/moe_test.cpp
     tests/unit/kernels/device_plan/moe_call_test.cpp src/model/moe/oracle.cpp src/model/moe/routing.cpp src/model/moe/shape_rules.cpp src/base/error.cpp src/base/text.cpp)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
survivors=0
for mutant in "${mutants[@]}"; do
  rm -rf "$folder/include"
  [[ $mutant == none ]] || python3 tests/mutants/mutate.py write --host "$mutant" "$folder/include"
  case $mutant in
    none) sources=("${device[@]}" "${moe[@]}") ;;
    MOE_*) sources=("${moe[@]}") ;;
    *) sources=("${device[@]}") ;;
  esac
  "${CXX:-g++}" -std=c++20 -O1 -g1 -fsanitize=thread -Wno-unknown-pragmas -w \
    "-I$folder/include" -Itests/support/device_on_host -I. \
    "${sources[@]}" -lgtest -lgtest_main -lpthread -o "$folder/test"
  failed=0
  TSAN_OPTIONS=halt_on_error=1:exitcode=66 SHMEMCTL_DEVICE_WAIT_S=5 timeout 900 "$folder/test" \
    >"$folder/said" 2>&1 || failed=$?
  if [[ $mutant == none ]]; then
    echo "none: exit $failed"
    if [[ $failed -ne 0 ]]; then # then that the others fail says nothing
      grep -m 20 -E "WARNING|FAILED|^    #[0-3] " "$folder/said" >&2 || true
      echo "device_mutants: without a mutant the tests fail" >&2
      exit 1
    fi
  elif [[ $failed -eq 0 ]]; then
    echo "$mutant: survives"
    survivors=1
  else
    echo "$mutant: found (exit $failed)"
  fi
done
exit "$survivors"
