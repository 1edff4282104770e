"""OpenSHMEM programs under other launchers: how they end, and MPI beside OpenSHMEM."""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import launchers
from support import BINARY
from test_openshmem import PROGRAMS, compile_program

PES = 4


def mpirun(*options):
    command = ["mpirun", "--oversubscribe", "-n", str(PES)]
    for option in options:
        command += ["-x", option]
    return command


class LauncherTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def run_job(self, launcher, *command, **variables):
        outcome = launchers.launch([*launcher, *command], env={"SHMEMCTL_TIMEOUT": "60",
                                                               "SHMEMCTL_SYMMETRIC_SIZE": "64M", **variables})
        self.assertEqual(outcome.left, [], outcome)
        self.assertNotIn("(the test's own time limit was over)", outcome.err)
        return outcome


class GlobalExit(LauncherTest):
    """shmem_global_exit's status is the launcher's, and no launcher takes the end for a crash. Half
    of the PEs wait in the library at that time, the others elsewhere."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = compile_program(PROGRAMS / "endings.c", cls.folder / "endings", "-std=gnu11")

    def check(self, launcher):
        outcome = self.run_job(launcher, self.program, "global-exit")
        self.assertEqual(outcome.code, 17, outcome)
        outcome = self.run_job(launcher, self.program, "global-exit-0")
        self.assertEqual((outcome.code, outcome.err), (0, ""), outcome)

    @launchers.needs("mpirun")
    def test_mpirun(self):
        self.check(mpirun())

    @launchers.needs("mpirun")
    @unittest.skipUnless(launchers.has_library("libmpi.so.40"), "libmpi.so.40 is not installed")
    def test_mpirun_with_mpi(self):
        self.check(mpirun("SHMEMCTL_BOOTSTRAP=mpi"))

    @launchers.needs("mpiexec.hydra")
    def test_hydra(self):
        for bootstrap in ("pmi", "pmi2"):
            with self.subTest(bootstrap=bootstrap):
                self.check(["mpiexec.hydra", "-n", str(PES), "-genv", "SHMEMCTL_BOOTSTRAP",
                            bootstrap])


class OneError(LauncherTest):
    """An error that ends a program's job is printed by one PE."""

    #: What happens on which PEs: the program's argument, environment, exit code, the error.
    FAILURES = (
        ("bad-pe", {}, 2, rf"PE {PES}\b.*PE {PES - 1}\)"),
        ("bad-pe-of-all", {}, 2, rf"PE {PES}\b"),
        ("status", {}, 7, r"PE 3\): cannot finish: a program exited with status 7 before shmem_finalize"),
        ("implicit", {"SHMEMCTL_LOG_LEVEL": "mars"}, 2, "SHMEMCTL_LOG_LEVEL=mars"),
        ("implicit", {"SHMEMCTL_HEAP_CHUNK": "mars"}, 2, "SHMEMCTL_HEAP_CHUNK=mars"),
        ("implicit", {"SHMEMCTL_FAULT": "error:2:hosts"}, 3, "PE 2.* was asked to fail"),
        ("implicit", {"SHMEMCTL_FAULT": "error:2:heap"}, 3, "PE 2.* was asked to fail"))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = compile_program(PROGRAMS / "endings.c", cls.folder / "endings", "-std=gnu11")

    def check(self, launcher, same_code=True):
        """Into a file of the PEs' own: launchers that end a job may drop what its processes printed last."""
        for number, (way, variables, code, error) in enumerate(self.FAILURES):
            with self.subTest(way=way, variables=variables):
                path = self.folder / f"{self.id()}-{number}.txt"
                outcome = self.run_job(launcher, "sh", "-c", 'exec "$0" "$@" 2>>"$STDERR_OF_PES"', self.program, way,
                                       STDERR_OF_PES=str(path), **variables)
                if same_code:
                    self.assertEqual(outcome.code, code, outcome)
                else:
                    self.assertNotEqual(outcome.code, 0, outcome)
                # `run` refuses an environment that it cannot read itself, before it starts a PE.
                err = path.read_text(encoding="utf-8") if path.exists() else outcome.err
                errors = [line for line in err.splitlines() if line.startswith("shmemctl: error: ")]
                fixes = [line for line in err.splitlines() if line.startswith("shmemctl: fix: ")]
                self.assertEqual((len(errors), len(fixes)), (1, 1), err)
                self.assertRegex(errors[0], error)

    def test_run(self):
        self.check([BINARY, "run", "-n", str(PES)])

    @launchers.needs("mpirun")
    def test_mpirun(self):
        self.check(mpirun())

    @launchers.needs("mpirun")
    def test_many_failing_jobs_of_mpirun_end(self):
        """mpirun may crash or hang if processes end while others are in a PMIx fence. That is likely if there are
        more processes than cores."""
        def fail(number):
            del number
            return self.run_job(mpirun(), self.program, "implicit", SHMEMCTL_FAULT="error:2:hosts")

        jobs = 32
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            codes = [outcome.code for outcome in pool.map(fail, range(jobs))]
        self.assertEqual(codes, [3] * jobs)

    @launchers.needs("mpiexec.hydra")
    def test_hydra(self):
        """It may return the code of any process, also of one that it has ended."""
        self.check(["mpiexec.hydra", "-launcher", "fork", "-n", str(PES)], same_code=False)

    def test_run_says_no_more_than_who(self):
        """Nothing at all where all PEs have ended alike, unless it had to end one that was slow."""
        line = r"(shmemctl: PE \d ended with exit code 2\n)?"
        for way in ("bad-pe-of-all", "bad-pe"):
            with self.subTest(way=way):
                outcome = self.run_job([BINARY, "run", "-n", str(PES)], self.program, way)
                self.assertEqual(outcome.code, 2, outcome)
                self.assertRegex(outcome.err, rf"^shmemctl: error: .*\nshmemctl: fix: .*\n{line}$")


def show(what):
    """The flags of Open MPI's compiler wrapper; None if it is not Open MPI's."""
    if not shutil.which("mpicc"):
        return []
    done = subprocess.run(["mpicc", f"--showme:{what}"], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def has_mpi():
    """The wrapper comes with the launcher, the header with another package."""
    return any(os.path.exists(os.path.join(flag[2:], "mpi.h")) for flag in show("compile") if flag.startswith("-I"))


@launchers.needs("mpirun")
@unittest.skipUnless(has_mpi(), "no mpicc with mpi.h of Open MPI here: apt-get install libopenmpi-dev")
@unittest.skipIf(os.environ.get("SHMEMCTL_SANITIZE"), "Open MPI's own leaks would be reported")
class Hybrid(LauncherTest):
    """A program that is linked with MPI, as an executable at any address and at a fixed one: only
    then, or not even then, it holds copies of MPI's handles."""

    def check(self, *flags):
        program = compile_program(PROGRAMS / "hybrid.c", self.folder / "hybrid", "-std=c11", *flags,
                                  *show("compile"), *show("link"))
        for bootstrap in ("auto", "pmix", "mpi"):
            for first in ("shmem-first", "mpi-first"):
                with self.subTest(bootstrap=bootstrap, first=first):
                    outcome = self.run_job(mpirun(f"SHMEMCTL_BOOTSTRAP={bootstrap}"), program, first)
                    self.assertEqual((outcome.code, outcome.out), (0, ""), outcome)
                    self.assertNotIn("shmemctl: error", outcome.err)

    def test_position_independent_executable(self):
        self.check("-pie", "-fPIE")

    def test_executable_at_a_fixed_address(self):
        self.check("-no-pie", "-fno-pie")


if __name__ == "__main__":
    unittest.main()
