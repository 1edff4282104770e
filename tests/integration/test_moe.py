"""`shmemctl moe` as users run it: rows, reports, exit codes, files, faults."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from job_support import default_signals, marked, processes_with
from support import BINARY, CliTest, clean_environment, run
from test_transports import missing

PATIENCE_S = 300
SMALL = {"SHMEMCTL_SYMMETRIC_SIZE": "64M"}
FEW = ("--num-experts", 32, "--hidden", 256, "-n", 4, "-w", 1)
#: Between virtual nodes.
TCP = {"SHMEMCTL_LIBFABRIC_PROVIDER": "tcp"}
WIRES = {
    "libfabric": {"SHMEMCTL_REMOTE_TRANSPORT": "libfabric", **TCP},
    "emulated HCA": {"SHMEMCTL_REMOTE_TRANSPORT": "ibdevx", "SHMEMCTL_EMULATED_HCA_OVER": "libfabric", **TCP},
    "emulated HCA in any order": {"SHMEMCTL_REMOTE_TRANSPORT": "ibdevx", "SHMEMCTL_EMULATED_HCA_OVER": "libfabric",
                                  "SHMEMCTL_EMULATED_HCA_PLACEMENT": "any", **TCP},
    "ucx": {"SHMEMCTL_TRANSPORT": "shm,ucx"},
}


class MoeTest(CliTest):
    def setUp(self):
        self.mark = marked()
        self.folder = tempfile.TemporaryDirectory(prefix="moe-")
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def moe(self, n_pes, *arguments, env=None, nodes=None):
        flags = ["-n", str(n_pes)] + (["--nodes", str(nodes)] if nodes else [])
        done = subprocess.run([BINARY, "run", *flags, "moe", *map(str, arguments)], check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
                              preexec_fn=default_signals,
                              env=clean_environment(**SMALL, **self.mark, **(env or {})))
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def report(self, n_pes, *arguments, **keywords):
        path = self.path / "report.json"
        result = self.moe(n_pes, *arguments, "--json", path, "--force", **keywords)
        document = json.loads(path.read_text()) if path.exists() else None
        if document:
            code, out, err = run("report", "validate", path)
            self.assertEqual(code, 0, out + err)
        return result, document

    def assert_right(self, result, document):
        code, _, err = result
        self.assertEqual((code, document["status"]), (0, "complete"), err)
        self.assertTrue(document["results"])
        for row in document["results"]:
            self.assertEqual((row["status"], row["verified"]), ("pass", "passed"), row)
            self.assertGreater(row["stats"]["n"], 0)


class Success(MoeTest):
    def test_every_mode_format_and_routing(self):
        ways = [("--mode", "ht", "--bias", "--topk-weights"), ("--mode", "ht", "--dtype", "fp8"), ("--mode", "ll"),
                ("--mode", "ll", "--combine", "partial", "--dtype", "fp8", "--scales", "ue8m0"),
                ("--mode", "ll", "--layout", "expert", "--expert-alignment", 16)]
        routings = ["zipf", "hot-expert", "empty-ranks", "grouped", "one-rank"]
        for way, routing in zip(ways, routings):
            with self.subTest(way=way, routing=routing):
                result, document = self.report(4, *FEW, *way, "--routing", routing, "--num-tokens", 33, "--uneven",
                                               "--masked", 20, "--verify-every", 1)
                self.assert_right(result, document)
                point, = document["moe"]
                self.assertEqual(point["verified_iterations"], 1 + 4 + 1)
                self.assertEqual(point["tokens"][0], 33)
                self.assertEqual(point["tokens"][3], 0)
                self.assertEqual({row["params"]["routing"] for row in document["results"]}, {routing})

    def test_rows_say_logical_and_wire_bandwidth_and_every_phase(self):
        result, document = self.report(4, *FEW, "--num-tokens", 64)
        self.assert_right(result, document)
        rows = {(row["case"], row["params"]["phase"]): row for row in document["results"]}
        for case in ("moe-dispatch", "moe-cached-dispatch", "moe-combine"):
            total = rows[case, "total"]
            self.assertGreater(total["bandwidth_GBps"], total["wire_GBps"])
            self.assertGreater(total["time_s"], 0)
            self.assertNotIn("time_s", rows[case, "arrival"], "a sum counts calls once")
            for phase in ("arrival", "transfer", "first call"):
                self.assertIn((case, phase), rows)
        self.assertIn(("moe-round-trip", "period"), rows)
        self.assertIn(("moe-dispatch", "counts"), rows)
        point, = document["moe"]
        self.assertEqual(len(point["received_rows"]), 4)
        self.assertEqual(sum(point["dispatch"]["logical_bytes"]), sum(point["received_rows"]) * 512)
        self.assertTrue(all(use["formula"] for use in point["memory"]))
        self.assertIn("clock", point["window"])
        self.assertIn("warm", point["caches"])
        reached, bounds, to_try = result[1].split("\n\n")[1].splitlines()[-3:]
        self.assertRegex(reached, r"^reached: +dispatch [0-9.e-]+ GB/s in [0-9.]+ us.*; combine .* us; both in turn ")
        self.assertRegex(bounds, r"^bounded by: \S")
        self.assertRegex(to_try, r"^to try: +\S")
        self.assertNotIn(point["routing_hash"], result[1])
        self.assertNotIn("transfer", result[1])

    def test_another_count_of_bytes_is_a_further_column(self):
        for mode in ("ht", "ll"):
            result, document = self.report(2, *FEW, "--mode", mode, "--num-tokens", 16, "--count", "deepep-v2")
            self.assert_right(result, document)
            self.assertIn("GB/s counted", result[1])
            totals = [row for row in document["results"] if row["params"]["phase"] == "total"]
            self.assertGreaterEqual(len(totals), 2)
            for row in totals:
                self.assertEqual(row["params"]["count"], "deepep-v2")
                if mode == "ht":  # ht counts the metadata of the same rows as well
                    self.assertGreater(row["counted_GBps"], row["bandwidth_GBps"])
                else:  # low latency has a row for each rank, not for each choice
                    self.assertLess(row["counted_GBps"], row["bandwidth_GBps"])
        result, document = self.report(2, *FEW, "--num-tokens", 16)
        self.assertNotIn("GB/s counted", result[1])
        self.assertFalse(any("counted_GBps" in row for row in document["results"]))

    def test_ranks_with_fewer_tokens(self):
        result, document = self.report(4, *FEW, "--num-tokens", 3, "--fewer-by-rank")
        self.assert_right(result, document)
        self.assertEqual(document["moe"][0]["tokens"], [3, 2, 1, 1])

    def test_verbose_shows_phases_memory_and_waits(self):
        result, document = self.report(4, *FEW, "--num-tokens", 64, "--verbose")
        self.assert_right(result, document)
        point, = document["moe"]
        self.assertIn("how long a PE waits for another, in us", result[1])
        self.assertIn("a row waits for | PE", result[1])
        self.assertIn(point["routing_hash"], result[1])
        self.assertRegex(result[1], r"(?m)^moe-dispatch .* transfer ")

    def test_no_rank_is_slow_where_pes_share_cpus(self):
        allowed = sorted(os.sched_getaffinity(0))[:1]
        result, document = self.report(4, *FEW, "--num-tokens", 8, "--pin", ",".join(str(allowed[0]) for _ in range(4)))
        self.assert_right(result, document)
        ids = {finding["id"] for finding in document["findings"]}
        self.assertIn("bench-oversubscribed", ids)
        self.assertFalse({"moe-slow-rank", "moe-slow-receiver", "moe-slow-link"} & ids)
        self.assertIn("bounded by: the scheduler", result[1])

    def test_halves_are_phases_of_low_latency(self):
        for flags in ((), ("--combine", "partial"), ("--layout", "expert")):
            with self.subTest(flags=flags):
                result, document = self.report(3, *FEW[2:], "--num-experts", 33, "--mode", "ll", *flags)
                self.assert_right(result, document)
                for case in ("moe-dispatch", "moe-combine"):
                    halves = {row["params"]["phase"]: row["stats"] for row in document["results"]
                              if row["case"] == case}
                    for phase in ("send", "receive"):
                        self.assertEqual(halves[phase]["n"], 4)
                        self.assertGreater(halves[phase]["p50"], 0)
                    # Transfer time excludes late starts; a combine sends nothing ahead.
                    self.assertEqual("transfer" in halves, case == "moe-dispatch")
                    self.assertLessEqual(halves.get("transfer", halves["total"])["p50"], halves["total"]["p50"])
        _, document = self.report(2, *FEW)
        self.assertNotIn("send", {row["params"]["phase"] for row in document["results"]})

    def test_packing_by_expert_is_a_phase_of_its_own(self):
        result, document = self.report(2, *FEW, "--mode", "ll", "--layout", "expert")
        self.assert_right(result, document)
        rows = {(row["case"], row["params"]["phase"]): row for row in document["results"]}
        self.assertEqual(rows["moe-dispatch", "total"]["params"]["layout"], "expert")
        self.assertGreater(rows["moe-dispatch", "pack"]["stats"]["p50"], 0)
        self.assertNotIn(("moe-combine", "pack"), rows)
        self.assertIn("rows packed by expert", [use["what"] for use in document["moe"][0]["memory"]])

    def test_a_sweep_with_no_token_and_one(self):
        result, document = self.report(2, *FEW, "--num-tokens", "0,1,7", "--num-topk", "1,16")
        self.assert_right(result, document)
        self.assertEqual(len(document["moe"]), 6)
        # The node that it ran on, and its NICs' mapping.
        self.assertEqual(document["topology"]["hostname"], document["hosts"][0]["name"])
        self.assertIn("matrix", document["topology"]["distances"])
        self.assertEqual([pe["pe"] for pe in document["mapping"]["pes"]], [0, 1])

    def test_nodes_may_differ(self):
        wire = WIRES["emulated HCA"]
        if reason := missing({**SMALL, **wire}, "--nodes", 2):
            self.skipTest(reason)
        uneven = ("--num-experts", 33, "--hidden", 256, "--num-tokens", 8, "-n", 4, "-w", 1)
        result, document = self.report(3, *uneven, "--mode", "ll", nodes=2, env=wire)
        self.assert_right(result, document)
        self.assertGreater(sum(document["moe"][0]["dispatch"]["crossing_bytes"]), 0)
        self.assertNotIn("flat", document["results"][0]["params"])
        # High throughput cannot forward on uneven nodes: it sends rows directly, and reports that.
        result, document = self.report(3, *uneven, "--verify-every", 1, nodes=2, env=wire)
        self.assert_right(result, document)
        self.assertEqual(document["results"][0]["params"]["nodes"], 2)
        self.assertTrue(document["results"][0]["params"]["flat"])

    def test_nodes_hand_rows_on(self):
        for name, transport in WIRES.items():
            with self.subTest(wire=name):
                if reason := missing({**SMALL, **transport}, "--nodes", 2):
                    self.skipTest(reason)
                result, document = self.report(4, *FEW, "--num-tokens", 32, "--verify-every", 1, nodes=2, env=transport)
                self.assert_right(result, document)
                straight, flat = self.report(4, *FEW, "--num-tokens", 32, "--flat", nodes=2, env=transport)
                self.assert_right(straight, flat)
                self.assertEqual(document["results"][0]["params"]["nodes"], 2)
                crossing = [sum(d["moe"][0]["dispatch"]["crossing_bytes"]) for d in (document, flat)]
                self.assertGreater(crossing[0], 0)
                # one row for each rank of the other node, not one for the node
                self.assertGreater(crossing[1], crossing[0])
                if name == "libfabric":  # libfabric counts what its ports move
                    self.assertGreaterEqual(sum(nic["moved_bytes"] for nic in document["moe"][0]["nics"]), crossing[0])
                self.assertEqual(flat["moe"][0]["received_rows"], document["moe"][0]["received_rows"])
                result, document = self.report(4, *FEW, "--num-tokens", 32, "--mode", "ll", nodes=2, env=transport)
                self.assert_right(result, document)

    def test_the_same_seed_moves_the_same_rows(self):
        hashes = []
        for seed in (5, 5, 6):
            result, document = self.report(2, *FEW, "--seed", seed)
            self.assert_right(result, document)
            hashes.append(document["moe"][0]["routing_hash"])
        self.assertEqual(hashes[0], hashes[1])
        self.assertNotEqual(hashes[0], hashes[2])

    def test_a_straggler_of_two_is_no_slow_link(self):
        for mode in ("ht", "ll"):
            result, document = self.report(2, *FEW, "--straggler", "1:100000", "--mode", mode)
            self.assert_right(result, document)
            slow = [f for f in document["findings"] if f["id"].startswith("moe-slow")]
            self.assertEqual({(f["id"], f["subject"]) for f in slow}, {("moe-slow-rank", "PE 1")})
            late = document["moe"][0]["waits"][0]["late_us"]
            self.assertGreater(late[0][1], 90_000)

    def test_a_straggler_is_named(self):
        result, document = self.report(4, *FEW, "--straggler", "2:100000")
        self.assert_right(result, document)
        slow = [f for f in document["findings"] if f["id"] == "moe-slow-rank"]
        self.assertTrue(slow)
        self.assertEqual({f["subject"] for f in slow}, {"PE 2"})
        self.assertIn("PE 2 is slow", result[1])


class Tuning(MoeTest):
    #: One chunk at least for each of the rows' parts.
    SHAPE = ("--num-experts", 32, "--hidden", 1024, "--num-tokens", 24, "-n", 8, "-w", 1)

    def test_settings_are_tried_chosen_and_used_again(self):
        for mode in ("ht", "ll"):
            with self.subTest(mode=mode):
                result, document = self.report(2, *self.SHAPE, "--mode", mode, "--tune")
                self.assert_right(result, document)
                point, = document["moe"]
                self.assertEqual([t["direction"] for t in point["tuned"]], ["dispatch", "combine"])
                options = []
                for tuned in point["tuned"]:
                    attempts, name = tuned["attempts"], tuned["direction"]
                    self.assertEqual(len({json.dumps(a["settings"]) for a in attempts}), 4)
                    self.assertEqual([a["own_choice"] for a in attempts], [True, False, False, False])
                    self.assertEqual({a["wrong"] for a in attempts}, {None})
                    chosen = attempts[tuned["chosen"]]
                    self.assertTrue(chosen["last"])
                    fastest = min(a["p50_us"] for a in attempts)
                    self.assertLessEqual(chosen["p50_us"], fastest + tuned["noise_us"] + 1e-6)
                    self.assertEqual(point["settings"][name], chosen["settings"])
                    options += [f"--{name}-settings", f"chunk_bytes={chosen['settings']['chunk_bytes']}"]
                self.assertIn("the best settings again: " + " ".join(options), result[1])
                self.assertIn("chosen", result[1])
                # No call was the first of its kind any more.
                self.assertNotIn("first call", {row["params"]["phase"] for row in document["results"]})
                again, repeated = self.report(2, *self.SHAPE, "--mode", mode, *options)
                self.assert_right(again, repeated)
                self.assertNotIn("tuned", repeated["moe"][0])
                self.assertEqual(repeated["moe"][0]["settings"], point["settings"])
                self.assertEqual(repeated["results"][0]["params"]["dispatch_settings"], options[1])

    def test_settings_that_break_data_are_named(self):
        (code, _, err), document = self.report(2, *self.SHAPE, "--tune", env={"SHMEMCTL_FAULT": "corrupt:1:verify"})
        self.assertEqual(code, 1, err)
        dispatch = document["moe"][0]["tuned"][0]
        self.assertTrue(all("rank 1, row" in a["wrong"] for a in dispatch["attempts"]))
        messages = [f["message"] for f in document["findings"] if f["id"] == "moe-corrupt"]
        self.assertTrue(any("dispatch with chunk_bytes=" in m for m in messages), messages)

    def test_settings_that_do_not_go(self):
        for flags, words in ((("--dispatch-settings", "chunk_bytes=0"), "is not from 1 to"),
                             (("--combine-settings", "chunk_bytes=2049"), "is not from 1 to 2048"),
                             (("--combine-settings", "warps=4"), "it has chunk_bytes"),
                             (("--combine-settings", "warp=4"), "warp is not a setting"),
                             (("--tune", "--dispatch-settings", "chunk_bytes=64"), "--tune"),
                             (("--tune", "--straggler", "1:500"), "excludes --straggler"),
                             (("--tune", "--max-delay-us", "50"), "and --max-delay-us")):
            with self.subTest(flags=flags):
                code, out, err = self.moe(2, *self.SHAPE, *flags)
                self.assertEqual((code, out), (2, ""), err)
                self.assertIn(words, err)
                self.assertIn("shmemctl: fix: ", err)


    def test_settings_that_go_with_a_part_of_the_sweep(self):
        result, document = self.report(2, "--num-experts", 32, "--num-tokens", 8, "-n", 2, "-w", 0,
                                       "--hidden", "1024,512", "--combine-settings", "chunk_bytes=2048")
        self.assertEqual(result[:2], (2, ""), result[2])
        self.assertIn("is not from 1 to 1024", result[2])
        self.assertFalse(document and document["results"])


class Files(MoeTest):
    def test_a_recorded_routing_is_replayed(self):
        file = self.path / "routing.txt"
        result, document = self.report(4, *FEW, "--routing", "zipf", "--num-tokens", 20, "--record", file)
        self.assert_right(result, document)
        again, replayed = self.report(4, "--hidden", 256, "-n", 4, "--routing", file)
        self.assert_right(again, replayed)
        for key in ("routing_hash", "received_rows", "tokens"):
            self.assertEqual(replayed["moe"][0][key], document["moe"][0][key])
        code, out, err = self.moe(4, *FEW, "--record", file)
        self.assertEqual((code, out), (2, ""), err)
        self.assertIn("the file exists", err)

    def test_routings_that_differ_are_not_compared(self):
        file = self.path / "routing.txt"
        text = "shmemctl-routing 1\nranks 2 experts 4 topk 2\nrank 0 tokens 1\n3 {}\nrank 1 tokens 0\nend -\n"
        reports = []
        for number, choice in enumerate((-1, 0, -1)):
            file.write_text(text.format(choice))
            reports.append(self.path / f"{number}.json")
            code, _, err = self.moe(2, "--hidden", 256, "-n", 2, "--routing", file, "--json", reports[-1])
            self.assertEqual(code, 0, err)
        # The same name, another routing; then another run of the same one.
        code, out, err = run("report", "diff", reports[0], reports[1])
        self.assertEqual((code, out), (2, ""), err)
        code, out, err = run("report", "diff", reports[0], reports[2])
        self.assertIn(code, (0, 1), err)
        self.assertIn("moe-dispatch", out)
        self.assertIn(" 0 missing, ", out)

    def test_bad_files(self):
        file = self.path / "routing.txt"
        good = "shmemctl-routing 1\nranks 2 experts 4 topk 2\nrank 0 tokens 1\n3 -1\nrank 1 tokens 0\nend -\n"
        few = ("--hidden", 256, "-n", 2, "--routing", file)
        file.write_text(good)
        self.assertEqual(self.moe(2, *few)[0], 0)
        for bad, words in ((good[:60], "ends"), (good.replace("3 -1", "4 -1"), "from -1 to 3"),
                           (good.replace("3 -1", "3 3"), "twice"), ("", "ends"),
                           (good.replace("experts 4", "experts 5"), "nearest legal value")):
            with self.subTest(words=words):
                file.write_text(bad)
                code, out, err = self.moe(2, *few)
                self.assertEqual((code, out), (2, ""), err)
                self.assertIn(words, err)
                self.assertIn("shmemctl: fix: ", err)
        file.write_text(good)
        code, _, err = self.moe(4, *few)
        self.assertEqual(code, 2, err)
        self.assertIn("start 2 PEs", err)


class BadInput(MoeTest):
    def test_shapes_that_do_not_fit(self):
        for n_pes, flags, nearest in ((2, ("--hidden", 7100), "7096 or 7104"),
                                      (2, ("--num-experts", 0, "--hidden", 256), "8"),
                                      (2, ("--num-experts", 0, "--num-topk", 1), "2"),
                                      (2, ("--dtype", "fp8", "--hidden", 7), "128"),
                                      (2, ("--hidden", 7100, "--dtype", "fp8"), "7040 or 7168"),
                                      (3, (), "255 or 258"),
                                      (2, ("--num-experts", 4, "--num-topk", 5), "4"),
                                      (2, ("--num-topk", 33), "32")):
            with self.subTest(flags=flags):
                code, out, err = self.moe(n_pes, *flags)
                self.assertEqual((code, out), (2, ""), err)
                self.assertIn("nearest legal value: " + nearest, err)

    def test_unknown_values(self):
        for flags in (("--routing", "unifrom"), ("--mode", "fast"), ("--dtype", "fp4"), ("--straggler", "1"),
                      ("--num-tokens", "x"), ("--masked", 101), ("--num-sms", 8), ("--scales", "ue8m0"),
                      ("--combine", "partial"), ("--layout", "expert"), ("--mode", "ll", "--topk-weights"),
                      ("--mode", "ll", "--flat"), ("--backend", "gpu", "--mode", "ll", "--expert-alignment", 16), ("--patience-us", 100), ("--absent", 1), ("--record", self.path / "r", "--num-tokens", "1,2")):
            with self.subTest(flags=flags):
                self.assertEqual(run("moe", *flags)[0], 2)

    def test_a_straggler_outside_the_job(self):
        code, _, err = self.moe(2, *FEW, "--straggler", "2:10")
        self.assertEqual(code, 2, err)
        self.assertIn("PE 0 to 1", err)

    def test_what_goes_before_a_call_takes_gpus(self):
        for flag in ("--flush-l2", "--kernels-only"):
            code, _, err = self.moe(2, *FEW, flag)
            self.assertEqual(code, 2, err)
            self.assertIn(flag + " needs --backend gpu", err)
        for excluded in (("--straggler", "1:5"), ("--mode", "ll", "--patience-us", 100)):
            code, _, err = self.moe(2, *FEW, "--backend", "gpu", "--kernels-only", *excluded)
            self.assertEqual(code, 2, err)
            self.assertIn("--kernels-only excludes " + excluded[-2], err)

    def test_flat_takes_several_nodes(self):
        code, _, err = self.moe(2, *FEW, "--flat")
        self.assertEqual(code, 2, err)
        self.assertIn("this job has one", err)

    def test_gpu_backend_names_what_is_missing(self):
        result = run("moe", "--backend", "gpu", "--num-tokens", 4)
        if result[0] == 0:
            self.skipTest("there is a GPU here")
        self.assertRegex(self.assert_refused(result, code=3), "GPU|CUDA|libcuda")

    def test_too_little_memory_says_how_much(self):
        code, _, err = self.moe(2, "--num-tokens", 4096)
        self.assertEqual(code, 3, err)
        self.assertRegex(err, "--symmetric-size [0-9]+")


class Faults(MoeTest):
    def test_damage_is_found(self):
        (code, _, err), document = self.report(4, *FEW, env={"SHMEMCTL_FAULT": "corrupt:1:verify"})
        self.assertEqual(code, 1, err)
        finding, = [f for f in document["findings"] if f["id"] == "moe-corrupt"]
        self.assertIn("rank 1, row", finding["message"])
        self.assertTrue(all(row["verified"] == "failed" for row in document["results"]))

    def test_a_pe_that_is_killed_is_named(self):
        (code, _, err), document = self.report(4, *FEW, "--timeout", 20, env={"SHMEMCTL_FAULT": "kill:2:moe"})
        self.assertEqual(code, 128 + signal.SIGKILL, err)
        self.assertRegex(err, r"PE 2\b")
        self.assertEqual(document["status"], "incomplete")

    def test_the_phase_of_a_lost_pe_is_the_step_of_moe_that_it_was_in(self):
        """Not `barrier`, with which the initialisation ends."""
        code, _, err = self.moe(4, *FEW, "--timeout", 60, env={"SHMEMCTL_FAULT": "kill:2:moe"})
        self.assertEqual(code, 128 + signal.SIGKILL, err)
        self.assertRegex(err, r"PE 2 \(host [^)]+\) was lost in phase moe ht bf16, .* of 32: memory")
        code, _, err = self.moe(4, *FEW, "--timeout", 15, env={"SHMEMCTL_FAULT": "stop:1:moe"})
        self.assertEqual(code, 124, err)
        self.assertRegex(err, r"PE 1 \(host [^)]+\) does not answer; last phase it reported: moe ht bf16, ")
        self.assertNotIn("phase barrier", err)

    def test_others_continue_without_an_absent_pe(self):
        away = ("--mode", "ll", "--patience-us", 1_000_000, "--absent", 2)
        result, document = self.report(4, *FEW, *away)
        self.assert_right(result, document)
        masked = document["moe"][0]["masked"]
        self.assertEqual(masked, [[2], [2], [], [2]])
        rows = {row["params"]["phase"]: row for row in document["results"] if row["case"] == "moe-round-trip"}
        self.assertGreaterEqual(rows["masking"]["stats"]["max"], 1_000_000)
        self.assertLess(rows["without it"]["stats"]["p50"], 1_000_000)
        self.assertEqual({f["subject"] for f in document["findings"] if f["id"] == "moe-masked"}, {"PE 2"})
        self.assertIn("PE 0 has masked PE 2", result[2])
        self.assertEqual({row["params"]["absent"] for row in document["results"]}, {2})

    def test_a_late_pe_is_masked_and_named(self):
        late = ("--mode", "ll", "--straggler", "1:100000", "--patience-us", 1000)
        result, document = self.report(4, *FEW, *late)
        self.assert_right(result, document)
        point, = document["moe"]
        self.assertIn(1, point["masked"][0])
        self.assertIsNone(point.get("calls"))
        warnings = [f for f in document["findings"] if f["id"] == "moe-masked" and f["subject"] == "PE 1"]
        self.assertTrue(warnings)
        self.assertEqual({f["severity"] for f in warnings}, {"warning"})
        for row in document["results"]:
            self.assertIsNone(row.get("bandwidth_GBps"), row)
            if row["params"]["phase"] == "total":
                self.assertRegex(row["reason"], r"no bandwidth: .*PE 1 by PE 0")

    def assert_goes_on(self, fault, lost, why, *flags):
        """The rest has rows and is verified; the finding names whom it has lost, and why."""
        away = ("--mode", "ll", "--patience-us", 500_000, "--timeout", 8, *flags)
        (code, _, err), document = self.report(4, *FEW, *away, env={"SHMEMCTL_FAULT": fault})
        self.assertEqual((code, document["status"], document["exit_code"]), (1, "complete", 1), err)
        self.assertTrue({"total", "period"} <= {row["params"]["phase"] for row in document["results"]})
        for row in document["results"]:
            self.assertEqual((row["status"], row["verified"]), ("pass", "passed"), row)
        finding, = [f for f in document["findings"] if f["id"] == "moe-lost"]
        self.assertEqual((finding["subject"], finding["severity"]), (f"PE {lost}", "error"))
        self.assertIn(why, finding["message"])
        point, = document["moe"]
        self.assertEqual(point["masked"], [[] if rank == lost else [lost] for rank in range(4)])
        self.assertEqual({f["subject"] for f in document["findings"] if f["id"] == "moe-masked"}, {f"PE {lost}"})
        end = time.monotonic() + PATIENCE_S
        while processes_with(self.mark):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        return err, document

    def test_others_continue_without_a_killed_pe(self):
        for fault in ("kill:2:moe", "kill:2:moe-middle"):
            with self.subTest(fault=fault):
                err, _ = self.assert_goes_on(fault, 2, "its process is gone")
                self.assertIn("PE 2 was killed by signal 9", err)
        self.assert_goes_on("exit:3:moe-middle", 3, "its process is gone")

    def test_others_continue_without_a_stopped_pe(self):
        for fault in ("stop:1:moe", "stop:1:moe-middle"):
            with self.subTest(fault=fault):
                self.assert_goes_on(fault, 1, "has not answered")
        err, document = self.assert_goes_on("stop:1:absent", 1, "has not answered", "--absent", 1)
        self.assertIn("PE 0 has masked PE 1; 4 dispatches and combines ran without it, verified", err)
        self.assertIn("without it", {row["params"]["phase"] for row in document["results"]})

    def test_a_sweep_ends_behind_the_point_that_lost_one(self):
        (code, _, err), document = self.report(
            3, *FEW[2:], "--num-experts", 33, "--mode", "ll", "--patience-us", 500_000, "--num-tokens", "4,8,16",
            env={"SHMEMCTL_FAULT": "kill:2:moe"})
        self.assertEqual((code, document["status"]), (1, "complete"), err)
        self.assertEqual([row["tokens"] for row in {r["params"]["tokens"]: r["params"]
                                                    for r in document["results"]}.values()], [4])
        finding, = [f for f in document["findings"] if f["id"] == "moe-lost"]
        self.assertIn("left 2 out", finding["message"])

    def test_losing_pe_0_ends_the_job(self):
        (code, _, err), document = self.report(4, *FEW, "--mode", "ll", "--patience-us", 100_000, "--timeout", 20,
                                               env={"SHMEMCTL_FAULT": "kill:0:moe"})
        self.assertEqual(code, 128 + signal.SIGKILL, err)
        self.assertRegex(err, r"PE 0\b.* was lost")
        code, _, err = self.moe(4, *FEW, "--mode", "ll", "--patience-us", 100_000, "--timeout", 3,
                                env={"SHMEMCTL_FAULT": "stop:0:moe"})
        self.assertNotEqual(code, 0)
        self.assertRegex(err, r"PE 0\b")

    def test_a_pe_that_stops_is_named_by_the_deadline(self):
        code, _, err = self.moe(4, *FEW, "--timeout", 3, env={"SHMEMCTL_FAULT": "stop:1:moe"})
        self.assertNotEqual(code, 0)
        self.assertRegex(err, r"PE 1\b")
        end = time.monotonic() + PATIENCE_S
        while processes_with(self.mark):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)


if __name__ == "__main__":
    unittest.main()
