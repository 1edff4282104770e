"""Hosts that should be alike: facts in reports, doctor as a job and --against, report diff --nodes."""
import json
import pathlib
import tempfile
import unittest

from support import BINARY, DATA, CliTest, error_lines, report_of, run
from test_hotspots import Tree

NIC = "sys/class/infiniband/mlx5_{}"


def differing(document):
    """{subject: message} of the findings about hosts that differ."""
    found = [finding for finding in document["findings"] if finding["id"] == "hosts-differ"]
    assert all(finding["severity"] == "warning" and finding["fix"] for finding in found), found
    return {finding["subject"]: finding["message"] for finding in found}


class HostFacts(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tree(self, name, nics=2, kernel="6.8.0-45-generic", firmware="28.39.1002", memlock="unlimited"):
        tree = Tree(self.folder / name, nics=nics, hostname=name)
        tree.write("proc/sys/kernel/osrelease", kernel)
        tree.write("proc/self/limits", f"Max locked memory         {memlock}  {memlock}  bytes")
        for index in range(nics):
            tree.write(NIC.format(index) + "/fw_ver", firmware)
            tree.write(NIC.format(index) + "/node_guid", f"0011:2233:4455:66{len(name):02}")
        return tree

    def doctor(self, tree, *arguments):
        return report_of("doctor", "--only", "kernel-version", "--sysroot", tree.folder, *arguments)

    def recorded(self, tree, command="doctor"):
        """The file of a report of this tree."""
        file = self.folder / f"{tree.folder.name}.{command}.json"
        only = ("--only", "kernel-version") if command == "doctor" else ()
        code, _, err = run(command, *only, "--sysroot", tree.folder, "--json", file)
        self.assertIn(code, (0, 1), err)
        return file


class InReports(HostFacts):
    def test_each_command_that_reads_the_machine_writes_them(self):
        tree = self.tree("node1")
        reports = {command: self.recorded(tree, command) for command in ("doctor", "topo", "check")}
        facts = {command: json.loads(file.read_text())["hosts"][0]["facts"] for command, file in reports.items()}
        self.assertEqual(facts["doctor"], facts["topo"])
        self.assertEqual(facts["doctor"], facts["check"])
        self.assertEqual(facts["doctor"]["kernel"], "6.8.0-45-generic")
        self.assertEqual(facts["doctor"]["nic.mlx5_1.firmware"], "28.39.1002")
        self.assertEqual(facts["doctor"]["limit.memlock"], "unlimited")
        self.assertNotIn("node1", str(facts["doctor"]))
        self.assertNotIn("0011:2233", str(facts["doctor"]))
        self.assertEqual(run("report", "validate", *reports.values())[0], 0)

    def test_a_recorded_topology_has_none(self):
        _, document = report_of("topo", "--from", DATA / "nccl" / "hgx-8gpu-8nic.xml")
        self.assertNotIn("facts", document["hosts"][0])

    def test_a_job_writes_those_of_its_hosts(self):
        file = self.folder / "r.json"
        code, _, err = run("run", "-n", "2", "bringup", "--json", file)
        self.assertEqual(code, 0, err)
        self.assertTrue(json.loads(file.read_text())["hosts"][0]["facts"]["kernel"])


class Against(HostFacts):
    def test_a_node_like_the_golden_one(self):
        golden = self.recorded(self.tree("good"))
        code, document = self.doctor(self.tree("node1"), "--against", golden)
        self.assertEqual(code, 0)
        self.assertEqual(differing(document), {})
        section = document["host_differences"]
        self.assertEqual((section["n_hosts"], section["differences"]), (1, []))
        self.assertEqual(section["golden"], f"good ({golden})")
        code, out, _ = run("doctor", "--only", "kernel-version", "--sysroot", self.folder / "node1", "--against", golden)
        self.assertEqual(code, 0)
        self.assertRegex(out, r"1 host compared with good \(.*\): all \d+ facts are the same")

    def test_what_differs(self):
        golden = self.recorded(self.tree("good"))
        bad = self.tree("node1", memlock="65536")
        bad.write(NIC.format(1) + "/fw_ver", "28.38.1002")
        file = self.folder / "r.json"
        code, out, err = run("doctor", "--only", "kernel-version", "--sysroot", bad.folder, "--against", golden, "--json", file)
        self.assertEqual((code, err), (0, ""), out) # warnings
        document = json.loads(file.read_text())
        self.assertEqual(differing(document), {
            "node1": f"node1 differs from good ({golden}) in 2 facts: limit.memlock is 64K (golden unlimited); "
                     "nic.mlx5_1.firmware is 28.38.1002 (golden 28.39.1002)"})
        self.assertRegex(out, r"(?m)^nic\.mlx5_1\.firmware +28\.39\.1002 +28\.38\.1002 on node1$")
        self.assertEqual(run("report", "validate", file)[0], 0)
        self.assertRegex(run("report", "show", file)[1], r"(?m)^limit\.memlock +unlimited +64K on node1$")
        code, document = self.doctor(bad, "--against", golden, "--fail-on", "warning")
        self.assertEqual((code, document["exit_code"]), (1, 1))

    def test_golden_reports_that_are_none(self):
        tree = self.tree("node1")
        old = json.loads(self.recorded(tree).read_text())
        del old["hosts"][0]["facts"]
        old["started_at"] = "2026-01-01T00:00:00Z"  # the time of another run
        (self.folder / "old.json").write_text(json.dumps(old))
        merged = self.folder / "merged.json"
        self.assertEqual(run("report", "merge", self.recorded(self.tree("a")), self.recorded(self.tree("b")),
                             "--json", merged)[0], 0)
        (self.folder / "no.json").write_text("{")
        for file, words in (("old.json", "the report does not describe its host"),
                            ("merged.json", "the report is of 2 hosts"),
                            ("no.json", "no.json"), ("missing.json", "No such file")):
            with self.subTest(file):
                err = self.assert_refused(run("doctor", "--sysroot", tree.folder, "--against", self.folder / file))
                self.assertIn(words, err)


class Nodes(HostFacts):
    def test_the_outlier_is_named(self):
        files = [self.recorded(self.tree(name)) for name in ("a", "b", "c")]
        files.append(self.recorded(self.tree("d", nics=1, kernel="5.15.0-91-generic")))
        code, document = report_of("report", "diff", "--nodes", *files)
        self.assertEqual(code, 0)
        found = differing(document)
        self.assertEqual(list(found), ["d"])
        for words in ("differs from the 3 other hosts", "kernel is 5.15.0-91-generic (others 6.8.0-45-generic)",
                      "nic.mlx5_1 is missing (others 15b3:1021)", "nic.count is 1 (others 2)"):
            self.assertIn(words, found["d"])
        self.assertNotIn("nic.mlx5_1.firmware", found["d"]) # follows from the missing NIC
        code, out, err = run("report", "diff", "--nodes", *files, "--fail-on", "warning")
        self.assertEqual(code, 1, err)
        self.assertRegex(out, r"(?m)^kernel +6\.8\.0-45-generic +5\.15\.0-91-generic on d$")
        # Flags may be anywhere.
        self.assertEqual(run("report", "diff", *files, "--fail-on", "warning", "--nodes")[1], out)

    def test_of_two_nodes_none_is_the_outlier(self):
        files = [self.recorded(self.tree("a")), self.recorded(self.tree("b", kernel="5.15.0-91-generic"))]
        _, document = report_of("report", "diff", "--nodes", *files)
        self.assertEqual(differing(document), {
            "a, b": "a, b differ from one another in 1 fact: kernel is 6.8.0-45-generic on a, 5.15.0-91-generic on b"})
        self.assertNotIn("usual", document["host_differences"]["differences"][0])

    def test_nodes_that_are_alike_and_reports_of_several(self):
        files = [self.recorded(self.tree(name)) for name in ("a", "b", "c")]
        merged = self.folder / "merged.json"
        self.assertEqual(run("report", "merge", *files[:2], "--json", merged)[0], 0)
        for paths, count in ((files, 3), ([merged], 2), ([merged, files[2]], 3)):
            code, out, err = run("report", "diff", "--nodes", *paths)
            self.assertEqual(code, 0, err)
            self.assertRegex(out, rf"(?m)^{count} hosts: all \d+ facts are the same$")

    def test_two_reports_of_one_node(self):
        tree = self.tree("a")
        before = self.recorded(tree)
        tree.write("proc/sys/kernel/osrelease", "6.9.0")
        after = self.folder / "after.json"
        run("doctor", "--only", "kernel-version", "--sysroot", tree.folder, "--json", after)
        _, document = report_of("report", "diff", "--nodes", before, after)
        self.assertEqual(list(differing(document)), [f"a ({before}), a ({after})"])

    def test_mistakes(self):
        file = self.recorded(self.tree("a"))
        old = json.loads(file.read_text())
        del old["hosts"][0]["facts"]
        old["started_at"] = "2026-01-01T00:00:00Z"  # the time of another run
        without = self.folder / "old.json"
        without.write_text(json.dumps(old))
        for arguments, words in ((("--nodes",), "--nodes: no report given"),
                                 (("--nodes", file), "this one report describes one host only"),
                                 (("--nodes", file, without), "old.json: the report does not describe its hosts"),
                                 ((file, file, file), "unexpected argument"),
                                 ((file,), "no NEW given")):
            with self.subTest(words):
                self.assertIn(words, self.assert_refused(run("report", "diff", *arguments)))


class AsAJob(HostFacts):
    def job(self, trees, *arguments):
        """`shmemctl run` of processes that each see a tree of their own, as if on several hosts."""
        choose = " ".join(f"{pe}) tree={tree.folder};;" for pe, tree in enumerate(trees))
        words = f'case $SHMEMCTL_LOCAL_RANK in {choose} esac; SHMEMCTL_SYSROOT=$tree exec "$0" "$@"'
        code, out, err = run("run", "-n", len(trees), "sh", "-c", words, BINARY, *arguments)
        # To `run` this is a program like any other, whose last line it repeats.
        return code, out, "".join(line for line in err.splitlines(True) if "PEs ended with exit code" not in line)

    def trees(self):
        return [self.tree("a"), self.tree("b"), self.tree("c", firmware="28.38.1002")]

    def test_the_outlier_is_named(self):
        file = self.folder / "r.json"
        code, out, err = self.job(self.trees(), "doctor", "--only", "kernel-version", "--json", file)
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("== all hosts =="), 1, out)
        self.assertRegex(out, r"(?m)^nic\.mlx5_0\.firmware +28\.39\.1002 +28\.38\.1002 on c$")
        self.assertEqual(out.count("[!] hosts-differ  c differs from the 2 other hosts"), 1, out)
        document = json.loads(file.read_text())
        self.assertEqual(list(differing(document)), ["c"])
        self.assertEqual([host["facts"]["kernel"] for host in document["hosts"]], ["6.8.0-45-generic"] * 3)
        self.assertEqual(document["host_differences"]["n_hosts"], 3)
        self.assertEqual(run("report", "validate", file)[0], 0)

    def test_its_severity_decides(self):
        code, _, err = self.job(self.trees(), "doctor", "--only", "kernel-version", "--fail-on", "warning", "--quiet")
        self.assertEqual(code, 1, err)
        self.assertIn("hosts-differ", err)

    def test_hosts_that_are_alike(self):
        code, out, err = self.job([self.tree("a"), self.tree("b")], "doctor", "--only", "kernel-version")
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"(?m)^2 hosts: all \d+ facts are the same$")
        self.assertNotIn("hosts-differ", out)

    def test_check_compares_too(self):
        _, out, err = self.job(self.trees(), "check", "--only", "doctor")
        self.assertEqual(out.count("[!] hosts-differ  c differs from the 2 other hosts"), 1, out + err)
        self.assertLess(out.index("hosts-differ"), out.rindex("PASS") if "PASS" in out else out.rindex("FAIL"))

    def test_against_a_golden_host(self):
        golden = self.recorded(self.tree("good", firmware="28.38.1002"))
        file = self.folder / "r.json"
        code, out, err = self.job(self.trees(), "doctor", "--only", "kernel-version", "--against", golden, "--json", file)
        self.assertEqual(code, 0, err)
        self.assertEqual(list(differing(json.loads(file.read_text()))), ["a, b"])
        self.assertIn("3 hosts compared with good", out)

    def test_a_golden_report_that_cannot_be_read_ends_the_job_at_once(self):
        code, out, err = self.job(self.trees(), "doctor", "--against", self.folder / "missing.json")
        self.assertEqual((code, out), (2, ""), err)
        self.assertEqual(len(error_lines(err)), 1, err)
        self.assertIn("missing.json", err)


if __name__ == "__main__":
    unittest.main()
