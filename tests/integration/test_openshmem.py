"""OpenSHMEM programs compiled outside of the tree, as a user would, and run by several launchers."""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from support import BINARY, SOURCE, clean_environment, error_lines

BUILD = pathlib.Path(BINARY).resolve().parent
PROGRAMS = SOURCE / "tests" / "openshmem"
HEADERS = BUILD / "include"

# Programs that check themselves: silent, exit status 0. Their standards differ on purpose.
CONFORMANCE = {
    "setup": "c11", "memory": "c99", "rma_types": "gnu99", "generic": "c11", "contexts": "c11",
    "amo": "c99", "signals": "c11", "waits": "c11", "ordering": "c17", "teams": "c99",
    "collectives": "c11", "active_sets": "c11", "locks": "c11", "deprecated": "c99",
    "threads": "gnu11", "profile": "c11", "names": "c11", "buffers": "c11",
    "large_arrays": "gnu11",
}


def sanitizers():
    """What the library was built with: a program needs the same."""
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(r"^SHMEMCTL_SANITIZE:\w+=(.*)$", cache, re.MULTILINE)
    return [f"-fsanitize={found.group(1)}"] if found and found.group(1) else []


def build_type():
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(r"^CMAKE_BUILD_TYPE:\w+=(.*)$", cache, re.MULTILINE)
    return found.group(1) if found else ""


def compile_program(source, output, *flags, compiler="cc"):
    command = [compiler, str(source), "-o", str(output), "-I", str(HEADERS), "-L", str(BUILD),
               "-Wall", "-Wextra", "-pedantic", "-Werror", *flags, *sanitizers(), "-lshmemctl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=output.parent)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return output


class OpenShmemTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.built = {}

    def program(self, name, *flags, compiler="cc", suffix=".c"):
        """Compiles it once."""
        key = (name, flags, compiler)
        if key not in self.built:
            output = self.folder / f"{name}-{len(self.built)}"
            self.built[key] = compile_program(PROGRAMS / (name + suffix), output, *flags,
                                              compiler=compiler)
        return self.built[key]

    def conformance(self, name):
        return self.program(name, f"-std={CONFORMANCE[name]}", "-O1", "-g")

    def run_job(self, *command, launcher=None, timeout=300, **environment):
        variables = {"SHMEMCTL_TIMEOUT": "60", "SHMEMCTL_SYMMETRIC_SIZE": "256M", **environment}
        done = subprocess.run(
            [*(launcher or []), *map(str, command)], capture_output=True, text=True,
            env=clean_environment(**variables), timeout=timeout, check=False, cwd=self.folder)
        return done.returncode, done.stdout, done.stderr

    def run_pes(self, n_pes, *command, timeout=300, options=(), **environment):
        launcher = [BINARY, "run", "-n", str(n_pes), *options]
        return self.run_job(*command, launcher=launcher, timeout=timeout, **environment)

    def assert_silent(self, result):
        self.assertEqual(result, (0, "", ""))


class Headers(OpenShmemTest):
    """The header alone, in every language that it is for."""

    TEXT = ("#include <shmem.h>\n#include <shmemx.h>\n#include <pshmem.h>\n#include <mpp/shmem.h>\n"
            "static shmem_ctx_t ctx = SHMEM_CTX_DEFAULT, none = SHMEM_CTX_INVALID;\n"
            "static shmem_team_t team = SHMEM_TEAM_WORLD;\n"
            "int main(void) { return ctx == none || team == SHMEM_TEAM_INVALID; }\n")

    def test_standards(self):
        for suffix, compilers, standards in (
                (".c", ("cc", "clang"), ("c99", "gnu99", "c11", "c17", "gnu17", "c2x")),
                (".cpp", ("c++", "clang++"), ("c++11", "c++14", "c++17", "c++20"))):
            source = self.folder / ("header" + suffix)
            source.write_text(self.TEXT, encoding="utf-8")
            # Each compiler's sanitizers have a runtime of their own.
            for compiler in filter(shutil.which, compilers[:1] if sanitizers() else compilers):
                for standard in standards:
                    with self.subTest(compiler=compiler, standard=standard):
                        compile_program(source, self.folder / "header", f"-std={standard}",
                                        compiler=compiler)

    @unittest.skipIf(sanitizers() or build_type() == "Debug", "the library keeps its debug information")
    def test_programs_are_small(self):
        """The library brings neither its debug information nor the kernels of bench."""
        program = self.program("setup", "-std=c11")
        self.assertLess(program.stat().st_size, 8 << 20)

    def test_position_dependent_program(self):
        for flags in (("-no-pie", "-fno-pie"), ("-pie", "-fPIE")):
            with self.subTest(flags=flags):
                self.assert_silent(self.run_pes(2, self.program("setup", "-std=c11", *flags)))

    def test_wrong_type_does_not_compile(self):
        source = self.folder / "wrong.c"
        source.write_text("#include <shmem.h>\nstruct s { int i; } a, b;\n"
                          "int main(void) { shmem_put(&a, &b, 1, 0); return 0; }\n", encoding="utf-8")
        done = subprocess.run(["cc", "-std=c11", "-I", str(HEADERS), "-c", str(source), "-o", "/dev/null"],
                              capture_output=True, check=False)
        self.assertNotEqual(done.returncode, 0)


class Conformance(OpenShmemTest):
    def test_each_on_four(self):
        for name in CONFORMANCE:
            with self.subTest(program=name):
                self.assert_silent(self.run_pes(4, self.conformance(name)))

    def test_medium_code_model(self):
        """Large arrays lie in segments of their own: .ldata, .lbss, .lrodata."""
        if platform.machine() != "x86_64":
            self.skipTest("no medium code model on this machine")
        for flags in (("-pie", "-fPIE"), ("-no-pie", "-fno-pie")):
            program = self.program("large_arrays", "-std=gnu11", "-O1", "-mcmodel=medium", *flags)
            for options in ((), ("--nodes", "2")):
                environment = {"SHMEMCTL_REMOTE_TRANSPORT": "ucx"} if options else {}
                with self.subTest(flags=flags, options=options):
                    self.assert_silent(self.run_pes(4, program, options=options, **environment))

    def test_other_numbers_of_pes(self):
        for name in CONFORMANCE:
            for n_pes in (1, 2, 3, 5):
                with self.subTest(program=name, n_pes=n_pes):
                    self.assert_silent(self.run_pes(n_pes, self.conformance(name)))

    def test_a_job_of_one_without_launcher(self):
        """Started by nobody: a job of one."""
        for name in ("setup", "generic", "collectives", "deprecated"):
            with self.subTest(program=name):
                self.assert_silent(self.run_job(self.conformance(name)))

    def test_more_pes_than_cores(self):
        for name in ("ordering", "locks", "signals", "teams"):
            with self.subTest(program=name):
                n_pes = min(2 * (os.cpu_count() or 1) + 2, 12)
                self.assert_silent(self.run_pes(n_pes, self.conformance(name), timeout=300))

    def test_checked(self):
        for name in ("memory", "rma_types", "teams", "collectives"):
            with self.subTest(program=name):
                self.assert_silent(self.run_pes(3, self.conformance(name), SHMEMCTL_CHECK="1"))

    def test_cxx(self):
        for standard in ("c++17", "c++20"):
            with self.subTest(standard=standard):
                program = self.program("cxx", f"-std={standard}", compiler="c++", suffix=".cpp")
                self.assert_silent(self.run_pes(4, program))

    def test_optimised(self):
        for name in ("waits", "amo", "active_sets"):
            with self.subTest(program=name):
                self.assert_silent(self.run_pes(4, self.program(name, "-std=c11", "-O3")))


class AllGroups(OpenShmemTest):
    def check(self, result, n_pes):
        code, out, err = result
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out, f"sorted {20000 * n_pes} keys on {n_pes} PEs\n")

    def test_run(self):
        program = self.program("all_groups", "-std=c11", "-O2")
        for n_pes in (1, 2, 4, 7):
            self.check(self.run_pes(n_pes, program), n_pes)

    def test_mpirun(self):
        if not shutil.which("mpirun"):
            self.skipTest("no mpirun here: apt-get install openmpi-bin")
        launcher = ["mpirun", "-n", "4", "--oversubscribe"]
        if os.geteuid() == 0:
            launcher.append("--allow-run-as-root")
        program = self.program("all_groups", "-std=c11", "-O2")
        self.check(self.run_job(program, launcher=launcher), 4)
        for name in ("setup", "generic", "collectives", "deprecated"):
            with self.subTest(program=name):
                self.assert_silent(self.run_job(self.conformance(name), launcher=launcher))


class Endings(OpenShmemTest):
    """Every way in which a job may end, with PEs that compute and PEs that wait."""

    def end(self, way, n_pes=3, timeout=300):
        return self.run_pes(n_pes, self.program("endings", "-std=gnu11"), way, timeout=timeout)

    def assert_error(self, result, status, text):
        code, _, err = result
        self.assertEqual(code, status, err)
        self.assertTrue(any(text in line for line in error_lines(err)), err)
        self.assertIn("shmemctl: fix: ", err)

    def assert_only_run_speaks(self, code, err, status):
        """An exit status is the program's own word: only the launcher says a line about it."""
        self.assertEqual(code, status, err)
        self.assertEqual(len(error_lines(err)), 1, err)
        self.assertRegex(err, rf"^shmemctl: error: (PE \d|all \d PEs) ended with exit code {status}$")

    def test_implicit_finalize(self):
        self.assert_silent(self.end("implicit"))

    def test_status_after_finalize(self):
        code, _, err = self.end("finalize-then-status")
        self.assert_only_run_speaks(code, err, 5)

    def test_child_process(self):
        self.assert_silent(self.end("child"))

    def test_global_exit(self):
        for n_pes in (1, 2, 3):
            code, out, err = self.end("global-exit", n_pes)
            self.assert_only_run_speaks(code, err, 17)
        self.assertIn("PE 0 was here", out)  # output of PEs that were ended is not lost

    def test_global_exit_with_0(self):
        code, out, err = self.end("global-exit-0")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("PE 0 was here", out)

    def test_exit_handlers_that_take_too_long(self):
        # The PEs that are ended get some seconds for them, and end with the job's status all the same.
        started = time.monotonic()
        code, _, err = self.end("slow-exit")
        self.assertEqual((code, err), (0, ""))
        self.assertLess(time.monotonic() - started, 50)

    def test_status_without_finalize(self):
        code, _, err = self.end("status")
        self.assertEqual(code, 7, err)

    def test_abort(self):
        code, _, err = self.end("abort")
        self.assertEqual(code, 128 + 6, err)

    def test_errors(self):
        self.assert_error(self.end("before-init", 1), 2, "not initialized")
        self.assert_error(self.end("init-twice", 1), 2, "already been initialized")
        self.assert_error(self.end("bad-pe", 1), 2, "PE 1")
        self.assert_error(self.end("bad-address", 1), 2, "not in a symmetric object")
        self.assert_error(self.end("bad-pe", 3), 2, "PE 3")

    def test_wait_with_a_deadline(self):
        """The option is obeyed: nobody writes what is waited for."""
        program = self.program("endings", "-std=gnu11")
        code, _, err = self.run_job(program, "nobody", SHMEMCTL_TIMEOUT="2")
        self.assertEqual(code, 124, err)
        self.assertTrue(any("shmem_wait_until" in line for line in error_lines(err)), err)
        self.assertIn("raise SHMEMCTL_TIMEOUT\n", err)  # a program has no --timeout
        self.assertNotIn("--timeout", err)


class TwoPrograms(OpenShmemTest):
    """Symmetric globals need one program: whoever runs another one is named, before any harm."""

    def run_mixed(self, n_pes, odd_pe, usual, odd):
        script = f'test "$SHMEMCTL_LOCAL_RANK" = {odd_pe} && exec {odd}; exec {usual}'
        return self.run_pes(n_pes, "sh", "-c", script)

    def assert_names(self, result, odd_pe, reference_pe):
        code, out, err = result
        self.assertEqual((code, out), (3, ""), err)
        lines = [line for line in error_lines(err)
                 if "last words" not in line]  # lines that `run` repeats are cut
        self.assertTrue(lines, err)
        for line in lines:
            self.assertRegex(line, rf"PE {odd_pe} runs another program \(build .*\) than PE "
                                   rf"{reference_pe} \(build .*\)")
            self.assertRegex(line, rf"\(host \S+, PE {odd_pe}\)")
            self.assertIn("in phase heap", line)

    def test_the_odd_one_is_named(self):
        usual, odd = self.conformance("memory"), self.conformance("setup")
        for n_pes, odd_pe, reference_pe in ((3, 2, 0), (3, 0, 1), (4, 1, 0), (2, 1, 0)):
            with self.subTest(n_pes=n_pes, odd_pe=odd_pe):
                self.assert_names(self.run_mixed(n_pes, odd_pe, usual, odd), odd_pe, reference_pe)

    def test_two_builds_with_equal_sizes_are_refused(self):
        """Two builds of one source: every address and size agrees, and yet they may differ."""
        programs = []
        for value in (1, 2):
            source = self.folder / f"build_{value}.c"
            source.write_text(f"#include <shmem.h>\nint table[1000] = {{{value}}};\n"
                              "int main(void) { shmem_init(); return 0; }\n", encoding="utf-8")
            programs.append(compile_program(source, self.folder / f"build_{value}",
                                            "-Wl,--build-id"))
        self.assert_names(self.run_mixed(3, 2, *programs), 2, 0)

    def test_copies_are_one_program(self):
        usual = self.conformance("setup")
        copy = self.folder / "copy"
        shutil.copy(usual, copy)
        self.assert_silent(self.run_mixed(3, 1, usual, copy))


class Environment(OpenShmemTest):
    def run_alone(self, **environment):
        return self.run_job(self.conformance("setup"), **environment)

    def test_version_and_info(self):
        code, out, err = self.run_alone(SHMEM_VERSION="1")
        self.assertEqual((code, out), (0, ""))
        self.assertIn("OpenSHMEM 1.5", err)
        _, _, err = self.run_alone(SHMEM_INFO="")
        self.assertIn("SHMEM_SYMMETRIC_SIZE", err)
        _, _, err = self.run_pes(3, self.conformance("setup"), SMA_VERSION="1")
        self.assertEqual(err.count("OpenSHMEM 1.5"), 1)

    def test_symmetric_size(self):
        source = self.folder / "room.c"
        source.write_text("#include <shmem.h>\n#include <stdio.h>\nint main(void) { shmem_init();\n"
                          "printf(\"%d\\n\", shmem_malloc((size_t)100 << 20) != 0); return 0; }\n",
                          encoding="utf-8")
        program = compile_program(source, self.folder / "room")
        for size, room in (("200m", 1), (".1G", 1), ("20M", 0), ("100000kk", 0), ("1.5e8", 1),
                           ("0", 0), ("-1", None), ("many", None), ("5x", None), ("", 1)):
            with self.subTest(size=size):
                environment = clean_environment(SHMEM_SYMMETRIC_SIZE=size)
                done = subprocess.run([program], capture_output=True, text=True, env=environment,
                                      timeout=300, check=False)
                if room is None:
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn("SHMEM_SYMMETRIC_SIZE", done.stderr)
                else:
                    self.assertEqual((done.returncode, done.stdout), (0, f"{room}\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
