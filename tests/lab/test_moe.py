"""Rows of `moe` between two machines: what `sim` tells of each NIC is what goes through it."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import lab_support

SCRIPT = pathlib.Path(__file__).parent / "guest_moe.sh"
#: A NIC for each GPU, below its switch.
TREE = {"nodes": [{"cpus": 2, "memory_mib": 2048, "below": [{"switch": ["nic", "gpu"]}, {"switch": ["gpu", "nic"]}]}]}
HIDDEN = ("--hidden", "1024")  # a recorded routing holds the rest of the shape
SHAPE = (*HIDDEN, "--num-experts", 32, "--num-tokens", 33, "--num-topk", 4, "--routing", "zipf")
FEW, MANY = 2, 8
#: An iteration dispatches, dispatches once more as planned, combines, and makes a round trip.
DISPATCHES, COMBINES = 3, 2


class BytesOfNics(unittest.TestCase):
    """Of two runs, one of which is longer, the difference: what a job does once falls out of it."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name)
        tree = cls.path / "tree.json"
        tree.write_text(json.dumps(TREE), encoding="ascii")
        cls.points, cls.sent = {}, {}
        for iterations in (FEW, MANY):
            out = cls.path / f"out{iterations}"
            result = lab_support.run_lab(
                "--machines", 2, "--topology", tree, "--pes", 2, "--timeout", 500, "--out", out, "--",
                "sh", SCRIPT, lab_support.BINARY, iterations, *SHAPE)
            if result.exit_codes != [0, 0]:
                raise AssertionError(f"{result.error} {result.stderr}")
            cls.points[iterations], = json.loads((out / "moe.json").read_text(encoding="utf-8"))["moe"]
            cls.sent[iterations] = cls.interfaces(out)
        cls.simulated = cls.simulate(out)

    @staticmethod
    def interfaces(out):
        """What the interface of each rank sent."""
        sent = []
        for machine in (0, 1):
            before, after = ([int(word) for word in (out / f"{machine}.{when}").read_text().split()]
                             for when in ("before", "after"))
            sent += [new - old for old, new in zip(before, after, strict=True)]
        return sent

    @classmethod
    def simulate(cls, out):
        """Bytes of each rank's NIC in a step, on the topology that the machine told."""
        path = cls.path / "sim.json"
        subprocess.run([lab_support.BINARY, "sim", "--from", out / "topo.json", "--nodes", "2", "--pes-per-node", "2",
                        *HIDDEN, "--routing", out / "routing.txt", "--all", "--json", path],
                       check=True, stdout=subprocess.DEVNULL, timeout=120)
        given, = [v for v in json.loads(path.read_text())["simulation"]["variants"] if v["name"] == "given"]
        nics = {(nic["node"], nic["device"]): nic["out_bytes"] for nic in given["nics"]}
        return [nics[rank // 2, f"rxe{rank % 2}"] for rank in range(4)]

    def crossing(self, operation, rank):
        return self.points[MANY][operation]["crossing_bytes"][rank]

    def moved(self, iterations, rank):
        """What the transport counted for the rank's port."""
        bytes_of = {(nic["host"], nic["device"]): nic["moved_bytes"] for nic in self.points[iterations]["nics"]}
        return bytes_of[f"lab{rank // 2}", f"rxe{rank % 2}"]

    def an_iteration(self, rank):
        return DISPATCHES * self.crossing("dispatch", rank) + COMBINES * self.crossing("combine", rank)

    def test_sim_tells_the_bytes_of_the_rows(self):
        counted = [self.crossing("dispatch", rank) + self.crossing("combine", rank) for rank in range(4)]
        self.assertGreater(min(counted), 0)
        self.assertEqual(self.simulated, counted)

    def test_port_counters_match_the_computed_bytes(self):
        # And counts, positions and signals: 1.5% at rows of 2 KiB.
        for rank in range(4):
            moved = (self.moved(MANY, rank) - self.moved(FEW, rank)) / (MANY - FEW)
            self.assertGreater(moved, self.an_iteration(rank))
            self.assertLess(moved, 1.05 * self.an_iteration(rank))

    def test_wire_counters_match_the_computed_bytes(self):
        # Headers, acknowledgements, and what is sent again while the host runs something else: 2% to 16%.
        for rank in range(4):
            sent = (self.sent[MANY][rank] - self.sent[FEW][rank]) / (MANY - FEW)
            self.assertGreater(sent, self.an_iteration(rank))
            self.assertLess(sent, 1.5 * self.an_iteration(rank))


if __name__ == "__main__":
    lab_support.main()
