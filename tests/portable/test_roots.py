"""The binary in root file systems of Debian's releases, as root and as an ordinary user, with and without
the libraries that it opens at run time.

The packages are downloaded and unpacked, never installed (scripts/portable/debian.sh), into a folder
that is kept: SHMEMCTL_ROOTS, or ~/.cache/shmemctl/roots.
"""
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from support import BINARY, SOURCE, run

ROOTS = pathlib.Path(os.environ.get("SHMEMCTL_ROOTS") or pathlib.Path.home() / ".cache/shmemctl/roots")
RELEASES = os.environ.get("SHMEMCTL_RELEASES", "bullseye bookworm trixie").split()
# What a container with a shell has, and more than the binary needs.
BASE = ["base-files", "dash", "coreutils", "libc6"]
# Packages of what is opened at run time: the check of doctor, and which package has the library. "all"
# has every one of them.
LIBRARIES = {"libibverbs": "libibverbs1", "libfabric": "libfabric1", "libucp": "libucx0", "libpmix": "libpmix2"}
USERS = {"root": "0:0", "user": "65534:65534"}


def oldest_glibc():
    text = json.loads(run("--version", "--json")[1])["build"]["glibc"]
    return tuple(int(part) for part in text.split("."))


def make_root(release, packages):
    """A root file system with these packages and what they depend on."""
    name = "-".join([release, *sorted(set(packages) - set(BASE))])
    root = ROOTS / name
    if (root / "complete").exists():
        return root
    shutil.rmtree(root, ignore_errors=True)
    ROOTS.mkdir(parents=True, exist_ok=True)
    merged = "" if release == "bullseye" else "for d in bin sbin lib lib64; do mkdir -p $3/usr/$d; ln -sfn usr/$d $3/$d; done"
    script = f"""set -eu
. {SOURCE}/scripts/portable/debian.sh
wanted=$(debian_closure "$1" "$2" {' '.join(packages)})
mkdir -p "$1/deb/$2" "$3"
missing=$(for package in $wanted; do ls "$1/deb/$2/$package"_*.deb >/dev/null 2>&1 || echo "$package"; done)
[ -z "$missing" ] || debian_download "$1" "$2" "$1/deb/$2" $missing
{merged}
for package in $wanted; do debian_unpack "$3" "$1/deb/$2/$package"_*.deb; done
# libfabric of Debian 11 needs a library whose name an installation script would make.
for file in "$3"/usr/lib/libpsm1/libpsm_infinipath.so.1.*; do
  [ ! -e "$file" ] || ln -sf "../libpsm1/$(basename "$file")" "$3/usr/lib/x86_64-linux-gnu/libpsm_infinipath.so.1"
done
mkdir -p "$3/proc" "$3/sys" "$3/dev" "$3/tmp" "$3/etc"
chmod 1777 "$3/tmp"
printf 'root:x:0:0:root:/root:/bin/sh\\nnobody:x:65534:65534:nobody:/:/bin/sh\\n' >"$3/etc/passwd"
"""
    done = subprocess.run(["bash", "-c", script, "roots", ROOTS / "apt", release, root], capture_output=True, text=True,
                          timeout=1800, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr}")
    (root / "complete").touch()
    return root


def missing_tool():
    if os.geteuid() != 0:
        return "not root: chroot needs it"
    for tool in ("apt-get", "dpkg-deb", "unshare", "chroot"):
        if not shutil.which(tool):
            return f"no {tool}"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        return "no mount namespace can be made here"
    return ""


@unittest.skipIf(missing_tool(), missing_tool())
class Roots(unittest.TestCase):
    def inside(self, root, user, *arguments):
        """(exit code, stdout, stderr) of the binary in that root."""
        script = """set -e
cp "$1" "$2/shmemctl"
for folder in proc sys dev; do mount --rbind /$folder "$2/$folder"; done
mount -t tmpfs -o mode=1777 shm "$2/dev/shm"
root=$2 user=$3
shift 3
exec chroot --userspec="$user" "$root" "$@"
"""
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "inside", BINARY, root,
                               USERS[user], "/usr/bin/env", "-i", "HOME=/tmp", "PATH=/usr/bin:/bin",
                               "/shmemctl", *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False)
        self.assertNotIn("GLIBC_", done.stderr)
        return done.returncode, done.stdout, done.stderr

    def five_commands(self, root, user):
        code, out, err = self.inside(root, user, "--version")
        self.assertEqual((code, out, err), (0, run("--version")[1], ""))
        code, out, err = self.inside(root, user, "topo")
        self.assertEqual(code, run("topo")[0], err)
        self.assertIn("GPUs", out)
        code, out, err = self.inside(root, user, "doctor", "--json", "-")
        self.assertIn(code, (0, 1), err)
        checks = {check["id"]: check for check in json.loads(out)["checks"]}
        self.assertGreater(len(checks), 60)
        code, out, err = self.inside(root, user, "check")
        self.assertIn(code, (0, 1, 3), err)
        self.assertRegex(out + err, "PASS|FAIL|nothing to check")
        code, out, err = self.inside(root, user, "run", "-n", "4", "bringup")
        self.assertEqual(code, 0, out + err)
        return checks

    def test_every_release_and_user_with_and_without_libraries(self):
        for release, user in itertools.product(RELEASES, USERS):
            with self.subTest(release=release, user=user):
                checks = self.five_commands(make_root(release, BASE), user)
                for library in LIBRARIES:
                    self.assertNotEqual(checks[library]["status"], "pass", "not there, and found")
                checks = self.five_commands(make_root(release, BASE + list(LIBRARIES.values())), user)
                for library in LIBRARIES:
                    self.assertEqual(checks[library]["status"], "pass", checks[library])

    def test_each_library_alone(self):
        for release, (library, package) in itertools.product(RELEASES, LIBRARIES.items()):
            with self.subTest(release=release, library=library):
                code, out, err = self.inside(make_root(release, [*BASE, package]), "user", "doctor", "--only", "library",
                                             "--json", "-")
                self.assertIn(code, (0, 1), err)
                checks = {check["id"]: check for check in json.loads(out)["checks"]}
                self.assertEqual(checks[library]["status"], "pass", checks[library])

    def test_transports_over_those_libraries(self):
        for release, transport in itertools.product(RELEASES, ("libfabric", "ucx")):
            if (release, transport) == ("bullseye", "ucx"):
                continue # UCX 1.10 opens no worker without an RDMA device
            with self.subTest(release=release, transport=transport):
                root = make_root(release, BASE + list(LIBRARIES.values()))
                code, out, err = self.inside(root, "user", "run", "-n", "2", "bringup", "--transport", transport)
                self.assertEqual(code, 0, out + err)

    def setUp(self):
        releases = {"bullseye": (2, 31), "bookworm": (2, 36), "trixie": (2, 41)}
        for release in RELEASES:
            if releases.get(release, (9, 9)) < oldest_glibc():
                self.skipTest(f"this binary needs a newer C library than {release} has: build the preset portable")


if __name__ == "__main__":
    unittest.main()
