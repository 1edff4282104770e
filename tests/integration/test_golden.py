"""The exact output of `topo` for our own fixtures.

SHMEMCTL_UPDATE_GOLDEN=1 writes the expected texts anew; read the difference before committing it.
"""
import os
import unittest

from support import DATA, CliTest, run

CASES = {
    "hgx": ["nccl/hgx-8gpu-8nic.xml"],
    "pairs": ["nccl/pairs-8gpu-8nic.xml"],
    "pairs-deepep-ht": ["nccl/pairs-8gpu-8nic.xml", "--world", "deepep-ht"],
    "pairs-optimal": ["nccl/pairs-8gpu-8nic.xml", "--policy", "optimal"],
    "pairs-nccl": ["nccl/pairs-8gpu-8nic.xml", "--policy", "nccl"],
    "pairs-all-versions": ["nccl/pairs-8gpu-8nic.xml", "--compare-versions"],
    "hgx-collapse": ["nccl/hgx-8gpu-8nic.xml", "--world", "deepep-ht", "--enable-nic-pe-mapping"],
    "hgx-two-gpus": ["nccl/hgx-8gpu-8nic.xml", "--gpus", "0,5"],
    "hgx-bad-mapping": ["nccl/hgx-8gpu-8nic.xml", "--hca-pe-mapping",
                        "mlx5_0:1:2, mlx5_1:1:2,mlx5_99:1,mlx5_3:2:1,mlx5_4::2,mlx5_5:1:x"],
}


class Golden(CliTest):
    def test_text(self):
        for name, (fixture, *flags) in CASES.items():
            with self.subTest(name):
                code, out, err = run("topo", "--from", DATA / fixture, *flags)
                text = f"{out}exit {code}\n"
                self.assertEqual(err, "")
                path = DATA / "golden" / f"{name}.txt"
                if os.environ.get("SHMEMCTL_UPDATE_GOLDEN"):
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(text)
                self.assertEqual(text, path.read_text())


if __name__ == "__main__":
    unittest.main()
