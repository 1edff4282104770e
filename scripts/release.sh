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
debian_needs git cmake ninja cpack zstd dpkg-deb rpmbuild objcopy readelf python3 sha256sum || exit
if ! changed=$(git status --porcelain 2>/dev/null); then
  say "not a checkout of git: a release is made from one, so that --version can name the revision"
  exit 2
fi
if [ -n "$changed" ]; then
  say "the checkout has changes ($(head -1 <<<"$changed" | cut -c4-)$([ "$(wc -l <<<"$changed")" = 1 ] || echo ", ...")): commit or stash them"
  exit 2
fi
folder=$(realpath -m "${1:-build-release}")
{ mkdir -p "$folder" && [ -w "$folder" ]; } 2>/dev/null || {
  say "$folder: cannot write into it: choose another folder"
  exit 3
}
if [ -n "$(ls -A "$folder")" ]; then
  say "$folder is not empty: choose another folder, or empty it"
  exit 2
fi
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT

export SHMEMCTL_SYSROOT=${SHMEMCTL_SYSROOT:-$PWD/build-sysroot}
[ -f "$SHMEMCTL_SYSROOT/sysroot.sums" ] || scripts/sysroot.sh "$SHMEMCTL_SYSROOT"
# shellcheck disable=SC2086 # a list of words
cmake --preset portable ${CMAKE_ARGS:-} >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  say "cannot configure: see above"
  exit 3
}
ninja_with_progress -C build-portable shmemctl
SHMEMCTL_BINARY="$PWD/build-portable/shmemctl" PYTHONPATH=tests/integration PYTHONDONTWRITEBYTECODE=1 \
  python3 tests/integration/test_portable.py Binary Release

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
(cd "$work/packages" && for package in *.tar.zst *.deb *.rpm; do [ -s "$package" ]; done && sha256sum -- * >SHA256SUMS)
mv "$work"/packages/* "$folder"
say "$folder:"
(cd "$folder" && ls -s --block-size=KB)
