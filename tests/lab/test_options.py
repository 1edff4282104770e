"""What the lab refuses, and what it makes of its options; no machine boots here."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import lab_support
import network
import topology
from errors import EXIT_UNAVAILABLE, LabError


class Refused(unittest.TestCase):
    def assert_refused(self, *words):
        with self.assertRaises(LabError) as caught:
            lab_support.options(*words)
        self.assertTrue(caught.exception.fix)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)

    def test_bad_option_values(self):
        self.assertIn("no command", self.assert_refused())
        self.assertIn("99", self.assert_refused("--hcas", 99, "--", "true"))
        self.assertIn("--peer", self.assert_refused("--peer", "true", "--", "true"))
        self.assertIn("eth0", self.assert_refused("--netem", "eth0", "--", "true"))
        self.assertIn("--netem", self.assert_refused("--netem", "eth0: loss 1%", "--", "true"))
        self.assertIn("soon", self.assert_refused("--at", "soon", "true", "--", "true"))
        self.assertIn("1X", self.assert_refused("--env", "1X=2", "--", "true"))
        self.assertIn("numa9", self.assert_refused("--topology", "numa9", "--", "true"))

    def test_bad_trees(self):
        for tree in ([], {}, {"nodes": []}, {"nodes": [{}]}, {"nodes": [{"below": []}]},
                     {"nodes": [{"below": ["toaster"]}]}, {"nodes": [{"below": [{"switch": []}]}]},
                     {"nodes": [{"below": [7]}]}, {"nodes": [{"below": ["nic"]}] * 3},
                     {"nodes": [{"cpus": "2", "below": ["nic"]}]},
                     {"nodes": [{"memory_mib": 0, "below": ["nic"]}]},
                     {"nodes": [{"below": [{"switch": ["nic"] * 32}, {"switch": ["gpu"] * 32}]}]}):
            with self.assertRaises(LabError, msg=tree):
                topology.Topology(tree)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tree.json"
            path.write_text('{"nodes": [', encoding="utf-8")
            self.assertIn("JSON", self.assert_refused("--topology", path, "--", "true"))
            path.write_text(json.dumps(topology.NUMA2), encoding="utf-8")
            self.assertEqual(lab_support.options("--topology", path, "--", "true").hcas, 6)
            self.assertIn("6 NICs", self.assert_refused("--topology", path, "--hcas", 7, "--", "true"))

    def test_errors_are_two_lines(self):
        done = subprocess.run([lab_support.LAB / "run", "--hcas", "99", "--", "true"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Alab: error: [^\n]*99[^\n]*\nlab: fix: [^\n]+\n\Z")

    def test_a_host_without_qemu_skips(self):
        done = subprocess.run(
            [sys.executable, "-c", "import lab_support, image; image.PROGRAMS['no-such-program'] = 'x';"
             "lab_support.main()"], capture_output=True, text=True, check=False,
            cwd=pathlib.Path(__file__).parent)
        self.assertEqual(done.returncode, EXIT_UNAVAILABLE)
        self.assertRegex(done.stdout, r"\Askipped: [^\n]*no-such-program[^\n]*\n\Z")


class Words(unittest.TestCase):
    def test_netem(self):
        self.assertEqual(network.parse_netem("eth0: loss 1% delay 5ms"),
                         network.Netem(None, "eth0", "loss 1% delay 5ms"))
        self.assertEqual(network.parse_netem("1/eth3 rate 10mbit"),
                         network.Netem(1, "eth3", "rate 10mbit"))

    def test_command(self):
        self.assertEqual(lab_support.options("--", "a | b").command, "a | b")
        self.assertEqual(lab_support.options("--", "echo", "a b").command, "echo 'a b'")
        self.assertEqual(lab_support.options("ls", "-l").command, "ls -l")

    def test_deferred_operations_use_the_network(self):
        nics = network.nics_of(0, 2)
        self.assertIn("filter add dev eth0 egress", network.segment_batch(nics, 1, []))
        slow = network.segment_batch(nics, 1, [network.parse_netem("0/eth0: delay 1ms")])
        self.assertNotIn("filter add dev eth0 egress", slow)
        self.assertIn("filter add dev eth1 egress", slow)
        self.assertEqual(network.segment_batch(nics[:1], 1, []), "")


if __name__ == "__main__":
    unittest.main()
