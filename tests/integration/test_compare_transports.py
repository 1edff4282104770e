"""scripts/compare_transports.py: its tables, and a short run. How fast anything is, a quiet
machine has to say."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))

# pylint: disable=wrong-import-position
from compare import points, programs, rounds, tables  # noqa: E402

BINARY = os.environ.get("SHMEMCTL_BINARY", str(SCRIPTS.parent / "build" / "shmemctl"))


class Fixed:
    """A program whose figures are known; None: it fails."""

    def __init__(self, *values):
        self.values = list(values)

    def measure(self):
        value = self.values.pop(0)
        if value is None:
            raise programs.Failed("no such device")
        return programs.Figure(value)


def some_part():
    goals = [points.Goal("ours", "peer", 0.97, True), points.Goal("other", "ours", 0.9, True)]
    point = points.Point("bandwidth of puts", 65536, "GB/s",
                         {"peer": Fixed(1.0, 2.0, 4.0), "ours": Fixed(1.0, 1.9, 4.4), "other": Fixed(0.8, None, 3.0)},
                         goals, "the wire")
    return {**tables.document("lab", [point], rounds.measure([point], 3)), "load": [0.5, 1.5]}


class Figures(unittest.TestCase):
    def test_ratios_are_of_one_round(self):
        goals = {goal["program"]: goal for goal in some_part()["points"][0]["goals"]}
        self.assertEqual([round(ratio, 2) for ratio in goals["ours"]["ratios"]], [1.0, 0.95, 1.1])
        self.assertEqual((goals["ours"]["ratio"], goals["ours"]["met"]), (1.0, True))
        self.assertEqual(len(goals["other"]["ratios"]), 2)
        self.assertIs(goals["other"]["met"], False)

    def test_a_latency_has_to_be_small(self):
        goal = points.Goal("ours", "peer", 1.05, False)
        self.assertEqual((goal.met(1.04), goal.met(1.06), goal.words()), (True, False, "<= 1.05"))

    def test_table(self):
        lines = tables.table(some_part()).splitlines()
        self.assertEqual(len(lines), 2 + 3)
        self.assertEqual({line.count("|") for line in lines}, {10})
        self.assertRegex(lines[2], r"^\| bandwidth of puts \| 65536 \| peer \| 2 GB/s \| \d+% \| - \| - \| - \| the wire \|$")
        self.assertIn("1.00 of peer (0.95 to 1.1) | >= 0.97 | met", lines[3])
        self.assertIn(">= 0.9 | missed", lines[4])

    def test_missing_figures_have_a_reason(self):
        point = points.Point("latency of puts", 8, "us", {"peer": Fixed(1.0), "ours": Fixed(None)},
                             [points.Goal("ours", "peer", 1.05, False)], "the wire")
        part = tables.document("host", [point], rounds.measure([point], 1))
        self.assertIsNone(part["points"][0]["goals"][0]["met"])
        self.assertIn("- (no such device)", tables.table(part))
        self.assertIn("not measured", tables.table(part))

    def test_wrong_data_is_no_figure(self):
        bench = programs.OurBench("shmemctl", "put", 8)
        row = {"status": "fail", "verified": "failed", "reason": "wrong", "params": {}, "stats": {"p50": 1, "mean": 1},
               "bandwidth_GBps": 1}
        with self.assertRaises(programs.Failed):
            bench.read({"results": [row]})
        right = {**row, "status": "pass", "verified": "passed"}
        counters = [{"device": "rxe0", "counter": "sent_pkts", "delta": 7}]
        figure = bench.read({"results": [right], "nic_counters": counters})
        self.assertEqual((figure.value, figure.details["sent_by"]), (1, {"rxe0 sent_pkts": 7}))

    def test_lines_of_perftest(self):
        bandwidth = " 65536      768              0.00               102.53   \t\t  0.001640"
        self.assertEqual(re.search(programs.bandwidth_pattern(65536), bandwidth, re.M)[1], "102.53")
        latency = " 8       4000          14.51          170.62       16.20      \t       16.47        \t3.10\t\t24.31"
        self.assertEqual(re.search(programs.latency_pattern(8), latency, re.M)[1], "16.47")

    def test_lines_of_ucx_perftest(self):
        line = "                       100   1146.809  1173.670  1173.670      852.03     850.00         852         852"
        found = programs.ucx_perftest("ucp_put_bw", 1 << 20, 100, 10, ("0", "1"), {})
        self.assertEqual(re.search(found.pattern, line, re.M)[1], "850.00")
        self.assertAlmostEqual(found.scale, 0.001048576)
        found = programs.ucx_perftest("ucp_put_lat", 8, 100, 10, ("0", "1"), {})
        self.assertEqual(re.search(found.pattern, line, re.M)[1], "1173.670")

    def test_the_docs_have_the_marks(self):
        text = (SCRIPTS.parent / "docs" / "results" / "transports.md").read_text(encoding="utf-8")
        self.assertLess(text.index("<!-- compare_transports: begin -->"), text.index("<!-- compare_transports: end -->"))

    def test_the_table_replaces_the_text_between_the_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "transports.md"
            path.write_text("before\n<!-- compare_transports: begin -->\nold\n<!-- compare_transports: end -->\nafter\n")
            tables.put_into(path, "new")
            self.assertEqual(path.read_text(), "before\n<!-- compare_transports: begin -->\nnew\n"
                             "<!-- compare_transports: end -->\nafter\n")
            path.write_text("no marks")
            with self.assertRaises(SystemExit):
                tables.put_into(path, "new")


class Run(unittest.TestCase):
    @unittest.skipUnless(shutil.which("ucx_perftest") and shutil.which("taskset"), "no ucx_perftest or no taskset")
    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one CPU only")
    def test_one_round_over_tcp(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.json"
            done = subprocess.run([sys.executable, str(SCRIPTS / "compare_transports.py"), "--where", "host", "--only",
                                   "latency", "--rounds", "1", "--shmemctl", BINARY, "--json", str(path)],
                                  capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            part, = json.loads(path.read_text(encoding="utf-8"))["environments"]
        point, = part["points"]
        self.assertEqual((point["size_bytes"], point["unit"]), (8, "us"))
        self.assertEqual(set(point["programs"]), {"ucx_perftest", "libfabric tcp", "ucx tcp"})
        for name, rows in point["programs"].items():
            self.assertEqual(len(rows), 1)
            self.assertGreater(rows[0]["value"], 0, (name, rows))
        for goal in point["goals"]:
            self.assertGreater(goal["ratio"], 0)
            self.assertIn(goal["met"], (True, False))
        self.assertIn("| latency of puts | 8 | ucx_perftest |", done.stdout)

    def test_what_is_not_there_is_refused(self):
        for words in (["--where", "moon"], ["--rounds", "0"]):
            done = subprocess.run([sys.executable, str(SCRIPTS / "compare_transports.py"), *words],
                                  capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    unittest.main()
