"""Two NUMA nodes with PCIe switches, NICs and GPUs below them, as `topo` sees them."""
import json
import pathlib
import tempfile
import unittest

import lab_support

# By hand from scripts/lab/topology.py's numa2: GPUs and NICs of each NUMA node.
NODE0 = {("GPU0", "rxe0"): "PIX", ("GPU0", "rxe1"): "PIX", ("GPU0", "rxe2"): "PXB",
         ("GPU0", "rxe3"): "PHB", ("rxe0", "rxe1"): "PIX", ("rxe0", "rxe2"): "PXB",
         ("rxe0", "rxe3"): "PHB", ("rxe1", "rxe2"): "PXB", ("rxe1", "rxe3"): "PHB",
         ("rxe2", "rxe3"): "PHB"}
NODE1 = {("GPU1", "rxe4"): "PIX", ("GPU1", "rxe5"): "PIX", ("rxe4", "rxe5"): "PIX"}


class Numa(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            cls.result = lab_support.run_lab(
                "--topology", "numa2", "--timeout", 400, "--out", out, "--",
                f'{lab_support.BINARY} topo --json "$LAB_OUT/topo.json"')
            cls.report = json.loads((out / "topo.json").read_text(encoding="utf-8"))

    def test_the_guest_ran(self):
        self.assertIsNone(self.result.error)
        self.assertIn(self.result.exit_code, (0, 1), self.result.stderr)

    def test_distances(self):
        labels, matrix = (self.report["topology"]["distances"][key] for key in ("labels", "matrix"))
        self.assertEqual(labels, ["GPU0", "GPU1"] + [f"rxe{number}" for number in range(6)])
        for row, left in enumerate(labels):
            for column, right in enumerate(labels):
                pair = tuple(sorted((left, right)))
                expected = "X" if row == column else NODE0.get(pair) or NODE1.get(pair) or "SYS"
                self.assertEqual(matrix[row][column], expected, pair)

    def test_numa_nodes(self):
        self.assertEqual([nic["numa"] for nic in self.report["topology"]["nics"]], [0, 0, 0, 0, 1, 1])
        self.assertEqual([gpu["numa"] for gpu in self.report["topology"]["gpus"]], [0, 1])

    def test_each_gpu_uses_a_nic_below_its_switch(self):
        chosen = {pe["gpu"]: pe["nics"][0] for pe in self.report["mapping"]["pes"]}
        self.assertEqual({nic["distance"] for nic in chosen.values()}, {"PIX"})
        self.assertIn(chosen[0]["device"], ("rxe0", "rxe1"))
        self.assertIn(chosen[1]["device"], ("rxe4", "rxe5"))


if __name__ == "__main__":
    lab_support.main()
