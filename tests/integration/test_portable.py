"""What the binary asks of the C library, read from its dynamic symbol table."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
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


class Scripts(unittest.TestCase):
    """scripts/release.sh and scripts/sysroot.sh in a checkout of their own, which can be changed, with tools in
    place of the real ones."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tree = self.folder / "tree"
        shutil.copytree(SOURCE / "scripts", self.tree / "scripts")
        shutil.copy(SOURCE / ".gitignore", self.tree)
        self.tools = self.folder / "bin"
        self.tools.mkdir()
        for tool in ("rpmbuild", "ninja", "cmake", "cpack", "zstd"):
            self.tool(tool, "echo ran >&2\nexit 9")
        self.git("init", "-q")
        self.commit()

    def tool(self, name, script):
        (self.tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.tools / name).chmod(0o755)

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=self.tree, check=True,
                       capture_output=True, timeout=60)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "a")


@unittest.skipUnless(os.environ.get("SHMEMCTL_SOAK"), "times are judged on a quiet machine: SHMEMCTL_SOAK=1")
class Start(unittest.TestCase):
    def test_the_version_takes_15_ms_at_most(self):
        times_s = []
        for _ in range(20):
            begin = time.monotonic()
            subprocess.run([BINARY, "--version"], check=True, capture_output=True, timeout=60)
            times_s.append(time.monotonic() - begin)
        self.assertLessEqual(min(times_s), 0.015)


class Refusals(Scripts):
    """One line, and nothing half-made."""

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

    def test_a_folder_of_somebody_else(self):
        """As root, by a process that is not: root may write everywhere."""
        theirs = self.folder / "theirs"
        theirs.mkdir(mode=0o555)
        for path in (self.folder, *self.folder.rglob("*")):
            path.chmod(path.stat().st_mode | 0o055 if path.is_dir() else path.stat().st_mode | 0o044)
        who = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        trusted = {"HOME": str(self.folder), "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
                   "GIT_CONFIG_VALUE_0": "*"}
        for script in ("release.sh", "sysroot.sh"):
            with self.subTest(script=script):
                done = subprocess.run([self.tree / "scripts" / script, theirs / "out"], capture_output=True, text=True,
                                      timeout=60, check=False, **who,
                                      env={**os.environ, **trusted, "PATH": f"{self.tools}:{os.environ['PATH']}"})
                self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
                self.assertRegex(done.stderr, rf"\A{script[:-3]}: [^\n]*cannot write[^\n]*\n\Z")
        self.assertEqual(list(theirs.iterdir()), [])

    def test_a_file_in_place_of_the_folder(self):
        (self.folder / "file").write_text("mine")
        self.assertIn("is not a folder", self.refused("release.sh", self.folder / "file", code=2))
        self.assertEqual((self.folder / "file").read_text(), "mine")

    def test_no_checkout(self):
        shutil.rmtree(self.tree / ".git")
        self.assertIn("not a checkout of git", self.refused("release.sh", self.folder / "out", code=2))

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


class Steps(Scripts):
    """scripts/release.sh with tools that do nothing: whichever step fails, no half of a release is left."""

    def setUp(self):
        super().setUp()
        self.out = self.folder / "release"
        sysroot = self.folder / "sysroot"
        sysroot.mkdir()
        (sysroot / "sysroot.sums").write_text("")
        self.environment = {**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}", "SHMEMCTL_SYSROOT": str(sysroot)}
        (self.tree / "tests" / "integration").mkdir(parents=True)
        self.judgement("pass")
        self.commit()
        self.tool("cmake", "mkdir -p build-portable; echo CMAKE_PROJECT_VERSION:STATIC=9.9.9 >build-portable/CMakeCache.txt\n"
                           "echo debug >build-portable/shmemctl.debug")
        self.tool("ninja", "exit 0")
        self.tool("zstd", 'cp "$3" "$5"')
        self.tool("cpack", 'case $4 in TZST) name=a.tar.zst ;; DEB) name=a.deb ;; RPM) name=a.rpm ;; esac\n'
                           'mkdir -p "$6/_CPack_Packages"; echo "$4" >"$6/$name"')

    def judgement(self, code):
        """In place of this file, which release.sh runs over the binary."""
        (self.tree / "tests" / "integration" / "test_portable.py").write_text(code + "\n")

    def release(self):
        done = subprocess.run([self.tree / "scripts" / "release.sh", self.out], capture_output=True, text=True, timeout=120,
                              check=False, env=self.environment)
        return done.returncode, done.stderr

    def assert_fails_and_leaves_nothing(self, code, last_line):
        for there_before in (False, True):
            if there_before:
                self.out.mkdir()
            got, err = self.release()
            self.assertEqual(got, code, err)
            self.assertEqual(err.splitlines()[-1], f"release: {last_line}")
            self.assertEqual(list(self.out.iterdir()) if there_before else self.out.exists(), [] if there_before else False)
        self.out.rmdir()

    def test_all_of_it(self):
        code, err = self.release()
        self.assertEqual(code, 0, err)
        names = {"a.tar.zst", "a.deb", "a.rpm", "shmemctl-9.9.9-linux-x86_64.debug.zst"}
        self.assertEqual({path.name for path in self.out.iterdir()}, names | {"SHA256SUMS"})
        sums = dict(reversed(line.split()) for line in (self.out / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(set(sums), names)
        for name, digest in sums.items():
            self.assertEqual(hashlib.sha256((self.out / name).read_bytes()).hexdigest(), digest)

    def test_it_cannot_be_configured(self):
        self.tool("cmake", "echo no nvcc >&2; exit 1")
        self.assert_fails_and_leaves_nothing(3, "cannot configure: see above")

    def test_it_cannot_be_compiled(self):
        self.tool("ninja", "exit 1")
        self.assert_fails_and_leaves_nothing(3, "cannot build: see above")

    def test_the_binary_needs_too_much(self):
        self.judgement("raise SystemExit(1)")
        self.commit()
        self.assert_fails_and_leaves_nothing(1, "the binary is not what a release promises: see above")

    def test_a_package_is_empty(self):
        self.tool("cpack", '[ "$4" = TZST ] && : >"$6/a.tar.zst" || echo 1 >"$6/a.$(echo "$4" | tr A-Z a-z)"')
        self.assert_fails_and_leaves_nothing(3, "a.tar.zst is missing or empty: cpack has said nothing of it")

    def test_a_package_is_too_large(self):
        self.tool("cpack", 'truncate -s 26M "$6/a.$(echo "$4" | tr A-Z a-z)"; mv "$6/a.tzst" "$6/a.tar.zst" 2>/dev/null; exit 0')
        self.assert_fails_and_leaves_nothing(1, "a.tar.zst is larger than the 25 MB that a release promises")

    def test_one_package_cannot_be_made(self):
        self.tool("cpack", '[ "$4" != RPM ]; status=$?\n[ $status = 1 ] || touch "$6/a.$4"; exit $status')
        self.assert_fails_and_leaves_nothing(3, "cannot make the package RPM: see above")


if __name__ == "__main__":
    unittest.main()
