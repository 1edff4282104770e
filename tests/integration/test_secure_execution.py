"""What a binary with more rights than its caller must not do."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import BINARY, clean_environment

NOBODY = 65534
EVIL = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void run(void) {
  FILE *file = fopen(getenv("EVIL_OUTPUT"), "w");
  if (file) { fprintf(file, "%d\n", (int)geteuid()); fclose(file); }
}
"""


@unittest.skipUnless(os.geteuid() == 0, "only root can give a copy more rights")
@unittest.skipIf(os.environ.get("SHMEMCTL_SANITIZE"), "a sanitizer's runtime refuses such copies")
class MoreRights(unittest.TestCase):
    """A set-user-id copy that a caller without rights starts."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        os.chmod(self.folder, 0o755)
        self.out = self.folder / "open"
        self.out.mkdir()
        os.chmod(self.out, 0o777)
        self.copy = self.folder / "shmemctl"
        shutil.copy(BINARY, self.copy)
        os.chmod(self.copy, 0o4755)
        self.library = self.folder / "evil.so"
        source = self.folder / "evil.c"
        source.write_text(EVIL)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.library, source], check=True)
        os.chmod(self.library, 0o755)

        mount = subprocess.run(["findmnt", "-no", "OPTIONS", "-T", self.folder], capture_output=True, text=True,
                               check=False).stdout
        if "nosuid" in mount:
            self.skipTest("this file system gives no copy more rights")

    def start(self, program, *words, **variables):
        env = clean_environment(EVIL_OUTPUT=str(self.out / "evil"), **variables)
        return subprocess.run([program, *words], user=NOBODY, group=NOBODY, extra_groups=[], env=env, cwd="/",
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)

    def test_the_caller_cannot_choose_libraries(self):
        for name, words in (("NVML_LIBRARY", ("topo",)), ("CUDA_LIBRARY", ("doctor",)),
                            ("LIBFABRIC_LIBRARY", ("bringup", "--symmetric-size", "16M", "--transport", "libfabric")),
                            ("BOOTSTRAP_PLUGIN", ("bringup", "--bootstrap", "plugin"))):
            with self.subTest(name):
                done = self.start(self.copy, *words, **{f"SHMEMCTL_{name}": str(self.library)})
                self.assertFalse((self.out / "evil").exists(), done.stderr)
                self.assertIn(f"SHMEMCTL_{name}", done.stderr.decode())
                self.assertIn("ignored", done.stderr.decode())

    def test_a_configuration_file_cannot_choose_libraries(self):
        config = self.folder / "c.ini"
        config.write_text(f"nvml-library = {self.library}\n")
        done = self.start(self.copy, "topo", "--config", str(config))
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertFalse((self.out / "evil").exists(), done.stderr)

    def test_faults_are_not_injected(self):
        done = self.start(self.copy, "bringup", "--symmetric-size", "16M", SHMEMCTL_FAULT="exit:0:heap")
        self.assertNotEqual(done.returncode, 9, done.stderr)

    def test_without_elevated_rights_the_caller_chooses(self):
        os.chmod(self.copy, 0o755)
        done = self.start(self.copy, "topo", SHMEMCTL_NVML_LIBRARY=str(self.library))
        self.assertTrue((self.out / "evil").exists(), done.stderr)
        self.assertNotIn("ignored", done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
