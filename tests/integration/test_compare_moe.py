"""What scripts/compare_moe.py makes of routings, reports and peers' lines, without a GPU."""
import contextlib
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from support import CliTest, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))

# pylint: disable=wrong-import-position
import compare_moe  # noqa: E402
from compare import moe_cases  # noqa: E402

#: Four ranks with two experts each. Rank 0: to ranks 0 and 2, twice to rank 3, nowhere; rank 1: to rank 3.
ROUTING = """# by hand
shmemctl-routing 1
ranks 4 experts 8 topk 2
rank 0 tokens 3
0 5
6 7
-1 -1
rank 1 tokens 1
-1 6
rank 2 tokens 0
rank 3 tokens 0
end -
"""


def routing():
    return moe_cases.read_routing(ROUTING)


class Routings(unittest.TestCase):
    def test_rows_and_selections(self):
        read = routing()
        self.assertEqual((read.n_ranks, read.n_experts, read.top_k), (4, 8, 2))
        self.assertEqual(read.received_rows(), [1, 0, 1, 2])
        self.assertEqual(read.sent_rows(), [2, 1, 0, 0])
        self.assertEqual(read.selections(), [4, 1, 0, 0])
        self.assertEqual(read.selections_received(), [1, 0, 1, 3])

    def test_bytes_that_leave_the_ranks(self):
        """Rank 0 chooses ranks 0, 2, 3 and 3: two rows leave it; of three outputs it gets from others, one is rank 2's."""
        read = routing()
        self.assertEqual(read.returned_selections(), [0, 0, 1, 3])
        cases = {"ll-16": read, "ht-bf16": read}
        per_call = compare_moe.bytes_by_call(cases, cases)
        row, scaled = 2 * 7168, 7168 + 4 * 56
        self.assertEqual(per_call[("ll-16", "dispatch")], 3 * scaled)
        self.assertEqual(per_call[("ll-16", "combine")], 4 * row)
        self.assertEqual(per_call[("ht-bf16", "combine")], 3 * row)

    def test_bytes_of_what_goes_before_a_call_are_not_the_calls(self):
        sys.path.insert(0, str(ROOT / "tests/peers"))
        import moe_gpu  # pylint: disable=import-outside-toplevel

        class Torch:
            float32 = uint8 = None
            zeros = empty = staticmethod(lambda *_, **__: None)

            class cuda:  # pylint: disable=invalid-name
                _sleep = synchronize = staticmethod(lambda *_: None)

                class Event:
                    def __init__(self, **_):
                        self.record = lambda: None
                        self.elapsed_time = lambda _: 1.0

        class Links:
            sent = 0

            def sent_bytes(self):
                return self.sent

            def send(self, size):
                self.sent += size

        links = Links()
        reduced = type("Dist", (), {"all_reduce": staticmethod(lambda _: None)})
        meter = moe_gpu.Meter(Torch, reduced, {"flush_l2": False, "warmup": 1, "iterations": 2}, links)
        meter.times((lambda: links.send(1000), lambda: links.send(70)), "kernels")
        self.assertEqual((links.sent, meter.untimed_bytes, meter.calls), (3 * 1070, 3000, 3))

    def test_what_is_no_routing_is_refused(self):
        for broken, why in ((ROUTING.replace("shmemctl-routing 1", "shmemctl-routing 2"), "first line"),
                            (ROUTING.replace("rank 1 tokens 1", "rank 2 tokens 1"), "rank 1"),
                            (ROUTING.replace("6 7", "6 8"), "rank 0"), (ROUTING.replace("6 7", "6"), "rank 0"),
                            (ROUTING.replace("end -\n", ""), "cut short"), (ROUTING.replace("0 5", "0 x"), "number"),
                            ("", "cut short")):
            with self.assertRaisesRegex(moe_cases.BadRouting, why):
                moe_cases.read_routing(broken)

    def test_bytes_by_each_definition(self):
        high = {"mode": "ht", "dtype": "fp8"}
        low = {"mode": "ll", "dtype": "fp8"}

        def counted(case, operation, count):
            return moe_cases.counted_bytes(routing(), case, operation, count, hidden=128)

        self.assertEqual(counted(high, "dispatch", "own"), [132, 0, 132, 264])
        self.assertEqual(counted(high, "dispatch", "deepep-v1"), [132, 0, 132, 264])
        self.assertEqual(counted(high, "cached-dispatch", "deepep-v2"), [156, 0, 156, 312])
        self.assertEqual(counted(high, "combine", "deepep-v2"), [264, 0, 264, 528])
        self.assertEqual(counted(high, "combine", "per-selection"), [1024, 256, 0, 0])
        self.assertEqual(counted(low, "dispatch", "own"), [132, 0, 132, 396])
        self.assertEqual(counted(low, "dispatch", "deepep-v1"), [4 * 148, 148, 0, 0])
        self.assertEqual(counted(low, "combine", "deepep-v1"), [1024, 256, 0, 0])


class AgainstTheTool(CliTest):
    def test_bytes_are_those_of_the_tool(self):
        """The referee's arithmetic and `moe --count`'s, by one routing."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "routing.txt"
            for mode, dtype in (("ht", "bf16"), ("ht", "fp8"), ("ll", "fp8"), ("ll", "bf16")):
                case = {"mode": mode, "dtype": dtype}
                shape = ("--mode", mode, "--dtype", dtype, "--hidden", "256", "-n", "2", "-w", "0", "--no-verify")
                way = (("--num-tokens", "24", "--num-experts", "16", "--num-topk", "4", "--masked", "20", "--record",
                        str(file), "--force") if not file.exists() else ("--routing", str(file)))
                for count in moe_cases.COUNTS[1:]:
                    code, out, err = run("run", "-n", "2", "moe", *shape, *way, "--count", count, "--json", "-",
                                         env={"SHMEMCTL_SYMMETRIC_SIZE": "64M"})
                    self.assertEqual(code, 0, err)
                    way = ("--routing", str(file))
                    read = moe_cases.read_routing(file.read_text(encoding="utf-8"))
                    for row in json.loads(out)["results"]:
                        operation = row["case"].removeprefix("moe-")
                        if row["params"]["phase"] != "total":
                            continue
                        expected = moe_cases.rates(read, case, operation, row["stats"]["p50"], hidden=256)
                        for rate, by in (("counted_GBps", count), ("bandwidth_GBps", "own")):
                            self.assertAlmostEqual(row[rate] / expected[by], 1, places=9, msg=(mode, dtype, row))


def report_of(operations=("dispatch", "cached-dispatch", "combine"), verified="passed", counted=(90, 110)):
    rows = [{"case": "moe-" + operation, "params": {"phase": phase}, "status": "pass", "verified": verified,
             "stats": {"p50": 100.0 + i}} for i, operation in enumerate(operations) for phase in ("total", "transfer")]
    links = [{"all_calls": {"out_bytes": 100, "counted_out_bytes": value} if value is not None
              else {"out_bytes": 100, "counted_out_bytes": None, "counted_out_bytes_reason": "no NVML"}}
             for value in counted]
    return {"results": rows, "moe": [{"links": links}]}


class Figures(unittest.TestCase):
    def test_the_slowest_rank_of_each_iteration_counts(self):
        self.assertEqual(compare_moe.slowest([[1, 5, 3], [4, 2, 3]]), [4, 5, 3])
        for bad in ([], [[]], [[1, 2], [1]]):
            with self.assertRaises(compare_moe.Failed):
                compare_moe.slowest(bad)

    def test_ours_are_the_totals_of_a_report(self):
        figures = compare_moe.read_ours(report_of(), "ht-bf16", "kernels")
        self.assertEqual(figures[("ht-bf16", "dispatch", "kernels")], (100.0, 1.0))
        self.assertEqual(figures[("ht-bf16", "combine", "kernels")][0], 102.0)
        no_count = compare_moe.read_ours(report_of(counted=(90, None)), "ht-bf16", "call")
        self.assertEqual(no_count[("ht-bf16", "dispatch", "call")], (100.0, "no NVML"))

    def test_ours_that_are_wrong_or_missing_are_no_figures(self):
        with self.assertRaisesRegex(compare_moe.Failed, "unchecked"):
            compare_moe.read_ours(report_of(verified="unchecked"), "ht-bf16", "call")
        with self.assertRaisesRegex(compare_moe.Failed, "2 of 3"):
            compare_moe.read_ours(report_of(operations=("dispatch", "combine")), "ht-bf16", "call")

    def test_peers_lines_of_all_ranks_are_joined(self):
        def rank(times, sent):
            return "\n".join(map(json.dumps, [
                {"version": "1.2"}, {"case": "ll-1", "checked": "all"},
                {"case": "ll-1", "operation": "combine", "window": "call", "us": times},
                {"case": "ll-1", "operation": "combine", "nvlink_sent_bytes": sent, "calls": 3},
                {"case": "ll-16", "failed": "Wrong: rows"},
                {"case": "ll-16", "operation": "combine", "window": "call", "us": [1]}])) + "\nnoise\n"
        per_call = {("ll-1", "combine"): 100, ("ll-16", "combine"): 100}
        outputs = [rank([1, 9, 3], 200), rank([5, 2, 4], 130)]
        version, figures, checked, failed = compare_moe.read_peer(outputs, per_call)
        self.assertEqual((version, checked, failed), ("1.2", {"ll-1": "all"}, {"ll-16": "Wrong: rows"}))
        self.assertEqual(figures, {("ll-1", "combine", "call"): (5, 1.1)})

    def test_a_rank_without_figures_spoils_its_case(self):
        line = json.dumps({"case": "ll-1", "operation": "combine", "window": "call", "us": [1]})
        _, figures, _, failed = compare_moe.read_peer([line, ""], {("ll-1", "combine"): 100})
        self.assertEqual((figures, failed), ({}, {"ll-1": "1 of 2 ranks have figures"}))

    def test_reasons_of_counters_are_kept(self):
        self.assertEqual(compare_moe.nvlink_of_peer([{"nvlink_reason": "no NVML"}], 100), "no NVML")
        self.assertEqual(compare_moe.nvlink_of_peer([], 100), "not counted")
        self.assertEqual(compare_moe.nvlink_of_peer([{"nvlink_sent_bytes": 50, "calls": 1}] * 2, 100), 1.0)

    def test_medians_of_rounds_rates_and_ratios(self):
        key = ("ht-bf16", "dispatch", "kernels")
        rows = compare_moe.rows_of({"shmemctl": {key: [(100.0, 1.01), (120.0, 1.03), (110.0, 1.02)]},
                                    "deepep-v1": {key: [(220.0, "no NVML")]}}, {"ht-bf16": routing()})
        mine, theirs = rows[0]["programs"]["shmemctl"], rows[0]["programs"]["deepep-v1"]
        self.assertEqual((mine["median"], mine["min"], mine["max"]), (110.0, 100.0, 120.0))
        self.assertEqual(mine["nvlink_by_routing"], 1.02)
        self.assertEqual((theirs["nvlink_by_routing"], theirs["nvlink_reason"]), (None, "no NVML"))
        self.assertEqual(rows[0]["ours_is_times_as_fast"], {"deepep-v1": 2.0})
        self.assertAlmostEqual(mine["rates_GBps"]["own"], 14336 / 110e3)
        table = compare_moe.table(rows)
        self.assertIn("| ht-bf16 | dispatch | kernels | shmemctl | 110 | 100 to 120 |", table)
        self.assertIn("| - | 2.00 |", table)

    def test_lines_of_nccl_eps_bench(self):
        text = ("=== Summary (Low Latency, across 2 ranks) ===\nDispatch (BF16):  avg=31.50 us, min=1 us, max=2 us\n"
                "Combine (BF16):   avg=40.25 us, min=1 us, max=2 us\nDispatch:    avg=9.00 us, min=1 us, max=2 us\n")
        self.assertEqual(compare_moe.read_ep_bench(text), {"dispatch": 31.5, "combine": 40.25})
        self.assertEqual(compare_moe.read_ep_bench("Dispatch:    total=7.5 us (min=1, max=2)\n"), {"dispatch": 7.5})
        self.assertEqual(compare_moe.read_ep_bench("ncclEpCreateGroup failed\n"), {})

    def test_flags(self):
        self.assertEqual(compare_moe.parsed([]).cases, list(compare_moe.CASES))
        self.assertEqual((compare_moe.parsed([]).rounds, compare_moe.parsed(["--quick"]).rounds), (5, 3))
        for bad in (["ht"], ["--pes", "3"], ["--pes", "1"], ["--rounds", "-1"], ["--sms", "0"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                compare_moe.parsed(bad)

    def test_without_gpus_it_ends_with_3(self):
        with mock.patch.object(compare_moe, "gpus", return_value=[]), mock.patch.object(sys, "argv", ["compare_moe"]), \
                contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(compare_moe.main(), 3)
        self.assertIn("two GPUs are needed", err.getvalue())


class Programs(CliTest):
    def test_what_our_program_is_told_is_known_to_it(self):
        """Every command line ends where a GPU is needed, not at a flag."""
        with tempfile.TemporaryDirectory() as folder:
            flags = compare_moe.parsed(["--pes", "2", "--quick", "--flush-l2"])
            file = pathlib.Path(folder) / "routing.txt"
            code, _, err = run("run", "-n", "2", "moe", "--hidden", "128", "--num-tokens", "1", "--num-topk", "8",
                               "--mode", "ll", "-n", "1", "-w", "0", "--no-verify", "--record", str(file),
                               env={"SHMEMCTL_SYMMETRIC_SIZE": "64M"})
            self.assertEqual(code, 0, err)
            ours = compare_moe.Ours(flags, {name: file for name in flags.cases})
            for case_name in flags.cases:
                for window in compare_moe.WINDOWS:
                    command = ours.command(case_name, window)
                    self.assertEqual("--kernels-only" in command, window == "kernels")
                    code, _, err = run(*command[1:], env={"SHMEMCTL_CUDA_LIBRARY": "/nonexistent/libcuda.so.1"})
                    self.assertEqual(code, 3, err)
                    self.assertIn("libcuda", err)

    def test_a_peer_is_run_by_rank_and_its_failures_are_named(self):
        flags = compare_moe.parsed(["ll-1", "--pes", "2", "--quick"])
        script = ("import json, sys, os\n"
                  "assert os.environ['NCCL_NVLS_ENABLE'] == '0'\n"
                  "plan = json.load(open(sys.argv[5]))\n"
                  "assert plan['cases']['ll-1']['routing'][0] == [[0, 5], [6, 7], [-1, -1]]\n"
                  "assert plan['iterations'] == 20\n"
                  "if sys.argv[1] == 'deepep-v2': sys.exit('no such buffer')\n"
                  "for window in plan['windows']:\n"
                  "    print(json.dumps({'case': 'll-1', 'operation': 'dispatch', 'window': window,\n"
                  "                      'us': [float(sys.argv[2]) + 1] * 3}))\n")
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "peer.py"
            program.write_text(script, encoding="utf-8")
            with mock.patch.object(compare_moe, "PEER", program):
                routings = {"ll-1": routing()}
                figures = compare_moe.Peer("deepep-v1", flags, routings, folder).measure()
                self.assertEqual(figures, {("ll-1", "dispatch", window): (2.0, "not counted")
                                           for window in compare_moe.WINDOWS})
                with self.assertRaisesRegex(compare_moe.Failed, "no such buffer"):
                    compare_moe.Peer("deepep-v2", flags, routings, folder).measure()

    def test_the_report_is_one_of_the_tool_with_a_picture(self):
        code, out, err = run("run", "-n", "2", "moe", "--hidden", "256", "--num-experts", "16", "--num-tokens", "4",
                             "-n", "2", "-w", "0", "--json", "-", env={"SHMEMCTL_SYMMETRIC_SIZE": "64M"})
        self.assertEqual(code, 0, err)
        with tempfile.TemporaryDirectory() as folder:
            file, page = pathlib.Path(folder) / "report.json", pathlib.Path(folder) / "page.html"
            flags = compare_moe.parsed(["--pes", "4", "--report", str(file)])
            figures = {name: {(f"ll-{tokens}", "dispatch", "kernels"): [(factor * (10.0 + tokens), 1.0)] * 3
                              for tokens in (1, 16, 128)} for name, factor in (("shmemctl", 1), ("deepep-v1", 2))}
            rows = compare_moe.rows_of(figures, {name: routing() for name in compare_moe.CASES})
            programs = [mock.Mock(version="0.2.0", report=json.loads(out), compared={}),
                        mock.Mock(version="1.2.1", compared={"ll-1": "the sums"})]
            programs[0].name, programs[1].name = "shmemctl", "deepep-v1"
            compare_moe.write_report(flags, programs, rows, {"hybrid-ep": "it cannot be imported"})
            code, _, err = run("report", "validate", str(file))
            self.assertEqual(code, 0, err)
            code, shown, err = run("report", "show", str(file))
            self.assertEqual(code, 0, err)
            for word in ("deepep-v1", "1.2.1", "moe-dispatch", "comparison-missing", "it cannot be imported"):
                self.assertIn(word, shown)
            document = json.loads(file.read_text(encoding="utf-8"))
            of_peer = [row for row in document["results"] if row["params"]["program"] == "deepep-v1"]
            self.assertEqual([row["verified"] for row in of_peer], ["unchecked", "unchecked", "passed"])
            code, _, err = run("report", "html", str(file), "-o", str(page))
            self.assertEqual(code, 0, err)
            self.assertIn("deepep-v1", page.read_text(encoding="utf-8"))


class PeerProgram(unittest.TestCase):
    def setUp(self):
        spec = importlib.util.spec_from_file_location("moe_gpu", ROOT / "tests" / "peers" / "moe_gpu.py")
        self.peer = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.peer)

    def test_what_is_not_installed_has_its_reason(self):
        with mock.patch.object(self.peer.importlib, "import_module", side_effect=ImportError("no module deep_ep")):
            reasons = self.peer.probe()
        self.assertEqual(set(reasons), {"deepep-v1", "deepep-v2", "hybrid-ep"})
        self.assertEqual(set(reasons), set(self.peer.PEERS))
        for reason in reasons.values():
            self.assertIn("no module deep_ep", reason)

    def test_a_package_has_what_it_has(self):
        with mock.patch.object(self.peer.importlib, "import_module", return_value=mock.Mock(spec=["Buffer"])):
            reasons = self.peer.probe()
        self.assertEqual(reasons["deepep-v1"], "")
        self.assertIn("no ElasticBuffer", reasons["deepep-v2"])

    def test_numbers_of_rows_are_whole_in_bf16(self):
        for rank in range(8):
            for token in range(300):
                self.assertTrue(1 <= self.peer.Data.number(rank, token) <= 240)


if __name__ == "__main__":
    unittest.main()
