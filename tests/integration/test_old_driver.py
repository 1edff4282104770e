"""A binary whose kernels are newer than the driver (CUDA 13 under CUDA 12): what needs no kernel works, and
what needs one is refused by name, with what to install."""
import json
import os
import pathlib
import re
import tempfile
import unittest

from support import CliTest, run

FAKE_CUDA = os.environ.get("SHMEMCTL_FAKE_CUDA", "")


@unittest.skipUnless(FAKE_CUDA, "no fake CUDA driver: a build without CUDA")
@unittest.skipIf(os.path.exists("/dev/nvidiactl"), "kernels would run on the real GPU")
class OldDriver(CliTest):
    def setUp(self):
        super().setUp()
        self.build = json.loads(run("--version", "--json")[1])["build"]
        self.toolkit = tuple(int(part) for part in self.build["cuda"].split("."))
        self.supports = f"{self.toolkit[0] - 1}.4"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # Also the folder in which the CUDA runtime, which is part of the binary, looks for the
        # driver.
        self.folder = pathlib.Path(folder.name)
        (self.folder / "libcuda.so.1").symlink_to(FAKE_CUDA)

    def run_under(self, driver, *words):
        return run(*words, env={"SHMEMCTL_CUDA_LIBRARY": str(self.folder / "libcuda.so.1"),
                                "LD_LIBRARY_PATH": str(self.folder), "SHMEMCTL_SYMMETRIC_SIZE": "64M",
                                "FAKE_CUDA_DRIVER": str(driver)})

    def run_old(self, *words):
        return self.run_under((self.toolkit[0] - 1) * 1000 + 40, *words)

    def assert_says_what_is_needed(self, text):
        branch = self.build["cuda_driver"].split()[0]
        self.assertIn(f"the driver supports CUDA {self.supports}", text)
        self.assertIn(f"need a driver of branch {branch} or newer", text)

    def assert_kernels_refused(self, *words):
        code, out, err = self.run_old("run", "-n", "2", *words)
        self.assertEqual(code, 3, out + err)
        self.assert_says_what_is_needed(err)
        self.assertIn(f"fix: apt-get install -y cuda-compat-{self.toolkit[0]}-{self.toolkit[1]}", err)

    def test_version_names_the_driver(self):
        self.assertRegex(self.build["cuda_driver"], r"^[0-9]{3} or newer$")
        code, out, err = self.run_old("--version")
        self.assertEqual((code, err), (0, ""))
        self.assertIn(f"cuda_driver: {self.build['cuda_driver']}", out)

    def test_kernels_are_refused_before_anything_is_measured(self):
        self.assert_kernels_refused("bench", "put", "--initiator", "gpu")
        self.assert_kernels_refused("moe", "--backend", "gpu", "--num-tokens", "16")

    def test_operations_of_streams_name_what_is_missing(self):
        """Refused where the first kernel would be launched: copies between GPU and host need none."""
        self.assert_kernels_refused("bench", "put", "--initiator", "stream", "--quick", "-e", "4K")

    def test_copies_by_the_host_work(self):
        code, out, err = self.run_old("run", "-n", "2", "bench", "put", "--memory", "gpu", "-b", "64K", "-e", "64K",
                                      "--quick", "--json", "-")
        self.assertEqual(code, 0, err)
        self.assertEqual([row["verified"] for row in json.loads(out)["results"]], ["passed"])

    def test_bringup_checks_all_but_kernels(self):
        code, out, err = self.run_old("run", "-n", "2", "bringup", "--json", "-")
        self.assertEqual(code, 1, err)
        document = json.loads(out)
        self.assertEqual({row["verified"] for row in document["results"]}, {"passed"})
        self.assertEqual([finding["id"] for finding in document["findings"]], ["gpu-kernels-unavailable"])
        self.assert_says_what_is_needed(document["findings"][0]["message"])

    def test_other_subcommands_are_as_ever(self):
        for words, codes in ((("topo",), (0, 1)), (("doctor", "--json", "-"), (0, 1)), (("env",), (0,)),
                             (("run", "-n", "2", "bench", "put", "--quick", "-e", "4K"), (0, 1))):
            with self.subTest(words=words):
                code, out, err = self.run_old(*words)
                self.assertIn(code, codes, err)
                self.assertTrue(out)

    def test_an_older_minor_version_runs_kernels(self):
        """As far as can be seen without a GPU: they are not refused for the driver's version."""
        driver = self.toolkit[0] * 1000
        code, out, err = self.run_under(driver, "run", "-n", "2", "bench", "put", "--memory", "gpu", "-b", "64K", "-e",
                                        "64K", "--quick", "--json", "-")
        self.assertEqual(code, 0, out + err)
        _, out, err = self.run_under(driver, "run", "-n", "2", "bringup", "--json", "-")
        self.assertFalse(re.search("the driver supports CUDA", out + err), out + err)


if __name__ == "__main__":
    unittest.main()
