"""ibrc over Soft-RoCE: two NICs, links that go down and up, and what it says where it cannot
connect. What all transports do is in test_transports.py."""
import json
import pathlib
import tempfile
import unittest

import lab_support

FOLDER = pathlib.Path(__file__).parent


class Jobs(unittest.TestCase):
    """Runs one lab for all tests of a class; its jobs leave their files in a folder."""
    words = ()
    result = None
    out = None

    @classmethod
    def setUpClass(cls):
        if not cls.words:
            raise unittest.SkipTest("no lab of its own")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name) / "out"
        cls.result = lab_support.run_lab("--timeout", 500, "--hcas", 2, "--out", cls.out, *cls.words)

    def text(self, name):
        return (self.out / name).read_text(encoding="utf-8")

    def report(self, name, code=0):
        self.assertEqual(self.text(name), f"{code}\n",
                         self.text(name + ".errors") + self.text(name + ".text"))
        return json.loads(self.text(name + ".json"))

    def assert_refused(self, name, code, *words):
        """One line of error, and one that says what to do."""
        errors = self.text(name + ".errors")
        self.assertEqual(self.text(name), f"{code}\n", errors)
        for word in words:
            self.assertIn(word, errors)
        self.assertIn("shmemctl: fix: ", errors)


class OneMachine(Jobs):
    words = ("--", "sh", FOLDER / "guest_ibrc.sh", lab_support.BINARY)

    def ways(self, report):
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})
        return {(row["source"], row["target"]): row["way"] for row in report["connections"]}

    def test_pes_of_a_node_share_its_nics(self):
        ways = self.ways(self.report("shared"))
        self.assertIn("rxe0:1 -> rxe1:1", ways[0, 1])
        self.assertIn("rxe1:1 -> rxe0:1", ways[1, 0])

    def test_a_pe_alone_on_its_node_uses_all(self):
        ways = self.ways(self.report("both"))
        self.assertIn("rxe0:1 -> rxe0:1", ways[0, 1])
        self.assertIn("rxe1:1 -> rxe1:1", ways[0, 1])

    def test_addresses_of_different_kinds(self):
        findings = self.report("kinds", 1)["findings"]
        self.assertEqual([row["id"] for row in findings], ["pair-unreachable"])
        self.assertRegex(findings[0]["message"],
                         "here RoCE v2 link-local, there RoCE v2 IPv4; IB_GID_INDEX")

    def test_no_dev_infiniband(self):
        findings = self.report("devices", 1)["findings"]
        self.assertIn("the kernel has rxe0, rxe1, but /dev/infiniband/uverbs* is missing",
                      findings[0]["message"])

    def test_the_smaller_mtu_of_two_is_used(self):
        ways = self.ways(self.report("smaller"))
        self.assertIn("MTU 4096", ways[0, 0])
        self.assertIn("MTU 1024", ways[0, 1])

    def test_an_mtu_that_a_port_does_not_have(self):
        self.assert_refused("mismatch", 3, "PE 1 on ", "device rxe", "port 1", "IB_MTU is 4096",
                            "has 1024", "fix: unset IB_MTU")

    def test_a_wrong_key_is_a_remote_access_error(self):
        self.assertEqual(self.text("key"), "0\n", self.text("key.text"))
        self.assertIn("[  PASSED  ] 1 test", self.text("key.text"))
        self.assertNotIn("SKIPPED", self.text("key.text"))

    def test_the_suite_of_all_transports(self):
        """With one NIC and with two."""
        text = self.text("suite.text")
        self.assertEqual(self.text("suite"), "0\n", text)
        for name in ("TargetNeedNotCall/ibrc ", "TargetNeedNotCall/ibrc_two_nics ",
                     "KilledPeerIsNamedByAll/ibrc "):
            self.assertIn(f"OK ] Ibrc/Conformance.{name}", text)


class Links(Jobs):
    words = ("--machines", 2, "--pes", 1,
             "--at", "1/0", f"sh {FOLDER}/guest_ibrc_switch.sh again 2",
             "--at", "0/0", f"sh {FOLDER}/guest_ibrc_switch.sh down 0",
             "--", "sh", FOLDER / "guest_ibrc_links.sh", lab_support.BINARY)

    def test_a_port_that_comes_back_is_survived(self):
        for machine in (0, 1):
            self.assertEqual(self.text(f"again.{machine}"), "0\n",
                             self.text(f"again.{machine}.errors"))
        self.assertEqual({row["verified"] for row in self.report("again.0")["results"]}, {"passed"})
        self.assertIn("port 1 of rxe1 is down", self.text("again.1.errors"))

    def test_a_port_that_stays_down_is_named_by_all(self):
        for machine in (0, 1):
            self.assert_refused(f"down.{machine}", 3, "put 65536 bytes to PE 1 on lab1",
                                "host lab0, PE 0, device rxe1, port 1", "the port is DOWN")
        report = self.report("down.0", 3)
        self.assertEqual(report["status"], "incomplete")


if __name__ == "__main__":
    lab_support.main()
