"""`sim`: its report, its text, its refusals, and real runs whose bytes it must predict."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

from job_support import default_signals
from support import BINARY, CliTest, DATA, clean_environment, run
from test_transports import missing

HGX = DATA / "nccl" / "hgx-8gpu-8nic.xml"
PAIRS = DATA / "nccl" / "pairs-8gpu-8nic.xml"
#: Two nodes of two ranks, as the real runs below.
FOUR_RANKS = ("--from", HGX, "--nodes", 2, "--pes-per-node", 2, "--sample", "tokens", "--steps", 1)
SHAPE = ("--num-experts", 32, "--hidden", 256, "--num-tokens", 33, "--num-topk", 4)
TCP = {"SHMEMCTL_SYMMETRIC_SIZE": "64M", "SHMEMCTL_REMOTE_TRANSPORT": "libfabric",
       "SHMEMCTL_LIBFABRIC_PROVIDER": "tcp"}


class SimTest(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sim-")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def sim(self, *arguments):
        path = self.path / "sim.json"
        code, out, err = run("sim", *arguments, "--json", path, "--force")
        self.assertEqual(code, 0, err)
        valid, text, problem = run("report", "validate", path)
        self.assertEqual(valid, 0, text + problem)
        return json.loads(path.read_text()), out

    @staticmethod
    def variant(document, name="given"):
        found, = [v for v in document["simulation"]["variants"] if v["name"] == name]
        return found

    def operation(self, document, name, variant="given"):
        found, = [o for o in self.variant(document, variant)["operations"] if o["operation"] == name]
        return found


class Results(SimTest):
    def test_the_verdict_comes_first_and_the_report_is_whole(self):
        document, out = self.sim("--from", PAIRS, "--nodes", 4, "--world", "deepep-ht", "--num-tokens", 512,
                                 "--steps", 40)
        self.assertTrue(out.startswith("busiest: 16 of 32 NICs, such as node 0 mlx5_0/1: "), out)
        self.assertIn("2 times the even share", out.splitlines()[0])
        self.assertIn("limited by", out.splitlines()[0])
        simulation = document["simulation"]
        self.assertEqual((simulation["bytes"], simulation["times"], simulation["steps"]), ("exact", "sampled", 40))
        self.assertAlmostEqual(simulation["price_of_mapping"], 2, delta=0.1)
        self.assertEqual([(f["id"], f["subject"]) for f in document["findings"]],
                         [("nic-hotspot-predicted", "mlx5_0/1, mlx5_2/1, mlx5_4/1, mlx5_6/1")])
        self.assertNotIn("leaf switch", out)  # nothing goes up
        self.assertIn("node 0 mlx5_0/1 and 15 alike", out)
        self.assertIn("and 16 NICs with less traffic", out)
        rows = {(r["case"], r["params"]["variant"]): r for r in document["results"]}
        self.assertEqual({case for case, _ in rows}, {"sim-dispatch", "sim-combine", "sim-step"})
        self.assertEqual(rows["sim-step", "given"]["stats"]["n"], 40)
        self.assertEqual(document["job"], {"pes": 32, "nodes": 4, "bootstrap": "none", "launcher": "none"})
        self.assertEqual(len(self.variant(document)["nics"]), 8)
        page = run("report", "html", self.path / "sim.json")[1]
        model = json.loads(re.search('<script type="application/json" id="model">(.*?)</script>', page, re.DOTALL).group(1))
        section, = [s for s in model["sections"] if s["id"] == "simulation"]
        nics, = [block["rows"] for block in section["blocks"] if block.get("title", "").startswith("Busiest NICs")]
        self.assertEqual([(row[1], row[2], row[3], row[4]) for row in nics],
                         [(variant["name"], nic["node"], f"{nic['device']}/{nic['port']}", nic["out_bytes"] / 1e6)
                          for variant in simulation["variants"] for nic in variant["nics"]])
        everything, _ = self.sim("--from", PAIRS, "--nodes", 4, "--steps", 0, "--all", "--seed", (1 << 32) - 1)
        nics = self.variant(everything)["nics"]
        self.assertEqual([(n["node"], n["device"]) for n in nics[:2]], [(0, "mlx5_0"), (0, "mlx5_1")])
        self.assertEqual(len(nics), 32)
        self.assertEqual(everything["simulation"]["times"], "expected")

    def test_expected_bytes_are_the_formula(self):
        # 8 nodes of 8 ranks, 256 experts, 8 of them chosen: a node is missed as C(224, 8) / C(256, 8).
        document, _ = self.sim("--from", HGX, "--nodes", 8, "--num-tokens", 4096, "--steps", 0, "--dtype", "fp8")
        missed = 1.0
        for i in range(8):
            missed *= (224 - i) / (256 - i)
        rows = 4096 * (1 - missed) * 7
        dispatch = self.operation(document, "dispatch")
        self.assertAlmostEqual(dispatch["crossing_bytes_per_rank"] / (rows * (7168 + 56 * 4)), 1, places=12)
        self.assertAlmostEqual(self.variant(document)["busiest"]["over_even"], 1, places=9)

    def test_what_if(self):
        document, out = self.sim("--from", HGX, "--nodes", 4, "--num-tokens", 256, "--kill-nic", "1/mlx5_0",
                                 "--slow-nic", "2/mlx5_3=0.5", "--steps", 20)
        self.assertGreater(document["simulation"]["what_if_factor"], 1.8)
        self.assertEqual(document["simulation"]["changes"], ["--kill-nic 1/mlx5_0", "--slow-nic 2/mlx5_3=0.5"])
        dead = [n for n in self.variant(document, "what-if")["nics"] if (n["node"], n["device"]) == (1, "mlx5_0")]
        self.assertEqual(dead, [])
        self.assertIn("with the changes", out)
        self.assertIn("node 1 mlx5_0/1 is killed: PE 0 uses mlx5_1/1, as PE 1 does\n", out)
        self.assertEqual(document["simulation"]["taken_over"], [
            {"first_node": 1, "nodes": 1, "device": "mlx5_0", "port": 1, "pes": [0],
             "by": [{"device": "mlx5_1", "port": 1, "pes": [0], "shared_with_pes": [1]}]}])
        moved, _ = self.sim("--from", HGX, "--nodes", 4, "--move-expert", "0:31", "--steps", 5)
        self.assertIn("what_if_factor", moved["simulation"])

    def test_nobody_is_blamed_in_a_balanced_cluster(self):
        document, out = self.sim("--from", HGX, "--nodes", 4, "--num-tokens", 256, "--steps", 20)
        self.assertTrue(out.startswith("all NICs carry the same: "), out)
        self.assertIn("limited by every NIC (out and in)", " ".join(out.split()))
        self.assertIn("\nthe mapping is the best one\n", out)
        self.assertNotIn("optimal", out)  # the same numbers again
        self.assertNotIn("most", out)  # what limits most steps is no second culprit
        self.assertIn("node 0 mlx5_0/1 and 31 alike", out)
        self.assertEqual(document["findings"], [])
        variant = self.variant(document)
        self.assertEqual((variant["even"], variant["busiest_alike"]), (True, 32))
        self.assertEqual({operation["limited_by"] for operation in variant["operations"]}, {"every NIC (out and in)"})
        self.assertEqual(self.variant(document, "optimal")["same_nics_as"], "given")
        self.assertEqual([nic["hot"] for nic in variant["nics"]], [False] * 8)

    def test_patterns_and_fabrics(self):
        document, _ = self.sim("--from", HGX, "--nodes", 8, "--pattern", "all-to-all", "--bytes", "4K",
                               "--fabric", "fat-tree", "--leaf-nodes", 2, "--oversubscription", 8)
        transfer = self.operation(document, "transfer")
        self.assertEqual(transfer["crossing_bytes_per_rank"], 7 * 8 * 4096)
        self.assertIn("leaf switch", transfer["limited_by"])
        self.assertEqual(document["simulation"]["times"], "exact")
        for pattern in ("put-ring", "put-pairs", "put-incast"):
            document, _ = self.sim("--from", HGX, "--nodes", 8, "--pattern", pattern)
            self.assertGreater(self.operation(document, "transfer")["time_us"]["mean"], 0)

    def test_a_hot_expert_is_found_and_the_same_seed_gives_the_same(self):
        arguments = ("--from", HGX, "--nodes", 4, "--routing", "zipf", "--steps", 10, "--seed", 7)
        document, _ = self.sim(*arguments)
        again, _ = self.sim(*arguments)
        other, _ = self.sim(*arguments[:-1], 8)
        self.assertEqual(document["simulation"], again["simulation"])
        self.assertNotEqual(document["simulation"], other["simulation"])
        self.assertEqual(document["simulation"]["bytes"], "sampled")
        self.assertIn("out_margin95_bytes", self.variant(document)["nics"][0])

    def test_refusals(self):
        for arguments, words in (
                (("--nodes", 3), "256 experts cannot be shared evenly by 24 ranks"),
                (("--nodes", 0), "--nodes: 0 is not in range 1 to 65536"),
                (("--leaf-nodes", 0), "--leaf-nodes: 0 is not in range 1 to 65536"),
                (("--kill-nic", "mlx5_77"), "no NIC mlx5_77 in the topology"),
                (("--kill-nic", "9/mlx5_0"), "nodes 0 to 1"),
                (("--oversubscription", 0.5), "oversubscription"),
                (("--routing", "./missing"), "missing"),
                (("--num-topk", 33), "num-topk"),
                (("--seed", 1 << 32), "--seed"),
                (("--pattern", "put-ring", "--num-tokens", 128), "--num-tokens: only --pattern moe"),
                (("--pattern", "all-to-all", "--routing", "zipf"), "--routing: only --pattern moe"),
                (("--policy", "best"), "best")):
            with self.subTest(arguments=arguments):
                err = self.assert_refused(run("sim", "--from", HGX, *arguments))
                self.assertIn(words, err)
        err = self.assert_refused(run("sim", "--from", DATA / "nvidia-smi" / "session.txt"))
        self.assertIn("--nic-gbits", err)
        routing = self.path / "of-two.txt"
        routing.write_text("shmemctl-routing 1\nranks 2 experts 4 topk 2\nrank 0 tokens 1\n3 -1\n"
                           "rank 1 tokens 0\nend -\n", encoding="ascii")
        err = self.assert_refused(run("sim", "--from", HGX, "--routing", routing, "--ep-ranks", 16))
        self.assertIn("recorded with 2 ranks", err)
        routing.write_text("shmemctl-routing 1\nranks 2 experts", encoding="ascii")
        self.assertIn("line 2", self.assert_refused(run("sim", "--from", HGX, "--routing", routing)))


class RealRuns(SimTest):
    """`moe` counts the bytes of its rows while it moves them; `sim` has to know them without."""

    def moe(self, *arguments, nodes=2):
        path = self.path / "moe.json"
        done = subprocess.run([BINARY, "run", "-n", "4", "--nodes", str(nodes), "moe",
                               *map(str, SHAPE + arguments), "-n", "2", "-w", "1", "--json", str(path), "--force"],
                              check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=300,
                              preexec_fn=default_signals, env=clean_environment(**TCP))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        point, = json.loads(path.read_text())["moe"]
        return point

    def assert_same_bytes(self, point, document):
        """Rank r of a node has a NIC of its own: what the rank sends to other nodes, its NIC sends."""
        for operation in ("dispatch", "combine"):
            crossing = point[operation]["crossing_bytes"]
            self.assertGreater(sum(crossing), 0)
            told = self.operation(document, operation)
            self.assertEqual(told["crossing_bytes_per_rank"] * 4, sum(crossing))
            # The others go to another rank of the node, by shared memory here.
            inside = sum(point[operation]["sent_bytes"]) - sum(crossing)
            self.assertGreater(inside, 0)
            self.assertEqual(told["link_bytes_per_rank"] * 4, inside)
        nics = {(nic["node"], nic["device"]): nic["out_bytes"] for nic in self.variant(document)["nics"]}
        for rank in range(4):
            sent = sum(point[operation]["crossing_bytes"][rank] for operation in ("dispatch", "combine"))
            self.assertEqual(nics[rank // 2, f"mlx5_{rank % 2}"], sent, rank)

    def test_the_same_seed_moves_the_same_bytes(self):
        if reason := missing(TCP, "--nodes", 2):
            self.skipTest(reason)
        way = ("--routing", "zipf", "--seed", 11)
        document, _ = self.sim(*FOUR_RANKS, *SHAPE, *way, "--all")
        self.assert_same_bytes(self.moe(*way), document)

    def test_on_one_node_all_rows_go_over_links(self):
        """What NVLink's counters are compared with, where ranks have a GPU each."""
        record = self.path / "routing.txt"
        for mode in ("ht", "ll"):
            with self.subTest(mode=mode):
                record.unlink(missing_ok=True)
                point = self.moe("--mode", mode, "--record", record, nodes=1)
                document, _ = self.sim("--from", HGX, "--nodes", 1, "--pes-per-node", 4, "--mode", mode,
                                       "--hidden", 256, "--routing", record)
                for operation in ("dispatch", "combine"):
                    self.assertEqual(sum(point[operation]["crossing_bytes"]), 0)
                    sent = sum(point[operation]["sent_bytes"])
                    self.assertGreater(sent, 0)
                    self.assertEqual(self.operation(document, operation)["link_bytes_per_rank"] * 4, sent)

    def test_rows_that_are_not_handed_on(self):
        if reason := missing(TCP, "--nodes", 2):
            self.skipTest(reason)
        record = self.path / "routing.txt"
        point = self.moe("--flat", "--routing", "grouped", "--record", record)
        document, _ = self.sim(*FOUR_RANKS, "--flat", "--hidden", 256, "--routing", record, "--all")
        self.assert_same_bytes(point, document)

    def test_a_replayed_routing_moves_the_same_bytes(self):
        if reason := missing(TCP, "--nodes", 2):
            self.skipTest(reason)
        record = self.path / "routing.txt"
        for mode, routing in ((("--mode", "ht"), ("--uneven",)),
                              (("--mode", "ht"), ("--routing", "grouped")),
                              (("--mode", "ht", "--dtype", "fp8"), ("--routing", "hot-expert")),
                              (("--mode", "ll"), ("--masked", 20)),
                              (("--mode", "ll", "--combine", "partial"), ("--routing", "empty-ranks"))):
            with self.subTest(mode=mode, routing=routing):
                record.unlink(missing_ok=True)
                point = self.moe(*mode, *routing, "--record", record)
                document, _ = self.sim(*FOUR_RANKS, *mode, "--hidden", 256, "--routing", record, "--all")
                self.assertEqual(document["simulation"]["times"], "exact")
                self.assert_same_bytes(point, document)


@unittest.skipUnless(os.environ.get("SHMEMCTL_SOAK") == "1", "for a quiet machine: SHMEMCTL_SOAK=1 runs it")
class Speed(SimTest):
    def test_sixteen_thousand_gpus(self):
        """The aim is 5 s and 1 GB for 2,048 nodes of 8 GPUs and 8 NICs, 256 experts, 1,024 steps."""
        begin = time.monotonic()
        process = subprocess.Popen(
            [BINARY, "sim", "--from", HGX, "--nodes", "2048", "--ep-ranks", "256", "--num-experts", "256", "--steps",
             "1024"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment())
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        print(f"sim of 2,048 x 8 x 8: {seconds:.2f} s, {usage.ru_maxrss / 1e6:.2f} GB")
        self.assertEqual(process.returncode, 0)
        self.assertLessEqual(seconds, 5)
        self.assertLessEqual(usage.ru_maxrss * 1024, 1e9)


if __name__ == "__main__":
    unittest.main()
