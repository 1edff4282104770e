#!/usr/bin/env bash
# The GPU tests under compute-sanitizer: scripts/gpu_sanitizer.sh [BUILD [TOOL...]]
#   BUILD  the folder with the test programs (default build)
#   TOOL   memcheck, racecheck, synccheck (default all three)
#   SHMEMCTL_SANITIZER_TESTS  a pattern of GoogleTest: only these tests, of all programs
#   SHMEMCTL_SANITIZER_JOBS   so many tests at a time (default a quarter of the processors, at most 8)
#   SHMEMCTL_SANITIZER_TEST_S  a test may take so long (default 300 s)
# Every report fails, and so does a tool that does not see the mistake of its control (a kernel of a
# child process that is wrong on purpose). Needs two GPUs; some minutes.
#
# Left out: GpuFaults and PEs that are killed (what they do is a report by itself), the files of
# figures (bench), one that counts a GPU's free memory (others use it meanwhile), ranks of MoE that
# share a GPU (the tools launch their kernels one after the other), and most rounds and most tokens:
# kernels of PEs that wait for each other are some hundred times slower under these tools, which look
# for wrong accesses and not for rare orders. initcheck is not run: a symmetric heap is zeroed by the
# driver's copy engine of whichever PE made it. memcheck calls atomics of scope .sys on memory of the
# host wrong where PCIe has no native ones for CUDA: it does not see waits that give up and report,
# nor collectives whose cells are host memory.
set -euo pipefail
build=${1:-build}
shift || true
tools=("$@")
[ ${#tools[@]} -gt 0 ] || tools=(memcheck racecheck synccheck)
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
[ -x "$sanitizer" ] || { echo "gpu_sanitizer: compute-sanitizer is not installed" >&2; exit 2; }
jobs=$(($(nproc) / 4))
jobs=${SHMEMCTL_SANITIZER_JOBS:-$((jobs > 8 ? 8 : jobs > 1 ? jobs : 1))}
export SHMEMCTL_TEST_GPU_SHARE=${SHMEMCTL_TEST_GPU_SHARE:-5000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
test_s=${SHMEMCTL_SANITIZER_TEST_S:-300}
export build sanitizer folder test_s

# under LOG TOOL PROGRAM TESTS [OPTION...]: the tool's exit code
under() {
  timeout -k 5 "$test_s" "$sanitizer" --tool "$2" --target-processes all --error-exitcode 99 \
    --print-limit 20 "$build/$3" --gtest_brief=1 --gtest_filter="$4" "${@:5}" >"$1" 2>&1
}

# clean TOOL PROGRAM TEST
clean() {
  local begin=$SECONDS status=0 log
  log=$(mktemp "$folder/log.XXXXXX")
  under "$log" "$@" || status=$?
  if [ "$status" -eq 0 ] && grep -q 'SUMMARY: 0 \(errors\|hazards\)' "$log" &&
    ! grep 'SUMMARY' "$log" | grep -qv 'SUMMARY: 0 '; then
    echo "$1 $2 $3: clean, $((SECONDS - begin)) s$(grep -q SKIPPED "$log" && echo ', skipped')"
  else
    echo "$1 $2 $3: FAILED (exit code $status, $((SECONDS - begin)) s)"
    grep -v 'Host Frame' "$log" | grep -A 4 '^=* *\(Invalid\|Error\|Barrier\|Program hit\|.*hazard\)' | head -n 24
    grep -v '^=========' "$log" | tail -c 1500
    echo "$1 $2 $3" >>"$folder/failed"
  fi
  rm -f "$log"
}

# control TOOL PROGRAM TEST WORDS: the tool has to find what is wrong there
control() {
  under "$folder/control" "$1" "$2" "$3" --gtest_also_run_disabled_tests || true
  if grep -q "$4" "$folder/control"; then
    echo "$1 control: found"
  else
    echo "$1 control: FAILED: \"$4\" was not reported"
    tail -c 2000 "$folder/control"
    echo "$1 control" >>"$folder/failed"
  fi
}
export -f under clean

# tests_of PROGRAM: the names of its tests
tests_of() {
  "$build/$1" --gtest_list_tests --gtest_filter="${SHMEMCTL_SANITIZER_TESTS:-*}" |
    sed -n 's/ *#.*//; /^[^ ].*\.$/{h;d}; /^  /{s/^  //;G;s/\(.*\)\n\(.*\)/\2\1/;p}' |
    grep -v 'AKilledPeIsNamed\|AKilledOwnerIsNamed\|LeaveNoMemory\|DISABLED' || true
}

for tool in "${tools[@]}"; do
  case $tool in
  memcheck) control memcheck test_gpu_faults SanitizerControls.DISABLED_WildLoad "Invalid __global__ read" ;;
  racecheck) control racecheck test_gpu_faults SanitizerControls.DISABLED_SharedRace "hazard" ;;
  synccheck) control synccheck test_gpu_faults SanitizerControls.DISABLED_WrongMask "Barrier error detected" ;;
  *) echo "gpu_sanitizer: there is no tool \"$tool\" here" >&2; exit 2 ;;
  esac
done
# What takes longest begins first; then of each program one test after the other, so that those of
# one kind do not come at once.
long_tests='Formats/Moe|MoeOrder|MoeLowLatency|Conformance|KernelsOverNetworks'
of_host_memory='AWaitEndsAndNamesThePeer|KernelsOverNetworks'
# Under racecheck the host's copies for a kernel that waits come too late; their kernels are those of
# the other networks.
of_copy_engines='(proxy_shm|ibgda_emulated)_staged'
for program in test_gpu test_gpu_moe test_gpu_litmus test_gpu_runtime; do
  number=0
  for test in $(tests_of "$program"); do
    number=$((number + 1))
    for tool in "${tools[@]}"; do
      if [ "$tool" = memcheck ] && [[ $test =~ $of_host_memory ]]; then
        continue
      fi
      if [ "$tool" = racecheck ] && [[ $test =~ $of_copy_engines ]]; then
        continue
      fi
      if [[ $test =~ $long_tests ]]; then
        echo "0 $tool $program $test"
      else
        echo "$number $tool $program $test"
      fi
    done
  done
done | sort -s -n -k1,1 | cut -d ' ' -f 2- | xargs -r -P "$jobs" -L 1 bash -c 'clean "$@"' clean
[ ! -s "$folder/failed" ] ||
  { sed 's/^/gpu_sanitizer: failed: /' "$folder/failed" >&2; exit 1; }
echo "gpu_sanitizer: clean, $SECONDS s"
