"""The bootstraps `mpi` and `openshmem` under Open MPI's own launchers."""
import os
import unittest

import launchers
from launchers import LauncherTest, PROBE, launch, needs

# MPI_Init alone takes seconds on a loaded machine, and much longer under a sanitizer.
FAULT_TIMEOUT = "40" if os.environ.get("SHMEMCTL_SANITIZE") else "15"


def mpirun(bootstrap, *arguments, ranks=4, launcher="mpirun", options=(), **keywords):
    return launch([launcher, "-n", ranks, "--oversubscribe", *options, PROBE, bootstrap,
                   *arguments], **keywords)


def faulty(bootstrap, fault, **keywords):
    return mpirun(bootstrap, "--timeout", FAULT_TIMEOUT, "--fault", fault, **keywords)


@needs("mpirun")
class Mpi(LauncherTest):
    def test_every_collective(self):
        self.assert_all_ok(mpirun("mpi"), "mpi", 4)

    def test_other_numbers_of_ranks(self):
        for ranks in (1, 2, 3, 7):
            with self.subTest(ranks=ranks):
                self.assert_all_ok(mpirun("mpi", "--sizes", "0,5,4097", ranks=ranks), "mpi", ranks)

    def test_payloads_larger_than_the_staging_buffer(self):
        self.assert_all_ok(mpirun("mpi", "--sizes", "12582913", ranks=2), "mpi", 2)

    def test_nvshmem_variables(self):
        self.assert_all_ok(mpirun("env", "--sizes", "8", env={"NVSHMEM_BOOTSTRAP": "MPI"}), "mpi", 4)

    def test_without_a_launcher_it_is_a_job_of_one(self):
        self.assert_all_ok(launch([PROBE, "mpi"]), "mpi", 1)

    def test_communicators_of_a_program(self):
        outcome = mpirun("mpi-halves", "--sizes", "0,3,4097", ranks=5)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertEqual(len([line for line in outcome.ok if " of 3, " in line]), 3, outcome)
        self.assertEqual(len([line for line in outcome.ok if " of 2, " in line]), 2, outcome)
        self.assert_clean_end(outcome)

    def test_a_killed_rank_ends_the_job(self):
        outcome = faulty("mpi", "die@5")
        self.assertEqual(outcome.code, 137, outcome)
        self.assertEqual(outcome.ok, [], outcome)
        self.assert_clean_end(outcome)

    def test_survivors_of_a_killed_rank_name_it(self):
        outcome = faulty("mpi", "die@5", options=["--enable-recovery"])
        named = [line for line in outcome.errors if "PE 1" in line and "timed out" in line]
        self.assertEqual(len(named), 3, outcome)
        self.assert_clean_end(outcome)

    def test_a_rank_that_stays_away_is_named(self):
        for call in (1, 4, 9):
            with self.subTest(call=call):
                self.assert_failed(faulty("mpi", f"away@{call}"), 124, ["PE 1", "timed out"])

    def test_a_rank_that_never_comes(self):
        self.assert_failed(faulty("mpi", "away@0"), 124, ["MPI_Init", "timed out"])

    def test_a_stopped_rank_is_named(self):
        self.assert_failed(faulty("mpi", "stop@5"), 124, ["PE 1", "timed out"])

    def test_a_rank_that_leaves(self):
        outcome = faulty("mpi", "exit@5")
        self.assertEqual(outcome.code, 7, outcome)
        self.assert_clean_end(outcome)

    def test_abort_ends_all(self):
        outcome = faulty("mpi", "abort@5")
        self.assertEqual(outcome.code, 3, outcome)
        self.assertLess(outcome.seconds, 200)
        self.assert_clean_end(outcome)

    def test_unequal_sizes_are_an_error(self):
        for call in (1, 3, 8):
            with self.subTest(call=call):
                outcome = faulty("mpi", f"size@{call}")
                self.assertIn(outcome.code, (3, 124), outcome)
                self.assertEqual(outcome.ok, [], outcome)
                self.assertGreater(len(outcome.errors), 0, outcome)
                self.assert_clean_end(outcome)

    def test_no_library(self):
        self.assert_failed(
            mpirun("mpi", env={"SHMEMCTL_MPI_LIBRARY": "libno-such-mpi.so.40"}), 3,
            ["libno-such-mpi.so.40"])


@needs("oshrun")
class Openshmem(LauncherTest):
    def setUp(self):
        if not launchers.has_library("liboshmem.so.40"):
            self.skipTest("liboshmem.so.40 is not installed")
        if os.environ.get("SHMEMCTL_SANITIZE"):
            self.skipTest("Open MPI maps OpenSHMEM's heap where the sanitizer's shadow is")

    def run_probe(self, *arguments, **keywords):
        return mpirun("openshmem", *arguments, launcher="oshrun", **keywords)

    def faulty(self, fault, **keywords):
        return self.run_probe("--timeout", FAULT_TIMEOUT, "--fault", fault, **keywords)

    def test_every_collective(self):
        self.assert_all_ok(self.run_probe(), "openshmem", 4)

    def test_other_numbers_of_ranks(self):
        for ranks in (1, 2, 3, 6):
            with self.subTest(ranks=ranks):
                self.assert_all_ok(self.run_probe("--sizes", "0,5,4097", ranks=ranks),
                                   "openshmem", ranks)

    def test_payloads_larger_than_a_slot(self):
        self.assert_all_ok(self.run_probe("--sizes", "5242883", ranks=2), "openshmem", 2)

    def test_under_mpirun_and_in_nvshmems_words(self):
        self.assert_all_ok(mpirun("env", "--sizes", "8", env={"NVSHMEM_BOOTSTRAP": "SHMEM"}),
                           "openshmem", 4)

    def test_without_shared_memory(self):
        self.assert_all_ok(self.run_probe(env={"UCX_TLS": "tcp,self"}), "openshmem", 4)

    def test_start_and_end_do_not_crash(self):
        for _ in range(5):
            self.assert_all_ok(self.run_probe("--sizes", "8"), "openshmem", 4)

    def test_a_killed_rank_ends_the_job(self):
        outcome = self.faulty("die@5")
        self.assertEqual(outcome.code, 137, outcome)
        self.assert_clean_end(outcome)

    def test_a_rank_that_stays_away_is_named(self):
        for call in (1, 4, 9):
            with self.subTest(call=call):
                self.assert_failed(self.faulty(f"away@{call}"), 124, ["PE 1", "timed out"])

    def test_a_rank_that_never_comes(self):
        self.assert_failed(self.faulty("away@0"), 124, ["shmem_init", "timed out"])

    def test_a_stopped_rank_is_named(self):
        self.assert_failed(self.faulty("stop@5"), 124, ["PE 1", "timed out"])

    def test_a_rank_out_of_step_is_named(self):
        self.assert_failed(self.faulty("size@1"), 3, ["PE 1 is out of step", "8 bytes", "0 bytes"])

    def test_abort_ends_all(self):
        outcome = self.faulty("abort@5")
        self.assertEqual(outcome.code, 3, outcome)
        self.assert_clean_end(outcome)

    def test_too_small_a_symmetric_heap(self):
        self.assert_failed(self.run_probe(env={"SHMEM_SYMMETRIC_HEAP_SIZE": "2M",
                                               "SHMEM_SYMMETRIC_SIZE": "2M"}), 3,
                           ["shmem_malloc"])


if __name__ == "__main__":
    unittest.main()
