"""PEs, hosts and networks that fail while a job runs on several hosts.

In every case: the job ends by its deadline, the error names who is to blame and on which host, the report
keeps what was measured, the exit code is as documented, and nothing is left on any host.
"""
import json
import re
import signal
import time
import unittest

import hosts_support
from hosts_support import HostsTest, Hydra, OpenMpi, Srun

#: Of the jobs; the failure detector and the deadline may take a few times that on a busy machine.
TIMEOUT_S = 8
END_LIMIT_S = 90
TWO_HOSTS = {"a": 2, "b": 2}
#: It takes a minute; the first row, which has to be kept, is there after two seconds.
SWEEP = ("bench", "put", "-b", "8", "-e", "4M", "-f", "2", "-D", "2", "--timeout", TIMEOUT_S)
RUNNING = "put: PE 0 (a) -> PE 2 (b)"


class Faults(HostsTest):
    count = 3
    slurm = True

    def tearDown(self):
        self.assert_nothing_left()

    def begin_sweep(self, launcher):
        path = self.report_path()
        command = self.start(launcher, TWO_HOSTS, *SWEEP, "--json", path)
        self.wait_until(lambda: self.runs(command), f"the sweep runs\n{command.text()}")
        return command, path

    def begin_uid_sweep(self, pes=None, running=RUNNING):
        path = self.report_path()
        commands = self.start_uid(pes or TWO_HOSTS, *SWEEP, "--json", path)
        self.wait_until(lambda: self.runs(commands[0], running), f"the sweep runs\n{commands[0].text()}")
        return commands, path

    def runs(self, command, running=RUNNING):
        self.assertTrue(command.running(), command.text())
        return running in command.text()[0]

    def end(self, command):
        done = command.wait(END_LIMIT_S)
        self.assertIsNotNone(done.code, f"it did not end\n{done}")
        return done

    def assert_kept(self, path, code, culprit="."):
        """The report says that the run was ended, and by whom."""
        self.assertTrue(path.is_file(), "no report")
        report = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(report["status"], "incomplete")
        self.assertIn(report["exit_code"], code)
        self.assertEqual([host["name"] for host in report["hosts"]], ["a", "b"])
        self.assertTrue(report["results"], "what was measured is lost")
        aborted = [finding for finding in report["findings"] if finding["id"] == "run-aborted"]
        self.assertEqual(len(aborted), 1, report["findings"])
        self.assertRegex(aborted[0]["message"], culprit)

    # --- PEs ---

    def check_a_pe_is_killed(self, launcher):
        command, path = self.begin_sweep(launcher)
        self.cluster.pes()[2].kill()
        done = self.end(command)
        self.assertIn(done.code, launcher.lost_codes, done)
        # Hydra kills the others first, mostly.
        if not isinstance(launcher, Hydra):
            self.assertRegex(done.err, r"PE 2 \(host b\) was lost", done)
            # mpirun sends SIGTERM to the others at once; which comes first decides the report's exit code.
            self.assert_kept(path, (3, 130), r"PE 2")

    def check_a_pe_is_stopped(self, launcher):
        command, path = self.begin_sweep(launcher)
        self.cluster.pes()[2].kill(signal.SIGSTOP)
        done = self.end(command)
        self.assertIn(done.code, launcher.silent_codes, done)
        if not isinstance(launcher, Hydra):
            self.assertRegex(done.err, r"PE 2 \(host b\) does not (answer|respond)", done)
            self.assert_kept(path, (124, 130), r"PE 2")

    def test_a_pe_is_killed_open_mpi(self):
        self.check_a_pe_is_killed(OpenMpi())

    def test_a_pe_is_killed_hydra(self):
        self.check_a_pe_is_killed(Hydra())

    def test_a_pe_is_killed_srun_pmi2(self):
        self.check_a_pe_is_killed(Srun("pmi2"))

    def test_a_pe_is_killed_srun_pmix(self):
        self.check_a_pe_is_killed(Srun("pmix"))

    def test_a_pe_is_stopped_open_mpi(self):
        self.check_a_pe_is_stopped(OpenMpi())

    def test_a_pe_is_stopped_hydra(self):
        self.check_a_pe_is_stopped(Hydra())

    def test_a_pe_is_stopped_srun_pmi2(self):
        self.check_a_pe_is_stopped(Srun("pmi2"))

    def test_a_pe_is_stopped_srun_pmix(self):
        self.check_a_pe_is_stopped(Srun("pmix"))

    def test_pe_0_is_killed(self):
        command, _ = self.begin_sweep(OpenMpi())
        self.cluster.pes()[0].kill()
        done = self.end(command)
        self.assertIn(done.code, OpenMpi.lost_codes, done)
        self.assertRegex(done.err, r"PE 0 \(host a\) was lost", done)

    def check_mpirun_ends(self, number):
        command, path = self.begin_sweep(OpenMpi())
        mpirun = [process for process in self.first.processes() if process.name.startswith("mpirun")]
        mpirun[0].kill(number)
        self.end(command)
        self.wait_until(lambda: not self.cluster.pes(), "all PEs have ended", END_LIMIT_S)
        # Its session folder stays if it could not remove it.
        self.assert_nothing_left()
        self.assert_kept(path, (3, 130))

    def test_mpirun_is_terminated(self):
        self.check_mpirun_ends(signal.SIGTERM)

    def test_mpirun_is_killed(self):
        """PE 0 writes its next row into a pipe that nobody reads any more."""
        self.check_mpirun_ends(signal.SIGKILL)

    # --- hosts and cables ---

    def assert_both_sides_end(self, commands, path):
        """PEs 0 and 1 on a, 2 and 3 on b: each side blames a PE of the other host."""
        ends = [self.end(command) for command in commands]
        for pe, done in enumerate(ends):
            self.assertIn(done.code, (3, 124), done)
            self.assertGreater(done.seconds, 0)
        a, b = ("\n".join(done.err for done in pair) for pair in (ends[:2], ends[2:]))
        self.assertRegex(a, r"PE [23] \(host b\)")
        self.assertRegex(b, r"PE [01] \(host a\)")
        self.assert_kept(path, (3, 124), r"host b")
        return ends

    def test_a_cable_is_pulled(self):
        commands, path = self.begin_uid_sweep()
        self.cluster.link("b", "down")
        try:
            self.assert_both_sides_end(commands, path)
        finally:
            self.cluster.link("b", "up")

    def test_a_cable_is_pulled_and_put_back(self):
        path = self.report_path()
        commands = self.start_uid(TWO_HOSTS, "bench", "put", "-b", "8", "-e", "64", "-f", "2", "-D", "3", "--timeout", "60",
                                  "--json", path)
        self.wait_until(lambda: self.runs(commands[0]), "the sweep runs")
        time.sleep(2)
        self.cluster.link("b", "down")
        time.sleep(3)
        self.cluster.link("b", "up")
        for command in commands:
            done = self.end(command)
            self.assertEqual(done.code, 0, done)
        self.assert_verified(json.loads(path.read_text(encoding="utf-8")), ["a", "b"])

    def test_a_firewall_drops_one_direction_while_a_job_runs(self):
        commands, path = self.begin_uid_sweep()
        self.cluster.cable("b", "to a loss 100%")
        try:
            ends = [self.end(command) for command in commands]
        finally:
            self.cluster.cable("b")
        # a hears nothing of b, and says so to b as well.
        for done in ends:
            self.assertIn(done.code, (3, 124), done)
        for pair in (ends[:2], ends[2:]):
            self.assertRegex("".join(done.err for done in pair), r"PE [23] \(host b\)|PE [01] \(host a\)")
        self.assertRegex(ends[0].err + ends[1].err, r"PE [23] \(host b\)")
        self.assert_kept(path, (3, 124), r"host b")

    # --- before the job is complete ---

    def test_a_firewall_drops_one_direction_from_the_start(self):
        """c cannot reach b; a reaches both. The error says between which PEs, and at which address."""
        self.cluster.cable("c", "to b loss 100%")
        try:
            ends = [self.end(command) for command in self.start_uid(
                {"a": 1, "b": 1, "c": 1}, "bringup", "--timeout", TIMEOUT_S)]
        finally:
            self.cluster.cable("c")
        self.assertEqual({done.code for done in ends} - {3, 124}, set(), "\n".join(map(str, ends)))
        said = "\n".join(done.err for done in ends)
        self.assertRegex(said, r"PE 1 \(host b, .*cannot connect to PE 2: timed out: PE 2 at (10\.77\.0\.3|\[fd77::3\]):")

    def test_a_host_is_out_of_reach_from_the_start(self):
        path = self.report_path()
        self.cluster.link("b", "down")
        try:
            ends = [self.end(command) for command in self.start_uid(
                {"a": 1, "b": 1, "c": 1}, "bringup", "--timeout", TIMEOUT_S, "--json", path)]
        finally:
            self.cluster.link("b", "up")
        self.assertEqual(ends[0].code, 124, ends[0])
        self.assertIn("1 of 3 PEs has not joined: PE 1", ends[0].err)
        self.assertIn(ends[1].code, (3, 124), ends[1])
        self.assertRegex(ends[1].err, r"10\.77\.0\.1|fd77::1|\ba:5000")
        report = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual((report["status"], report["exit_code"]), ("incomplete", 124))

    def test_a_program_is_missing_on_a_host(self):
        """The launcher's own words are not drowned, and no PE waits beyond the deadline."""
        done = self.first.run(*OpenMpi().command(TWO_HOSTS), "/run/lab/bin/missing", "bringup", timeout=END_LIMIT_S)
        self.assertIsNotNone(done.code, done)
        self.assertNotEqual(done.code, 0)
        self.assertIn("missing", done.out + done.err)


    def test_a_program_is_missing_on_a_host_of_srun(self):
        launcher = Srun("pmi2")
        if launcher.why_not():
            self.skipTest(launcher.why_not())
        done = self.first.run(*launcher.command(TWO_HOSTS), "/run/lab/bin/missing", "bringup", timeout=END_LIMIT_S)
        self.assertIsNotNone(done.code, done)
        self.assertNotEqual(done.code, 0)
        self.assertIn("/run/lab/bin/missing", done.out + done.err)


class AHostVanishes(Faults):
    """Each needs hosts of its own: what has vanished does not come back."""
    slurm = False

    def setUp(self):
        super().setUp()
        if len(self.cluster.all) < self.count:
            self.cluster.__exit__(None, None, None)
            type(self).cluster = self.make_cluster().__enter__()

    def test_pes_without_a_launcher(self):
        commands, path = self.begin_uid_sweep()
        self.cluster.vanish("b")
        for command in commands[:2]:
            done = self.end(command)
            self.assertIn(done.code, (3, 124), done)
            self.assertRegex(done.err, r"PE [23] \(host b\)|^$")
        self.assertRegex(commands[0].text()[1] + commands[1].text()[1], r"PE [23] \(host b\)")
        self.assert_kept(path, (3, 124), r"host b")
        for command in commands[2:]:
            command.wait(END_LIMIT_S)

    def test_pes_of_mpirun(self):
        """mpirun itself may wait for the daemon of the host that is gone: its PEs must not."""
        command, path = self.begin_sweep(OpenMpi())
        self.cluster.vanish("b")
        self.wait_until(lambda: not self.cluster.pes(), "all PEs have ended", END_LIMIT_S)
        self.assertRegex(command.text()[1], r"PE [23] \(host b\)")
        self.assert_kept(path, (3, 124), r"host b")
        self.kill_jobs()
        command.wait(END_LIMIT_S)
        for host in self.cluster.all:
            self.assertEqual([line for line in host.left() if not re.search("orte|prte|ompi", line)], [])


# Those of Faults run once.
for name in [name for name in dir(Faults) if name.startswith("test_")]:
    setattr(AHostVanishes, name, None)


if __name__ == "__main__":
    hosts_support.main()
