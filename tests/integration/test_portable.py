"""What the binary asks of the C library, read from its dynamic symbol table."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import BINARY, SOURCE, run

sys.path.insert(0, str(SOURCE / "scripts" / "portable"))
import stubs  # noqa: E402

ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *map(str, arguments)], check=True, capture_output=True, text=True,
                          timeout=120).stdout


def needed_libraries(binary):
    return set(re.findall(r"\(NEEDED\)\s+Shared library: \[([^\]]+)\]", readelf("-d", binary)))


def needed_versions(binary):
    """(2, 27): {"glob", ...}: which symbols ask for which version of glibc."""
    versions = {}
    for name, version in re.findall(r" UND +(\S+)@GLIBC_([0-9.]+)", readelf("--dyn-syms", binary)):
        versions.setdefault(stubs.numbers(version), set()).add(name)
    return versions


@unittest.skipUnless(shutil.which("readelf"), "no readelf")
class Binary(unittest.TestCase):
    def setUp(self):
        self.build = json.loads(run("--version", "--json")[1])["build"]
        if "sanitize" in self.build:
            self.skipTest("a sanitizer has libraries of its own")

    def test_it_needs_no_library_but_the_c_librarys(self):
        self.assertLessEqual(needed_libraries(BINARY), ALLOWED)

    def test_it_needs_no_newer_c_library_than_it_says(self):
        versions = needed_versions(BINARY)
        self.assertIn((2, 2, 5), versions)
        newer = {version: names for version, names in versions.items()
                 if version > stubs.numbers(self.build["glibc"])}
        self.assertEqual(newer, {})


@unittest.skipUnless(shutil.which("cc") and shutil.which("readelf"), "no compiler")
class Reading(unittest.TestCase):
    """What the tests above rely on: that a newer symbol would be found."""

    def test_a_newer_symbol_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            program, source = pathlib.Path(folder, "a"), pathlib.Path(folder, "a.c")
            source.write_text("#include <math.h>\n#include <stdio.h>\n"
                              "int main(int argc, char** argv) { (void)argv; return printf(\"%f\", pow(argc, 0.3)); }\n")
            subprocess.run(["cc", source, "-o", program, "-lm"], check=True, timeout=120)
            self.assertIn("pow", needed_versions(program)[2, 29])
            self.assertIn("libm.so.6", needed_libraries(program))


class Stubs(unittest.TestCase):
    """scripts/portable/stubs.py: which names and versions a stub has."""

    @staticmethod
    def symbol(name, version, default, kind="FUNC", address="1", weak=False):
        return stubs.Symbol(name, kind, weak, address, 8, version, default)

    def kept(self, *symbols):
        return {(s.name, s.version): s.default for s in stubs.for_version(symbols, (2, 28))}

    def test_a_function_that_changed_later_is_the_older_one(self):
        self.assertEqual(self.kept(self.symbol("pow", "2.2.5", False), self.symbol("pow", "2.29", True)),
                         {("pow", "2.2.5"): True})

    def test_what_came_later_is_absent_and_what_was_withdrawn_stays_so(self):
        self.assertEqual(self.kept(self.symbol("gettid", "2.30", True), self.symbol("gets_old", "2.2.5", False)),
                         {("gets_old", "2.2.5"): False})

    def test_the_default_of_the_time_stays(self):
        self.assertEqual(self.kept(self.symbol("memcpy", "2.2.5", False), self.symbol("memcpy", "2.14", True)),
                         {("memcpy", "2.2.5"): False, ("memcpy", "2.14"): True})

    @unittest.skipUnless(shutil.which("gcc") and shutil.which("readelf"), "no compiler")
    def test_names_of_the_same_data_stay_together(self):
        """A program's copy of one must be the library's other one: environ and __environ."""
        with tempfile.TemporaryDirectory() as folder:
            source, library = pathlib.Path(folder, "l.c"), pathlib.Path(folder, "l.so")
            versions = pathlib.Path(folder, "versions")
            source.write_text("char* strong_name = \"a\"; extern char* weak_name __attribute__((weak, alias(\"strong_name\")));\n"
                              "int other; int function(void) { return other; }\n")
            versions.write_text("GLIBC_2.2.5 { global: *; };\n")
            subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library, f"-Wl,--version-script={versions}"],
                           check=True, timeout=120)
            stubs.make_stub(str(library), "l.so", (2, 28))
            symbols = {s.name: s for s in stubs.exported(str(library))}
            self.assertEqual(set(symbols), {"strong_name", "weak_name", "other", "function"})
            self.assertEqual(symbols["strong_name"].address, symbols["weak_name"].address)
            self.assertNotEqual(symbols["strong_name"].address, symbols["other"].address)
            self.assertTrue(symbols["weak_name"].weak and not symbols["strong_name"].weak)


@unittest.skipUnless(pathlib.Path(BINARY).parent.name == "build-portable", "not the binary of a release")
class Release(unittest.TestCase):
    """Only for what scripts/release.sh is about to pack."""

    def test_it_is_for_glibc_2_28(self):
        self.assertEqual(json.loads(run("--version", "--json")[1])["build"]["glibc"],
                         os.environ.get("SHMEMCTL_GLIBC", "2.28"))

    def test_it_is_no_larger_than_promised(self):
        self.assertLess(os.path.getsize(BINARY), 60_000_000)


class Refusals(unittest.TestCase):
    """scripts/release.sh and scripts/sysroot.sh: one line, and nothing half-made."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # A checkout of its own, which can be changed.
        self.tree = self.folder / "tree"
        shutil.copytree(SOURCE / "scripts", self.tree / "scripts")
        self.tools = self.folder / "bin"
        self.tools.mkdir()
        for tool in ("rpmbuild", "ninja", "cmake", "cpack", "zstd"):
            (self.tools / tool).write_text("#!/bin/sh\necho ran >&2\nexit 9\n")
            (self.tools / tool).chmod(0o755)
        self.git("init", "-q")
        self.commit()

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=self.tree, check=True,
                       capture_output=True, timeout=60)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "a")

    def refused(self, script, *arguments, code, path=None):
        done = subprocess.run([self.tree / "scripts" / script, *arguments], capture_output=True, text=True, timeout=60,
                              check=False, env={**os.environ, "PATH": path or f"{self.tools}:{os.environ['PATH']}"})
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, rf"\A{script[:-3]}: [^\n]+\n\Z")
        self.assertEqual([p for p in self.folder.iterdir() if p.name.startswith("out")], [])
        return done.stderr

    def test_a_changed_checkout(self):
        (self.tree / "new file").write_text("")
        self.assertIn("new file", self.refused("release.sh", self.folder / "out", code=2))

    def test_an_unwritable_folder(self):
        (self.folder / "file").write_text("")
        self.assertIn("cannot write", self.refused("release.sh", self.folder / "file" / "out", code=3))
        self.assertIn("cannot write", self.refused("sysroot.sh", self.folder / "file" / "out", code=3))

    def test_a_folder_with_other_things(self):
        self.assertIn("not a sysroot", self.refused("sysroot.sh", self.tree, code=2))
        self.assertIn("not empty", self.refused("release.sh", self.tree / "scripts", code=2))
        self.assertTrue((self.tree / "scripts" / "release.sh").exists())

    def test_a_missing_tool(self):
        few = self.folder / "few"
        few.mkdir()
        for tool in ("bash", "git", "dirname", "basename", "env"):
            (few / tool).symlink_to(shutil.which(tool))
        self.assertIn("cmake is missing", self.refused("release.sh", self.folder / "out", code=3, path=str(few)))
        self.assertIn("apt-get is missing", self.refused("sysroot.sh", self.folder / "out", code=3, path=str(few)))

    def test_wrong_arguments(self):
        for script in ("release.sh", "sysroot.sh"):
            self.refused(script, "--no-such", code=2)
            self.refused(script, "out1", "out2", code=2)


if __name__ == "__main__":
    unittest.main()
