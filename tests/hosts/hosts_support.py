"""Makes test hosts for tests; skips, with the reason, where this machine cannot."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LAB = SOURCE / "scripts" / "lab"
sys.path.insert(0, str(LAB))

# pylint: disable=wrong-import-position
from cluster import Cluster, check_machine  # noqa: E402
from errors import EXIT_UNAVAILABLE, Unavailable  # noqa: E402
from host_options import ClusterOptions, hosts_of  # noqa: E402
from host_services import why_no_slurm  # noqa: E402

BINARY = pathlib.Path(os.environ.get("SHMEMCTL_BINARY", SOURCE / "build" / "shmemctl"))
#: Nothing takes that long; a job that does hangs.
PATIENCE_S = 200
#: What a job of these tests needs: hosts share the memory of one machine.
SMALL = {"SHMEMCTL_SYMMETRIC_SIZE": "64M"}
MOE = ("moe", "--num-tokens", 16, "--hidden", 256, "--num-topk", 2, "--num-experts", 12, "--iters", 3)


def open_mpi():
    """Open MPI's mpirun; other MPIs have one of that name too."""
    for name in ("mpirun.openmpi", "mpirun"):
        path = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
        if path and "Open MPI" in subprocess.run([path, "--version"], capture_output=True, text=True,
                                                 check=False).stdout:
            return path
    return None


def hydra():
    return shutil.which("mpiexec.hydra", path="/usr/local/bin:/usr/bin:/bin")


class Launcher:
    """How a job of `pes` ({host: number of PEs}) is started from the first host."""
    name = ""        # what a report calls it
    bootstrap = ""   # what it must become
    #: Exit codes of the launcher where a PE was lost, and where one did not respond.
    lost_codes = ()
    silent_codes = ()

    def why_not(self):
        return None

    def command(self, pes, by_node=False):
        raise NotImplementedError


class OpenMpi(Launcher):
    name, bootstrap = "mpirun", "pmix"
    lost_codes, silent_codes = (3, 137), (124,)

    def why_not(self):
        return None if open_mpi() else "no mpirun of Open MPI (apt install openmpi-bin)"

    def command(self, pes, by_node=False):
        exported = [word for name in SMALL for word in ("-x", name)]
        return [open_mpi(), "--host", ",".join(f"{host}:{count}" for host, count in pes.items()), *exported,
                *(["--map-by", "node"] if by_node else []), "-n", str(sum(pes.values()))]


class Hydra(Launcher):
    name, bootstrap = "hydra", "pmi"
    # Hydra kills the others when one ends, and returns any of their codes.
    lost_codes = silent_codes = (1, 3, 9, 124, 137, 255)

    def why_not(self):
        return None if hydra() else "no mpiexec.hydra (apt install mpich)"

    def command(self, pes, by_node=False):
        if by_node:
            order = [host for index in range(max(pes.values())) for host, count in pes.items() if index < count]
            hosts = ",".join(f"{host}:1" for host in order)
        else:
            hosts = ",".join(f"{host}:{count}" for host, count in pes.items())
        return [hydra(), "-launcher", "ssh", "-hosts", hosts, "-n", str(sum(pes.values()))]


class Srun(Launcher):
    name = "srun"
    # srun returns the highest code: also that of those that it has killed.
    lost_codes, silent_codes = (3, 137, 143), (124, 137, 143)

    def __init__(self, mpi):
        self.bootstrap = mpi

    def why_not(self):
        return why_no_slurm()

    def command(self, pes, by_node=False):
        total = str(sum(pes.values()))
        words = ["srun", "--quiet", "--overcommit", f"--mpi={self.bootstrap}", "-N", str(len(pes)), "-n", total,
                 "-w", ",".join(pes)]
        if by_node:
            return [*words, "--distribution=cyclic"]
        if len(set(pes.values())) > 1:
            # Block after block of unequal length: Slurm takes that from a list of hosts, one for each PE.
            listed = ",".join(host for host, count in pes.items() for _ in range(count))
            return ["srun", "--quiet", "--overcommit", f"--mpi={self.bootstrap}", "-N", str(len(pes)), "-n", total,
                    "-w", listed, "--distribution=arbitrary"]
        return words


class HostsTest(unittest.TestCase):
    """Makes hosts for all tests of a class; checks after each test that nothing was left on any."""
    count = 4
    slurm = False
    #: Keywords of hosts_of(), and of ClusterOptions.
    hosts = {}
    options = {}
    cluster = None
    out = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hosts-out.")
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name)
        cls.cluster = cls.enter_class_cluster()

    @classmethod
    def make_cluster(cls):
        return Cluster(ClusterOptions(
            hosts_of(cls.count, **cls.hosts), binary=BINARY, out=cls.out,
            slurm=cls.slurm and why_no_slurm() is None, **cls.options))

    @classmethod
    def enter_class_cluster(cls):
        cluster = cls.make_cluster().__enter__()
        cls.addClassCleanup(lambda: cls.cluster.__exit__(None, None, None))
        return cluster

    def setUp(self):
        self.addCleanup(self.kill_jobs)

    def kill_jobs(self):
        for host in self.cluster.all:
            host.end_commands()
            host.kill_jobs()

    # --- jobs ---

    @property
    def first(self):
        return self.cluster.all[0]

    def report_path(self):
        return self.out / f"{self.id().rpartition('.')[2]}-{time.monotonic_ns()}.json"

    def start(self, launcher, pes, *arguments, by_node=False, **variables):
        if launcher.why_not():
            self.skipTest(launcher.why_not())
        command = [*launcher.command(pes, by_node), "shmemctl", *arguments]
        if variables and isinstance(launcher, OpenMpi):
            at = command.index("shmemctl")
            command[at:at] = [word for name in variables for word in ("-x", name)]
        return self.first.start_command(*command, **SMALL, **variables)

    def job(self, launcher, pes, *arguments, code=0, by_node=False, **variables):
        """(Finished, report) of a job that has to end with this code."""
        path = self.report_path()
        done = self.start(launcher, pes, *arguments, "--json", path, by_node=by_node, **variables).wait(PATIENCE_S)
        self.assertEqual(done.code, code, done)
        self.assertTrue(path.is_file(), done)
        return done, json.loads(path.read_text(encoding="utf-8"))

    def start_uid(self, pes, *arguments, address=None, port=5000, families=None, **variables):
        """PEs of {host: number} that find each other by uid; a Command for each, in their order."""
        where = address or self.first.key
        order = [host for host, count in pes.items() for _ in range(count)]
        commands = []
        for rank, host in enumerate(order):
            commands.append(self.cluster.host(host).start_command(
                "shmemctl", *arguments, **SMALL, SHMEMCTL_BOOTSTRAP="uid",
                SHMEMCTL_BOOTSTRAP_UID_SESSION_ID=f"{where}:{port}", SHMEMCTL_BOOTSTRAP_UID_SIZE=len(order),
                SHMEMCTL_BOOTSTRAP_UID_RANK=rank, SHMEMCTL_BOOTSTRAP_UID_SECRET="of these hosts alone",
                **variables))
        return commands

    def uid_job(self, pes, *arguments, code=0, **keywords):
        path = self.report_path()
        ends = [command.wait(PATIENCE_S)
                for command in self.start_uid(pes, *arguments, "--json", path, **keywords)]
        self.assertEqual({done.code for done in ends}, {code}, "\n".join(map(str, ends)))
        return ends, json.loads(path.read_text(encoding="utf-8"))

    # --- what must be true ---

    def wait_until(self, ready, what, patience_s=60):
        end = time.monotonic() + patience_s
        while not (value := ready()):
            self.assertLess(time.monotonic(), end, f"not after {patience_s} s: {what}")
            time.sleep(0.05)
        return value

    def assert_nothing_left(self):
        """Launchers leave a moment before the last of their helpers."""
        end = time.monotonic() + 60
        while (left := self.cluster.left()) and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(left, {})

    def assert_verified(self, report, hosts):
        """A complete report of a job on these hosts, all of whose data was right."""
        self.assertEqual((report["status"], report["exit_code"]), ("complete", 0), report["findings"])
        self.assertTrue(report["results"])
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"}, report["results"])
        self.assertEqual([host["name"] for host in report["hosts"]], hosts)


def main():
    """Runs the tests of the calling file; exit code 77 where there can be no hosts."""
    try:
        check_machine()
        if not os.access(BINARY, os.X_OK):
            raise Unavailable(f"{BINARY} is not built", "build it")
        with Cluster(ClusterOptions(hosts_of(2), binary=BINARY)):
            pass
    except Unavailable as error:
        print(f"skipped: {error}; fix: {error.fix}")
        sys.exit(EXIT_UNAVAILABLE)
    unittest.main()
