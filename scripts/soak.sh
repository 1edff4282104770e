#!/usr/bin/env bash
# What is too long for every change: scripts/soak.sh [DURATION [PART...]]
#   DURATION  what the parts without an end of their own take together: 90s, 30m, 8h (default 4h).
#             Building and the other parts add about two hours on two cores.
#   PART      all, in this order, or some of:
#     release     every test of this host; alone, and in full, those that read SHMEMCTL_SOAK=1
#     lab         every test in virtual machines with Soft-RoCE (half an hour)
#     hosts       every test on hosts made of namespaces: launchers, networks, faults; the faults that
#                 `fabric` has to find SHMEMCTL_FABRIC_RUNS times each (20, two hours); the start of
#                 jobs of up to 512 PEs (root only)
#     litmus      memory order between PEs at full speed (a quarter of DURATION)
#     transports  teams, collectives, random programs and memory order over each network transport
#     asan        every test under AddressSanitizer and UndefinedBehaviorSanitizer
#     tsan        every test under ThreadSanitizer
#     again       the unit tests under ThreadSanitizer, again and again, shuffled (a quarter)
#     mutants     kernels' orders, taken out one by one: the tests on host threads must fail
#     gpu         where there are GPUs: their tests, litmus tests of networks and streams with a
#                 million messages, the same under compute-sanitizer (two GPUs only), and kernels'
#                 orders taken out one by one. PEs share a single GPU under CUDA's multi-process
#                 service, which this starts
#     fuzz        each parser (half of DURATION, or SHMEMCTL_FUZZ_SECONDS for each)
#     tidy        clang-tidy
#     portable    the binary of a release in root file systems of Debian 11, 12 and 13, which are
#                 downloaded; as root, where there is a CUDA toolkit
# A part that fails does not keep the others from running; the end says which failed (exit code 1).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
parts=(release lab hosts litmus transports asan tsan again mutants gpu fuzz tidy portable)

fail() { echo "soak: $1" >&2; exit 2; }

seconds_of() {
  local number=${1%[smhd]} unit=${1##*[0-9]}
  [[ $number =~ ^[1-9][0-9]{0,6}$ ]] || fail "\"$1\" is no duration: write 90s, 30m or 8h"
  case $unit in
  "" | s) echo "$number" ;;
  m) echo $((number * 60)) ;;
  h) echo $((number * 3600)) ;;
  d) echo $((number * 86400)) ;;
  *) fail "\"$1\" is no duration: write 90s, 30m or 8h" ;;
  esac
}

at_least_1() { echo $(($1 > 1 ? $1 : 1)); }

# Two slots for each processor (docs/development.md).
slots=$((2 * $(nproc)))
tests_of() { ctest --test-dir "$1" --output-on-failure "${@:2}"; }

build() { CMAKE_ARGS="-DSHMEMCTL_TESTS=ON" scripts/build.sh "$@"; }

# What judges times, which needs a quiet machine, and what does more in the soak.
quiet_tests='integration\.(test_bench|test_bringup|test_nvshmem_device|test_portable|test_report_compare'
quiet_tests+='|test_report_html|test_sim|test_transports)|FailureDetectorFaults\.TimeFromKillToTheLastNotification'

release() {
  build release &&
    tests_of build -j "$slots" -LE 'lab|hosts|portable' -E "^($quiet_tests)\$" &&
    SHMEMCTL_SOAK=1 tests_of build -R "^($quiet_tests)\$"
}

lab() {
  # shellcheck disable=SC2086 # a list of words
  install_packages $lab_packages &&
    build release &&
    SHMEMCTL_SOAK=1 tests_of build -L lab
}

hosts() {
  # shellcheck disable=SC2086 # a list of words
  install_packages $hosts_packages &&
    build release &&
    SHMEMCTL_FABRIC_RUNS=${SHMEMCTL_FABRIC_RUNS:-20} SHMEMCTL_START_PES=${SHMEMCTL_START_PES:-1,4,16,64} \
      tests_of build -L hosts
}

litmus() {
  build release test_runtime || return
  local tests
  tests=$(build/test_runtime --gtest_list_tests --gtest_filter='Litmus.*' | grep -c '^  ')
  SHMEMCTL_LITMUS_SECONDS=$(at_least_1 $((duration_s / 4 / tests))) \
    build/test_runtime --gtest_brief=1 --gtest_filter='Litmus.*'
}

# over NAME LIBRARY VARIABLE=VALUE...
over() {
  if ! PATH="$PATH:/sbin:/usr/sbin" ldconfig -p | grep "$2" >/dev/null; then
    echo "soak: $1 is left out: $2 is not installed" >&2
    return 0
  fi
  echo "soak: over $1" >&2
  env "${@:3}" build/test_runtime --gtest_brief=1 \
    --gtest_filter='Teams.*:Collectives.*:Reduce.*:Sync.*:Litmus.*:HostConformance.*'
}

transports() {
  build release test_runtime || return
  local well=0
  over ucx libucp.so.0 SHMEMCTL_TEST_TRANSPORT=ucx || well=1
  over "ucx by tcp" libucp.so.0 SHMEMCTL_TEST_TRANSPORT=ucx UCX_TLS=tcp,self || well=1
  over "libfabric by tcp" libfabric.so.1 SHMEMCTL_TEST_TRANSPORT=libfabric \
    SHMEMCTL_LIBFABRIC_PROVIDER=tcp || well=1
  over ibdevx libibverbs.so.1 SHMEMCTL_TEST_TRANSPORT=ibdevx SHMEMCTL_EMULATED_HCA_OVER=shm || well=1
  over ibgda libibverbs.so.1 SHMEMCTL_TEST_TRANSPORT=ibgda SHMEMCTL_EMULATED_HCA_OVER=shm || well=1
  over "ibgda in any order" libibverbs.so.1 SHMEMCTL_TEST_TRANSPORT=ibgda \
    SHMEMCTL_EMULATED_HCA_OVER=shm SHMEMCTL_EMULATED_HCA_PLACEMENT=any || well=1
  return "$well"
}

asan() { build asan && tests_of build-asan -j "$slots"; }

tsan() { build tsan && tests_of build-tsan -j "$slots"; }

again() {
  build tsan || return
  local end=$((SECONDS + duration_s / 4)) rounds=0
  while ((rounds == 0 || SECONDS < end)); do
    tests_of build-tsan -j "$slots" --schedule-random -E '^(integration|style)\.' || return
    rounds=$((rounds + 1))
  done
  echo "soak: all unit tests $rounds times" >&2
}

fuzz() {
  local targets=(tests/fuzz/*_fuzz.cpp) jobs=${SHMEMCTL_FUZZ_JOBS:-$(nproc)}
  local each_s=$((duration_s * jobs / (2 * ${#targets[@]})))
  scripts/fuzz.sh "${SHMEMCTL_FUZZ_SECONDS:-$(at_least_1 "$each_s")}"
}

mutants() { tests/support/device_mutants.sh; }

# Mistakes in dispatch and combine that no GPU shows:
#   STORES_UNDER_WAY  on an H200 the signal always came behind the stores (docs/explanation/moe_gpu.md)
#   NOTIFY_ORDER      it puts loads whose values have been used before a store: no GPU has them late
# and orders that PTX demands, whose absence neither one H100 that ranks share nor two H100s showed
# (2026-11-24): the rest.
moe_survivors="STORES_UNDER_WAY NOTIFY_ORDER GATHER_FENCE CALL_ORDER READY_RELAXED OUTPUTS_FENCE"
moe_survivors="$moe_survivors RECORD_FENCE"
# The same of kernels; threads of the host show them (tests/support/device_mutants.sh).
kernel_survivors="SIGNAL_BEHIND WORD_ATOMIC NETWORK_RELEASE"

# served COMMAND...: under a multi-process service of its own, by which PEs run side by side on one
# GPU. Each command has a new one: a client that was killed inside of a kernel, or trapped there,
# breaks the service for those behind it.
served() (
  folder=$(mktemp -d)
  # shellcheck disable=SC2317 # the trap calls it
  stop() {
    echo "quit -t 10" | timeout 60 nvidia-cuda-mps-control >/dev/null 2>&1 ||
      kill -KILL "$(cat "$folder/nvidia-cuda-mps-control.pid")" 2>/dev/null || true
    rm -rf "$folder"
  }
  export CUDA_MPS_PIPE_DIRECTORY=$folder CUDA_MPS_LOG_DIRECTORY=$folder
  trap stop EXIT
  nvidia-cuda-mps-control -d ||
    { echo "soak: the multi-process service does not start: see nvidia-smi -q -d COMPUTE" >&2; exit 1; }
  "$@"
)

# each_is_found SURVIVORS TESTS COMMAND PROGRAM...: `COMMAND PROGRAM` must fail at these tests, but for
# known survivors; COMMAND is "served", or "env" for none
each_is_found() {
  local survivors=$1 tests=$2 mutant name status well=0
  for mutant in "${@:4}"; do
    name=${mutant##*_without_}
    status=0
    "$3" timeout 900 "$mutant" --gtest_brief=1 --gtest_filter="$tests" >/dev/null 2>&1 || status=$?
    if [ "$status" -eq 124 ]; then
      echo "soak: $name: not over in 15 minutes" >&2
      well=1
    elif [ "$status" -ne 0 ]; then
      echo "soak: $name: found (exit $status)" >&2
    elif [[ " $survivors " == *" $name "* ]]; then
      echo "soak: $name: survives, as is known" >&2
    else
      echo "soak: $name: survives" >&2
      well=1
    fi
  done
  return "$well"
}

# mutants_of_gpus COMMAND
mutants_of_gpus() {
  local well=0
  "$1" build/gpu_litmus_mutants || well=1
  each_is_found "$kernel_survivors" '*DataComesBefore*' "$1" build/test_gpu_stream_without_SIGNAL_BEHIND || well=1
  each_is_found "$kernel_survivors" '*staged*' "$1" build/test_gpu_litmus_without_WORD_ATOMIC || well=1
  each_is_found "$kernel_survivors" '*' env build/test_gpu_queue_memory_without_NETWORK_RELEASE || well=1
  # Ranks are threads of one process, which needs no service.
  each_is_found "$moe_survivors" '*ThreeHundred*:MoeOrder*:MoeLate*' env build/test_gpu_moe_without_* || well=1
  return "$well"
}

# million_messages COMMAND
million_messages() {
  local well=0
  "$1" env SHMEMCTL_TEST_GPU_MESSAGES=1000000 build/test_gpu_litmus --gtest_brief=1 \
    --gtest_filter='LitmusOverNetwork*' || well=1
  "$1" env SHMEMCTL_TEST_GPU_MESSAGES=1000000 build/test_gpu --gtest_brief=1 \
    --gtest_filter='Streams.DataComesBefore*' || well=1
  return "$well"
}

one_gpu() {
  local killing='GpuFaults|AKilled' well=0
  if ! command -v nvidia-cuda-mps-control >/dev/null; then
    echo "soak: gpu: nvidia-smi shows one GPU, and nvidia-cuda-mps-control, by which PEs would run" \
      "side by side on it, is not installed (it comes with the driver)" >&2
    return 1
  fi
  build release && build release mutants || return
  tests_of build -L gpu -R "$killing" || well=1 # without the service, which they would break
  served tests_of build -L gpu -E "$killing" || well=1
  million_messages served || well=1
  echo "soak: gpu: left out: scripts/gpu_sanitizer.sh, which needs two GPUs" >&2
  mutants_of_gpus served || well=1
  return "$well"
}

gpu() {
  case $(nvidia-smi -L 2>/dev/null | grep -c '^GPU') in
  0) echo "soak: gpu is left out: nvidia-smi shows no GPU" >&2 ;;
  1) one_gpu ;;
  *)
    build release && build release mutants &&
      tests_of build -L gpu &&
      million_messages env &&
      scripts/gpu_sanitizer.sh build &&
      mutants_of_gpus env
    ;;
  esac
}

tidy() { scripts/build.sh tidy tidy; }

portable() {
  [ -f build-sysroot/sysroot.sums ] || scripts/sysroot.sh build-sysroot || return
  scripts/build.sh portable shmemctl && (
    cd tests/portable &&
      SHMEMCTL_BINARY="$PWD/../../build-portable/shmemctl" PYTHONPATH=../integration python3 test_roots.py -v
  )
}

case ${1:-} in
-h | --help) exec sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" ;;
esac
duration_s=$(seconds_of "${1:-4h}")
[ $# -eq 0 ] || shift
for part in "$@"; do
  [[ " ${parts[*]} " == *" $part "* ]] || fail "there is no part \"$part\", but: ${parts[*]}"
done
[ $# -eq 0 ] || parts=("$@")

# shellcheck disable=SC2086 # lists of words
install_packages $build_packages $test_packages clang-tidy
unpack_packages
failed=()
for part in "${parts[@]}"; do
  echo "== soak: $part" >&2
  begin=$SECONDS
  status=0
  "$part" || status=$? # in there set -e is without effect: the steps are chained
  echo "soak: $part: $([ "$status" -eq 0 ] && echo clean || echo FAILED), $((SECONDS - begin)) s" >&2
  [ "$status" -eq 0 ] || failed+=("$part")
done
[ ${#failed[@]} -eq 0 ] || { echo "soak: failed: ${failed[*]}" >&2; exit 1; }
echo "soak: clean" >&2
