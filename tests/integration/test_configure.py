"""Which CUDA a build uses: the messages of CMake about fake compilers."""
import pathlib
import subprocess
import tempfile
import unittest

from support import SOURCE


class CudaCompilers(unittest.TestCase):
    def configure(self, wanted, release):
        with tempfile.TemporaryDirectory() as folder:
            nvcc = pathlib.Path(folder) / "nvcc"
            nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.1'\n"
                            '[ "$1" = --version ]\n', encoding="utf-8")
            nvcc.chmod(0o755)
            done = subprocess.run(
                ["cmake", "-S", SOURCE, "-B", pathlib.Path(folder) / "build", f"-DSHMEMCTL_CUDA={wanted}",
                 f"-DCMAKE_CUDA_COMPILER={nvcc}", "-DSHMEMCTL_TESTS=OFF"],
                capture_output=True, text=True, check=False, timeout=600)
            return done.returncode, done.stdout, " ".join(done.stderr.split())

    def test_an_old_compiler_is_skipped_with_a_message(self):
        for release in ("11.8", "12.2"):
            with self.subTest(release=release):
                code, out, err = self.configure("AUTO", release)
                self.assertEqual(code, 0, err)
                self.assertRegex(out, rf"CUDA is left out: .*/nvcc is of CUDA {release}, and the kernels need 12\.3")
                self.assertIn("CUDA: none", out)

    def test_an_old_required_compiler_is_an_error(self):
        code, _, err = self.configure("ON", "12.2")
        self.assertNotEqual(code, 0)
        self.assertIn("is of CUDA 12.2, and the kernels need 12.3 or newer", err)

    def test_a_new_compiler_is_not_refused_by_version(self):
        """The error about a compiler that compiles nothing is CMake's own."""
        for release in ("12.3", "13.0"):
            with self.subTest(release=release):
                _, out, err = self.configure("AUTO", release)
                self.assertNotIn("the kernels need", out + err)
                self.assertIn("The CUDA compiler identification is", out)


if __name__ == "__main__":
    unittest.main()
