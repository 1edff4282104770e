"""`shmemctl run -n N bringup`: the matrix, the report, exit codes, and PEs that fail during it."""
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import unittest

from job_support import default_signals, marked, processes_with
from launchers import launch, needs
from support import BINARY, CliTest, clean_environment, error_lines, run

PATIENCE_S = 300
SMALL = {"SHMEMCTL_SYMMETRIC_SIZE": "64M"}

# Phases in which a PE can fail by itself; "pair-check" is in the middle of the check.
PHASES = ["options", "bootstrap", "hosts", "failure-detector", "placement", "devices", "heap", "transports",
          "transport-map", "nics", "connections", "state", "teams", "barrier", "pair-check"]


def leftovers():
    """What a job could leave in the file system; tests' own folders have other names."""
    return {str(path) for folder in ("/dev/shm", "/tmp") for path in pathlib.Path(folder).glob("shmemctl*")}


class BringupTest(CliTest):
    def setUp(self):
        self.mark = marked()
        self.before = leftovers()

    def bringup(self, n_pes, *arguments, nodes=None, env=None, timeout_s=100):
        run_flags = ["-n", n_pes] + (["--nodes", nodes] if nodes else [])
        done = subprocess.run(
            [BINARY, "run", *map(str, run_flags), "bringup", "--timeout", str(timeout_s), *map(str, arguments)],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False,
            preexec_fn=default_signals, env=clean_environment(**SMALL, **self.mark, **(env or {})))
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def report(self, *arguments, **keywords):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.json"
            result = self.bringup(*arguments, "--json", path, **keywords)
            document = json.loads(path.read_text()) if path.exists() else None
            if document:
                code, out, err = run("report", "validate", path)
                self.assertEqual(code, 0, out + err)
            return result, document

    def assert_nothing_left(self):
        end = time.monotonic() + PATIENCE_S
        while processes_with(self.mark):
            self.assertLess(time.monotonic(), end, f"left: {processes_with(self.mark)}")
            time.sleep(0.02)
        while new := leftovers() - self.before:  # another test's, beside this one, goes
            self.assertLess(time.monotonic(), end, new)
            time.sleep(0.1)


class Success(BringupTest):
    def test_matrix_phases_and_hosts(self):
        code, out, err = self.bringup(4)
        self.assertEqual(code, 0, err)
        self.assertEqual(err, "")
        for phase in PHASES[:-1]:
            self.assertRegex(out, rf"(?m)^{phase} +\d+\.\d+ +PE \d$")
        self.assertIn("4 PEs on 1 node", out)
        self.assertIn("bootstrap local, launcher run", out)
        self.assertRegex(out, r"(?m)^ +0  .+  0-3$")
        for pe in range(4):
            self.assertRegex(out, rf"(?m)^  PE {pe} \+ \+ \+ \+$")
        self.assertRegex(out, r"(?m)^registered buffers: \+ 4 pairs, (zero-copy|attach|staged)$")
        self.assertIn("No findings.", out)
        self.assert_nothing_left()

    def test_a_wrong_byte_in_a_registered_buffer_is_named(self):
        (code, out, err), document = self.report(3, env={"SHMEMCTL_FAULT": "corrupt:1:buffer-check"})
        self.assertEqual(code, 1, err)
        self.assertRegex(out, r"(?m)^registered buffers: x 1 of 3 pairs got wrong data$")
        row = next(row for row in document["results"] if row["case"] == "bringup.registered-buffer")
        self.assertEqual((row["verified"], row["status"]), ("failed", "fail"))
        finding = next(finding for finding in document["findings"] if finding["id"] == "buffer-corrupt")
        self.assertEqual((finding["severity"], finding["subject"]), ("error", "PE 0 to PE 1"))
        self.assertRegex(finding["message"], r"put of 65539 bytes from PE 0 into a registered buffer of PE 1: at offset \d+ ")

    def test_one_pe_without_a_launcher(self):
        code, out, err = run("bringup", env=SMALL)
        self.assertEqual(code, 0, err)
        self.assertIn("1 PE on 1 node", out)

    def test_report(self):
        (code, out, err), document = self.report(3)
        self.assertEqual(code, 0, err)
        self.assertEqual((document["status"], document["exit_code"]), ("complete", 0))
        command = document["job"].pop("command")
        self.assertEqual([word for word in command if "/" not in word],
                         ["run", "-n", "3", "bringup", "--timeout", "100", "--json"])
        self.assertEqual(document["job"], {"pes": 3, "nodes": 1, "bootstrap": "local", "launcher": "run"})
        self.assertEqual(len(document["hosts"]), 1)
        self.assertEqual([p["name"] for p in document["phases"] if p["name"] in PHASES], PHASES[:-1])
        rows = {(row["case"], row["params"]["transport"]): row for row in document["results"]}
        for op in ("put", "get", "fetch-add", "compare-swap", "put-signal"):
            row = rows[f"bringup.{op}", "shm"]
            self.assertEqual((row["verified"], row["status"], row["reason"]), ("passed", "pass", "9 pairs"))
            self.assertGreater(row["time_s"], 0)
        row = rows["bringup.registered-buffer", "registered buffer"]
        self.assertGreater(row["time_s"], 0)
        self.assertEqual((row["verified"], row["status"]), ("passed", "pass"))
        self.assertRegex(row["reason"], "^3 pairs, (zero-copy|attach|staged)$")
        self.assertEqual(document["findings"], [])
        # The node that it ran on, and its NICs' mapping.
        self.assertEqual(document["topology"]["hostname"], document["hosts"][0]["name"])
        self.assertIn("matrix", document["topology"]["distances"])
        self.assertEqual([pe["pe"] for pe in document["mapping"]["pes"]], [0, 1, 2])

    def test_report_on_stdout_is_all_there_is(self):
        code, out, err = self.bringup(2, "--json", "-")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(out)["job"]["pes"], 2)

    def test_quiet(self):
        self.assertEqual(self.bringup(2, "--quiet"), (0, "", ""))

    def test_existing_file_is_refused_by_all(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.json"
            path.write_text("mine")
            code, _, err = self.bringup(3, "--json", path)
            self.assertEqual(code, 2)
            self.assertIn("report.json", err)
            self.assertEqual(path.read_text(), "mine")
            code, _, err = self.bringup(3, "--json", path, "--force")
            self.assertEqual(code, 0, err)

    def test_more_pes_than_cores_are_collapsed(self):
        # Half a gigabyte each under ThreadSanitizer.
        pes = 33 if "thread" in os.environ.get("SHMEMCTL_SANITIZE", "") else 40
        code, out, err = self.bringup(pes, timeout_s=200)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"(?m)^  node 0 \+$")

    def test_start_up_is_quick(self):
        times = []
        for _ in range(3):
            begin = time.monotonic()
            self.assertEqual(self.bringup(2)[0], 0)
            times.append(time.monotonic() - begin)
        limit_s = 3 if os.environ.get("SHMEMCTL_SOAK") else 60
        self.assertLess(min(times), limit_s, "300 ms is the aim")


@unittest.skipUnless(os.environ.get("SHMEMCTL_FAKE_CUDA"), "no fake CUDA driver: a build without CUDA")
@unittest.skipIf(os.path.exists("/dev/nvidiactl"), "kernels would run on the real GPU")
class Gpus(BringupTest):
    """Over a driver whose GPUs run no kernels: everything but these."""

    def test_what_the_gpus_are_and_that_kernels_cannot_run(self):
        environment = {"SHMEMCTL_CUDA_LIBRARY": os.environ.get("SHMEMCTL_FAKE_CUDA", "")}
        (code, out, err), document = self.report(3, env=environment)
        self.assertEqual(code, 1, err)
        rows = {row["id"]: row for row in document["checks"]}
        self.assertEqual(set(rows), {"gpu-devices", "gpu-heap", "gpu-paths"})
        self.assertIn("3 PEs on 2 GPUs", rows["gpu-devices"]["reason"])
        self.assertIn("up to 2 PEs share one", rows["gpu-devices"]["reason"])
        self.assertIn("kernels reach 6 of 6 pairs", rows["gpu-paths"]["reason"])
        self.assertIn("gpu-heap: vmm on 3 PEs", out)
        ways = [row for row in document["connections"] if row["transport"] == "gpu"]
        self.assertEqual(len(ways), 9)
        self.assertEqual([f["id"] for f in document["findings"]], ["gpu-kernels-unavailable"])
        self.assertEqual({row["verified"] for row in document["results"]}, {"passed"})
        self.assertEqual({row["params"]["transport"] for row in document["results"]},
                         {"shm", "registered buffer"})
        self.assert_nothing_left()

    def test_gpus_can_be_disabled(self):
        environment = {"SHMEMCTL_CUDA_LIBRARY": os.environ.get("SHMEMCTL_FAKE_CUDA", "")}
        (code, _, err), document = self.report(2, "--heap", "none", env=environment)
        self.assertEqual(code, 0, err)
        self.assertNotIn("gpu", {row["transport"] for row in document.get("connections", [])})


class VirtualNodes(BringupTest):
    def test_pairs_of_other_nodes_are_named_or_reached(self):
        """Shared memory does not reach another node; a network transport may."""
        (code, out, err), document = self.report(4, nodes=2)
        self.assertEqual(document["job"]["nodes"], 2)
        unreachable = [f for f in document["findings"] if f["id"] == "pair-unreachable"]
        self.assertEqual(code, 1 if unreachable else 0, err)
        self.assertEqual(document["exit_code"], code)
        self.assertIn("4 PEs on 2 nodes", out)
        if unreachable:
            self.assertIn("0>2", unreachable[0]["message"])
            self.assertRegex(out, r"(?m)^  PE 0 \+ \+ \. \.$")

    def test_the_network_of_each_pair_of_nodes_is_named(self):
        (code, out, err), document = self.report(6, nodes=3)
        if any(f["id"] == "pair-unreachable" for f in document["findings"]):
            self.skipTest("no network transport reaches another node here")
        self.assertEqual(code, 0, err)
        name = socket.gethostname()
        self.assertEqual([(host["name"], host["nodes"], host["pes"]) for host in document["hosts"]],
                         [(name, [0, 1, 2], [0, 1, 2, 3, 4, 5])])
        rows = document["networks"]
        self.assertEqual(len(rows), 1, rows)  # the nodes are one machine: all pairs are alike
        self.assertEqual((rows[0]["first"], rows[0]["second"], rows[0]["pairs"], rows[0]["both_ways"]),
                         ([0, 1, 2], [0, 1, 2], 3, True))
        link = rows[0]["links"][0]
        self.assertEqual(link["first"], link["second"])
        self.assertRegex(out, rf"(?m)^among {re.escape(name)} node \[0-2\] +3  {rows[0]['transport']} "
                              rf".*{re.escape(link['first']['device'])}")
        self.assertEqual([], document.get("other_nodes", []))
        # Each connection, with its address, is printed only on request.
        connection = rf"(?m)^{rows[0]['transport']}, .*: .*0>2"
        self.assertNotRegex(out, connection)
        self.assertRegex(self.bringup(6, "--verbose", nodes=3)[1], connection)


class Worlds(BringupTest):
    """INIT_MODE=per-local-rank: several worlds, of which each has a PE 0, and one job."""

    def test_one_pe_speaks_for_all_worlds(self):
        (code, out, err), document = self.report(3, "--init-mode", "per-local-rank")
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("launcher run"), 1, out)
        self.assertIn("world 0 of 3", out)
        self.assertEqual((document["status"], document["exit_code"]), ("complete", 0))

    def test_a_finding_of_another_world_is_a_finding_of_the_job(self):
        (code, out, err), document = self.report(4, "--init-mode", "per-local-rank", nodes=2)
        self.assertEqual(document["exit_code"], code, err)
        if code == 1:  # no transport reaches the other node here
            messages = [f["message"] for f in document["findings"] if f["id"] == "pair-unreachable"]
            self.assertEqual(len([m for m in messages if m.startswith("world 1 (local rank 1): ")]), 1, messages)
            self.assertEqual(len(messages), 2)
            self.assertIn("world 1 (local rank 1)", out)


class Faults(BringupTest):
    def assert_job_failed(self, result, codes, who):
        code, _, err = result
        self.assertIn(code, codes, err)
        self.assertTrue(error_lines(err), err)
        self.assertRegex(err, rf"(?m)^shmemctl: .*\bPE {who}\b")
        self.assert_nothing_left()

    def test_pe_killed_in_each_phase(self):
        for phase in PHASES:
            with self.subTest(phase=phase):
                begin = time.monotonic()
                result = self.bringup(4, env={"SHMEMCTL_FAULT": f"kill:2:{phase}"})
                self.assert_job_failed(result, (137,), 2)
                self.assertLess(time.monotonic() - begin, 80, "not at the deadline only")

    def test_pe_that_leaves_in_each_phase(self):
        for phase in PHASES:
            with self.subTest(phase=phase):
                self.assert_job_failed(self.bringup(3, env={"SHMEMCTL_FAULT": f"exit:1:{phase}"}), (9,), 1)

    def test_pe_that_stops_is_named_at_the_deadline(self):
        for phase in ("bootstrap", "heap", "barrier", "pair-check"):
            with self.subTest(phase=phase):
                result = self.bringup(3, env={"SHMEMCTL_FAULT": f"stop:1:{phase}"}, timeout_s=5)
                self.assert_job_failed(result, (124, 3), 1)

    def test_a_pe_that_stops_before_it_has_its_gpu_is_named_with_that_phase(self):
        """What a PE does there may be a call into a driver, and others that wait for it make none."""
        result = self.bringup(4, env={"SHMEMCTL_FAULT": "stop:2:gpu"}, timeout_s=15)
        self.assert_job_failed(result, (124,), 2)
        self.assertRegex(error_lines(result[2])[0],
                         r"PE 2 \(host [^)]+\) does not answer; last phase it reported: gpu\b")
        self.assertIn("check whether PE 2 is stopped", result[2])
        self.assertNotIn("library or driver hangs", result[2])

    def test_pe_0_says_who_it_was(self):
        done = subprocess.run(
            [BINARY, "run", "-n", "4", "--label", "bringup", "--timeout", "100"], stdin=subprocess.DEVNULL,
            capture_output=True, timeout=PATIENCE_S, check=False,
            env=clean_environment(**SMALL, **self.mark, SHMEMCTL_FAULT="kill:2:pair-check"))
        err = done.stderr.decode()
        errors = [line for line in err.splitlines() if re.match(r"\[\d\] shmemctl: error: ", line)]
        self.assertEqual(len(errors), 1, err)
        self.assertRegex(errors[0], r"^\[0\] .*\bPE 2\b")

    def test_incomplete_report_of_a_check_that_was_cut(self):
        (code, _, err), document = self.report(4, env={"SHMEMCTL_FAULT": "kill:3:pair-check"})
        self.assertEqual(code, 137, err)
        self.assertEqual((document["status"], document["exit_code"]), ("incomplete", 3))
        self.assertTrue(document["phases"])
        self.assertEqual({row["verified"] for row in document["results"]}, {"unchecked"})
        self.assertIn("run-aborted", [finding["id"] for finding in document["findings"]])

    def assert_report_of_failed_bring_up(self, document, phases, words):
        self.assertEqual(document["status"], "incomplete")
        self.assertEqual(tuple(phase["name"] for phase in document["phases"])[-len(phases):], phases)
        self.assertTrue(all(phase["time_ms"] >= 0 for phase in document["phases"]))
        self.assertEqual([host["name"] for host in document["hosts"]], [socket.gethostname()])
        aborted = [finding for finding in document["findings"] if finding["id"] == "run-aborted"]
        self.assertEqual(len(aborted), 1)
        for word in words:
            self.assertIn(word, aborted[0]["message"])

    def test_a_bring_up_that_failed_leaves_a_report(self):
        # PE 0 may be a phase behind the PE that is killed.
        for phase, last in (("bootstrap", ("bootstrap",)), ("heap", ("devices", "heap")),
                            ("connections", ("nics", "connections"))):
            with self.subTest(phase=phase):
                (code, _, err), document = self.report(3, env={"SHMEMCTL_FAULT": f"kill:1:{phase}"})
                self.assertEqual(code, 137, err)
                self.assertIsNotNone(document, err)
                # A PE that has not met PE 1 yet may learn of its end by run's SIGTERM only.
                met = phase != "bootstrap"
                reached = document["phases"][-1]["name"]
                self.assertIn(reached, last)
                self.assert_report_of_failed_bring_up(document, (reached,), ["PE 1"] if met else [])
                self.assertIn(document["exit_code"], (3,) if met else (3, 130))
                self.assertEqual((document["job"]["pes"], document["job"]["launcher"]), (3, "run"))

    def test_a_failing_pe_0_leaves_a_report(self):
        (code, _, err), document = self.report(2, env={"SHMEMCTL_HEAP_BACKING": "moon"})
        self.assertEqual(code, 2, err)
        self.assert_report_of_failed_bring_up(document, ("options",), ["moon"])
        (code, _, err), document = self.report(2, env={"SHMEMCTL_FAULT": "stop:1:heap"}, timeout_s=5)
        self.assertIn(code, (124, 3), err)
        self.assertEqual(document["phases"][-1]["name"], "heap")

    @needs("mpirun")
    def test_under_mpirun_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.json"
            outcome = launch(["mpirun", "-n", "3", "--oversubscribe", BINARY, "bringup", "--json", path],
                             env={**SMALL, "SHMEMCTL_FAULT": "exit:1:transports"})
            self.assertEqual(outcome.code, 9, outcome)
            document = json.loads(path.read_text())
            self.assertEqual(document["status"], "incomplete", document)
            self.assertIn(document["phases"][-1]["name"], ("transports", "transport-map"))

    def test_bad_options_are_refused_by_all_with_one_code(self):
        for variables in ({"SHMEMCTL_FAULT": "murder"}, {"SHMEMCTL_SYMMETRIC_SIZE": "lots"},
                          {"SHMEMCTL_BOOTSTRAP": "telepathy"}):
            with self.subTest(variables=variables):
                environment = dict(SMALL, **variables)
                done = subprocess.run([BINARY, "run", "-n", "3", "bringup"], stdin=subprocess.DEVNULL,
                                      capture_output=True, timeout=PATIENCE_S, check=False,
                                      env=clean_environment(**environment, **self.mark))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assert_nothing_left()

    def test_interrupt(self):
        process = subprocess.Popen(
            [BINARY, "run", "-n", "3", "bringup", "--timeout", "200"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=default_signals,
            env=clean_environment(**SMALL, **self.mark, SHMEMCTL_FAULT="stop:1:pair-check"))
        line = process.stdout.readline()  # the phases are printed before the check
        self.assertTrue(line)
        process.send_signal(2)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
