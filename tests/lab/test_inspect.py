"""inspect over Soft-RoCE: the queue pairs of perftest's programs and of our own PEs, and their ports."""
import json
import pathlib
import re

import lab_support

SCRIPT = pathlib.Path(__file__).parent / "guest_inspect.sh"


class Inspect(lab_support.Jobs):
    words = ("--hcas", 2, "--", "sh", SCRIPT, lab_support.BINARY)

    def found(self, name):
        said = self.text(name + ".errors") + self.text(name + ".text")
        self.assertEqual(self.text(name), "0\n", said)
        return json.loads(self.text(name + ".json"))

    def rows(self, name):
        """{PID: {lqpn: (device and port, rqpn)}} of connected RC queue pairs, as iproute2 lists them."""
        rows = {}
        for line in self.text(name + ".qp").splitlines():
            fields = re.match(r"link (\S+) .*?lqpn (\d+) .*?rqpn (\d+) .*?type RC state RT[RS] .*?pid (\d+)", line)
            if fields:
                link, number, remote, pid = fields.groups()
                rows.setdefault(int(pid), {})[int(number)] = (link, int(remote))
        return rows

    def check_queue_pairs(self, name, device, programs):
        document = self.found(name)
        rows = self.rows(name)
        entries = [entry for entry in document["processes"] if entry.get("queue_pairs")]
        self.assertEqual(len(entries), programs)
        for entry in entries:
            listed = rows[entry["pid"]]
            pairs = [pair for pair in entry["queue_pairs"] if pair["type"] == "RC" and pair["state"] in ("RTR", "RTS")]
            self.assertEqual({(pair["device"], pair["port"]) for pair in pairs}, {(device, 1)})
            self.assertEqual(sorted(number for pair in pairs for number in pair["numbers"]), sorted(listed))
            self.assertEqual(sorted(number for pair in pairs for number in pair["remote_numbers"]),
                             sorted(remote for _, remote in listed.values()))
            self.assertEqual({link for link, _ in listed.values()}, {f"{device}/1"})
            self.assertGreaterEqual(entry["completion_queues"], 1)
            self.assertGreaterEqual(entry["memory_regions"], 1)
            self.assertGreater(entry["memory_region_bytes"], 0)
            self.assertEqual(entry["rdma_devices"], [device])
        return document, entries

    def test_programs_of_perftest(self):
        document, entries = self.check_queue_pairs("perftest", "rxe1", 2)
        self.assertEqual({entry["name"] for entry in entries}, {"ib_write_bw"})
        # Each is the other's peer.
        one, other = (entry["queue_pairs"][0] for entry in entries)
        self.assertEqual((one["numbers"], other["numbers"]), (other["remote_numbers"], one["remote_numbers"]))
        found = [(each["id"], each["subject"]) for each in document["findings"]]
        self.assertIn(("nic-one-of-many", "rxe1"), found)

    def test_what_iproute2_wrote_is_read_from_a_tree(self):
        live, recorded = self.found("perftest"), self.found("recorded")

        def pairs(document):
            return {entry["pid"]: (entry["queue_pairs"], entry["completion_queues"], entry["memory_regions"])
                    for entry in document["processes"] if entry.get("queue_pairs")}
        self.assertEqual(pairs(recorded), pairs(live))

    def test_our_own_pes(self):
        _, entries = self.check_queue_pairs("bench", "rxe0", 2)
        self.assertEqual({entry["name"] for entry in entries}, {"shmemctl"})

    def test_nobody_communicates(self):
        document = self.found("idle")
        self.assertEqual([entry for entry in document.get("processes", []) if entry.get("queue_pairs")], [])
        self.assertEqual(document["findings"], [])


if __name__ == "__main__":
    lab_support.main()
