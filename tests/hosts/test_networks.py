"""Networks as clusters have them, good and bad: what a job must come up on, and what it says of it."""
import json
import pathlib
import tempfile
import unittest

import hosts_support
from hosts_support import HostsTest, Hydra, OpenMpi

TWO_HOSTS = {"a": 2, "b": 2}
SWEEP = ("bench", "put", "-b", "64K", "-e", "64K", "-D", "2")


class Networks(HostsTest):
    """A class for each kind of network; the tests are the same."""
    count = 2
    names = ["a", "b"]

    @classmethod
    def setUpClass(cls):
        if cls is Networks:
            raise unittest.SkipTest("no network of its own")
        super().setUpClass()

    def tearDown(self):
        self.assert_nothing_left()

    def test_open_mpi(self):
        _, report = self.job(OpenMpi(), TWO_HOSTS, "bringup")
        self.assert_verified(report, self.names)
        self.assertEqual(report["job"]["nodes"], 2)

    def test_uid(self):
        _, report = self.uid_job(TWO_HOSTS, "bringup")
        self.assert_verified(report, self.names)
        self.assertEqual(report["job"]["nodes"], 2)


class Ipv4Only(Networks):
    options = {"family": "4"}

    def test_hydra(self):
        _, report = self.job(Hydra(), TWO_HOSTS, "bringup")
        self.assert_verified(report, self.names)

    def test_addresses_of_no_other_family_are_used(self):
        done, _ = self.job(OpenMpi(), TWO_HOSTS, "bringup", "--verbose")
        self.assertIn("(10.77.0.2:", done.out)
        self.assertNotIn("fe80::", done.out)


class Ipv6Only(Networks):
    """Not Hydra: MPICH's own connections are IPv4's."""
    options = {"family": "6"}

    def test_an_address_may_stand_in_a_session_id(self):
        _, report = self.uid_job(TWO_HOSTS, "bringup", address="[fd77::1]")
        self.assert_verified(report, self.names)


class InterfacesDiffer(Networks):
    """Link-local addresses have the name of an interface in them that the other host does not have."""
    hosts = {"interfaces": ("eth0", "enp5s0np0"), "rails": 1, "docker": True}

    def test_hydra(self):
        _, report = self.job(Hydra(), TWO_HOSTS, "bringup")
        self.assert_verified(report, self.names)

    def test_an_interface_of_one_host_alone(self):
        one = self.cluster.host("b")
        one.must_run("cannot add an interface", "ip", "link", "add", "veth8f3a1c", "type", "veth", "peer", "name", "x")
        self.addCleanup(one.must_run, "cannot remove it", "ip", "link", "del", "veth8f3a1c")
        for name in ("veth8f3a1c", "x"):
            one.must_run("cannot set it up", "ip", "link", "set", name, "up")
        _, report = self.job(OpenMpi(), TWO_HOSTS, "bringup")
        self.assert_verified(report, self.names)


class LoopbackInHostsFile(Networks):
    """As Debian's installer writes it: a host's own name is 127.0.1.1."""
    options = {"hosts_file": "loopback"}


class NamesUnknown(Networks):
    """No host is in /etc/hosts, nor is there a DNS: only addresses work."""
    options = {"hosts_file": "local", "family": "4"}

    def test_open_mpi(self):
        _, report = self.job(OpenMpi(), {"10.77.0.1": 2, "10.77.0.2": 2}, "bringup")
        self.assert_verified(report, self.names)

    def test_uid(self):
        _, report = self.uid_job(TWO_HOSTS, "bringup", address="10.77.0.1")
        self.assert_verified(report, self.names)


class MtusDiffer(Networks):
    hosts = {"mtus": (9000, 1500)}

    def test_large_messages(self):
        _, report = self.job(OpenMpi(), {"a": 1, "b": 1}, "bench", "put", "--quick")
        self.assert_verified(report, self.names)


class SameHostname(Networks):
    """Two hosts that were given one name are two hosts."""
    hosts = {"hostnames": ("node",)}
    names = ["node", "node"]

    def test_open_mpi(self):
        """Open MPI itself compares names, and would start all on one: it is given addresses."""
        _, report = self.job(OpenMpi(), {"10.77.0.1": 2, "10.77.0.2": 2}, "bringup")
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})


class SameMachineId(Networks):
    """Clones of one image: the boot ids tell them apart."""
    options = {"same_machine_id": True}


class ClocksDiffer(Networks):
    """Monotonic clocks an hour apart, as hosts' are that were booted at other times."""
    hosts = {"clocks": (0, 3600)}

    def test_times_are_of_one_host_each(self):
        _, report = self.job(OpenMpi(), {"a": 1, "b": 1}, "bench", "put-pingpong", "--quick")
        self.assert_verified(report, self.names)
        for row in report["results"]:
            self.assertLess(row["stats"]["max"], 60e6, row)  # microseconds


class ContainersOfOneMachine(HostsTest):
    """Machine id and boot id are one machine's: pods on a node, each with a network of its own."""
    count = 2
    options = {"same_machine_id": True, "same_boot_id": True}

    def test_they_reach_each_other_over_the_network(self):
        _, report = self.job(OpenMpi(), TWO_HOSTS, "bringup")
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})
        self.assertEqual(report["job"]["nodes"], 1)
        self.assert_nothing_left()


class OtherTrees(HostsTest):
    """Hosts with other NICs and GPUs than one another: trees of fake machines."""
    count = 2

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="trees.")
        cls.addClassCleanup(folder.cleanup)
        trees = []
        for name, nics, gpus in (("a", 2, 1), ("b", 4, 3)):
            trees.append(pathlib.Path(folder.name) / name)
            for index in range(gpus):
                cls.add_gpu(trees[-1], index)
            for index in range(nics):
                cls.add_hca(trees[-1], index)
            (trees[-1] / "proc/sys/kernel").mkdir(parents=True)
            (trees[-1] / "proc/sys/kernel/hostname").write_text(f"{name}\n", encoding="ascii")
            (trees[-1] / "proc/uptime").write_text("100 1\n", encoding="ascii")
        cls.hosts = {"sysroots": trees}
        super().setUpClass()

    @staticmethod
    def add_gpu(tree, index):
        address = f"0000:{0x48 + index:02x}:00.0"
        device = tree / f"sys/devices/pci0000:{0x48 + index:02x}/{address}"
        device.mkdir(parents=True)
        for name, text in (("class", "0x030200"), ("vendor", "0x10de"), ("device", "0x2330"), ("numa_node", "0")):
            (device / name).write_text(f"{text}\n", encoding="ascii")
        link = tree / f"sys/bus/pci/devices/{address}"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../../../{device.relative_to(tree)}")

    @staticmethod
    def add_hca(tree, index):
        address = f"0000:{0x18 + index:02x}:00.0"
        device = f"sys/devices/pci0000:{0x18 + index:02x}/{address}"
        hca = f"{device}/infiniband/mlx5_{index}"
        for path, text in ((f"{device}/class", "0x020700"), (f"{device}/vendor", "0x15b3"),
                           (f"{device}/device", "0x1021"), (f"{device}/numa_node", "0"),
                           (f"{hca}/node_type", "1: CA"), (f"{hca}/ports/1/state", "4: ACTIVE"),
                           (f"{hca}/ports/1/rate", "400 Gb/sec (4X NDR)"), (f"{hca}/ports/1/lid", "0x1"),
                           (f"{hca}/ports/1/link_layer", "InfiniBand"),
                           (f"{hca}/ports/1/counters/port_xmit_data", "0"),
                           (f"{hca}/ports/1/counters/port_rcv_data", "0")):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(f"{text}\n", encoding="ascii")
        for path, target in ((f"sys/class/infiniband/mlx5_{index}", f"../../../{hca}"),
                             (f"{hca}/device", f"../../../{address}"),
                             (f"sys/bus/pci/devices/{address}", f"../../../../{device}")):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).symlink_to(target)

    def test_each_host_is_told_by_its_own_tree(self):
        command = self.start(OpenMpi(), {"a": 1, "b": 1}, "hotspots", "-D", "1", "--json", self.out / "trees.json",
                             SHMEMCTL_SYSROOT="/run/lab/files/sysroot")
        done = command.wait(hosts_support.PATIENCE_S)
        self.assertEqual(done.code, 0, done)
        report = json.loads((self.out / "trees.json").read_text(encoding="utf-8"))
        ports = sorted((port["host"], port["device"]) for port in report["hotspots"]["ports"])
        self.assertEqual(ports, [("a", "mlx5_0"), ("a", "mlx5_1"), *(("b", f"mlx5_{i}") for i in range(4))])
        # The report has the topology of both.
        self.assertEqual([nic["name"] for nic in report["topology"]["nics"]], ["mlx5_0", "mlx5_1"])
        self.assertEqual([(node["nodes"], node["topology"]["hostname"], len(node["topology"]["nics"]))
                          for node in report["other_nodes"]], [([1], "b", 4)])

    def test_topo_tells_what_each_host_has(self):
        done = self.start(OpenMpi(), {"a": 1, "b": 1}, "topo", SHMEMCTL_SYSROOT="/run/lab/files/sysroot").wait(
            hosts_support.PATIENCE_S)
        a, b = done.out.split("== host b (PE 1) ==")
        self.assertIn("1 GPU, 2 NICs", a, done)
        self.assertIn("3 GPUs, 4 NICs", b, done)


class OneHostDiffers(HostsTest):
    """Four hosts with trees of fake machines that are alike, but for the firmware of c."""
    count = 4

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="trees.")
        cls.addClassCleanup(folder.cleanup)
        trees = []
        for name in "abcd":
            trees.append(pathlib.Path(folder.name) / name)
            for index in range(2):
                OtherTrees.add_hca(trees[-1], index)
                firmware = "28.38.1002" if (name, index) == ("c", 1) else "28.39.1002"
                hca = f"sys/class/infiniband/mlx5_{index}"
                (trees[-1] / hca / "fw_ver").write_text(f"{firmware}\n", encoding="ascii")
            (trees[-1] / "proc/sys/kernel").mkdir(parents=True)
            (trees[-1] / "proc/sys/kernel/hostname").write_text(f"{name}\n", encoding="ascii")
            (trees[-1] / "proc/sys/kernel/osrelease").write_text("6.8.0-45-generic\n", encoding="ascii")
        cls.hosts = {"sysroots": trees}
        super().setUpClass()

    def test_doctor_names_it(self):
        path = self.report_path()
        command = self.start(OpenMpi(), {host: 1 for host in "abcd"}, "doctor", "--only", "kernel-version",
                             "--json", path, SHMEMCTL_SYSROOT="/run/lab/files/sysroot")
        done = command.wait(hosts_support.PATIENCE_S)
        self.assertEqual(done.code, 0, done)
        report = json.loads(path.read_text(encoding="utf-8"))
        found = [finding for finding in report["findings"] if finding["id"] == "hosts-differ"]
        self.assertEqual([finding["subject"] for finding in found], ["c"], done)
        self.assertIn("nic.mlx5_1.firmware is 28.38.1002 (others 28.39.1002)", found[0]["message"])
        self.assertIn("c differs from the 3 other hosts in 1 fact", done.out)
        self.assertEqual([host["facts"]["nic.count"] for host in report["hosts"]], ["2"] * 4)


class Impaired(HostsTest):
    """Cables that delay, lose and reorder, and one that is slow."""
    count = 3

    def sweep(self, pes=None):
        done, report = self.job(OpenMpi(), pes or {"a": 1, "b": 1}, *SWEEP)
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"}, done)
        return report

    def tearDown(self):
        self.cluster.cable("b")
        self.assert_nothing_left()

    def test_delay(self):
        self.cluster.cable("b", "delay 5ms")
        _, report = self.job(OpenMpi(), {"a": 1, "b": 1}, "bench", "put-pingpong", "-b", "8", "-e", "8", "-D", "2")
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})
        # Half a round trip.
        self.assertGreater(report["results"][0]["stats"]["min"], 4900)

    def test_loss(self):
        self.cluster.cable("b", "delay 1ms loss 1%")
        self.sweep()

    def test_reorder(self):
        self.cluster.cable("b", "delay 2ms jitter 2ms reorder 20%")
        self.sweep()

    def test_a_long_way(self):
        self.cluster.cable("b", "delay 50ms loss 1%")
        _, report = self.job(OpenMpi(), TWO_HOSTS, "bringup")
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})

    def test_one_slow_pair(self):
        """b reaches a at 50 Mb/s; c reaches it at full speed."""
        self.cluster.rate("b", "to a 50mbit")
        self.cluster.rate("b", "from a 50mbit")
        slow = self.sweep()["results"][0]["bandwidth_GBps"]
        good = self.sweep({"a": 1, "c": 1})["results"][0]["bandwidth_GBps"]
        self.assertLess(slow, 0.0075)
        self.assertGreater(good, 2 * slow)


if __name__ == "__main__":
    hosts_support.main()
