"""`shmemctl explain`: logs made here, in the wording of the libraries; all names, addresses and numbers are invented."""
import gzip
import json
import os
import pathlib
import re
import tempfile
import time
import unittest

from support import DATA, SOURCE, CliTest, run

CATALOGUE = SOURCE / "src" / "instruments" / "explain" / "log_messages.conf"
TOPOLOGY = DATA / "nccl" / "pairs-8gpu-8nic.xml"
USING = "NET/IB : Using " + " ".join(f"[{i}]mlx5_{i}:1/RoCE" for i in range(8)) + " [RO]; OOB eth0:10.0.0.1<0>"
# GPUs of TOPOLOGY by rank, as NCCL writes their addresses.
BUS = ("11000", "12000", "31000", "32000")


def nccl(rank, nic, completes=True, tag="", bus="11000", ranks=4):
    """What NCCL_DEBUG=INFO shows of one rank's start."""
    head = f"{tag}node1:{100 + rank}:{200 + rank} [{rank}] NCCL INFO "
    comm = f"comm 0x55d1 rank {rank} nranks {ranks} cudaDev {rank} nvmlDev {rank} busId {bus} commId 0x7a"
    lines = [USING, "Using network IB", f"ncclCommInitRank {comm} - Init START",
             f"NET/IB: NCCL Dev {nic} IbDev {nic} Port 1 qpn 77 mtu 5 GID 3 (80FE/1A8A)",
             f"Channel 00/0 : {rank}[{rank}] -> {rank + ranks}[{rank}] [send] via NET/IB/{nic}/GDRDMA"]
    if completes:
        lines += ["Connected all rings, use ring PXN 0 GDR 1", f"ncclCommInitRank {comm} - Init COMPLETE"]
    return [head + line for line in lines]


def interleaved(*ranks):
    """Lines of several ranks, in turn."""
    longest = max(map(len, ranks))
    return [rank[i] for i in range(longest) for rank in ranks if i < len(rank)]


class ExplainTest(CliTest):
    def explain(self, lines, *arguments):
        """(exit code, report) of a log with these lines; the report is valid."""
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "job.log"
            log.write_bytes(lines if isinstance(lines, bytes) else "\n".join(lines).encode() + b"\n")
            path = pathlib.Path(folder) / "why.json"
            code, out, err = run("explain", log, "--json", path, *arguments)
            self.assertIn(code, (0, 1), err)
            self.assertEqual(run("report", "validate", path)[0], 0)
            self.assertEqual(run("report", "show", path)[0], 0)
            self.text = out
            return code, json.loads(path.read_text())

    def ids(self, report):
        return [finding["id"] for finding in report["findings"]]

    def messages(self, report):
        return [message["id"] for message in report["logs"]["messages"]]

    def test_each_rank_with_its_nic_port_gid_and_transport(self):
        code, report = self.explain(interleaved(*(nccl(rank, rank, bus=BUS[rank]) for rank in range(4))))
        self.assertEqual((code, self.ids(report)), (0, []))
        ranks = report["logs"]["ranks"]
        self.assertEqual([rank["rank"] for rank in ranks], [0, 1, 2, 3])
        choice = ranks[2]["choices"][0]
        self.assertEqual((choice["device"], choice["port"], choice["gid_index"], choice["transport"], choice["gpu_direct"]),
                         ("mlx5_2", 1, 3, "NET/IB", True))
        self.assertEqual((ranks[2]["host"], ranks[2]["gpu_pci"]), ("node1", "0000:31:00.0"))
        self.assertEqual(ranks[2]["last_step"], "nccl-init-complete")
        row = next(line for line in self.text.splitlines() if "mlx5_2" in line)
        self.assertRegex(row, r"^2 .*node1 .*NCCL .*NET/IB, GPUDirect .*mlx5_2 +1 +3 ")

    def test_ranks_by_tags_labels_and_torchrun(self):
        for tag in ("[1,{}]<stderr>:", "{}: ", "[rank{}]: "):
            with self.subTest(tag=tag):
                _, report = self.explain(interleaved(*(nccl(rank, rank, tag=tag.format(rank)) for rank in range(4))))
                self.assertEqual([rank["rank"] for rank in report["logs"]["ranks"]], [0, 1, 2, 3])

    def test_ranks_on_one_nic_while_others_are_idle(self):
        code, report = self.explain(interleaved(*(nccl(rank, 0) for rank in range(4))))
        self.assertEqual((code, self.ids(report)), (0, ["nic-hotspot-logged"]))
        self.assertIn("rank 0, rank 1, rank 2 and rank 3 share mlx5_0/1", report["findings"][0]["message"])
        self.assertEqual(self.explain(nccl(0, 0), "--fail-on", "warning")[0], 0)
        self.assertEqual(self.explain(interleaved(nccl(0, 0), nccl(1, 0)), "--fail-on", "warning")[0], 1)

    def test_the_topology_says_which_nic_is_nearer(self):
        # Ranks 0 and 1 swap NICs with 2 and 3, whose GPUs are behind another switch.
        lines = interleaved(*(nccl(rank, nic, bus=BUS[rank]) for rank, nic in enumerate((2, 3, 0, 1))))
        _, report = self.explain(lines, "--from", TOPOLOGY)
        self.assertTrue(report["logs"]["compared_with_topology"])
        self.assertEqual(self.ids(report).count("nic-far"), 4, report["findings"])
        self.assertNotIn(report["logs"]["ranks"][0]["choices"][0]["distance"], ("PIX", "PXB"))
        lines = interleaved(*(nccl(rank, rank, bus=BUS[rank]) for rank in range(4)))
        _, report = self.explain(lines, "--from", TOPOLOGY)
        self.assertNotIn("nic-far", self.ids(report))
        self.assertEqual(report["logs"]["ranks"][0]["choices"][0]["distance"], "PIX")

    def test_a_rank_whose_log_ends_early(self):
        lines = interleaved(*(nccl(rank, rank, completes=rank != 2) for rank in range(4)))
        _, report = self.explain(lines)
        self.assertEqual(self.ids(report), ["log-ends-early"])
        self.assertEqual(report["findings"][0]["subject"], "rank 2")
        self.assertEqual([rank.get("missing_step") for rank in report["logs"]["ranks"]],
                         [None, None, "nccl-rings-connected", None])
        _, report = self.explain(interleaved(*(nccl(rank, rank) for rank in (0, 1, 3))))
        self.assertEqual(self.ids(report), ["log-rank-missing"])

    def test_a_known_error_has_its_cause_fix_source_and_place(self):
        lines = nccl(0, 0, ranks=1) + ["node1:100:201 [0] net_ib.cc:1893 NCCL WARN NET/IB: Got completion from peer "
                                       "10.0.0.2<51234> with status=12 opcode=0 len=0 vendor err 129 (Send)"] * 3
        code, report = self.explain(lines)
        self.assertEqual((code, self.messages(report)), (1, ["nccl-ib-retry-exceeded"]))
        message = report["logs"]["messages"][0]
        self.assertEqual((message["lines"], message["first"]["line"], message["ranks"]), (3, 8, ["rank 0"]))
        self.assertTrue(message["source"].startswith("https://"))
        finding = report["findings"][0]
        self.assertEqual((finding["id"], finding["severity"], finding["subject"]), ("log-known-error", "error", message["id"]))
        self.assertIn("job.log:8 (rank 0, 3 lines in all)", finding["message"])
        self.assertIn(message["fix"], finding["fix"])

    def test_every_example_of_the_catalogue_is_explained(self):
        text = CATALOGUE.read_text()
        self.assertGreaterEqual(len(re.findall(r"^message ", text, re.MULTILINE)), 60)
        examples = []
        for entry in re.split(r"^(?=message |step )", text, flags=re.MULTILINE)[1:]:
            if entry.startswith("message "):
                name = entry.split()[1]
                examples += [(name, line) for line in re.findall(r"^example (.*)", entry, re.MULTILINE)]
        _, report = self.explain([line for _, line in examples])
        found = {message["id"]: message["lines"] for message in report["logs"]["messages"]}
        expected = {}
        for name, _ in examples:
            expected[name] = expected.get(name, 0) + 1
        self.assertEqual(found, expected)
        self.assertEqual(report["logs"]["unknown"], [])

    def test_a_traceback_and_an_unknown_error(self):
        code, report = self.explain(["[rank1]: Traceback (most recent call last):", '[rank1]:   File "train.py", line 3, in step',
                                     "[rank1]: RuntimeError: DeepEP error: timeout (dispatch CPU)",
                                     "[rank0]: Traceback (most recent call last):", '[rank0]:   File "train.py", line 9, in step',
                                     "[rank0]: ValueError: the learning rate is a pear"])
        self.assertEqual(code, 1)
        self.assertEqual(self.messages(report), ["deepep-cpu-timeout"])
        unknown = report["logs"]["unknown"]
        self.assertEqual([(each["library"], each["first"]["line"], each["ranks"]) for each in unknown], [("Python", 6, ["rank 0"])])
        self.assertIn("not in the catalogue: ValueError: the learning rate is a pear", self.text)

    def test_a_catalogue_of_ones_own(self):
        with tempfile.TemporaryDirectory() as folder:
            own = pathlib.Path(folder) / "own.conf"
            own.write_text("message learning-rate-pear\nlibrary train.py\nversions all\nseverity error\n"
                           "pattern the learning rate is a *ear\ncause It is fruit.\nfix Use a number.\nsource https://example.org/\n")
            code, report = self.explain(["ValueError: the learning rate is a pear"], "--catalogue", own)
            self.assertEqual((code, self.messages(report)), (1, ["learning-rate-pear"]))
            own.write_text("message x\nlibrary y\n")
            err = self.assert_refused(run("explain", "--catalogue", own, own))
            self.assertIn("own.conf, line", err)
            own.write_text("message nccl-ib-retry-exceeded\n")
            self.assertIn("is already defined", self.assert_refused(run("explain", "--catalogue", own, own)))

    def test_any_bytes(self):
        noise = bytes(range(256)) * 40 + b"\n" + b"x" * 200000 + b"\n\x1b[31mnode1:1:2 [0] NCCL WARN \xff\xfe broken\x1b[0m\r\n\0\0"
        code, report = self.explain(noise)
        self.assertEqual(code, 0)
        self.assertEqual(report["logs"]["files"][0]["cut_lines"], 1)
        self.assertTrue(report["logs"]["files"][0]["ended_within_line"])
        self.assertEqual(len(report["logs"]["unknown"]), 1)

    def test_stdin_and_several_files(self):
        code, out, err = run("explain", stdin=("\n".join(nccl(0, 0, ranks=1)) + "\n").encode())
        self.assertEqual((code, err), (0, ""))
        self.assertIn("mlx5_0", out)
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for rank in range(4):
                files.append(pathlib.Path(folder) / f"rank{rank}.log")
                files[-1].write_text("\n".join(nccl(rank, rank)) + "\n")
            path = pathlib.Path(folder) / "why.json"
            self.assertEqual(run("explain", *files, "--json", path)[0], 0)
            report = json.loads(path.read_text())
            self.assertEqual([rank["rank"] for rank in report["logs"]["ranks"]], [0, 1, 2, 3])
            self.assertEqual(report["logs"]["ranks"][3]["last"]["file"], str(files[3]))

    def test_what_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            empty = pathlib.Path(folder) / "empty.log"
            empty.write_bytes(b"")
            self.assertIn("the log is empty", self.assert_refused(run("explain", empty)))
            packed = pathlib.Path(folder) / "job.log.gz"
            packed.write_bytes(gzip.compress(b"a line\n"))
            self.assertIn("compressed (gzip)", self.assert_refused(run("explain", packed)))
            self.assertIn("Is a directory", self.assert_refused(run("explain", folder)))
            self.assertIn("No such file", self.assert_refused(run("explain", pathlib.Path(folder) / "none.log")))
            self.assertIn("more than once", self.assert_refused(run("explain", "-", "-")))

    def test_a_large_log_takes_seconds_and_little_memory(self):
        # A tenth of a gigabyte: 1 GB may take 10 s and 100 MB.
        block = "\n".join(interleaved(*(nccl(rank, rank, tag=f"[1,{rank}]<stdout>:") for rank in range(4))) +
                          [f"[1,{i % 4}]<stdout>:step {i}, loss 0.1{i}, 812.4 tokens/s" for i in range(400)]) + "\n"
        data = block.encode() * (100_000_000 // len(block))
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "job.log"
            log.write_bytes(data)
            start = time.monotonic()
            code, _, err = run("explain", log, "--quiet")
            seconds = time.monotonic() - start
        self.assertEqual(code, 0, err)
        if not os.environ.get("SHMEMCTL_SANITIZE"):
            self.assertLess(seconds, 10, "ten times the time that it may take: other work runs beside the tests")


if __name__ == "__main__":
    unittest.main()
