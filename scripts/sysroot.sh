#!/usr/bin/env bash
# Makes the sysroot of the portable build: scripts/sysroot.sh [--update] FOLDER
# FOLDER gets the headers and libraries of the packages in scripts/portable/sysroot.sums, from Debian 11
# what belongs to the C library, and the C library's shared objects as stubs of glibc 2.28
# (scripts/portable/stubs.py). Nothing is installed, and no root is needed. What a folder that is there
# already holds is replaced, but only when the new one is complete.
#   --update                takes what the releases have today, and writes that into the list
#   SHMEMCTL_GLIBC          the oldest glibc that the binary starts with (default 2.28)
#   SHMEMCTL_DEBIAN_MIRROR  where the packages are (default: where this machine's apt has Debian)
set -euo pipefail
tree="$(cd "$(dirname "$0")/.." && pwd)"
. "$tree/scripts/portable/debian.sh"
sums="$tree/scripts/portable/sysroot.sums"
glibc=${SHMEMCTL_GLIBC:-2.28}

update=""
[ "${1:-}" != --update ] || { update=yes; shift; }
if [ $# -ne 1 ] || [[ $1 == -* ]]; then
  say "give one folder: scripts/sysroot.sh [--update] FOLDER"
  exit 2
fi
[[ $glibc =~ ^2\.[0-9]+$ ]] || { say "SHMEMCTL_GLIBC=$glibc: not a version such as 2.28"; exit 2; }
debian_needs apt-get dpkg-deb tar sha256sum readelf gcc python3 realpath || exit
parent=$(dirname "$(realpath -m "$1")")
folder=$(realpath -m "$1")
{ mkdir -p "$parent" && [ -w "$parent" ]; } 2>/dev/null || {
  say "$parent: cannot write into it: choose another folder"
  exit 3
}
if [ -e "$folder" ] && [ ! -f "$folder/sysroot.sums" ]; then
  say "$folder: not a sysroot that this script made: choose another folder, or remove it"
  exit 2
fi
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The list without comments: RELEASE PACKAGE VERSION SHA256
listed() { grep -v '^#' "$sums"; }
for release in $(listed | cut -d' ' -f1 | sort -u); do
  wanted=$(listed | awk -v release="$release" -v update="$update" \
    '$1 == release { print update ? $2 : $2 "=" $3 }')
  # shellcheck disable=SC2086 # a list of words
  debian_download "$work/apt" "$release" "$work/deb/$release" $wanted || {
    [ -n "$update" ] || say "if the release has newer ones: scripts/sysroot.sh --update FOLDER, and commit the list"
    exit 3
  }
done
new="$work/sums"
grep '^#' "$sums" >"$new"
listed | while read -r release package _; do
  file=$(echo "$work/deb/$release/${package}"_*.deb)
  echo "$release $package $(dpkg-deb -f "$file" Version) $(sha256sum <"$file" | cut -d' ' -f1)"
done >>"$new"
if [ -n "$update" ]; then
  cp "$new" "$sums"
elif ! cmp -s "$new" "$sums"; then
  say "a package is not the one in $sums: $(diff "$sums" "$new" | sed -n 's/^> //p' | head -1)"
  exit 3
fi

# Of Boost's fourteen thousand files, what the distributions of Boost.Math include.
boost=$(echo "$work"/deb/*/libboost*.deb)
parts="array assert concept config container core cstdint current_function detail exception integer iterator
  lexical_cast limits math move mpl next_prior noncopyable numeric/conversion numeric/interval predef
  preprocessor range smart_ptr static_assert swap throw_exception type utility version"
mkdir -p "$work/root"
# shellcheck disable=SC2086,SC2046 # lists of words
dpkg-deb --fsys-tarfile "$boost" | tar -x -C "$work/root" --no-same-owner --wildcards \
  $(printf './usr/include/boost/%s* ' $parts) './usr/share/doc/*/copyright'
rm "$boost"
debian_unpack "$work/root" "$work"/deb/*/*.deb || exit
python3 "$tree/scripts/portable/stubs.py" "$work/root" "$glibc"
echo "$glibc" >"$work/root/glibc"
cp "$new" "$work/root/sysroot.sums"
[ ! -e "$folder" ] || mv "$folder" "$work/old"
mv "$work/root" "$folder"
say "$folder: glibc $glibc, $(listed | wc -l) packages"
