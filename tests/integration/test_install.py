"""`cmake --install` after the binary alone was built, as scripts/run.sh does."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import BINARY, SOURCE

BUILD = pathlib.Path(BINARY).parent


@unittest.skipUnless(shutil.which("cmake"), "no cmake")
@unittest.skipUnless((BUILD / "cmake_install.cmake").exists(), "the binary is not in a build folder of CMake's")
class CopiedBuild(unittest.TestCase):
    """A copy of this build folder without what the target shmemctl does not build."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.build = self.folder / "build"
        self.prefix = self.folder / "prefix"
        for script in BUILD.rglob("cmake_install.cmake"):
            self.copy(script)
        for name in ("generated", "include", "kernels", "src"):
            for file in (BUILD / name).rglob("*"):
                if file.is_file() and file.suffix in (".h", ".cuh", ".pc", ".cmake", ".mri"):
                    self.copy(file)
        self.copy(BUILD / "libshmemctl.a")
        for file in [BUILD / "shmemctl", *BUILD.glob("libshmemctl_core.a"), *BUILD.rglob("libshmemctl_udev_absent.a"),
                     *BUILD.rglob("libshmemctl_string_members.a")]:
            self.link(file)

    def place(self, file):
        place = self.build / file.relative_to(BUILD)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def copy(self, file):
        """With every path of the real build folder replaced by this one."""
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
        self.place(file).write_text(text.replace(str(BUILD), str(self.build)), encoding="utf-8",
                                    errors="surrogateescape")

    def link(self, file):
        place = self.place(file)
        if not place.exists():
            place.symlink_to(file)

    def install(self, *more):
        return subprocess.run(["cmake", "--install", self.build, "--prefix", self.prefix, *more], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=600)


class Install(CopiedBuild):
    def test_what_is_missing_of_the_library_is_made(self):
        done = self.install()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("Merging", done.stdout)
        names = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*")}
        for wanted in (r"bin/shmemctl", r"lib.*/libshmemctl_all\.a", r"lib.*/libshmemctl\.a", r"include/shmem\.h",
                       r"lib.*/pkgconfig/shmemctl\.pc", r"share/shmemctl/schema/.*json"):
            self.assertTrue([name for name in names if re.fullmatch(wanted, name)], (wanted, sorted(names)))
        for wanted in (r"share/man/man1/shmemctl\.1", r"share/man/man1/shmemctl-report-diff\.1",
                       r"share/man/man7/shmemctl-findings\.7", r"share/bash-completion/completions/shmemctl",
                       r"share/zsh/site-functions/_shmemctl", r"share/fish/vendor_completions\.d/shmemctl\.fish",
                       r"share/doc/.*/LICENSE", r"share/shmemctl/ci/slurm-prolog\.sh",
                       r"lib/systemd/system/shmemctl-metrics\.service", r"lib/systemd/system/shmemctl-metrics\.timer"):
            self.assertTrue([name for name in names if re.fullmatch(wanted, name)], (wanted, sorted(names)))
        self.assertEqual([name for name in names if name.startswith("share/") and name.endswith((".service", ".timer"))], [])
        self.assertIn("shmemctl() {", (self.prefix / "share/bash-completion/completions/shmemctl").read_text())
        archive = next(self.prefix.rglob("libshmemctl_all.a"))
        symbols = subprocess.run(["nm", "--defined-only", archive], capture_output=True, text=True, check=False).stdout
        self.assertRegex(symbols, r"(?m) [TW] shmem_init$")
        self.assertEqual(os.access(self.prefix / "bin" / "shmemctl", os.X_OK), True)

    def test_a_second_install_changes_nothing(self):
        self.install()
        self.assertNotIn("Merging", self.install().stdout)

    def test_a_partial_build_is_not_installed_silently(self):
        (self.build / "libshmemctl_core.a").unlink()
        done = self.install()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Nothing has been built", done.stdout)
        self.assertFalse(self.prefix.exists(), list(self.prefix.rglob("*")))


if __name__ == "__main__":
    unittest.main()
