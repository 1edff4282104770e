"""Programs of users with kernels of their own, run on GPUs: two PEs may share one. Skipped without a GPU."""
import os
import subprocess
import time
import unittest

from bench_gpu_test import BINARY, gpus

RING = os.environ.get("SHMEMCTL_GPU_RING", "gpu_ring")
LAYER = os.environ.get("SHMEMCTL_MOE_LAYER", "moe_layer")
PROGRAM = os.environ.get("SHMEMCTL_USER_PROGRAM", "user_program")
PATIENCE_S = 120


def run(n_pes, *command, options=(), **variables):
    # Where the programs are is no option of theirs: they would warn of it.
    inherited = {name: value for name, value in os.environ.items()
                 if name not in ("SHMEMCTL_GPU_RING", "SHMEMCTL_MOE_LAYER", "SHMEMCTL_USER_PROGRAM")}
    environment = {**inherited, "SHMEMCTL_SYMMETRIC_SIZE": "64M", "SHMEMCTL_TIMEOUT": "60", **variables}
    done = subprocess.run([BINARY, "run", "-n", str(n_pes), *options, *command], check=False, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout, done.stderr


@unittest.skipIf(gpus() == 0, "nvidia-smi shows no GPU")
class Programs(unittest.TestCase):
    def test_the_example(self):
        for heap in ("auto", "vmm", "ipc", "host"):
            for n_pes in (1, 2, 3):
                with self.subTest(heap=heap, n_pes=n_pes):
                    code, out, err = run(n_pes, RING, SHMEMCTL_HEAP=heap)
                    self.assertEqual((code, err), (0, ""))
                    self.assertIn(f"{n_pes} PEs: both rings are right", out)

    def test_the_example_by_the_proxy(self):
        code, out, err = run(2, RING, SHMEMCTL_HEAP="host", SHMEMCTL_DEVICE_PATH="proxy")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("both rings are right, PE 0 puts by", out)

    def layer_is_right(self, n_pes, **variables):
        """In both modes, as calls and in a graph."""
        for words, said in (((), "high throughput are right"), (("low",), "low latency are right"),
                            (("high", "graph"), "high throughput in a graph are right"),
                            (("low", "graph"), "low latency in a graph are right")):
            with self.subTest(words=words, n_pes=n_pes, variables=variables):
                code, out, err = run(n_pes, LAYER, *words, **variables)
                if "compute capability" in err:
                    self.skipTest(err)
                self.assertEqual((code, err), (0, ""))
                self.assertIn(said, out)

    def test_a_moe_layer(self):
        for n_pes in (1, 2, 3):
            self.layer_is_right(n_pes)
        for heap in ("vmm", "ipc"):
            self.layer_is_right(2, SHMEMCTL_HEAP=heap)

    def test_a_moe_layer_by_the_proxy(self):
        for n_pes in (2, 3):
            self.layer_is_right(n_pes, SHMEMCTL_HEAP="host", SHMEMCTL_DEVICE_PATH="proxy")

    def test_everything(self):
        for n_pes in (1, 2, 3):
            with self.subTest(n_pes=n_pes):
                code, out, err = run(n_pes, PROGRAM)
                self.assertEqual((code, err), (0, ""), out)
                for pe in range(n_pes):
                    self.assertIn(f"PE {pe}: well", out)

    def test_a_program_that_returns_without_finalizing(self):
        code, out, err = run(2, PROGRAM, "leave")
        self.assertEqual((code, err), (0, ""), out)
        self.assertIn("PE 1: well", out)

    def test_a_kernel_that_waits_for_ever_ends_the_job_and_says_for_whom(self):
        begin = time.monotonic()
        code, _, err = run(2, PROGRAM, "late", SHMEMCTL_TIMEOUT="3")
        self.assertEqual(code, 124, err)
        self.assertRegex(err, r"kernel of GPU \d+ ")
        self.assertRegex(err, r"is 0, expected 1")
        self.assertLess(time.monotonic() - begin, 30)


if __name__ == "__main__":
    unittest.main()
