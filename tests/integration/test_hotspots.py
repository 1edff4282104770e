"""`hotspots` on recorded trees, on a tree that changes, and around a command."""
import csv
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from job_support import default_signals, marked, processes_with
from support import BINARY, CliTest, clean_environment, report_of, run

GB = 10**9


class Tree:
    """A synthetic machine with InfiniBand HCAs at 400 Gb/s, each on a PCI function of its own."""

    def __init__(self, folder, nics=4, uptime_s=100, hostname="node7"):
        self.folder = pathlib.Path(folder)
        for index in range(nics):
            self._add_hca(index)
        self.write("proc/uptime", f"{uptime_s} 1")
        self.write("proc/sys/kernel/hostname", hostname)

    def write(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n", encoding="ascii")

    def link(self, path, target):
        link = self.folder / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)

    def _add_hca(self, index):
        address = f"0000:{0x18 + index:02x}:00.0"
        device = f"sys/devices/pci0000:{0x18 + index:02x}/{address}"
        hca = f"{device}/infiniband/mlx5_{index}"
        for name, text in (("class", "0x020700"), ("vendor", "0x15b3"), ("device", "0x1021"), ("numa_node", "0")):
            self.write(f"{device}/{name}", text)
        self.write(f"{hca}/node_type", "1: CA")
        for name, text in (("state", "4: ACTIVE"), ("rate", "400 Gb/sec (4X NDR)"),
                           ("link_layer", "InfiniBand"), ("lid", "0x1")):
            self.write(f"{hca}/ports/1/{name}", text)
        self.link(f"sys/class/infiniband/mlx5_{index}", f"../../../{hca}")
        self.link(f"{hca}/device", f"../../../{address}")
        self.link(f"sys/bus/pci/devices/{address}", f"../../../../{device}")
        self.traffic(index, 0)

    def counter(self, index, name, text, kind="counters"):
        self.write(f"sys/class/infiniband/mlx5_{index}/ports/1/{kind}/{name}", text)

    def traffic(self, index, sent_bytes):
        self.counter(index, "port_xmit_data", sent_bytes // 4)
        self.counter(index, "port_xmit_packets", sent_bytes // 4096)
        self.counter(index, "port_rcv_data", 0)


class HotspotsTest(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.before = Tree(self.folder / "before")

    def after(self, sent_bytes, uptime_s=110):
        tree = Tree(self.folder / "after", uptime_s=uptime_s)
        for index, count in enumerate(sent_bytes):
            tree.traffic(index, count)
        return tree

    def compare(self, *arguments, **keywords):
        return report_of("hotspots", "--sysroot", self.before.folder, "--sysroot-after",
                         self.folder / "after", *arguments, **keywords)

    def compare_text(self, *arguments):
        code, out, err = run("hotspots", "--sysroot", self.before.folder, "--sysroot-after",
                             self.folder / "after", *arguments)
        self.assertEqual(code, 0, err)
        return out

    def ids(self, report):
        return [(finding["id"], finding["subject"]) for finding in report["findings"]]


class RecordedTrees(HotspotsTest):
    def test_rates_shares_and_the_hot_one(self):
        self.after([10 * GB, 400 * GB, 10 * GB, 12 * GB])
        code, report = self.compare()
        self.assertEqual(code, 0)
        section = report["hotspots"]
        self.assertEqual(section["mode"], "trees")
        self.assertEqual(section["window_s"], 10)
        port = section["ports"][1]
        self.assertEqual((port["host"], port["device"], port["port"]), ("node7", "mlx5_1", 1))
        self.assertAlmostEqual(port["sent"]["GBps"], 40)
        self.assertAlmostEqual(port["sent"]["link_share"], 0.8)
        self.assertEqual(port["direction"], "sent")
        self.assertEqual([p["hot"] for p in section["ports"]], [False, True, False, False])
        rows = list(csv.DictReader(io.StringIO(self.compare_text("--csv", "-"))))
        self.assertEqual([(row["host"], row["device"], row["hot"]) for row in rows],
                         [("node7", f"mlx5_{i}", "true" if i == 1 else "false") for i in range(4)])
        self.assertAlmostEqual(float(rows[1]["sent_GBps"]), 40)
        self.assertEqual(self.ids(report), [("nic-hotspot-measured", "node7 mlx5_1:1")])
        moved = [c for c in report["nic_counters"] if c["device"] == "mlx5_1" and c["delta"]]
        self.assertEqual({c["counter"]: c["delta"] for c in moved},
                         {"port_xmit_data_bytes": 400 * GB, "port_xmit_packets": 400 * GB // 4096})

    def test_pes_by_the_mapping(self):
        for tree in (self.before, self.after([10 * GB, 400 * GB, 10 * GB, 12 * GB])):
            for gpu in range(2):
                address = f"0000:{0x18 + gpu:02x}:01.0"
                device = f"sys/devices/pci0000:{0x18 + gpu:02x}/{address}"
                for name, text in (("class", "0x030200"), ("vendor", "0x10de"), ("device", "0x2330"),
                                   ("numa_node", "0")):
                    tree.write(f"{device}/{name}", text)
                tree.link(f"sys/bus/pci/devices/{address}", f"../../../../{device}")
        _, report = self.compare("--hca-list", "mlx5_1")
        self.assertEqual([p["pes"] for p in report["hotspots"]["ports"]], [[], [0, 1], [], []])
        self.assertIn("PEs 0, 1", report["findings"][0]["message"])

    def test_a_reset_a_refusal_and_a_reboot_fake_no_rate(self):
        self.before.traffic(0, 500 * GB)
        after = self.after([10 * GB, 20 * GB, 20 * GB, 20 * GB])
        after.counter(1, "port_xmit_data", "N/A (no PMA)")
        after.counter(2, "port_xmit_data", 10**13)
        _, report = self.compare()
        sent = [port["sent"] for port in report["hotspots"]["ports"]]
        self.assertEqual([s["GBps"] is None for s in sent], [True, True, True, False])
        self.assertIn("it was reset", sent[0]["GBps_reason"])
        self.assertIn("N/A (no PMA)", sent[1]["GBps_reason"])
        self.assertIn("one of the two is wrong", sent[2]["GBps_reason"])
        self.assertEqual({i for i, _ in self.ids(report)}, {"counters-unavailable"})
        self.before.write("proc/sys/kernel/random/boot_id", "a")
        after.write("proc/sys/kernel/random/boot_id", "b")
        _, report = self.compare()
        for port in report["hotspots"]["ports"]:
            self.assertIsNone(port["sent"]["GBps"])
            self.assertIn("started anew", port["sent"]["GBps_reason"])

    def test_without_a_time_bytes_but_no_rate(self):
        after = self.after([GB] * 4)
        (after.folder / "proc/uptime").unlink()
        _, report = self.compare()
        self.assertIsNone(report["hotspots"]["window_s"])
        self.assertEqual(report["hotspots"]["ports"][0]["sent"]["bytes"], GB)
        self.assertIsNone(report["hotspots"]["ports"][0]["sent"]["GBps"])
        _, report = self.compare("--window", "2")
        self.assertAlmostEqual(report["hotspots"]["ports"][0]["sent"]["GBps"], 0.5)

    def test_signs_by_a_file_of_thresholds(self):
        self.before.counter(0, "out_of_sequence", 0, "hw_counters")
        self.after([GB] * 4).counter(0, "out_of_sequence", 1000, "hw_counters")
        code, report = self.compare()
        self.assertEqual((code, self.ids(report)), (0, [("nic-lossy", "node7 mlx5_0:1")]))
        self.assertEqual(report["hotspots"]["signs"][0]["limit"], ">10/s")
        file = self.folder / "own.conf"
        file.write_text("source us our own\nrule out_of_sequence >200/s error nic-congested us words\n",
                        encoding="ascii")
        self.assertEqual(self.ids(self.compare("--thresholds", file)[1]), [])
        file.write_text("source us our own\nrule out_of_sequence >20/s error nic-congested us words\n",
                        encoding="ascii")
        code, report = self.compare("--thresholds", file)
        self.assertEqual((code, self.ids(report)), (1, [("nic-congested", "node7 mlx5_0:1")]))
        self.assertEqual(report["hotspots"]["signs"][0]["source"], "our own")
        file.write_text("source us our own\n\nrule out_of_sequence 20/s error nic-lossy us words\n",
                        encoding="ascii")
        error = self.assert_refused(run("hotspots", "--thresholds", file))
        self.assertIn("line 3", error)
        self.assertIn(">N/s", error)

    def test_the_report_is_valid_and_can_be_shown(self):
        self.after([10 * GB, 400 * GB, 10 * GB, 12 * GB])
        file = self.folder / "report.json"
        code, out, err = run("hotspots", "--sysroot", self.before.folder, "--sysroot-after",
                             self.folder / "after", "--json", file)
        self.assertEqual(code, 0, err)
        self.assertIn("40 GB/s 80%", out)
        self.assertIn("HOT", out)
        self.assertEqual(run("report", "validate", file)[0], 0)
        self.assertIn("40 GB/s 80%", run("report", "show", file)[1])


class Refusals(HotspotsTest):
    def test_flags_that_do_not_go_together(self):
        for arguments in (["--during"], ["--watch", "0"], ["--sysroot-after", self.before.folder],
                          ["--window", "3"], ["--watch", "1", "--during", "true"],
                          ["--sysroot", self.before.folder, "--sysroot-after", self.before.folder, "-D", "1"],
                          ["--during", "no-such-program-anywhere"], ["--thresholds", "/no/such/file"]):
            with self.subTest(arguments):
                self.assert_refused(run("hotspots", *arguments))


class Commands(HotspotsTest):
    def during(self, *command, before=()):
        return run("hotspots", "--sysroot", self.before.folder, "--interval", "0.02", *before, "--during", *command)

    def report_during(self, *command, timeout="60"):
        code, out, err = self.during(*command, before=("--json", "-", "--timeout", timeout))
        return code, json.loads(out), err

    def test_its_traffic_is_measured_and_its_end_is_kept_apart(self):
        file = self.folder / "report.json"
        counters = self.before.folder / "sys/class/infiniband/mlx5_2/ports/1/counters"
        # In place: a file that is empty for a moment would be an unreadable counter.
        script = (f"echo words; sleep 0.5; cd {counters}; for i in xmit_packets:300000 xmit_data:250000000; do "
                  "printf ${i#*:} | dd of=port_${i%:*} conv=notrunc 2>/dev/null; done; sleep 0.5")
        code, out, err = self.during("sh", "-c", script, before=("--json", file))
        self.assertEqual(code, 0, err)
        self.assertTrue(out.startswith("words\n"), out)
        section = json.loads(file.read_text(encoding="utf-8"))["hotspots"]
        self.assertEqual(section["mode"], "command")
        self.assertEqual(section["command"]["argv"], ["sh", "-c", script])
        self.assertEqual(section["command"]["exit_code"], 0)
        self.assertGreater(section["samples"], 2)
        port = section["ports"][2]
        self.assertEqual(port["sent"]["bytes"], GB)
        self.assertAlmostEqual(port["sent"]["GBps"] * port["window_s"], 1, delta=0.2)
        self.assertGreaterEqual(port["sent"]["peak_GBps"], port["sent"]["GBps"])

    def test_exit_codes_and_signals(self):
        code, report, _ = self.report_during("sh", "-c", "exit 7")
        self.assertEqual((code, report["hotspots"]["command"]["exit_code"]), (1, 7))
        self.assertEqual(self.ids(report), [("command-failed", "sh")])
        code, report, _ = self.report_during("sh", "-c", "kill -9 $$")
        self.assertEqual((code, report["hotspots"]["command"]["signal"]), (1, "SIGKILL"))
        self.assertIsNone(report["hotspots"]["command"]["exit_code"])

    def test_data_on_stdout_is_not_mixed_with_the_commands(self):
        code, _, err = self.report_during("echo", "words")
        self.assertEqual(code, 0, err)
        self.assertIn("words\n", err)

    def test_a_subcommand_runs_this_program(self):
        code, out, err = self.during("--", "report", "schema")
        self.assertEqual(code, 0, err)
        self.assertIn("urn:shmemctl:report:1.1.0", out)

    def test_the_command_times_out(self):
        code, report, _ = self.report_during("sleep", "100", timeout="1")
        self.assertEqual((code, report["exit_code"], report["status"]), (124, 124, "incomplete"))
        self.assertTrue(report["hotspots"]["command"]["timed_out"])

    def test_an_interruption_reaches_the_command_and_the_report_is_written(self):
        file, pid_file = self.folder / "report.json", self.folder / "pid"
        process = subprocess.Popen(
            [BINARY, "hotspots", "--sysroot", str(self.before.folder), "--json", str(file), "--during", "sh", "-c",
             f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 100"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=clean_environment())
        self.addCleanup(process.stderr.close)
        deadline = time.monotonic() + 60
        while not pid_file.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 130)
        report = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual((report["status"], report["exit_code"]), ("incomplete", 130))
        self.assertEqual(report["hotspots"]["command"]["signal"], "SIGTERM")
        with self.assertRaises(ProcessLookupError):
            os.kill(int(pid_file.read_text(encoding="ascii")), 0)


class Orphans(HotspotsTest):
    """Whatever ends hotspots, nothing that its command has started is left."""

    def start(self, *flags):
        """The command, a child of it, and one in a session of its own; all of them have a mark."""
        mark = marked()
        process = subprocess.Popen(
            [BINARY, "hotspots", "--sysroot", str(self.before.folder), *flags, "--during", "sh", "-c",
             "setsid sh -c 'sleep 1000; :' & sleep 1000 & sleep 1000; :"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=default_signals, env=clean_environment(**mark))
        self.addCleanup(process.kill)
        self.wait_for(lambda: len(processes_with(mark)) >= 6, mark)  # two shells, three sleeps, hotspots
        return process, mark

    def wait_for(self, true, mark):
        deadline = time.monotonic() + 100
        while not true():
            self.assertLess(time.monotonic(), deadline, processes_with(mark))
            time.sleep(0.02)

    def assert_nobody_left(self, mark):
        self.wait_for(lambda: not processes_with(mark), mark)

    def test_killed(self):
        process, mark = self.start()
        process.kill()
        process.wait(60)
        self.assert_nobody_left(mark)

    def test_hangup_signal(self):
        file = self.folder / "r.json"
        process, mark = self.start("--json", str(file))
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(60), 130)
        self.assert_nobody_left(mark)
        self.assertEqual(json.loads(file.read_text(encoding="utf-8"))["status"], "incomplete")

    def test_timeout_leaves_no_process(self):
        process, mark = self.start("--timeout", "4")
        self.assertEqual(process.wait(100), 124)
        self.assert_nobody_left(mark)


class Watching(HotspotsTest):
    def test_watch_without_a_number_is_every_second(self):
        """The interval may be left out, at the end and before another flag; what follows is no value."""
        for flags in (("--watch", "-D", "1.5"), ("-D", "1.5", "--watch")):
            code, document = report_of("hotspots", "--sysroot", self.before.folder, *flags)
            self.assertEqual((code, document["hotspots"]["mode"]), (0, "watch"), flags)
        for word in ("-1", "fast", "0"):
            code, out, err = run("hotspots", "--sysroot", self.before.folder, "--watch", word)
            self.assertEqual((code, out), (2, ""), word)
            self.assertIn(f"--watch: {word} is not ", err)
        self.assertIn("without a number: 1", " ".join(run("hotspots", "--help")[1].split()))

    def test_lines_for_a_log(self):
        code, out, err = run("hotspots", "--sysroot", self.before.folder, "--watch", "0.2", "-D", "1")
        self.assertEqual(code, 0, err)
        lines = [line for line in out.splitlines() if " node7 mlx5_0:1 sent " in line]
        self.assertGreaterEqual(len(lines), 2, out)
        self.assertRegex(lines[0], r"^20\d\d-\d\d-\d\dT[0-9:.]+Z node7 mlx5_0:1 sent 0 GB/s 0% received 0 GB/s 0% idle$")

    def test_an_interruption_leaves_what_was_seen(self):
        file = self.folder / "report.json"
        process = subprocess.Popen(
            [BINARY, "hotspots", "--sysroot", str(self.before.folder), "--watch", "0.1", "--json", str(file)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_environment())
        self.addCleanup(process.stdout.close)
        for _ in range(9):  # the second round: the first report is kept by then
            self.assertTrue(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)
        report = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(report["status"], "incomplete")
        self.assertEqual(len(report["hotspots"]["ports"]), 4)

    def test_this_machine(self):
        code, report = report_of("hotspots", "-D", "0.3")
        self.assertIn(code, (0, 1))
        self.assertEqual(report["hotspots"]["mode"], "time")
        self.assertGreaterEqual(report["hotspots"]["samples"], 2)


class Traffic(threading.Thread):
    """What a HCA of a tree sends, at a rate, until somebody leaves the block."""

    def __init__(self, tree, index, GBps):
        super().__init__(daemon=True)
        self.files = [(open(tree.folder / f"sys/class/infiniband/mlx5_{index}/ports/1/counters/{name}", "r+b",
                            buffering=0), bytes_each)
                      for name, bytes_each in (("port_xmit_packets", 4096), ("port_xmit_data", 4))]
        self.GBps, self.over = GBps, threading.Event()

    def run(self):
        start = time.monotonic()
        while not self.over.wait(0.01):
            sent_bytes = (time.monotonic() - start) * self.GBps * GB
            for file, bytes_each in self.files:  # in place: an empty file would be no counter
                os.pwrite(file.fileno(), f"{int(sent_bytes / bytes_each)}\n".encode(), 0)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        for file, _ in self.files:
            file.close()


class Jobs(HotspotsTest):
    """PEs with trees of their own, as if they ran on several machines."""

    def setUp(self):
        super().setUp()
        self.trees = [Tree(self.folder / name, hostname=name) for name in ("nodea", "nodeb", "nodec")]

    def job(self, tree_of_pe, *arguments, before="", timeout="60"):
        """`shmemctl run` of PEs that each see the tree of that number."""
        choose = " ".join(f"{pe}) tree={self.trees[tree].folder};;" for pe, tree in enumerate(tree_of_pe))
        words = f"case $SHMEMCTL_LOCAL_RANK in {choose} esac; {before} SHMEMCTL_SYSROOT=$tree exec \"$0\" \"$@\""
        return run("run", "-n", len(tree_of_pe), "sh", "-c", words, BINARY, *arguments, "--timeout", timeout)

    def test_a_node_that_differs_has_its_own_topology_once(self):
        for link in ("sys/class/infiniband/mlx5_3", "sys/bus/pci/devices/0000:1b:00.0"):
            (self.trees[2].folder / link).unlink()
        self.trees[2].write("proc/sys/kernel/osrelease", "6.2.0")
        for tree in self.trees[:2]:
            tree.write("proc/sys/kernel/osrelease", "6.1.0")
        file = self.folder / "report.json"
        code, _, err = self.job([0, 0, 1, 2, 2], "hotspots", "-D", "0.5", "--json", file)
        self.assertIn(code, (0, 1), err)
        report = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(run("report", "validate", file)[0], 0)
        self.assertEqual([(host["name"], host["nodes"], host["pes"]) for host in report["hosts"]],
                         [("nodea", [0], [0, 1]), ("nodeb", [1], [2]), ("nodec", [2], [3, 4])])
        self.assertEqual(len(report["topology"]["nics"]), 4)
        # nodeb is of nodea's kind, with another number of PEs.
        others = {tuple(node["nodes"]): node for node in report["other_nodes"]}
        self.assertEqual(len(others[(2,)]["topology"]["nics"]), 3)
        self.assertEqual(others[(2,)]["topology"]["hostname"], "nodec")
        self.assertNotIn((0,), others)
        text = run("report", "show", file)[1]
        self.assertRegex(text, r"(?m)^nodec +2 +3-4 +mlx5_\[0-2\] 400G \*.* 6\.2\.0 \*")
        self.assertRegex(text, r"(?m)^nodea +0 +0-1 +mlx5_\[0-3\] 400G .* 6\.1\.0")

    def test_all_hosts_are_joined_and_each_is_read_once(self):
        shutil.rmtree(self.trees[2].folder / "sys/devices/pci0000:19/0000:19:00.0/infiniband/mlx5_1/ports/1/counters")
        file = self.folder / "report.json"
        with Traffic(self.trees[1], 3, 20):
            code, out, err = self.job([0, 0, 1, 2], "hotspots", "-D", "2", "--json", file)
        self.assertEqual(code, 0, err)
        self.assertIn("HOT", out)
        report = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(run("report", "validate", file)[0], 0)
        self.assertEqual((report["job"]["pes"], report["job"]["nodes"]), (4, 3))
        self.assertEqual([host["name"] for host in report["hosts"]], ["nodea", "nodeb", "nodec"])
        self.assertEqual(report["topology"]["hostname"], "nodea")
        self.assertEqual([nic["device"] for nic in report["mapping"]["nics"]], [f"mlx5_{i}" for i in range(4)])
        rows = [(row["host"], row["device"], row["counter"]) for row in report["nic_counters"]]
        self.assertEqual(len(rows), len(set(rows)))
        self.assertEqual({row[0] for row in rows}, {"nodea", "nodeb", "nodec"})
        self.assertEqual(set(self.ids(report)), {("nic-hotspot-measured", "nodeb mlx5_3:1"),
                                                 ("counters-unavailable", "nodec mlx5_1:1")})
        message = next(f["message"] for f in report["findings"] if f["id"] == "nic-hotspot-measured")
        self.assertIn("the 4 fabric ports of nodeb", message)
        self.assertIn("rail 3 of 3 hosts", message)
        hot = [port for port in report["hotspots"]["ports"] if port["hot"]]
        self.assertEqual([(port["host"], port["device"]) for port in hot], [("nodeb", "mlx5_3")])
        self.assertAlmostEqual(hot[0]["sent"]["GBps"], 20, delta=12)  # on a busy machine

    def test_repeated_jobs(self):
        code, out, err = self.job([0, 1], "hotspots", "--watch", "0.3", "-D", "0.6")
        self.assertEqual(code, 0, err)
        for node in ("nodea", "nodeb"):
            self.assertEqual(len([line for line in out.splitlines() if f"Z {node} mlx5_0:1 sent " in line]), 2, out)

    def test_a_pe_that_dies_ends_the_job_and_what_there_is_is_written(self):
        file = self.folder / "report.json"
        dies = "if [ $SHMEMCTL_LOCAL_RANK = 1 ]; then (sleep 1; kill -9 $$) & fi;"
        code, _, err = self.job([0, 1], "hotspots", "-D", "600", "--json", file, before=dies)
        self.assertNotIn(code, (0, 1), err)
        report = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(report["status"], "incomplete")

    def test_what_a_measuring_job_does_to_the_nics_of_its_hosts(self):
        file = self.folder / "report.json"
        code, _, err = self.job([0, 1], "bench", "put", "-b", "8", "-e", "8", "-n", "100", "--json", file)
        self.assertEqual(code, 0, err)
        self.assertEqual(run("report", "validate", file)[0], 0)
        report = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(report["hotspots"]["mode"], "job")
        ports = {(port["host"], port["device"]): port for port in report["hotspots"]["ports"]}
        self.assertEqual(len(ports), 8)
        self.assertEqual(ports["nodea", "mlx5_0"]["pes"], [0])
        self.assertEqual(ports["nodeb", "mlx5_0"]["pes"], [1])
        self.assertEqual({row["host"] for row in report["nic_counters"]}, {"nodea", "nodeb"})


if __name__ == "__main__":
    unittest.main()
