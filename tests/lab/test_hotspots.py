"""Traffic forced onto one of several Soft-RoCE NICs: hotspots names it."""
import json
import pathlib
import tempfile
import unittest

import lab_support

WRITES = "ib_write_bw -d rxe1 -x 1 -s 65536 -n 400"
# The other side is waited for, however long the host lets it take.
CLIENT = f"until {WRITES} %s; do sleep 1; done"


class OneOfThree(unittest.TestCase):
    """To itself: the interface sees nothing of it, so packets tell."""
    words = ("--hcas", 3)
    server, address = f"{WRITES} & ", "$LAB_ADDRESS"

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        out = pathlib.Path(folder.name) / "out"
        command = (f"{cls.server} {lab_support.BINARY} hotspots --json $LAB_OUT/report.json "
                   f"--during sh -c '{CLIENT % cls.address}'")
        cls.result = lab_support.run_lab("--timeout", 500, "--out", out, *cls.words, "--", command)
        report = out / "report.json"
        cls.report = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else None

    def setUp(self):
        self.assertIsNotNone(self.report, self.result)
        self.ports = {port["device"]: port for port in self.report["hotspots"]["ports"] if port["rdma"]}

    def test_the_command_ended_well(self):
        self.assertEqual(self.report["hotspots"]["command"]["exit_code"], 0)

    def test_one_nic_is_hot_and_the_others_are_not(self):
        self.assertEqual({name for name, port in self.ports.items() if port["hot"]}, {"rxe1"})
        found = {f["subject"] for f in self.report["findings"] if f["id"] == "nic-hotspot-measured"}
        self.assertEqual(found, {"lab0 rxe1:1"})

    def test_no_utilization_of_a_nominal_soft_roce_rate(self):
        for port in self.ports.values():
            self.assertIsNone(port["link_Gbps"])
            self.assertNotIn("link_share", port["sent"])

    def test_no_rate_for_traffic_that_the_interface_does_not_count(self):
        sent = self.ports["rxe1"]["sent"]
        self.assertIsNone(sent["GBps"])
        self.assertIn("does not see", sent["GBps_reason"])
        self.assertGreater(sent["packets_per_s"], 100)


if __name__ == "__main__":
    lab_support.main()
