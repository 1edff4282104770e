#!/usr/bin/env bash
# Runs every libFuzzer target over its corpus: scripts/fuzz.sh SECONDS [TARGET...]
# New inputs go to build-fuzz/corpus, never into the checkout; a crash leaves its input in
# build-fuzz/crashes and makes this fail.
#   SHMEMCTL_FUZZ_JOBS  targets that run at once (default: one per core)
#   SHMEMCTL_FUZZ_SEED  seed of the first input (default 0: a new one every time)
#   SHMEMCTL_FUZZ_RUNTIME  OFF: without the targets that link the whole runtime, which takes twice as
#                      long to build (default ON)
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET...]}
shift
[ "$seconds" != 0 ] || { echo "fuzz: skipped, 0 seconds were asked for" >&2; exit 0; }
CMAKE_ARGS="${CMAKE_ARGS:-} -DSHMEMCTL_FUZZ_RUNTIME=${SHMEMCTL_FUZZ_RUNTIME:-ON}" scripts/build.sh fuzz fuzzers
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd build-fuzz && ls -- *_fuzz)
mkdir -p build-fuzz/crashes build-fuzz/logs

run_one() {
  target=$1 seconds=$2
  name=${target%_fuzz}
  found=build-fuzz/corpus/$name
  mkdir -p "$found"
  # -max_len: parsers refuse long input by limits of their own, so short inputs find more.
  if "build-fuzz/$target" -seed="${SHMEMCTL_FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -max_len=65536 \
    -artifact_prefix="build-fuzz/crashes/$name-" "$found" "tests/fuzz/corpus/$name" \
    >"build-fuzz/logs/$name.log" 2>&1; then
    echo "fuzz: $name: $seconds s, clean: $(grep -E '^Done|^#.*DONE' "build-fuzz/logs/$name.log" | tail -1)"
  else
    tail -n 30 "build-fuzz/logs/$name.log" >&2
    echo "fuzz: $name: FAILED (input in build-fuzz/crashes)" >&2
    return 1
  fi
}
export -f run_one
printf '%s\n' "${targets[@]}" | xargs -P "${SHMEMCTL_FUZZ_JOBS:-$(nproc)}" -I{} bash -c 'run_one {} '"$seconds"
