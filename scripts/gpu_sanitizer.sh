#!/usr/bin/env bash
# The GPU tests under compute-sanitizer: scripts/gpu_sanitizer.sh [BUILD [TOOL...]]
#   BUILD  the folder with the test programs (default build)
#   TOOL   memcheck, racecheck, synccheck (default all three)
#   SHMEMCTL_SANITIZER_TESTS  patterns of GoogleTest instead of the ones below, for all programs
# Every report fails, and so does a tool that does not see the mistake of its control (a kernel of a
# child process that is wrong on purpose). Needs two GPUs.
#
# Left out: GpuFaults and PEs that are killed (what they do is a report by itself), the files of
# figures (bench), and most rounds: kernels of PEs that wait for each other are some hundred times
# slower under these tools, which look for wrong accesses and not for rare orders. initcheck is not
# run: a symmetric heap is zeroed by the driver's copy engine of whichever PE made it.
set -euo pipefail
build=${1:-build}
shift || true
tools=("$@")
[ ${#tools[@]} -gt 0 ] || tools=(memcheck racecheck synccheck)
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
[ -x "$sanitizer" ] || { echo "gpu_sanitizer: compute-sanitizer is not installed" >&2; exit 2; }
export SHMEMCTL_TEST_GPU_SHARE=${SHMEMCTL_TEST_GPU_SHARE:-5000}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=()

# under TOOL PROGRAM PATTERN [OPTION...]: the tool's exit code; what was said is in $log
under() {
  timeout 900 "$sanitizer" --tool "$1" --target-processes all --error-exitcode 99 --print-limit 20 \
    "$build/$2" --gtest_brief=1 --gtest_filter="$3" "${@:4}" >"$log" 2>&1
}

# clean TOOL PROGRAM PATTERN
clean() {
  local begin=$SECONDS status=0
  if ! "$build/$2" --gtest_list_tests --gtest_filter="$3" | grep -q '^  '; then
    echo "$1 $2: no test of that name"
    return
  fi
  under "$@" || status=$?
  if [ "$status" -eq 0 ] && grep -q 'SUMMARY: 0 \(errors\|hazards\)' "$log" &&
    ! grep 'SUMMARY' "$log" | grep -qv 'SUMMARY: 0 '; then
    echo "$1 $2: clean, $((SECONDS - begin)) s: $(grep '^\[==========\]' "$log" | tail -1)"
  else
    echo "$1 $2: FAILED (exit code $status)"
    tail -c 4000 "$log"
    failed+=("$1 $2")
  fi
}

# control TOOL PATTERN WORDS: the tool has to find what is wrong there
control() {
  under "$1" test_gpu_faults "SanitizerControls.DISABLED_$2" --gtest_also_run_disabled_tests || true
  if grep -q "$3" "$log"; then
    echo "$1 control: found"
  else
    echo "$1 control: FAILED: \"$3\" was not reported"
    tail -c 2000 "$log"
    failed+=("$1 control")
  fi
}

for tool in "${tools[@]}"; do
  case $tool in
  memcheck) control memcheck WildLoad "Invalid __global__ read" ;;
  racecheck) control racecheck SharedRace "hazard" ;;
  synccheck) control synccheck WrongMask "Barrier error detected" ;;
  *) echo "gpu_sanitizer: there is no tool \"$tool\" here" >&2; exit 2 ;;
  esac
  all=${SHMEMCTL_SANITIZER_TESTS:-}
  clean "$tool" test_gpu_litmus "${all:-*}"
  clean "$tool" test_gpu "${all:-*-*AKilledPeIsNamed}"
  clean "$tool" test_gpu_runtime "${all:-*-*AKilledOwnerIsNamed*}"
done
[ ${#failed[@]} -eq 0 ] || { printf 'gpu_sanitizer: failed: %s\n' "${failed[@]}" >&2; exit 1; }
echo "gpu_sanitizer: clean"
