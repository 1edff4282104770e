"""The report of a job over several hosts: each host once, and which network joins each pair."""
import json
import unittest

import hosts_support
from hosts_support import MOE, PATIENCE_S, HostsTest, OpenMpi

INTERFACES = {"a": "eth0", "b": "enp5s0np0", "c": "ens1f0"}
PES = {"a": 2, "b": 2, "c": 2}


class ThreeHosts(HostsTest):
    count = 3
    hosts = {"interfaces": tuple(INTERFACES.values())}

    def tearDown(self):
        self.assert_nothing_left()

    def shown(self, *arguments):
        done = self.first.start_command("shmemctl", "report", *arguments).wait(PATIENCE_S)
        self.assertEqual(done.code, 0, done)
        return done.out

    def assert_hosts(self, report):
        self.assertEqual([(host["name"], host["nodes"], host["pes"]) for host in report["hosts"]],
                         [("a", [0], [0, 1]), ("b", [1], [2, 3]), ("c", [2], [4, 5])])
        for host in report["hosts"]:
            self.assertEqual([interface["name"] for interface in host["interfaces"]], [INTERFACES[host["name"]]])
            self.assertIn("glibc", host["versions"])

    def assert_networks(self, report):
        """Every pair of hosts once, each side with its own interface."""
        found = {}
        for row in report["networks"]:
            self.assertEqual((row["transport"], row["both_ways"], len(row["links"])), ("libfabric", True, 1), row)
            link = row["links"][0]
            for first in row["first"]:
                for second in row["second"]:
                    pair = frozenset((first, second))
                    self.assertNotIn(pair, found)
                    found[pair] = {(first, link["first"]["device"], link["first"]["port"]),
                                   (second, link["second"]["device"], link["second"]["port"])}
        names = list(INTERFACES.values())
        self.assertEqual(found, {frozenset((a, b)): {(a, names[a], 1), (b, names[b], 1)}
                                 for a in range(3) for b in range(a)})
        self.assertEqual(sum(row["pairs"] for row in report["networks"]), 3)

    def test_of_each_command(self):
        for words in (("bringup",), ("bench", "put", "--quick", "--sizes", "8"), MOE, ("fabric", "--quick")):
            with self.subTest(words[0]):
                path = self.report_path()
                # A busy machine may have a slow host.
                done = self.start(OpenMpi(), PES, *words, "--json", path).wait(PATIENCE_S)
                self.assertIn(done.code, (0, 1) if words[0] == "fabric" else (0,), done)
                report = json.loads(path.read_text(encoding="utf-8"))
                self.assert_hosts(report)
                self.assert_networks(report)
                self.assertRegex(done.out, r"(?m)\ba <-> b\b.*\blibfabric\b.*\beth0 <-> enp5s0np0$|"
                                           r"\bb <-> a\b.*\blibfabric\b.*\benp5s0np0 <-> eth0$")
                self.shown("validate", path)
                text = self.shown("show", path)
                self.assertRegex(text, r"(?m)^host +node +PEs +NICs ")
                self.assertRegex(text, r"(?m)^c +2 +4-5 +ens1f0.* \*")
                self.assertIn("most hosts have another value", text)

    def test_hotspots_names_its_hosts_once(self):
        _, report = self.job(OpenMpi(), {"a": 1, "b": 1, "c": 1}, "hotspots", "-D", "1")
        self.assertEqual([(host["name"], host["nodes"], host["pes"]) for host in report["hosts"]],
                         [("a", [0], [0]), ("b", [1], [1]), ("c", [2], [2])])


if __name__ == "__main__":
    hosts_support.main()
