"""scripts/soak.sh: its part gpu with fake tools (what it runs on one GPU and under which service, and what makes it
fail), and which tests its part release runs in full."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAY = 'echo "$(basename "$0") $* [${CUDA_MPS_PIPE_DIRECTORY:+served}]" >>"$LOG"\n'
PROGRAMS = ("gpu_litmus_mutants", "test_gpu", "test_gpu_litmus", "test_gpu_stream_without_SIGNAL_BEHIND",
            "test_gpu_litmus_without_WORD_ATOMIC", "test_gpu_queue_memory_without_NETWORK_RELEASE",
            "test_gpu_moe_without_CALL_ORDER", "test_gpu_moe_without_PLACE")


class Gpu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.log = self.folder / "log"
        self.log.touch()
        for name in ("scripts", "build", "tools"):
            (self.folder / name).mkdir()
        shutil.copy(ROOT / "scripts/soak.sh", self.folder / "scripts")
        self.write("scripts/packages.sh", "build_packages= test_packages=\ninstall_packages() { :; }\nunpack_packages() { :; }\n")
        self.write("scripts/build.sh", "")
        self.write("tools/ctest", SAY)
        self.write("tools/nvidia-smi", "echo 'GPU 0: fake'\n")
        self.write("tools/nvidia-cuda-mps-control", '[ "$1" = -d ] || cat >/dev/null\n' + SAY)
        for name in PROGRAMS:
            self.write("build/" + name, SAY)
        self.write("build/test_gpu_moe_without_PLACE", SAY + "exit 1\n")

    def write(self, path, text):
        (self.folder / path).write_text("#!/usr/bin/env bash\n" + text)
        (self.folder / path).chmod(0o755)

    def soak(self):
        path = f"{self.folder}/tools:{os.environ['PATH']}"
        environment = {name: text for name, text in os.environ.items() if not name.startswith("CUDA_MPS")}
        done = subprocess.run([self.folder / "scripts/soak.sh", "1m", "gpu"], check=False, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120,
                              env={**environment, "PATH": path, "LOG": str(self.log), "TMPDIR": str(self.folder)})
        return done.returncode, done.stderr, self.log.read_text().splitlines()

    def test_one_gpu_runs_all_with_a_new_service_for_each(self):
        code, said, lines = self.soak()
        self.assertEqual(code, 0, said)
        ran = [line for line in lines if not line.startswith("nvidia")]
        self.assertEqual([line.split()[0] for line in ran], ["ctest", "ctest", "test_gpu_litmus", "test_gpu", "gpu_litmus_mutants",
            "test_gpu_stream_without_SIGNAL_BEHIND", "test_gpu_litmus_without_WORD_ATOMIC",
            "test_gpu_queue_memory_without_NETWORK_RELEASE", "test_gpu_moe_without_CALL_ORDER", "test_gpu_moe_without_PLACE"])
        killing = [line for line in ran if "-R GpuFaults|AKilled" in line or "_moe_" in line or "queue_memory" in line]
        for line in ran:
            self.assertEqual(line.endswith("[served]"), line not in killing, line)
        self.assertEqual(lines.count("nvidia-cuda-mps-control -d [served]"), len(ran) - len(killing))
        self.assertEqual(lines.count("nvidia-cuda-mps-control  [served]"), len(ran) - len(killing))
        self.assertIn("CALL_ORDER: survives, as is known", said)
        self.assertIn("PLACE: found (exit 1)", said)

    def test_a_mutant_that_survives_fails_it(self):
        self.write("build/test_gpu_moe_without_PLACE", SAY)
        code, said, _ = self.soak()
        self.assertEqual(code, 1)
        self.assertIn("PLACE: survives\n", said)

    def test_a_test_that_fails_under_the_service_fails_it(self):
        self.write("tools/ctest", SAY + '[ -z "$CUDA_MPS_PIPE_DIRECTORY" ]\n')
        code, said, lines = self.soak()
        self.assertEqual(code, 1)
        self.assertIn("soak: failed: gpu", said)
        self.assertTrue(lines[-1].startswith("test_gpu_moe_without_PLACE"), "the others run")


class Release(unittest.TestCase):
    def test_what_does_more_in_the_soak_is_run_with_its_variable(self):
        """SHMEMCTL_SOAK=1 is set for the programs that soak.sh names, alone."""
        readers = {path.stem for path in (ROOT / "tests/integration").glob("test_*.py")
                   if 'environ.get("SHMEMCTL_SOAK")' in path.read_text(encoding="utf-8")} - {"test_soak"}
        self.assertIn("test_bench", readers)
        said = (ROOT / "scripts/soak.sh").read_text(encoding="utf-8")
        lines = "".join(re.findall(r"^quiet_tests\+?='(.*)'$", said, re.MULTILINE))
        self.assertEqual(set(re.search(r"integration\\\.\(([\w|]*)\)", lines)[1].split("|")), readers)


if __name__ == "__main__":
    unittest.main()
