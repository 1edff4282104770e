"""`bench --initiator` and `--memory` where there is no GPU: lists, refusals, one line that says why; and what
scripts/compare_gpu.py makes of figures."""
import contextlib
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from support import CliTest, run

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))

# pylint: disable=wrong-import-position
import compare_gpu  # noqa: E402

#: Of kernels and streams.
REDUCTIONS = [name + number for name in ("reduce", "reducescatter") for number in ("", "-float", "-bf16", "-fp16")]
#: Copies between a GPU and the memory of its host.
HOST_LINK = ("host-to-device", "device-to-host")
NO_DRIVER = {"SHMEMCTL_CUDA_LIBRARY": "/nonexistent/libcuda.so.1"}


def cases(*words):
    code, out, err = run("bench", "--list", "--json", "-", *words)
    assert code == 0, err
    return {entry["name"]: entry for entry in json.loads(out)["cases"]}


class Lists(CliTest):
    def test_kernels_say_who_calls_and_how_they_are_launched(self):
        by_gpu = cases("--initiator", "gpu")
        for name in ("put", "get", "p", "g", "st", "put-latency", "put-signal-pingpong", "signal-pingpong",
                     "put-pingpong", "put-signal", "atomic-bandwidth", "atomic-add", "atomic-fetch-add", "atomic-compare-swap", "atomic-swap",
                     "atomic-rate", "message-rate", "wait-forward", "barrier", "sync", "broadcast", "fcollect",
                     "alltoall", "alltoallv", *REDUCTIONS):
            self.assertIn(name, by_gpu)
        self.assertEqual(by_gpu["put"]["launch"],
                         {"scopes": ["block", "thread", "warp"], "one_caller": False, "ctas": 32, "threads": 1024})
        for entry in by_gpu.values():
            self.assertEqual(entry["initiator"], "gpu")
            self.assertTrue(entry["measures"] and "Verified" in entry["how"])
        code, out, _ = run("bench", "--list", "--initiator", "gpu")
        self.assertEqual(code, 0)
        self.assertIn("32 x 1024 threads by default", out)

    def test_streams_and_hosts_have_lists_of_their_own(self):
        by_stream, by_gpu = cases("--initiator", "stream"), cases("--initiator", "gpu")
        for name in ("put", "get", "put-latency", "get-latency", "put-signal", "put-signal-pingpong", "signal-pingpong",
                     "barrier", "sync", "broadcast", "fcollect", "alltoall", "alltoallv", *REDUCTIONS):
            self.assertIn(name, by_stream)
        for name, entry in by_stream.items():
            if name.startswith("reduce"):
                width = {"bf16": 2, "fp16": 2, "float": 4}.get(name.rpartition("-")[2], 8)
                self.assertEqual((entry["element_bytes"], entry["min_bytes"]), (width, 8), name)
                self.assertEqual("32-bit floating point, rounded once" in entry["how"], width == 2, name)
                self.assertEqual(by_gpu[name]["launch"], by_gpu["reduce-float"]["launch"])
        self.assertNotIn("launch", cases("--initiator", "stream")["put"])
        by_host = cases("--initiator", "host")
        self.assertEqual({name for name in by_host if name.startswith("reduce")},
                         {name for name in REDUCTIONS if "16" not in name})
        self.assertIn("For bf16 and fp16, only kernels and streams have such cases", by_host["reduce"]["how"])
        for memory in ("gpu", "registered"):
            self.assertEqual(set(cases("--memory", memory)), {"put", "get", "put-latency", "get-latency"})
        self.assertEqual(by_host["put"]["memories"], ["host", "gpu", "registered"])
        self.assertEqual(cases("--initiator", "host")["put"]["initiator"], "host")

    def test_copies_to_and_from_the_host_are_of_streams_and_of_one_pe_or_more(self):
        by_stream = cases("--initiator", "stream")
        for name in HOST_LINK:
            entry = by_stream[name]
            self.assertEqual((entry["group"], entry["metric"], entry["traffics"], entry["bidirectional"],
                              entry["min_pes"], entry["max_bytes"]),
                             ("host link", "bandwidth", ["local"], True, 1, 64 << 20), name)
            self.assertIn("page-locked", entry["measures"])
            self.assertNotIn(name, cases("--initiator", "host"))
            self.assertNotIn(name, cases("--initiator", "gpu"))
        code, out, _ = run("bench", "--list", "--initiator", "stream")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"--traffic\s+local;\s+--bidir;\s+1\s+PE\s+or\s+more")

    def test_without_an_initiator_all_have_a_heading(self):
        code, out, err = run("bench", "--list")
        self.assertEqual((code, err), (0, ""))
        places = [out.index(f"--initiator {name}") for name in ("host", "stream", "gpu")]
        self.assertEqual(places, sorted(places))
        for name, text in zip(("host", "stream", "gpu"), (out[:places[1]], out[places[1]:places[2]], out[places[2]:])):
            for case in cases("--initiator", name):
                self.assertRegex(text, rf"(?m)^{re.escape(case)}  ")
        code, out, _ = run("bench", "--list", "--json", "-")
        self.assertEqual((code, {entry["initiator"] for entry in json.loads(out)["cases"]}),
                         (0, {"host", "stream", "gpu"}))


class Refusals(CliTest):
    def test_flags_that_do_not_go_together(self):
        for words, rule in ((("put", "--ctas", "4"), "--ctas applies to kernels"),
                            (("put", "--initiator", "stream", "--scope", "warp"), "--scope applies to kernels"),
                            (("put", "--initiator", "gpu", "--graph"), "--graph applies to streams"),
                            (("put", "--initiator", "gpu", "--memory", "host"), "uses the GPU heap"),
                            (("put", "--initiator", "stream", "--memory", "registered"), "--memory registered cannot"),
                            (("put-latency", "--initiator", "gpu", "--ctas", "2"), "one block"),
                            (("put", "--initiator", "gpu", "--scope", "warp", "--threads", "48"), "whole number of warps"),
                            (("p", "--initiator", "gpu", "--scope", "block"), "no calls of scope block"),
                            (("put", "--traffic", "matrix", "--pair", "0,1"), "every pair")):
            with self.subTest(words=words):
                code, _, err = run("bench", *words)
                self.assertEqual(code, 2, err)
                self.assertIn(rule, err)

    def test_unknown_values(self):
        for words in (("--initiator", "nic"), ("--memory", "disk"), ("--scope", "grid"), ("--threads", "1025"),
                      ("--ctas", "0")):
            with self.subTest(words=words):
                self.assertEqual(run("bench", "put", *words)[0], 2)

    def test_cases_that_an_initiator_lacks(self):
        code, _, err = run("bench", "proxy-put", "--initiator", "gpu")
        self.assertEqual(code, 2)
        self.assertIn("no case of --initiator gpu matches", err)
        self.assertIn("pass --initiator host", err)
        code, _, err = run("bench", "g", "--memory", "registered")
        self.assertEqual(code, 2)
        self.assertIn("no case of --initiator host --memory registered matches", err)
        self.assertIn("pass --memory host or --initiator gpu", err)
        code, _, err = run("bench", "st")
        self.assertEqual(code, 2)
        self.assertIn("pass --initiator gpu", err)
        for name in HOST_LINK:
            code, _, err = run("bench", name)
            self.assertEqual(code, 2)
            self.assertIn("pass --initiator stream", err)


class WithoutGpu(CliTest):
    def test_the_reason_is_one_line(self):
        for words in (("--initiator", "gpu"), ("--initiator", "stream"), ("--memory", "gpu")):
            with self.subTest(words=words):
                code, _, err = run("bench", "barrier" if "gpu" == words[-1] and words[0] == "--initiator" else "put",
                                   *words, env=NO_DRIVER)
                self.assertEqual(code, 3, err)
                self.assertRegex(err, r"(?i)gpu|cuda")
                self.assertNotIn("Traceback", err)

    def test_copies_to_and_from_the_host_are_refused(self):
        for name in HOST_LINK:
            with self.subTest(case=name):
                code, out, err = run("bench", name, "--initiator", "stream", env=NO_DRIVER)
                self.assertEqual(code, 3, err)
                self.assertRegex(err, r"(?i)gpu|cuda")
                self.assertNotIn("results", out)


@unittest.skipUnless(os.environ.get("SHMEMCTL_FAKE_CUDA"), "no fake CUDA driver: a build without CUDA")
class OnFakeGpus(CliTest):
    """Copies of a fake driver's GPUs, by the host."""

    def put(self, gpus, *words):
        code, out, err = run("run", "-n", "2", "bench", "put", "--memory", "gpu", "-b", "64K", "-e", "64K", "--quick",
                             "--json", "-", *words,
                             env={"SHMEMCTL_CUDA_LIBRARY": os.environ["SHMEMCTL_FAKE_CUDA"],
                                  "FAKE_CUDA_DEVICES": str(gpus), "SHMEMCTL_SYMMETRIC_SIZE": "64M"})
        self.assertEqual(code, 0, err)
        (row,) = json.loads(out)["results"]
        self.assertEqual(row["verified"], "passed")
        return row

    def test_the_memory_of_one_gpu_is_the_limit_of_its_pes(self):
        row = self.put(1)
        self.assertRegex(row["limited_by"], "^memory of the GPU: 3352 GB/s by clock and width")
        self.assertAlmostEqual(row["link_fraction"], row["bandwidth_GBps"] / (3352.32 / 2), delta=1e-6)

    def host_link(self, n_pes, *words, **env):
        """Exit code, and the document."""
        code, out, err = run("run", "-n", str(n_pes), "bench", *HOST_LINK, "--initiator", "stream", "--sizes",
                             "1,4K,1M", "--quick", "--json", "-", *words,
                             env={"SHMEMCTL_CUDA_LIBRARY": os.environ["SHMEMCTL_FAKE_CUDA"],
                                  "SHMEMCTL_SYMMETRIC_SIZE": "64M", **env})
        self.assertIn(code, (0, 1), err)
        return code, json.loads(out)

    def test_copies_between_each_gpu_and_its_host(self):
        for n_pes, words, direction in ((1, (), "uni"), (2, (), "uni"), (2, ("--bidir",), "bi")):
            with self.subTest(n_pes=n_pes, direction=direction):
                code, document = self.host_link(n_pes, *words)
                rows = document["results"]
                self.assertEqual(code, 0, document["findings"])
                self.assertEqual([(row["case"], row["params"]["size_bytes"]) for row in rows],
                                 [(name, size) for name in HOST_LINK for size in (1, 4096, 1 << 20)])
                for row in rows:
                    self.assertEqual((row["status"], row["verified"]), ("pass", "passed"), row.get("reason"))
                    self.assertEqual((row["params"]["traffic"], row["params"]["direction"], row["params"]["pes"]),
                                     ("local", direction, n_pes))
                    self.assertEqual((row["path"]["transports"], row["path"]["nics"]), (["copy engine"], []))
                    self.assertGreater(row["bandwidth_GBps"], 0)
                    # No machine has the fake GPUs, so no model knows their link.
                    self.assertRegex(row["link_fraction_reason"],
                                     "^no limit is known for the link of GPU 0000:1a:00.0 to the host's memory")

    def test_a_wrong_byte_on_either_side_of_the_host_link_is_found(self):
        code, document = self.host_link(2, SHMEMCTL_FAULT="corrupt:1:verify")
        self.assertEqual(code, 1)
        self.assertEqual({(row["case"], row["verified"]) for row in document["results"]},
                         {(name, "failed") for name in HOST_LINK})

    def test_a_heap_of_host_memory_has_no_host_link(self):
        _, document = self.host_link(1, "--heap", "host")
        for row in document["results"]:
            self.assertEqual(row["status"], "skip")
            self.assertIn("the GPU heap is memory of the host", row["reason"])

    def test_check_starts_kernels_where_its_bring_up_had_gpus(self):
        """Kernels cannot run on the fake GPUs, which is all that may keep this part from passing."""
        _, out, err = run("check", "--json", "-", env={"SHMEMCTL_CUDA_LIBRARY": os.environ["SHMEMCTL_FAKE_CUDA"]})
        verdicts = {row["id"]: row for row in json.loads(out)["checks"] if row.get("group") == "verdict"}
        self.assertIn("bench-gpu", verdicts, err)
        self.assertEqual(verdicts["bench-gpu"]["status"], "fail")
        self.assertRegex(verdicts["bench-gpu"]["reason"], "kernel|CUDA")
        self.assertNotIn("symmetric heap", verdicts["bench-gpu"]["reason"])

    def test_neither_host_memory_nor_an_unknown_link_is(self):
        for gpus, words, what in ((1, ("--heap", "host"), "the host's processors copy in a heap of host memory"),
                                  (2, (), "the links between these GPUs")):
            with self.subTest(gpus=gpus, words=words):
                row = self.put(gpus, *words)
                self.assertEqual((row["limited_by"], row["link_fraction"]), (None, None))
                for key in ("limited_by_reason", "link_fraction_reason"):
                    self.assertRegex(row[key], "^no limit is known for .*" + what)


class Matrix(CliTest):
    def test_every_ordered_pair_has_a_row(self):
        code, out, err = run("run", "-n", "3", "bench", "put-latency", "--traffic", "matrix", "-b", "8", "-e", "8",
                             "--quick", "--json", "-", env={"SHMEMCTL_SYMMETRIC_SIZE": "64M"})
        self.assertEqual(code, 0, err)
        rows = json.loads(out)["results"]
        pairs = [(row["params"]["first_pe"], row["params"]["second_pe"]) for row in rows]
        self.assertEqual(pairs, [(a, b) for a in range(3) for b in range(3) if a != b])
        self.assertEqual({row["verified"] for row in rows}, {"passed"})


class Comparison(unittest.TestCase):
    def test_figures_become_medians_and_ratios(self):
        key = ("put", 1 << 20)
        rows = compare_gpu.rows_of({"shmemctl": {key: [(380.0, "GB/s"), (400.0, "GB/s"), (390.0, "GB/s")]},
                                    "NVSHMEM": {key: [(300.0, "GB/s")]}})
        self.assertEqual(rows[0]["programs"]["shmemctl"]["median"], 390.0)
        self.assertAlmostEqual(rows[0]["better_than"]["shmemctl / NVSHMEM"], 1.3)
        self.assertIn("| put | 1M | GB/s | shmemctl | 390 | 380 to 400 | 1.30 (NVSHMEM) |", compare_gpu.gpu_table.table(rows))

    def test_lower_times_are_better(self):
        key = ("barrier", 0)
        rows = compare_gpu.rows_of({"shmemctl": {key: [(2.0, "us")]}, "NVSHMEM": {key: [(3.0, "us")]}})
        self.assertAlmostEqual(rows[0]["better_than"]["shmemctl / NVSHMEM"], 1.5)

    def test_figures_become_a_report_that_the_tool_reads(self):
        code, out, err = run("run", "-n", "2", "bench", "barrier", "--quick", "--json", "-",
                             env={"SHMEMCTL_SYMMETRIC_SIZE": "64M"})
        self.assertEqual(code, 0, err)
        rows = compare_gpu.rows_of({"shmemctl": {("put", 1 << 20): [(380.0, "GB/s"), (400.0, "GB/s")],
                                                 ("barrier", 0): [(2.0, "us")]},
                                    "NVSHMEM": {("barrier", 0): [(3.0, "us")],
                                                ("put", 1 << 20): [(360.0, "GB/s")]}})
        peers = {"NVSHMEM": {"settings": compare_gpu.settings_text("NVSHMEM"),
                             "compared": {("put", 1 << 20): "every byte of the last message", ("barrier", 0): ""}}}
        report = compare_gpu.gpu_report.report_of(json.loads(out), ["latency"], rows,
                                                  {"shmemctl": "0.1.0", "NVSHMEM": "3.4.5"}, {"NCCL": "no PyTorch"},
                                                  peers)
        of_peer = {row["case"]: row for row in report["results"] if row["params"]["program"] == "NVSHMEM"}
        self.assertEqual((of_peer["put"]["verified"], of_peer["barrier"]["verified"]), ("passed", "unchecked"))
        self.assertIn("every byte of the last message", of_peer["put"]["reason"])
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.json"
            file.write_text(json.dumps(report), encoding="utf-8")
            code, _, err = run("report", "validate", str(file))
            self.assertEqual(code, 0, err)
            code, out, err = run("report", "show", str(file))
        self.assertEqual(code, 0, err)
        for word in ("NVSHMEM", "390", "3.4.5", "comparison-missing", "no PyTorch", "NVSHMEM_REMOTE_TRANSPORT=none"):
            self.assertIn(word, out)

    def test_peers_lines_are_read(self):
        version, figures, compared = compare_gpu.read_lines(
            'noise\n{"version": "3.4.5"}\n{"name": "barrier", "size_bytes": 0, "value": 2.5, "unit": "us"}\n'
            '{"name": "put", "size_bytes": 8, "value": 1, "unit": "GB/s", "compared": "every byte"}\n')
        self.assertEqual((version, figures), ("3.4.5", {("barrier", 0): (2.5, "us"), ("put", 8): (1, "GB/s")}))
        self.assertEqual(compared, {("barrier", 0): "", ("put", 8): "every byte"})
        self.assertEqual(compare_gpu.gpu_report.compared_text(compared), "every byte (put); nothing (barrier)")

    def test_a_pe_for_each_gpu_up_to_four(self):
        self.assertEqual([compare_gpu.pes_of(0, gpus) for gpus in (2, 3, 4, 8)], [2, 3, 4, 4])
        self.assertEqual(compare_gpu.pes_of(8, 8), 8)
        with self.assertRaisesRegex(compare_gpu.Failed, "takes as many GPUs"):
            compare_gpu.pes_of(4, 2)
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            compare_gpu.parsed(["--pes", "1"])

    def test_all_programs_use_the_same_iterations(self):
        flags = compare_gpu.parsed(["exchange", "--pes", "4"])
        exchange = [group for group in compare_gpu.GROUPS if group["group"] == "exchange"]
        ours = [compare_gpu.Ours("shmemctl", group, flags) for group in exchange]
        for each in ours:
            command = each.command()
            self.assertEqual(command[1:5], ["run", "-n", "4", "bench"])
        self.assertEqual({size for each in ours for size in each.sizes()}, {256 << 10, 16 << 20, 256 << 20})
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "peer"
            program.write_text('#!/bin/sh\n[ "$NVSHMEM_REMOTE_TRANSPORT" = none ] || exit 1\n[ "$1" = 0 ] || exit 0\n'
                               'echo "{\\"name\\": \\"put\\", \\"size_bytes\\": 8, \\"value\\": $2, \\"unit\\": \\"us\\"}"\n',
                               encoding="utf-8")
            program.chmod(0o755)
            peer = compare_gpu.Peer("NVSHMEM", [str(program)], flags, 0.1)
            self.assertEqual(peer.measure(), {("put", 8): (4, "us")})

    def test_a_spread_needs_several_rounds(self):
        self.assertEqual((compare_gpu.parsed([]).rounds, compare_gpu.parsed(["--quick"]).rounds), (5, 3))

    def test_unverified_rows_are_not_compared(self):
        row = {"case": "put", "params": {"size_bytes": 8}, "status": "pass", "verified": "unchecked",
               "reason": "switched off", "bandwidth_GBps": 1.0, "stats": {"p50": 1}}
        with self.assertRaisesRegex(compare_gpu.Failed, "switched off"):
            compare_gpu.read_report({"results": [row]})

    def test_names_in_the_table_say_the_variant(self):
        sweep = next(group for group in compare_gpu.GROUPS if group.get("rename") == "put-both")
        ours = compare_gpu.Ours("shmemctl", sweep, compare_gpu.parsed(["--pes", "2"]))
        self.assertEqual(ours.as_in_table(("put", 64 << 20), (600.0, "GB/s")),
                         (("put-both/4", 64 << 20), (300.0, "GB/s")))
        keys = [("alltoall/12", 8), ("alltoall/4", 8), ("alltoall", 16), ("alltoall", 8), ("barrier/warp", 0),
                ("put", 8)]
        self.assertEqual(sorted(keys, key=compare_gpu.order_of),
                         [("put", 8), ("barrier/warp", 0), ("alltoall", 8), ("alltoall", 16), ("alltoall/4", 8),
                          ("alltoall/12", 8)])

    def test_groups_are_selected_by_name(self):
        self.assertEqual(compare_gpu.parsed([]).groups, list(compare_gpu.NAMES))
        self.assertEqual(compare_gpu.parsed(["warp", "sweep"]).groups, ["warp", "sweep"])
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
            compare_gpu.parsed(["nothing"])
        self.assertIn("there is no group nothing", said.getvalue())

    def test_the_peers_program_knows_every_group(self):
        program = (SCRIPTS.parent / "tests" / "peers" / "nvshmem_gpu.cu").read_text(encoding="utf-8")
        for name in compare_gpu.NAMES:
            self.assertIn(f'group == "{name}"', program)

    def test_every_case_of_ours_is_one_of_the_tools(self):
        for group in compare_gpu.GROUPS:
            names = [word for word in group["words"][:group["words"].index("--initiator")]]
            known = cases("--initiator", group["words"][group["words"].index("--initiator") + 1])
            for name in names:
                self.assertIn(name, known)
                self.assertIn(name, compare_gpu.SHAPES)

    def test_sizes_of_ours_are_those_of_the_peers(self):
        for group in compare_gpu.GROUPS:
            sizes = group["sizes"]
            made, size = set(), sizes[0]
            step = compare_gpu.Ours("shmemctl", group, None).step()
            while size < sizes[-1]:
                made.add(size)
                size *= step
            self.assertLessEqual(set(sizes), made | {sizes[-1]})


if __name__ == "__main__":
    unittest.main()
