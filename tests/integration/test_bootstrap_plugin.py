"""A job of several ranks whose bootstrap is a plugin; this test is the launcher."""
import os
import signal
import subprocess
import tempfile
import unittest

import support
from launchers import Outcome, PROBE

PLUGIN = os.environ.get("SHMEMCTL_FAKE_PLUGIN", "libfake_bootstrap_plugin.so")


class Plugin(unittest.TestCase):
    def run_job(self, *arguments, ranks=3, env_of=lambda rank: {}):
        """One Outcome for each rank. A rank that stops itself is killed after the others' end."""
        with tempfile.TemporaryDirectory() as folder:
            processes = []
            for rank in range(ranks):
                env = support.clean_environment(
                    FAKE_PLUGIN_FOLDER=folder, FAKE_PLUGIN_RANK=str(rank),
                    FAKE_PLUGIN_SIZE=str(ranks), SHMEMCTL_BOOTSTRAP_PLUGIN=PLUGIN, **env_of(rank))
                processes.append(subprocess.Popen(
                    [PROBE, "plugin", *arguments], env=env, text=True, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            self.addCleanup(lambda: [process.kill() for process in processes])
            outcomes = [None] * ranks
            for rank in sorted(range(ranks), key=lambda one: one == 1):  # 1 is the one at fault
                if rank == 1 and "--fault" in arguments:
                    processes[rank].send_signal(signal.SIGKILL)
                out, err = processes[rank].communicate(timeout=300)
                outcomes[rank] = Outcome(processes[rank].returncode, out, err, 0, [])
            return outcomes

    def test_every_collective(self):
        for ranks in (1, 2, 5):
            for rank, outcome in enumerate(self.run_job(ranks=ranks)):
                self.assertEqual(outcome.code, 0, outcome)
                self.assertTrue(outcome.ok[0].startswith(f"OK plugin rank {rank} of {ranks}"),
                                outcome)

    def test_a_rank_that_does_not_come_is_named(self):
        for fault in ("die@5", "stop@5", "away@5", "away@0", "exit@5"):
            with self.subTest(fault=fault):
                outcomes = self.run_job("--timeout", "4", "--fault", fault)
                for rank in (0, 2):
                    self.assertEqual(outcomes[rank].code, 124, outcomes[rank])
                    self.assertEqual(len(outcomes[rank].errors), 1, outcomes[rank])
                    self.assertIn("PE 1", outcomes[rank].errors[0])

    def test_two_processes_with_one_rank(self):
        outcomes = self.run_job("--timeout", "4", env_of=lambda rank: {
            "FAKE_PLUGIN_FAULT": "duplicate"} if rank == 1 else {})
        for outcome in outcomes:
            self.assertNotEqual(outcome.code, 0, outcome)
            self.assertEqual(len(outcome.errors), 1, outcome)
        self.assertTrue(any("ranks contradict" in outcome.err for outcome in outcomes))

    def test_a_hanging_call_times_out(self):
        outcomes = self.run_job("--timeout", "4", env_of=lambda rank: {
            "FAKE_PLUGIN_FAULT": "hang@4"} if rank == 2 else {})
        for outcome in outcomes:
            self.assertEqual(outcome.code, 124, outcome)


if __name__ == "__main__":
    unittest.main()
