"""The bootstraps over key-value spaces under the launchers that serve them: PMIx under mpirun and
srun, PMI-1 and PMI-2 under Hydra's mpiexec and srun. Slurm is started and stopped here."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import uuid

import one_node_slurm
from support import BINARY, clean_environment, error_lines, launcher_environment, run

PROBE = pathlib.Path(BINARY).with_name("bootstrap_probe")
LAUNCHER_VARIABLES = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "MPI_", "HYD")
PAIR_OPS = ("put", "get", "fetch-add", "compare-swap", "put-signal")
SIZES = "0,1,3,8,735,736,752,753,1000,4097,20000"
#: For faults that only a deadline ends, and for those where none may pass.
FAULT_TIMEOUT_S = 2
LONG_TIMEOUT_S = 30
#: How often a job is started whose launcher says that it has started none of its processes: slurmd on a
#: loaded machine sometimes fails so ("launch failed: Unspecified error"), and srun then returns 0.
LAUNCHES = 3
#: The probe's own watchdog ends it after 3 x its timeout + 10; nothing may hang longer.
PATIENCE_S = 110


def environment(**variables):
    kept = {name: value for name, value in clean_environment().items()
            if not name.startswith(LAUNCHER_VARIABLES)}
    kept.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_plm="isolated", **launcher_environment(), **variables)
    return kept


def processes_with(mark):
    """Processes that have this text in their environment, other than this one."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def open_mpi():
    """Open MPI's mpirun; other MPIs have one of that name too."""
    for name in ("mpirun.openmpi", "mpirun"):
        path = shutil.which(name)
        if path and "Open MPI" in subprocess.run([path, "--version"], capture_output=True, text=True,
                                                 check=False).stdout:
            return path
    return None


class LauncherTests:
    """The tests; a class for each launcher says how a job is started."""
    bootstrap = ""  # what --bootstrap is asked for
    chosen = ""  # the value that the run must choose
    launcher = ""   # what a report calls the launcher
    #: Calls in which a rank is lost; 0 is before the bootstrap is opened.
    fault_calls = (0, 1, 4)

    @classmethod
    def setUpClass(cls):
        if not PROBE.exists():
            raise unittest.SkipTest(f"{PROBE} is not built")

    def command(self, ranks):
        raise NotImplementedError

    def variables(self):
        return {}

    def never_started(self, err):
        """Whether the launcher says that it could not start the job's processes."""
        return False

    def job(self, ranks, *arguments, **variables):
        """A finished job; started again if the launcher could not start its processes."""
        for _ in range(LAUNCHES):
            done = subprocess.run(
                [*self.command(ranks), *map(str, arguments)],
                env=environment(**{"SHMEMCTL_SYMMETRIC_SIZE": "64M", **self.variables(), **variables}),
                check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
            if not self.never_started(done.stderr):
                break
        return done

    def launch(self, ranks, *arguments):
        """(exit code, stdout, stderr, seconds); checks that nothing stays behind."""
        for _ in range(LAUNCHES):
            result = self.launch_probe(ranks, *arguments)
            if not self.never_started(result[2]):
                break
        return result

    def launch_probe(self, ranks, *arguments):
        mark = f"PROBE_MARK_{uuid.uuid4().hex}"
        # To a file of their own: a launcher that ends a job may drop what its ranks said last.
        said = tempfile.NamedTemporaryFile("r", prefix="probe-stderr-")
        self.addCleanup(said.close)
        probe = ["sh", "-c", 'exec "$0" "$@" 2>>"$PROBE_STDERR"', str(PROBE)]
        start = time.monotonic()
        process = subprocess.Popen(
            [*self.command(ranks), *probe, self.bootstrap, *map(str, arguments)],
            env=environment(**self.variables(), SHMEMCTL_TEST_MARK=mark, PROBE_STDERR=said.name),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            ranks_left = [line for line in processes_with(mark) if str(PROBE) in line
                          and self.command(ranks)[0] not in line]
            process.kill()
            process.communicate()
            self.assertEqual(ranks_left, [], "ranks hang")
            self.skipTest("the launcher hangs by itself: all its ranks have ended")
        seconds = time.monotonic() - start
        end = time.monotonic() + 60  # launchers leave before the last of their helpers
        while (left := processes_with(mark)) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(left, [])
        return process.returncode, out, err + said.read(), seconds

    def launch_with_fault(self, fault, timeout_s=FAULT_TIMEOUT_S):
        return self.launch(3, "--sizes", "1,100", "--timeout", timeout_s, "--fault", fault)

    def require_words(self, result):
        """Hydra, on a loaded machine, sometimes kills all ranks before one has printed a line; its own
        lines may be all there is then (its proxy ends when it cannot answer a rank that has gone)."""
        printed = [line for line in result[2].splitlines()
                   if not re.match(r"\[(proxy:\d+:\d+|mpiexec)@", line)]
        if self.chosen.startswith("pmi") and result[0] != 0 and not printed:
            self.skipTest(f"the launcher ended all ranks before one spoke: {result[:2]}")

    def assert_good(self, ranks, result):
        code, out, err, _ = result
        self.assertEqual(code, 0, err)
        lines = sorted(line for line in out.splitlines() if line.startswith("OK "))
        self.assertEqual([line.rsplit(",", 1)[0] for line in lines],
                         sorted(f"OK {self.chosen} rank {rank} of {ranks}" for rank in range(ranks)))

    def assert_no_deadline_missed(self, result):
        code, out, err, _ = result
        self.assertNotEqual(code, 0, out + err)
        self.assertNotIn("wrong data", err)
        # 99 is the probe's own watchdog; only the process that stays away on purpose may meet it.
        self.assertNotRegex(err, r"tasks? (0|2)\S*: Exited with exit code 99")

    def test_collectives(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                self.assert_good(ranks, self.launch(ranks, "--sizes", SIZES))

    def test_more_ranks_than_processors(self):
        self.assert_good(9, self.launch(9, "--sizes", "0,5,1200", "--rounds", 3))

    def test_bringup_verifies_every_pair(self):
        """The whole runtime, through the binary as its users start it."""
        with tempfile.TemporaryDirectory(prefix="launched-bringup-") as folder:
            path = pathlib.Path(folder) / "report.json"
            done = self.job(4, BINARY, "bringup", "--bootstrap", self.bootstrap, "--json", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(path.read_text())
        self.assertEqual((report["status"], report["job"]["pes"], report["job"]["bootstrap"]),
                         ("complete", 4, self.chosen))
        rows = {row["case"]: row["verified"] for row in report["results"]}
        self.assertEqual(rows, {f"bringup.{op}": "passed" for op in (*PAIR_OPS, "registered-buffer")})

    def test_a_sweep_is_verified_and_its_report_valid(self):
        """`bench` as its users start it; only PE 0 prints and writes."""
        cases = {"put": {1, 512, 262144, 4194304}, "atomic-fetch-add": {4, 8}, "barrier": {None}}
        with tempfile.TemporaryDirectory(prefix="launched-bench-") as folder:
            path = pathlib.Path(folder) / "report.json"
            done = self.job(2, BINARY, "bench", *cases, "--quick", "--timeout", "60", "--bootstrap",
                            self.bootstrap, "--json", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(path.read_text())
            code, out, err = run("report", "validate", path)
            self.assertEqual(code, 0, out + err)
        self.assertEqual((report["status"], report["exit_code"]), ("complete", 0))
        command = report["job"].pop("command")
        self.assertIn("atomic-fetch-add", command)
        self.assertEqual(report["job"], {"pes": 2, "nodes": 1, "bootstrap": self.chosen,
                                         "launcher": self.launcher})
        sizes = {case: set() for case in cases}
        for row in report["results"]:
            with self.subTest(case=row["case"], params=row["params"]):
                self.assertEqual((row["verified"], row["status"]), ("passed", "pass"), row.get("reason"))
                self.assertEqual((row["unit"], row["params"]["pes"]), ("us", 2))
                self.assertGreater(row["stats"]["n"], 0)
                self.assertGreater(row["stats"]["min"], 0)
            sizes[row["case"]].add(row["params"].get("size_bytes"))
        self.assertEqual(sizes, cases)
        self.assertEqual([pin["pe"] for pin in report["measurement"]["pinning"]], [0, 1])
        for case in cases:
            table = re.search(rf"(?ms)^{case}: .*?^$", done.stdout)[0]
            rows = [line for line in table.splitlines() if line.endswith("  passed")]
            self.assertEqual(len(rows), len(cases[case]), done.stdout)

    def test_an_error_is_printed_once(self):
        for arguments, variables, word in (
                (("moe", "--routing", "/no/such/routing.json"), {}, "/no/such/routing.json"),
                (("bringup",), {"SHMEMCTL_SYMMETRIC_SIZE": "lots"}, "lots"),
                (("bench", "put", "--pair", "0,9"), {}, "no PE 9"),
                (("bringup",), {"SHMEMCTL_FAULT": "error:1:heap"}, "PE 1")):
            with self.subTest(arguments=arguments), tempfile.NamedTemporaryFile("r") as printed:
                done = self.job(3, "sh", "-c", 'exec "$0" "$@" 2>>"$STDERR_OF_PES"', BINARY, *arguments,
                                "--bootstrap", self.bootstrap, STDERR_OF_PES=printed.name, **variables)
                self.assertNotEqual(done.returncode, 0)
                errors = error_lines(printed.read())
                self.assertEqual(len(errors), 1, (errors, done.stderr))
                self.assertIn(word, errors[0])
                if word in ("lots", "no PE 9"):
                    self.assertNotIn("(host", errors[0], "all PEs have it")

    def test_a_rank_is_killed(self):
        for call in self.fault_calls:
            with self.subTest(call=call):
                result = self.launch_with_fault(f"die@{call}")
                self.assert_no_deadline_missed(result)
                self.assertNotIn("OK ", result[1])

    def test_a_missing_rank_is_named(self):
        for call in self.fault_calls[::2]:
            with self.subTest(call=call):
                result = self.launch_with_fault(f"away@{call}")
                self.assert_no_deadline_missed(result)
                self.require_words(result)
                self.assertIn("timed out", result[2])
                self.assert_deadline_code(result)

    def assert_deadline_code(self, result):
        self.assertEqual(result[0], 124, result[2])

    def test_a_rank_that_exits_silently_is_named(self):
        self.assert_no_deadline_missed(self.launch_with_fault("exit@4"))

    def test_abort_ends_the_job(self):
        result = self.launch_with_fault("abort@4", LONG_TIMEOUT_S)
        self.assert_no_deadline_missed(result)
        self.assertNotIn("timed out", result[2])

    def test_another_size_is_named(self):
        result = self.launch_with_fault("size@3", LONG_TIMEOUT_S)
        self.assert_no_deadline_missed(result)
        self.require_words(result)
        self.assertRegex(result[2], rf"bootstrap {self.chosen}.*: cannot complete alltoall \(call 3\): "
                                    r"PE \d passes \d bytes, this PE \d")


class MpirunPmix(LauncherTests, unittest.TestCase):
    bootstrap, chosen, launcher = "auto", "pmix", "mpirun"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mpirun = open_mpi()
        if cls.mpirun is None:
            raise unittest.SkipTest("no mpirun of Open MPI (apt install openmpi-bin)")

    def command(self, ranks):
        return [self.mpirun, "--oversubscribe", "-n", str(ranks)]

    def test_long_values(self):
        self.assert_good(2, self.launch(2, "--sizes", "1048559,1048560,1048576,3000000"))


class Hydra(LauncherTests):
    launcher = "hydra"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if shutil.which("mpiexec.hydra") is None:
            raise unittest.SkipTest("no mpiexec.hydra (apt install mpich)")

    def command(self, ranks):
        return ["mpiexec.hydra", "-launcher", "fork", "-n", str(ranks)]

    def assert_deadline_code(self, result):
        """Hydra kills the others when one leaves, and returns any of their codes."""
        self.assertIn(result[0], (124, 9, 137), result[2])


class HydraPmi(Hydra, unittest.TestCase):
    bootstrap, chosen = "auto", "pmi"


class HydraPmiPort(Hydra, unittest.TestCase):
    bootstrap, chosen = "auto", "pmi"
    fault_calls = (1, 2, 4)  # no variable tells the rank before

    def command(self, ranks):
        return ["mpiexec.hydra", "-launcher", "fork", "-pmi-port", "-n", str(ranks)]


class HydraPmi2(Hydra, unittest.TestCase):
    bootstrap, chosen = "pmi2", "pmi2"


class Srun(LauncherTests):
    mpi = ""
    launcher = "srun"
    slurm = None

    def command(self, ranks):
        return [one_node_slurm.program("srun"), "--quiet", "--kill-on-bad-exit=1", "-n", str(ranks),
                f"--mpi={self.mpi}"]

    def variables(self):
        return Srun.slurm.environment

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if Srun.slurm is None:
            raise unittest.SkipTest(f"no one-node Slurm: {Srun.why_not}")
        if cls.mpi not in Srun.slurm.mpi_types():
            raise unittest.SkipTest(f"this Slurm has no --mpi={cls.mpi}")

    def never_started(self, err):
        return "launch failed: Unspecified error" in err

    def assert_deadline_code(self, result):
        """srun returns the highest code: 124, or that of the one that it killed."""
        self.assertIn(result[0], (124, 137, 143), result[2])


class SrunPmi2(Srun, unittest.TestCase):
    mpi, bootstrap, chosen = "pmi2", "auto", "pmi2"


class SrunPmi1(Srun, unittest.TestCase):
    mpi, bootstrap, chosen = "pmi2", "pmi", "pmi"


class SrunPmix(Srun, unittest.TestCase):
    mpi, bootstrap, chosen = "pmix", "auto", "pmix"


class SrunWithoutPmi(Srun, unittest.TestCase):
    """What srun serves nothing to is no job of one."""
    mpi, bootstrap, chosen = "none", "auto", ""

    def test_collectives(self):
        code, out, err, _ = self.launch(2)
        self.assertEqual((code, out), (3, ""), err)
        self.assertIn("srun started this process as one of 2", err)

    test_bringup_verifies_every_pair = test_a_sweep_is_verified_and_its_report_valid = None
    test_an_error_is_printed_once = None
    test_more_ranks_than_processors = test_a_rank_is_killed = test_a_missing_rank_is_named = None
    test_a_rank_that_exits_silently_is_named = test_abort_ends_the_job = test_another_size_is_named = None


def setUpModule():
    Srun.why_not = one_node_slurm.why_not()
    if Srun.why_not is not None:
        return
    try:
        Srun.slurm = one_node_slurm.OneNodeSlurm().__enter__()
        unittest.addModuleCleanup(Srun.slurm.__exit__, None, None, None)
    except RuntimeError as problem:
        Srun.why_not = str(problem)


if __name__ == "__main__":
    os.chdir(pathlib.Path(__file__).parent)
    unittest.main()
