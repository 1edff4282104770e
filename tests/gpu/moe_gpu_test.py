"""`moe --backend gpu` where rows cross nodes, are packed, or go to more ranks than a node has: every bit verified.
Skipped without a GPU. PEs share GPUs: they take turns on them, which is slow and as right as on many."""
import json
import os
import signal
import subprocess
import unittest

from bench_gpu_test import BINARY, gpus

PATIENCE_S = 280
SMALL = ("--num-experts", 96, "--hidden", 512, "--num-topk", 6, "--num-tokens", 20, "--uneven", "--masked", 10,
         "--routing", "zipf", "-n", 3, "-w", 1, "--verify-every", 1)
FEW = ("--num-experts", 30, "--hidden", 512, "--num-tokens", 24, "-n", 3, "-w", 1)
#: Between virtual nodes, where there is no NIC.
WIRE = {"SHMEMCTL_REMOTE_TRANSPORT": "libfabric", "SHMEMCTL_LIBFABRIC_PROVIDER": "tcp", "SHMEMCTL_SYMMETRIC_SIZE": "256M"}
MODES = {
    "ht": ("--mode", "ht", "--bias", "--topk-weights"),
    "ht fp8": ("--mode", "ht", "--dtype", "fp8"),
    "ht fp8 ue8m0": ("--mode", "ht", "--dtype", "fp8", "--scales", "ue8m0"),
    "ll": ("--mode", "ll"),
    "ll partial": ("--mode", "ll", "--combine", "partial", "--dtype", "fp8"),
    "ll packed": ("--mode", "ll", "--layout", "expert", "--expert-alignment", 16),
    "ll packed fp8": ("--mode", "ll", "--layout", "expert", "--dtype", "fp8", "--scales", "ue8m0"),
}


@unittest.skipIf(gpus() == 0, "nvidia-smi shows no GPU")
class MoeOnGpus(unittest.TestCase):
    def moe(self, n_pes, nodes, *words, fault=""):
        job = ["run", "-n", n_pes, *(["--nodes", nodes] if nodes else []), "moe", "--backend", "gpu"]
        return subprocess.run([BINARY, *map(str, [*job, *words])], check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=PATIENCE_S,
                              env={**os.environ, **WIRE, **({"SHMEMCTL_FAULT": fault} if fault else {})})

    def report(self, n_pes, *words, code=0, **keywords):
        done = self.moe(n_pes, None, *words, "--json", "-", **keywords)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout[-2000:])
        return json.loads(done.stdout), done.stderr

    def assert_right(self, document):
        self.assertTrue(document["results"])
        for row in document["results"]:
            self.assertEqual((row["status"], row["verified"]), ("pass", "passed"), row.get("reason"))

    def expect_right(self, n_pes, nodes, flags):
        done = self.moe(n_pes, nodes, *SMALL, *flags, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout[-2000:])
        self.assert_right(json.loads(done.stdout))

    def every_mode(self, n_pes, nodes=None, *flags):
        for name, mode in MODES.items():
            with self.subTest(mode=name, pes=n_pes, nodes=nodes, flags=flags):
                self.expect_right(n_pes, nodes, (*mode, *flags))

    def test_one_nvlink_domain(self):
        self.every_mode(3)

    def test_across_nodes(self):
        self.every_mode(4, 2)
        self.expect_right(4, 2, (*MODES["ht"], "--flat"))

    def test_more_ranks_than_a_node_has(self):
        self.every_mode(12)
        self.every_mode(12, 2)

    def test_nodes_of_eight(self):
        self.expect_right(16, 2, MODES["ht"])
        self.expect_right(16, 2, MODES["ll packed"])

    def test_nodes_that_are_too_large_are_refused(self):
        done = self.moe(18, 2, "--num-experts", 36)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--flat", done.stderr)
        self.assertIn("nearest legal value: 8", done.stderr)

    def test_what_kernels_cannot_do_ends_before_anything_is_measured(self):
        for flags, rule in ((("--num-sms", "8,4000"), "num-sms: must be"),
                            (("--mode", "ll", "--num-tokens", "16,65536"), "nearest legal value: 65535"),
                            (("--mode", "ll", "--layout", "expert", "--num-experts", "64,16384"),
                             "nearest legal value: 8192"),
                            (("--mode", "ht", "--hidden", "512,131072"), "hidden: must be"),
                            (("--mode", "ht", "--num-experts", "64,65536"), "num-experts: must be"),
                            (("--mode", "ll", "--num-sms", "4,1"), "nearest legal value: 2")):
            with self.subTest(flags=flags):
                done = self.moe(2, None, *flags)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(rule, done.stderr)
                self.assertIn("nearest legal value", done.stderr)
                self.assertNotIn("moe-dispatch", done.stdout)

    def test_settings_that_go_with_a_part_of_the_sweep_end_before_anything_is_measured(self):
        for nodes, flags, nearest in (
                (None, ("--hidden", "2048,512", "--combine-settings", "chunk_bytes=2048"), "take 1024"),
                (None, ("--num-sms", "4,8", "--dispatch-settings", "sms=4"), "--num-sms 8"),
                (None, ("--mode", "ll", "--num-topk", "4,8", "--dispatch-settings", "sms=1"), "take 2"),
                (2, ("--num-tokens", "16,8", "--dispatch-settings", "chunk_rows=16"), "take 8")):
            with self.subTest(flags=flags):
                done = self.moe(2, nodes, *flags)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn("does not go with --backend gpu", done.stderr)
                self.assertIn(nearest, done.stderr)

    def test_launches_use_at_most_num_sms(self):
        for name in ("ht", "ll", "ll packed fp8"):
            for sms in (2, 4):
                with self.subTest(mode=name, sms=sms):
                    document, _ = self.report(2, *FEW, *MODES[name], "--num-sms", sms)
                    self.assert_right(document)
                    launches = document["moe"][0]["launches"]
                    for launch in launches["dispatch"] + launches["combine"]:
                        self.assertLessEqual(launch["sms"], sms, launch)

    def test_own_rows_may_stay_in_place(self):
        for name in ("ht", "ht fp8"):
            with self.subTest(mode=name):
                self.expect_right(3, None, (*MODES[name], "--dispatch-settings", "in_place=1"))
        document, _ = self.report(2, *FEW, "--num-sms", 4, "--tune")
        self.assert_right(document)
        tried = document["moe"][0]["tuned"][0]["attempts"]
        self.assertEqual({attempt["wrong"] for attempt in tried}, {None})
        self.assertIn(1, {attempt["settings"].get("in_place") for attempt in tried})

    def test_chunks_of_rows_are_tried_across_nodes(self):
        done = self.moe(4, 2, *SMALL, "--num-sms", 4, "--tune", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout[-2000:])
        document = json.loads(done.stdout)
        self.assert_right(document)
        for tuned in document["moe"][0]["tuned"]:
            self.assertEqual({attempt["wrong"] for attempt in tuned["attempts"]}, {None})
            self.assertEqual({attempt["settings"]["chunk_rows"] for attempt in tuned["attempts"]}, {4, 8, 16, 20})
        done = self.moe(4, 2, *SMALL, "--dispatch-settings", "chunk_rows=1", "--combine-settings", "chunk_rows=20",
                        "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout[-2000:])
        self.assert_right(json.loads(done.stdout))

    def test_halves_are_phases_of_low_latency(self):
        for name in ("ll", "ll partial", "ll packed fp8"):
            with self.subTest(mode=name):
                document, _ = self.report(3, *FEW, *MODES[name])
                self.assert_right(document)
                for case in ("moe-dispatch", "moe-combine"):
                    phases = {row["params"]["phase"]: row["stats"] for row in document["results"]
                              if row["case"] == case}
                    for phase in ("send", "receive"):
                        self.assertEqual(phases[phase]["n"], 3)
                        self.assertGreater(phases[phase]["p50"], 0)
                    self.assertEqual("transfer" in phases, case == "moe-dispatch")
                    if case == "moe-dispatch":  # except for the rank that comes late
                        self.assertLessEqual(phases["transfer"]["p50"], phases["total"]["p50"])

    def test_a_corrupted_byte_of_a_dispatch_is_found(self):
        for name, mode in MODES.items():
            with self.subTest(mode=name):
                document, _ = self.report(3, *FEW, *mode, code=1, fault="corrupt:1:verify")
                # In phases the spoilt row goes on into a combine, which another rank finds wrong then.
                found = [f["message"] for f in document["findings"] if f["id"] == "moe-corrupt"]
                self.assertRegex("\n".join(found), r"(?m)^dispatch: rank 1: 1 rows are wrong")
                self.assertTrue(all(row["verified"] == "failed" for row in document["results"]))

    def test_a_corrupted_byte_in_a_tuning_call_is_found(self):
        # Each trial checks its own operation alone: so this is what shows a combine that is wrong.
        for mode in ("ht", "ll"):
            document, _ = self.report(2, *FEW, "--mode", mode, "--num-sms", 4, "--tune", code=1,
                                      fault="corrupt:1:verify")
            for tuned, what in zip(document["moe"][0]["tuned"], ("rows are wrong", "tokens are wrong")):
                with self.subTest(mode=mode, direction=tuned["direction"]):
                    for attempt in tuned["attempts"]:
                        self.assertRegex(attempt["wrong"] or "", f"rank 1: 1 {what}")

    def test_a_pe_that_is_killed_is_named(self):
        for mode in ("ht", "ll"):
            with self.subTest(mode=mode):
                done = self.moe(2, None, *FEW, "--mode", mode, "--timeout", 20, fault="kill:1:moe")
                self.assertEqual(done.returncode, 128 + signal.SIGKILL, done.stderr)
                self.assertRegex(done.stderr, r"PE 1\b")

    def test_others_continue_without_an_absent_pe(self):
        for combine in ("weighted", "partial"):
            with self.subTest(combine=combine):
                document, err = self.report(3, *FEW, "--mode", "ll", "--combine", combine,
                                            "--patience-us", 3_000_000, "--absent", 2)
                self.assert_right(document)
                self.assertEqual(document["moe"][0]["masked"], [[2], [2], []])
                rows = {row["params"]["phase"]: row for row in document["results"]
                        if row["case"] == "moe-round-trip"}
                self.assertGreater(rows["masking"]["stats"]["max"], 2_900_000)
                self.assertLess(rows["without it"]["stats"]["p50"], 2_900_000)
                self.assertIn("ran without it, verified", err)

    def test_a_late_pe_is_masked_and_named(self):
        document, _ = self.report(3, *FEW[:-4], "-n", 2, "-w", 0, "--mode", "ll", "--straggler", "1:1000000",
                                  "--patience-us", 300_000)
        self.assert_right(document)
        self.assertIn(1, document["moe"][0]["masked"][0])
        self.assertTrue([f for f in document["findings"] if f["id"] == "moe-masked" and f["subject"] == "PE 1"])

    def test_settings_are_tried_chosen_and_used_again(self):
        for mode in ("ht", "ll"):
            with self.subTest(mode=mode):
                document, _ = self.report(2, *FEW, "--mode", mode, "--num-sms", 4, "--tune")
                self.assert_right(document)
                point, = document["moe"]
                self.assertEqual([tuned["direction"] for tuned in point["tuned"]], ["dispatch", "combine"])
                options = []
                for tuned in point["tuned"]:
                    self.assertEqual({attempt["wrong"] for attempt in tuned["attempts"]}, {None})
                    chosen = tuned["attempts"][tuned["chosen"]]["settings"]
                    self.assertEqual(chosen["sms"], 4)
                    self.assertEqual(point["settings"][tuned["direction"]], chosen)
                    options += [f"--{tuned['direction']}-settings",
                                ",".join(f"{name}={value}" for name, value in chosen.items())]
                self.assertGreater(len(point["tuned"][1]["attempts"]), 1)
                again, _ = self.report(2, *FEW, "--mode", mode, *options)
                self.assert_right(again)
                self.assertNotIn("tuned", again["moe"][0])
                self.assertEqual(again["moe"][0]["settings"], point["settings"])

    def test_nvlinks_are_counted_or_say_why(self):
        done = self.moe(2, None, "--num-tokens", 512, "--hidden", 1024, "-n", 5, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        point, = json.loads(done.stdout)["moe"]
        self.assertEqual(sorted(rank for gpu in point["nvlinks"] for rank in gpu["ranks"]), [0, 1])
        for gpu in point["nvlinks"]:
            for direction in ("out_bytes", "in_bytes"):
                with self.subTest(gpu=gpu["gpu"], direction=direction):
                    if gpu[direction] is None:
                        self.assertTrue(gpu[direction + "_reason"])
                        print(f"{gpu['gpu']} {direction}: {gpu[direction + '_reason']}")
                    for link in (link for link in point["links"] if link["gpu"] == gpu["gpu"]):
                        rows = link["all_calls"][direction]
                        self.assertEqual(link["all_calls"]["counted_" + direction], gpu[direction])
                        if gpu[direction] is not None and link["name"].startswith("NVLink"):
                            self.assertGreater(gpu[direction] + gpu["resolution_bytes"], rows)


if __name__ == "__main__":
    unittest.main()
