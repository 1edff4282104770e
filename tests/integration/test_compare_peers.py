"""The tables of scripts/compare_peers.py; the measurement itself is for a quiet machine."""
import importlib.util
import pathlib
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "compare_peers.py"


def load():
    spec = importlib.util.spec_from_file_location("compare_peers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


peers = load()
OURS = "shmemctl bench"


def some_results():
    return {OURS: {("put-latency", 8): [0.02, 0.01, 0.9], ("memcpy", 8): [0.012], ("put of memcpy", 1 << 20): [0.99],
                   ("put-pingpong", 8): [0.2], ("cacheline-pingpong", 8): [0.1], ("barrier", 0): [0.25],
                   ("atomic-fetch-add", 8): [0.005], ("bare-atomic", 8): [0.005]},
            "ucx_perftest": {("put-pingpong", 8): [0.21]}}


class Table(unittest.TestCase):
    def test_table_cells(self):
        lines = peers.table(some_results(), [OURS, "ucx_perftest"]).splitlines()
        self.assertEqual(len(lines), 2 + len(peers.ROWS))
        self.assertEqual({line.count("|") for line in lines}, {6})
        self.assertIn("| put-latency | 8 | 0.0120 | 0.0200 | - |", lines)
        self.assertIn("| put-pingpong | 8 | 0.100 | 0.200 | 0.210 |", lines)
        self.assertIn("| barrier | - | 0.200 | 0.250 | - |", lines)
        self.assertIn("| get-latency | 4096 | - | - | - |", lines)

    def test_goals_are_met_or_not(self):
        with tempfile.TemporaryDirectory() as nothing_there:
            rows = {row[0]: row[1:] for row in peers.goals(some_results(), pathlib.Path(nothing_there), 1)}
            empty = peers.goals({OURS: {}}, pathlib.Path(nothing_there), 1)
        met = {what: row[2] for what, row in rows.items()}
        self.assertIs(met["put of 1 MiB, share of a memcpy beside it"], True)
        self.assertIs(met["put ping-pong of 8 bytes / bare cache line"], False)
        self.assertIs(met["put ping-pong of 8 bytes / ucx_perftest"], True)
        self.assertIs(met["fetch-add / bare atomic"], True)
        self.assertIs(met["barrier of 2 PEs, µs"], True)
        self.assertIsNone(met["proxy, one producer, million requests/s"])
        self.assertEqual({row[3] for row in empty}, {None})
        text = peers.goals_text([(what, *row) for what, row in rows.items()])
        self.assertIn("| put ping-pong of 8 bytes / bare cache line | 2 | at most 1.1 | missed |", text)
        self.assertIn("| not measured |", text)

    def test_wrong_rows_are_not_compared(self):
        found = {}
        row = {"case": "put", "params": {"size_bytes": 8}, "status": "fail", "verified": "failed", "stats": {"p50": 1}}
        peers.OurBench.take(row, found)
        self.assertEqual(found, {})
        peers.OurBench.take({**row, "status": "pass", "verified": "passed", "link_fraction": 0.5}, found)
        self.assertEqual(found, {("put", 8): 1, ("put of memcpy", 8): 0.5})

    def test_lines_of_programs(self):
        self.assertEqual(peers.figures(["put 8 0.5", "a warning of the launcher", "put 16", "", "barrier 0 0.25"]),
                         {("put", 8): 0.5, ("barrier", 0): 0.25})

    def test_the_table_replaces_the_text_between_the_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bench.md"
            path.write_text("before\n<!-- compare_peers: begin -->\nold\n<!-- compare_peers: end -->\nafter\n")
            for text in ("new\n\ntable", "newer"):
                peers.put_into(path, text)
                self.assertEqual(path.read_text(), "before\n<!-- compare_peers: begin -->\n" + text
                                 + "\n<!-- compare_peers: end -->\nafter\n")
            path.write_text("no marks")
            with self.assertRaises(SystemExit):
                peers.put_into(path, "text")

    def test_the_docs_have_the_marks(self):
        text = (SCRIPT.parent.parent / "docs" / "results" / "peers.md").read_text(encoding="utf-8")
        self.assertLess(text.index("<!-- compare_peers: begin -->"), text.index("<!-- compare_peers: end -->"))


if __name__ == "__main__":
    unittest.main()
