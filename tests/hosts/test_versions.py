"""A host whose binary is of another version."""
import json
import sys
import tempfile

import hosts_support
from hosts_support import BINARY, HostsTest, Hydra, OpenMpi, Srun

sys.path.insert(0, str(hosts_support.SOURCE / "tests" / "support"))
from other_version import NoSymbol, make_other_version  # noqa: E402 pylint: disable=wrong-import-position

PES = {"a": 1, "b": 1}


class AnotherVersion(HostsTest):
    """a has the binary that was built, b one whose messages have another version."""
    count = 2
    slurm = True

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hosts-version.")
        cls.addClassCleanup(folder.cleanup)
        try:
            other = make_other_version(BINARY, folder.name)
        except NoSymbol as problem:
            raise AssertionError(f"{BINARY}: {problem}") from problem
        cls.hosts = {"binaries": (None, other)}
        super().setUpClass()

    def tearDown(self):
        self.assert_nothing_left()

    def check_launcher(self, launcher, codes):
        path = self.report_path()
        done = self.start(launcher, PES, "bringup", "--timeout", "30", "--json", path).wait(hosts_support.PATIENCE_S)
        self.assertIn(done.code, codes, done)
        self.assertRegex(done.err, r"PE [01][^\n]*: it runs another version of shmemctl", done)
        self.assertIn("run the same version of shmemctl on all hosts", done.err)
        if isinstance(launcher, Hydra):
            return  # it kills PE 0, which writes the report, as soon as PE 1 has ended
        report = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(report["status"], "incomplete")
        aborted = [finding["message"] for finding in report["findings"] if finding["id"] == "run-aborted"]
        self.assertEqual(len(aborted), 1, report["findings"])
        # mpirun sends SIGTERM to the others when the first has ended, which may be PE 1.
        self.assertRegex(aborted[0], "PE 1.*another version|interrupted by SIGTERM")

    def test_open_mpi(self):
        self.check_launcher(OpenMpi(), (3,))

    def test_hydra(self):
        self.check_launcher(Hydra(), Hydra.lost_codes)

    def test_srun_pmi2(self):
        self.check_launcher(Srun("pmi2"), Srun.lost_codes)

    def test_uid(self):
        ends = [command.wait(hosts_support.PATIENCE_S)
                for command in self.start_uid(PES, "bringup", "--timeout", "30")]
        for done, other in zip(ends, ("PE 1", "PE 0")):
            self.assertEqual(done.code, 3, done)
            self.assertRegex(done.err, rf"{other}[^\n]*: it runs another version of shmemctl")


if __name__ == "__main__":
    hosts_support.main()
