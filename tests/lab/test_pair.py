"""Two machines with a wire between them, one of which loses packets."""
import json
import pathlib
import re
import tempfile
import unittest

import lab_support

SCRIPT = pathlib.Path(__file__).parent / "guest_pair.sh"


class Pair(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.out = pathlib.Path(cls.folder.name) / "out"
        cls.result = lab_support.run_lab(
            "--machines", 2, "--hcas", 2, "--pes", 1, "--netem", "0/eth0: loss 3%", "--timeout", 400,
            "--out", cls.out, "--", "sh", SCRIPT, lab_support.BINARY)

    def text(self, name):
        return (self.out / name).read_text(encoding="utf-8")

    def counters(self, machine):
        return {name: int(value) for name, value in
                re.findall(r"\./(\w+):(\d+)", self.text(f"counters{machine}"))}

    def test_both_guests_succeed(self):
        self.assertIsNone(self.result.error, self.result.stderr)
        self.assertEqual(self.result.exit_codes, [0, 0], self.result.stderr)

    def test_the_guests_are_two_hosts(self):
        for one, other in zip(self.text("ids0").split(), self.text("ids1").split(), strict=True):
            self.assertNotEqual(one, other)
        report = json.loads(self.text("bringup0.json"))
        self.assertEqual((report["job"]["pes"], report["job"]["nodes"]), (2, 2))
        self.assertEqual([host["name"] for host in report["hosts"]], ["lab0", "lab1"])

    def test_a_job_over_both_reaches_every_pair(self):
        errors = self.text("bringup-errors0") + self.text("bringup-errors1")
        self.assertEqual((self.text("bringup0"), self.text("bringup1")), ("0\n", "0\n"), errors)

    def test_bytes_and_latency_over_the_wire(self):
        for name in ("bandwidth", "latency", "across", "back"):
            self.assertEqual(self.text(name), "0\n", name)
        # 500 messages of a packet each left one machine, and came to the other.
        self.assertGreater(self.counters(0)["sent_pkts"], 500)
        self.assertGreater(self.counters(1)["rcvd_pkts"], 500)

    def test_loss_shows_in_the_counters(self):
        dropped = re.search(r"netem.*?loss 3%.*?dropped (\d+)", self.text("netem"), re.DOTALL)
        self.assertGreater(int(dropped.group(1)), 0)
        self.assertGreater(self.counters(1)["out_of_seq_request"], 0)
        self.assertGreater(self.counters(0)["rcvd_seq_err"] + self.counters(0)["completer_retry_err"], 0)

    def test_the_wire_keeps_the_order(self):
        self.assertGreater(self.counters(0)["rcvd_pkts"], 800)
        self.assertEqual(self.counters(0)["out_of_seq_request"], 0)


if __name__ == "__main__":
    lab_support.main()
