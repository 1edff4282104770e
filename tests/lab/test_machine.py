"""One machine with two RDMA devices: the lab's own promises, and what shmemctl sees in it."""
import json
import pathlib
import tempfile
import unittest

import lab_support
import clock

SCRIPT = pathlib.Path(__file__).parent / "guest_machine.sh"
LINK_EVENT = ("until [ -e /tmp/flows ]; do sleep 0.1; done; ip link set eth0 down; "
              "until [ -e /tmp/seen-down ]; do sleep 0.1; done; ip link set eth0 up")


class OneMachine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.out = pathlib.Path(cls.folder.name) / "out"
        cls.result = lab_support.run_lab(
            "--hcas", 2, "--timeout", 400, "--env", "MARK=a 'b' $c", "--out", cls.out, "--at", "1s",
            LINK_EVENT, "--", "sh", SCRIPT, lab_support.BINARY)

    def text(self, name):
        return (self.out / name).read_text(encoding="utf-8")

    def document(self, name):
        return json.loads(self.text(name))

    def test_the_exit_code_comes_back(self):
        self.assertIsNone(self.result.error, self.result.stderr)
        self.assertEqual(self.result.exit_codes, [7], self.result.stderr)
        self.assertEqual(self.result.exit_code, 7)

    def test_output_comes_back_unmixed(self):
        self.assertEqual(self.result.stdout, ["to-stdout\n"])
        self.assertEqual(self.result.stderr, ["to-stderr\n"])
        self.assertEqual(self.text("lab0.stdout"), "to-stdout\n")
        self.assertEqual(self.text("lab0.stderr"), "to-stderr\n")
        self.assertTrue((self.out / "lab0.console").exists())

    def test_the_command_finds_its_surroundings(self):
        self.assertEqual(self.text("words").splitlines(),
                         ["lab0", "0", "unlimited", str(pathlib.Path.cwd()), "0 1 2 a 'b' $c"])

    def test_the_guest_is_another_host(self):
        host = pathlib.Path("/etc/machine-id")
        if not host.exists():
            self.skipTest("this host has no /etc/machine-id to cover")
        self.assertRegex(self.text("machine-id"), r"\A[0-9a-f]{32}\n\Z")
        self.assertNotEqual(self.text("machine-id"), host.read_text(encoding="utf-8"))

    def test_the_clock_has_the_hosts_rate(self):
        told_mhz = float(self.text("counter").split("Detected ")[1].split()[0])
        self.assertAlmostEqual(told_mhz, clock.counter_khz() / 1000, delta=told_mhz / 1000)

    def test_every_device_reaches_every_device(self):
        self.assertEqual(self.text("pairs").splitlines(),
                         ["rxe0,rxe0 0", "rxe0,rxe1 0", "rxe1,rxe0 0"], self.text("clients"))

    def test_a_link_goes_down_under_traffic_and_up_again(self):
        self.assertEqual(self.text("link").split(), ["flows", "down", "flows"])

    def test_doctor_sees_the_devices(self):
        checks = {check["id"]: check for check in self.document("doctor.json")["checks"]}
        for name in ("rdma-devices", "rdma-port-state", "rdma-uverbs", "rdma-gid-table",
                     "rdma-address-handles", "memlock", "clocksource"):
            self.assertEqual(checks[name]["status"], "pass", checks[name])

    def test_topo_sees_the_devices_and_their_netdevs(self):
        nics = {nic["name"]: nic for nic in self.document("topo.json")["topology"]["nics"]}
        self.assertEqual(sorted(nics), ["rxe0", "rxe1"])
        for number in (0, 1):
            nic = nics[f"rxe{number}"]
            self.assertEqual(nic["driver"], "rdma_rxe")
            self.assertRegex(nic["pci"], r"\A0000:00:[0-9a-f]{2}\.0\Z")
            port, = nic["ports"]
            self.assertEqual((port["netdev"], port["state"]), (f"eth{number}", "active"))
            self.assertEqual([(gid["index"], gid["value"][-14:]) for gid in port["gids"]][1],
                             (1, f"ffff:0a4d:{number:02x}01"))


if __name__ == "__main__":
    lab_support.main()
