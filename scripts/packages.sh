# shellcheck shell=bash disable=SC2034,SC2086 # lists of words, for the scripts that source this
# Installs what is missing from the distribution's packages. Sourced by the other scripts.
# Needs root or sudo only if something is missing.

build_packages="g++ cmake ninja-build ccache git libhwloc-dev libexpat1-dev libzstd-dev nlohmann-json3-dev
  libcli11-dev libfmt-dev libboost-dev libibverbs-dev libfabric-dev libucx-dev
  libjs-chart.js"
# Headers only, but the package depends on Qt, Poco and MariaDB's client (175 packages, 370 MB): unpacked into
# build-packages, where CMake finds it, unless it is installed.
unpacked_packages="libvalijson-dev"
# For scripts/release.sh.
# shellcheck disable=SC2034
release_packages="rpm zstd"
test_packages="libgtest-dev libbenchmark-dev clang libclang-rt-dev clang-format python3
  python3-jsonschema python3-yaml hwloc-nox shellcheck openmpi-bin libopenmpi-dev libpmix-dev mpich
  munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins prometheus prometheus-node-exporter
  zsh fish"
# For the pages of `report html`. Ubuntu has no browser as a package: these tests are skipped there.
if ! grep -qx 'ID=ubuntu' /etc/os-release 2>/dev/null; then
  test_packages="$test_packages chromium"
fi
# For virtual machines with Soft-RoCE (docs/explanation/lab.md); their kernel is downloaded, never installed.
lab_packages="qemu-system-x86 busybox-static kmod iproute2 ibverbs-providers ibverbs-utils perftest
  pciutils zstd"

# For hosts made of namespaces (docs/development.md, "Test hosts"), with what is in test_packages.
hosts_packages="iproute2 openssh-client openssh-server"

# unpack_packages: those of $unpacked_packages that are not installed, into build-packages. As no package
# is installed, what they depend on is not either.
unpack_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
  for package in $(missing_packages $unpacked_packages); do
    [ ! -e "build-packages/usr/share/doc/$package/copyright" ] || continue
    echo "scripts: unpacking $package into build-packages/" >&2
    download=$(mktemp -d)
    if ! (cd "$download" && { apt-get download -qq "$package" 2>/dev/null ||
      { $(as_root_or_nothing) apt-get update -qq && apt-get download -qq "$package"; }; }) >&2 ||
      ! dpkg-deb -x "$download/$package"_*.deb build-packages; then
      rm -rf "$download"
      echo "scripts: cannot download the package $package: is a mirror reachable?" >&2
      return 3
    fi
    rm -rf "$download"
  done
}

as_root_or_nothing() { [ "$(id -u)" -eq 0 ] || echo sudo; }

# The packages of "$@" that are not installed.
missing_packages() {
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      echo "$package"
  done
}

install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "scripts: this is not Debian or Ubuntu; if the build fails, install what these" \
      "packages hold: $*" >&2
    return 0
  fi
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    as_root="sudo"
    command -v sudo >/dev/null || {
      echo "scripts: cannot install packages: not root, and sudo is missing" >&2
      echo "scripts: as root, run: apt-get install" $missing >&2
      return 3
    }
  fi
  echo "scripts: installing" $missing >&2
  $as_root apt-get update -qq >&2
  # Tests start what they need: with SYSTEMD_OFFLINE, systemctl starts none of the packages' daemons.
  $as_root env DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 \
    apt-get install -y -qq --no-install-recommends $missing >&2
}
