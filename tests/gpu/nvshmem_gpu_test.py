"""A program by NVSHMEM's names, run on GPUs: two PEs may share one. Skipped without a GPU."""
import os
import subprocess
import time
import unittest

from bench_gpu_test import BINARY, gpus

PROGRAM = os.environ.get("SHMEMCTL_NVSHMEM_NAMES", "nvshmem_names")
PATIENCE_S = 180


def run(n_pes, *words, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("SHMEMCTL_NVSHMEM_NAMES", "SHMEMCTL_BINARY")}  # of the test, not options
    environment = {**environment, "SHMEMCTL_SYMMETRIC_SIZE": "64M", "SHMEMCTL_TIMEOUT": "60", **variables}
    done = subprocess.run([BINARY, "run", "-n", str(n_pes), PROGRAM, *words], check=False, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout, done.stderr


@unittest.skipIf(gpus() == 0, "nvidia-smi shows no GPU")
class Names(unittest.TestCase):
    def assert_well(self, n_pes, **variables):
        code, out, err = run(n_pes, **variables)
        self.assertEqual((code, err), (0, ""), out)
        for pe in range(n_pes):
            self.assertIn(f"PE {pe}: well", out)

    def test_programs(self):
        for heap in ("auto", "ipc", "host"):
            for n_pes in (1, 2, 3):
                with self.subTest(heap=heap, n_pes=n_pes):
                    # Atomics of several GPUs on host memory lose updates, so one GPU.
                    one = {"CUDA_VISIBLE_DEVICES": "0"} if heap == "host" else {}
                    self.assert_well(n_pes, SHMEMCTL_HEAP=heap, **one)

    @unittest.skipIf(gpus() < 2, "one GPU")
    def test_several_gpus_that_share_host_memory_are_warned_of(self):
        _, _, err = run(2, SHMEMCTL_HEAP="host")
        self.assertRegex(err, "warning: gpu: .*atomics of several GPUs may lose updates")

    def test_checked_programs(self):
        self.assert_well(2, SHMEMCTL_CHECK="1")

    def test_over_the_proxy(self):
        self.assert_well(2, SHMEMCTL_HEAP="host", SHMEMCTL_DEVICE_PATH="proxy")

    def test_mistakes_are_named(self):
        for word, status, said in (
                ("far", 2, r"block 0, thread 0.*NVSHMEM's p\b.*pe is wrong: 2 is none of the 2 PEs"),
                ("outside", 2, r"NVSHMEM's put\b.*dest is wrong: 1099511627776 bytes at 0x[0-9a-f]+ are not in"),
                ("both", 2, r"NVSHMEM's g\b.*pe is wrong: 2 is none of the 2 PEs"),
                ("differ", 2, r"fcollect of (8|16) bytes, and PE [01] calls fcollect of (8|16) bytes"),
                ("end", 130, r"nvshmem_global_exit with status 7")):
            with self.subTest(mistake=word):
                code, _, err = run(2, word, SHMEMCTL_CHECK="1", SHMEMCTL_TIMEOUT="10")
                self.assertEqual(code, status, err)
                self.assertRegex(err, said)

    def test_a_wait_that_never_ends_says_for_what(self):
        begin = time.monotonic()
        code, _, err = run(2, "late", SHMEMCTL_TIMEOUT="3")
        self.assertEqual(code, 124, err)
        # PE 1 waits for PE 0 in a barrier, with the same deadline: either of the two finds out first.
        self.assertRegex(err, r"kernel of GPU \d+ .*is 0, expected 1|PE 0 .* and PE 1 .* wait for each other")
        self.assertLess(time.monotonic() - begin, 30)


if __name__ == "__main__":
    unittest.main()
