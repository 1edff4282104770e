#!/usr/bin/env bash
# Takes each order out of the device headers in turn; the tests on threads of the host must then
# fail under ThreadSanitizer. Usage: device_mutants.sh [MUTATION...]
set -euo pipefail
cd "$(dirname "$0")/../.."
mutations=("$@")
if [[ ${#mutations[@]} -eq 0 ]]; then
  mutations=(none PUT_SIGNAL_SYNC PUT_SIGNAL_RELEASE WAIT_ACQUIRE BARRIER_RELEASE
             COLLECTIVE_RELEASE COLLECTIVE_SYNC COLLECTIVE_BLOCK_FENCE MUST_HEAR TWO_HALVES
             FAR_GET_QUIET REDUCE_HEAR REDUCE_SYNC SYNC_TURNS BARRIER_SYNC GRID_SYNC GRID_ARRIVE GRID_RELEASE PUT_SIGNAL_BEGIN ONE_ACCESS
             TELL_RELEASE TELL_FAR BARRIER_ALONE FENCE FENCE_SYNC QUIET QUIET_SYNC SIGNAL_BEHIND WORD_ATOMIC
             MOE_CHUNK_FIRST MOE_CHUNK_UNHEARD MOE_RAIL_UNHEARD MOE_RAIL_RELEASE MOE_SUMS_FIRST MOE_SUMS_UNHEARD
             MOE_FAR_ROW MOE_FAR_UNHEARD MOE_FAR_BACK_UNHEARD
             MOE_ENTERED_RELAXED MOE_ENTERED_NO_WAIT MOE_FINISHED_NO_WAIT MOE_FAILURE_NOT_SENT MOE_PLAN_KEPT
             MOE_NOTIFY_ONE_HALF MOE_RAIL_TURNS MOE_ONE_HALF MOE_MASK_IGNORED)
fi
device=(tests/unit/device_plan/on_host_test.cpp tests/unit/device_plan/collectives_on_host_test.cpp
        tests/unit/device_plan/fences_on_host_test.cpp tests/unit/device_plan/operations_on_host_test.cpp)
moe=(-DFMT_HEADER_ONLY tests/unit/device_plan/moe_internode_test.cpp
     tests/unit/device_plan/moe_low_latency_internode_test.cpp tests/unit/device_plan/moe_test.cpp
     tests/unit/device_plan/moe_call_test.cpp src/moe/oracle.cpp src/moe/routing.cpp src/moe/shape_rules.cpp src/base/error.cpp src/base/text.cpp)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
survivors=0
for mutation in "${mutations[@]}"; do
  case $mutation in
    none) sources=("${device[@]}" "${moe[@]}") ;;
    MOE_*) sources=("${moe[@]}") ;;
    *) sources=("${device[@]}") ;;
  esac
  "${CXX:-g++}" -std=c++20 -O1 -g1 -fsanitize=thread -Wno-unknown-pragmas -w \
    "-DSHMEMCTL_MUTATE_$mutation" -Itests/support/device_on_host -I. \
    "${sources[@]}" -lgtest -lgtest_main -lpthread -o "$folder/test"
  failed=0
  TSAN_OPTIONS=halt_on_error=1:exitcode=66 SHMEMCTL_DEVICE_WAIT_S=5 timeout 900 "$folder/test" \
    >"$folder/said" 2>&1 || failed=$?
  if [[ $mutation == none ]]; then
    echo "none: exit $failed"
    if [[ $failed -ne 0 ]]; then # then that the others fail says nothing
      grep -m 20 -E "WARNING|FAILED|^    #[0-3] " "$folder/said" >&2 || true
      echo "device_mutants: without a mutation the tests fail" >&2
      exit 1
    fi
  elif [[ $failed -eq 0 ]]; then
    echo "$mutation: survives"
    survivors=1
  else
    echo "$mutation: found (exit $failed)"
  fi
done
exit "$survivors"
