#!/usr/bin/env bash
# What is too long for every change: scripts/soak.sh [DURATION [PART...]]
#   DURATION  what the parts without an end of their own take together: 90s, 30m, 8h (default 4h).
#             Building and the other parts add about two hours on two cores.
#   PART      all, in this order, or some of:
#     release     every test of this host, and alone those for a quiet machine (SHMEMCTL_SOAK=1)
#     lab         every test in virtual machines with Soft-RoCE (half an hour)
#     litmus      memory order between PEs at full speed (a quarter of DURATION)
#     transports  teams, collectives and memory order over each network transport of this host
#     asan        every test under AddressSanitizer and UndefinedBehaviorSanitizer
#     tsan        every test under ThreadSanitizer
#     again       the unit tests under ThreadSanitizer, again and again, shuffled (a quarter)
#     mutants     kernels' orders, taken out one by one: the tests on host threads must fail
#     gpu         where there are two GPUs: their tests, litmus tests of networks and streams with
#                 a million messages, the same under compute-sanitizer, and kernels' orders taken
#                 out one by one there
#     fuzz        each parser (half of DURATION, or SHMEMCTL_FUZZ_SECONDS for each)
#     tidy        clang-tidy
# A part that fails does not keep the others from running; the end says which failed (exit code 1).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
parts=(release lab litmus transports asan tsan again mutants gpu fuzz tidy)

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

tests_of() { ctest --test-dir "$1" --output-on-failure "${@:2}"; }

build() { CMAKE_ARGS="-DSHMEMCTL_TESTS=ON" scripts/build.sh "$@"; }

# What measures times that mean something on a quiet machine only.
quiet_tests='integration\.(test_bench|test_report_html)|LifelineFaults\.TimeFromKillToTheLastPesKnowledge'

release() {
  build release &&
    tests_of build -j "$(nproc)" -LE lab -E "^($quiet_tests)\$" &&
    SHMEMCTL_SOAK=1 tests_of build -R "^($quiet_tests)\$"
}

lab() {
  # shellcheck disable=SC2086 # a list of words
  install_packages $lab_packages &&
    build release &&
    SHMEMCTL_SOAK=1 tests_of build -L lab
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
    --gtest_filter='Teams.*:Collectives.*:Reduce.*:Sync.*:Litmus.*'
}

transports() {
  build release test_runtime || return
  local well=0
  over ucx libucp.so.0 SHMEMCTL_TEST_TRANSPORT=ucx || well=1
  over "ucx by tcp" libucp.so.0 SHMEMCTL_TEST_TRANSPORT=ucx UCX_TLS=tcp,self || well=1
  over "libfabric by tcp" libfabric.so.1 SHMEMCTL_TEST_TRANSPORT=libfabric \
    SHMEMCTL_LIBFABRIC_PROVIDER=tcp || well=1
  over ibdevx libibverbs.so.1 SHMEMCTL_TEST_TRANSPORT=ibdevx SHMEMCTL_SOFT_HCA_OVER=shm || well=1
  over ibgda libibverbs.so.1 SHMEMCTL_TEST_TRANSPORT=ibgda SHMEMCTL_SOFT_HCA_OVER=shm || well=1
  return "$well"
}

asan() { build asan && tests_of build-asan -j "$(nproc)"; }

tsan() { build tsan && tests_of build-tsan -j "$(nproc)"; }

again() {
  build tsan || return
  local end=$((SECONDS + duration_s / 4)) rounds=0
  while ((rounds == 0 || SECONDS < end)); do
    tests_of build-tsan -j "$(nproc)" --schedule-random -E '^(integration|style)\.' || return
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
#   STORES_UNDER_WAY  on an H200 the signal always came behind the stores (docs/moe_gpu.md)
#   NOTIFY_ORDER      it puts loads whose values have been used before a store: no GPU has them late
moe_survivors=(STORES_UNDER_WAY NOTIFY_ORDER)

moe_mutants() {
  local mutant name status well=0
  for mutant in build/test_gpu_moe_without_*; do
    name=${mutant##*_without_}
    status=0
    timeout 900 "$mutant" --gtest_brief=1 --gtest_filter='*ThreeHundred*:MoeOrder*' \
      >/dev/null 2>&1 || status=$?
    if [ "$status" -eq 124 ]; then
      echo "soak: $name: not over in 15 minutes" >&2
      well=1
    elif [ "$status" -ne 0 ]; then
      echo "soak: $name: found (exit $status)" >&2
    elif [[ " ${moe_survivors[*]} " == *" $name "* ]]; then
      echo "soak: $name: survives, as is known" >&2
    else
      echo "soak: $name: survives" >&2
      well=1
    fi
  done
  return "$well"
}

gpu() {
  if [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')" -lt 2 ]; then
    echo "soak: gpu is left out: nvidia-smi shows fewer than two GPUs" >&2
    return 0
  fi
  build release && build release mutants &&
    tests_of build -L gpu &&
    SHMEMCTL_TEST_GPU_MESSAGES=1000000 build/test_gpu_litmus --gtest_brief=1 \
      --gtest_filter='LitmusOverNetwork*' &&
    SHMEMCTL_TEST_GPU_MESSAGES=1000000 build/test_gpu --gtest_brief=1 \
      --gtest_filter='Streams.DataComesBefore*' &&
    scripts/gpu_sanitizer.sh build &&
    build/gpu_litmus_mutants &&
    moe_mutants
}

tidy() { scripts/build.sh tidy tidy; }

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
