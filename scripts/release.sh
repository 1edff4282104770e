#!/usr/bin/env bash
# Makes a release from a clean checkout: scripts/release.sh [FOLDER]
# FOLDER (default build-release) gets shmemctl-VERSION-linux-x86_64.tar.zst, a .deb, a .rpm, the debug
# information and SHA256SUMS, all of them or nothing. The binary starts with glibc 2.28 or newer, and
# has the kernels: a CUDA toolkit is needed. The build is in build-portable, the sysroot in build-sysroot
# (scripts/sysroot.sh makes it if it is not there).
#   SHMEMCTL_SYSROOT  another sysroot
#   CMAKE_ARGS        further arguments for cmake
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/portable/debian.sh
. scripts/progress.sh

if [ $# -gt 1 ] || [[ ${1:-} == -* ]]; then
  say "give no more than one folder: scripts/release.sh [FOLDER]"
  exit 2
fi
debian_needs git cmake ninja cpack zstd dpkg-deb rpmbuild objcopy readelf python3 sha256sum realpath || exit
if ! changed=$(git status --porcelain 2>/dev/null); then
  say "not a checkout of git: a release is made from one, so that --version can name the revision"
  exit 2
fi
if [ -n "$changed" ]; then
  say "the checkout has changes ($(head -1 <<<"$changed" | cut -c4-)$([ "$(wc -l <<<"$changed")" = 1 ] || echo ", ...")): commit or stash them"
  exit 2
fi
folder=$(realpath -m "${1:-build-release}")
if [ -e "$folder" ] && [ ! -d "$folder" ]; then
  say "$folder is not a folder: choose another one"
  exit 2
fi
# A folder that this run made is gone if the run fails.
made=
[ -d "$folder" ] || made=yes
clean_up() {
  rm -rf "${work:-}"
  [ -z "$made" ] || rmdir "$folder" 2>/dev/null || true
}
trap clean_up EXIT
{ mkdir -p "$folder" && [ -w "$folder" ]; } 2>/dev/null || {
  say "$folder: cannot write into it: choose another folder"
  exit 3
}
if [ -n "$(ls -A "$folder")" ]; then
  say "$folder is not empty: choose another folder, or empty it"
  exit 2
fi
# Inside of it: the folder above may belong to somebody else. What is finished is moved within one
# file system.
work=$(mktemp -d "$folder/.release.XXXXXX" 2>/dev/null) || {
  say "$folder: cannot make a folder in it: is the disk full?"
  exit 3
}

export SHMEMCTL_SYSROOT=${SHMEMCTL_SYSROOT:-$PWD/build-sysroot}
[ -f "$SHMEMCTL_SYSROOT/sysroot.sums" ] || scripts/sysroot.sh "$SHMEMCTL_SYSROOT"
# shellcheck disable=SC2086 # a list of words
cmake --preset portable ${CMAKE_ARGS:-} >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  say "cannot configure: see above"
  exit 3
}
ninja_with_progress -C build-portable shmemctl || {
  say "cannot build: see above"
  exit 3
}
SHMEMCTL_BINARY="$PWD/build-portable/shmemctl" PYTHONPATH=tests/integration PYTHONDONTWRITEBYTECODE=1 \
  python3 tests/integration/test_portable.py Binary Release || {
  say "the binary is not what a release promises: see above"
  exit 1
}

mkdir "$work/packages"
for generator in TZST DEB RPM; do
  cpack --config build-portable/CPackConfig.cmake -G "$generator" -B "$work/packages" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    say "cannot make the package $generator: see above"
    exit 3
  }
done
rm -rf "$work/packages/_CPack_Packages"
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build-portable/CMakeCache.txt)
zstd -q -10 build-portable/shmemctl.debug -o "$work/packages/shmemctl-$version-linux-x86_64.debug.zst"
for package in "$work"/packages/*.tar.zst "$work"/packages/*.deb "$work"/packages/*.rpm; do
  [ -s "$package" ] || {
    say "${package##*/} is missing or empty: cpack has said nothing of it"
    exit 3
  }
  [ "$(stat -c %s "$package")" -le $((25 * 1000 * 1000)) ] || {
    say "${package##*/} is larger than the 25 MB that a release promises"
    exit 1
  }
done
(cd "$work/packages" && sha256sum -- * >SHA256SUMS)
mv "$work"/packages/* "$folder"
say "$folder:"
(cd "$folder" && ls -s --block-size=KB)
