"""The transports over a real RDMA stack: every pair verified, bytes seen by the NIC, faults named."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import lab_support

FOLDER = pathlib.Path(__file__).parent
SCRIPT = FOLDER / "guest_transports.sh"
BUILD = pathlib.Path(lab_support.BINARY).resolve().parent
#: What `bringup` calls the transport of a registered buffer, whichever it is.
BUFFERS = "registered buffer"


def jobs(*words):
    """Runs a lab whose jobs leave their reports; (result, folder)."""
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    out = pathlib.Path(folder.name) / "out"
    return lab_support.run_lab("--timeout", 400, "--out", out, *words), out


class OneMachine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result, cls.out = jobs("--hcas", 1, "--", "sh", SCRIPT, lab_support.BINARY)

    def text(self, name):
        return (self.out / name).read_text(encoding="utf-8")

    def report(self, name, code=0):
        self.assertEqual(self.text(name), f"{code}\n", self.text(name + ".errors"))
        return json.loads(self.text(name + ".json"))

    def assert_verified(self, report, *transports):
        self.assertEqual({row["params"]["transport"] for row in report["results"]}, {*transports, BUFFERS})
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})

    def test_ibrc_verifies_every_pair(self):
        report = self.report("ibrc")
        self.assert_verified(report, "ibrc")
        for row in report["connections"]:
            self.assertIn("rxe0:1 -> rxe0:1", row["way"])
        self.assertEqual({(row["source"], row["target"]) for row in report["connections"]},
                         {(a, b) for a in range(3) for b in range(3)})

    def test_memory_within_nodes_and_verbs_between_them(self):
        """Atomics then go through the NIC on all pairs."""
        self.assert_verified(self.report("nodes"), "shm", "ibrc")

    def test_ucx_over_verbs(self):
        report = self.report("ucx")
        self.assert_verified(report, "ucx")
        self.assertTrue(all("rc_verbs/rxe0:1" in row["way"] for row in report["connections"]
                            if row["source"] != row["target"]))

    def test_libfabric_over_verbs(self):
        report = self.report("libfabric")
        self.assert_verified(report, "libfabric")
        self.assertTrue(all("verbs;ofi_rxm" in row["way"] for row in report["connections"]))

    def test_the_nic_has_seen_what_bench_moved(self):
        report = self.report("bench")
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})
        moved = {row["counter"]: row["delta"] for row in report["nic_counters"]}
        self.assertGreater(moved["sent_pkts"], 100)
        self.assertNotIn("lifespan", moved)
        self.assertNotIn("traffic-elsewhere", {row["id"] for row in report["findings"]})

    def test_the_ladder_has_rdma_writes(self):
        """Below the transport: the same bytes on queue pairs of the case's own."""
        rows = {row["case"]: row for row in self.report("ladder")["results"]}
        row = rows["verbs-write"]
        self.assertEqual((row["status"], row["verified"]), ("pass", "passed"), row.get("reason"))
        self.assertEqual(row["path"]["transports"], ["verbs"])
        self.assertEqual(row["path"]["nics"], ["rxe0"])
        self.assertEqual({rows[name]["verified"] for name in ("transport-put", "put")}, {"passed"})
        text = self.text("ladder.text")
        self.assertRegex(text, r"(?m)^verbs-write +[0-9.]+ .*\ntransport-put +[0-9.]+ .*\nput +[0-9.]+ ")
        self.assertNotIn("are no step", text)

    def test_rdma_writes_are_verified_both_ways(self):
        report = self.report("writes")
        self.assertEqual({row["case"] for row in report["results"]}, {"verbs-write", "verbs-write-latency"})
        self.assertGreaterEqual(len(report["results"]), 6)
        self.assertEqual({(row["status"], row["verified"]) for row in report["results"]}, {("pass", "passed")})
        self.assertNotIn("traffic-elsewhere", {row["id"] for row in report["findings"]})

    def assert_refused(self, name, code, *words):
        self.assertEqual(self.text(name), f"{code}\n", self.text(name + ".errors"))
        for word in words:
            self.assertRegex(self.text(name + ".errors"), word)
        self.assertIn("shmemctl: fix: ", self.text(name + ".errors"))

    def test_a_missing_gid(self):
        findings = self.report("gid", 1)["findings"]
        self.assertEqual([row["id"] for row in findings], ["pair-unreachable"])
        self.assertIn("rxe0", findings[0]["message"])
        self.assertIn("77", findings[0]["message"])

    def test_a_traffic_class_is_taken_by_ethernet(self):
        self.assert_verified(self.report("class"), "ibrc")

    def test_too_little_lockable_memory(self):
        # One of them may hear of the other before it comes to its own.
        self.assert_refused("memlock", 3, "host lab0, PE [01], device rxe0", "the limit of locked memory is 64K",
                            "ulimit -l")

    def test_a_killed_pe_is_named(self):
        self.assertEqual(self.text("killed"), "137\n", self.text("killed.errors"))
        self.assertIn("PE 1", self.text("killed.errors"))
        self.assertEqual(self.text("killed.left"), "")
        self.assertEqual(json.loads(self.text("killed.json"))["status"], "incomplete")


def compile_program(name, folder):
    """One of tests/openshmem's programs, which check themselves, for a lab."""
    output = pathlib.Path(folder) / name
    subprocess.run(["cc", "-std=c11", str(lab_support.SOURCE / "tests" / "openshmem" / f"{name}.c"),
                    "-o", str(output), "-I", str(BUILD / "include"), "-L", str(BUILD),
                    "-lshmemctl"], check=True)
    return output


class AtomicsByMessage(unittest.TestCase):
    PROGRAMS = ("amo", "signals", "ordering")

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(dir=FOLDER)
        cls.addClassCleanup(folder.cleanup)
        programs = [compile_program(name, folder.name) for name in cls.PROGRAMS]
        cls.result, cls.out = jobs("--hcas", 2, "--", "sh", FOLDER / "guest_messages.sh",
                                   lab_support.BINARY, *programs)

    def text(self, name):
        return (self.out / name).read_text(encoding="utf-8")

    def report(self, name):
        self.assertEqual(self.text(name), "0\n", self.text(name + ".errors"))
        return json.loads(self.text(name + ".json"))

    def test_every_pair_is_verified_and_says_so(self):
        report = self.report("bringup")
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})
        for row in report["connections"]:
            self.assertIn("atomics by message", row["way"])

    def test_memory_within_nodes_and_messages_between_them(self):
        """A processor's atomics meet: those of a node need not go through the NIC."""
        report = self.report("nodes")
        self.assertEqual({row["params"]["transport"] for row in report["results"]},
                         {"shm", "ibrc", BUFFERS})
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})

    def test_bench_counts_every_addition(self):
        report = self.report("bench")
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})

    def test_openshmem_programs(self):
        for name in self.PROGRAMS:
            with self.subTest(name):
                self.assertEqual((self.text(name), self.text(name + ".errors")), ("0\n", ""))

    def test_too_few_receives(self):
        self.assertEqual(self.text("few"), "3\n", self.text("few.errors"))
        self.assertIn("set SHMEMCTL_SRQ_DEPTH to 4", self.text("few.errors"))

    def test_a_killed_pe_is_named(self):
        self.assertEqual(self.text("killed"), "137\n", self.text("killed.errors"))
        self.assertIn("PE 1", self.text("killed.errors"))
        self.assertEqual(json.loads(self.text("killed.json"))["status"], "incomplete")


class TwoMachines(unittest.TestCase):
    def test_every_pair_across_the_wire(self):
        result, out = jobs(
            "--machines", 2, "--pes", 2, "--", "sh", "-c",
            f"{lab_support.BINARY} bringup --transport ibrc --symmetric-size 64M "
            "--json $LAB_OUT/$LAB_MACHINE.json --force")
        self.assertEqual(result.exit_codes, [0, 0], result.stderr)
        report = json.loads((out / "0.json").read_text(encoding="utf-8"))
        self.assertEqual((report["job"]["pes"], report["job"]["nodes"]), (4, 2))
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})
        self.assertEqual([host["name"] for host in report["hosts"]], ["lab0", "lab1"])


if __name__ == "__main__":
    lab_support.main()
