# shellcheck shell=bash
# Packages of any Debian release, unpacked into a folder and never installed: no root, nothing of this
# machine changes. apt checks the release's signature and each package's sum. Sourced by
# scripts/sysroot.sh and by the tests in tests/portable.
#   SHMEMCTL_DEBIAN_MIRROR  where the packages are (default: where this machine's apt has Debian)

# say TEXT...: one line of an error, after the name of the script.
say() { echo "$(basename "$0" .sh): $*" >&2; }

debian_needs() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || {
      say "cannot start: $tool is missing: install its package"
      return 3
    }
  done
}

debian_mirror() {
  local mirror=${SHMEMCTL_DEBIAN_MIRROR:-}
  # shellcheck disable=SC2016 # apt-get's own variable
  [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 2>/dev/null |
    grep -v security | head -1)
  [ -n "$mirror" ] || {
    say "SHMEMCTL_DEBIAN_MIRROR is not set, and this machine's apt knows no Debian mirror: set it"
    return 3
  }
  echo "${mirror%/}"
}

# debian_apt STATE RELEASE ARGUMENT...: apt-get of that release, with all its files under STATE.
debian_apt() {
  local state=$1 release=$2
  shift 2
  local own="$state/$release" keys=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$own/lists/partial" "$own/cache/archives/partial" "$own/empty"
  [ -f "$keys" ] || {
    say "$keys is missing, with which apt checks Debian's signatures: install debian-archive-keyring"
    return 3
  }
  echo "deb [arch=amd64 signed-by=$keys] $(debian_mirror) $release main" >"$own/sources.list"
  [ -s "$own/sources.list" ] || return 3
  : >"$own/status"
  apt-get -qq -o Dir::Etc::SourceList="$own/sources.list" -o Dir::Etc::SourceParts="$own/empty" \
    -o Dir::Etc::Preferences="$own/none" -o Dir::Etc::PreferencesParts="$own/empty" \
    -o Dir::State::Lists="$own/lists" -o Dir::State::Status="$own/status" -o Dir::Cache="$own/cache" \
    -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Sandbox::User="$(id -un)" \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o Acquire::Check-Valid-Until=false "$@"
}

# debian_index STATE RELEASE: what packages the release has; asked for once.
debian_index() {
  [ ! -f "$1/$2/indexed" ] || return 0
  debian_apt "$1" "$2" update || {
    say "cannot read the packages of Debian $2: see above; SHMEMCTL_DEBIAN_MIRROR names another mirror"
    return 3
  }
  touch "$1/$2/indexed"
}

# debian_download STATE RELEASE FOLDER PACKAGE[=VERSION]...: the .deb files.
debian_download() {
  local state=$1 release=$2 folder=$3
  shift 3
  mkdir -p "$folder"
  debian_index "$state" "$release" || return
  (cd "$folder" && debian_apt "$state" "$release" download "$@") || {
    say "cannot download from Debian $release: $*"
    return 3
  }
}

# debian_closure STATE RELEASE PACKAGE...: the packages and all that they depend on, one per line.
debian_closure() {
  local state=$1 release=$2
  shift 2
  debian_index "$state" "$release" || return
  debian_apt "$state" "$release" install --no-install-recommends --print-uris "$@" |
    sed -n "s/^'[^']*' \([^_ ]*\)_.*/\1/p"
}

# debian_unpack FOLDER FILE...: into FOLDER; links that are absolute are made relative to it.
debian_unpack() {
  local folder=$1 file link target
  shift
  mkdir -p "$folder"
  for file in "$@"; do
    dpkg-deb --fsys-tarfile "$file" | tar -x -C "$folder" --no-same-owner --keep-directory-symlink || {
      say "cannot unpack $file into $folder"
      return 3
    }
  done
  find "$folder" -type l -lname '/*' | while read -r link; do
    target=$(readlink "$link")
    ln -sfn "$(realpath -ms --relative-to="$(dirname "$link")" "$folder$target")" "$link"
  done
}
