"""Jobs on four hosts under every launcher, on every change.

The hosts are as unlike one another as hosts of a cluster may be: other names of their interfaces, and a
bridge of containers that leads nowhere on each.
"""
import unittest

import hosts_support
from hosts_support import MOE, HostsTest, Hydra, OpenMpi, Srun

ALL = {"a": 1, "b": 1, "c": 1, "d": 1}
NAMES = list(ALL)


class FourHosts(HostsTest):
    slurm = True
    hosts = {"interfaces": ("eth0", "enp5s0np0", "ens1f0", "ib0"), "docker": True}

    def tearDown(self):
        self.assert_nothing_left()


class Launchers(FourHosts):
    def check_launcher(self, launcher, pes_per_host=1):
        with self.subTest("bringup"):
            done, report = self.job(launcher, {host: pes_per_host for host in NAMES}, "bringup")
            self.assert_verified(report, NAMES)
            self.assertEqual((report["job"]["pes"], report["job"]["nodes"]), (4 * pes_per_host, 4))
            self.assertEqual((report["job"]["launcher"], report["job"]["bootstrap"]),
                             (launcher.name, launcher.bootstrap))
            self.assertIn("transport-fallback", [finding["id"] for finding in report["findings"]], done)
        with self.subTest("bench"):
            done, report = self.job(launcher, ALL, "bench", "put", "--quick")
            self.assert_verified(report, NAMES)
            # The pair is on two hosts.
            self.assertIn("put: PE 0 (a) -> PE 1 (b) by libfabric eth0", done.out)
        with self.subTest("moe"):
            done, report = self.job(launcher, {"a": 2, "b": 2}, *MOE)
            self.assert_verified(report, ["a", "b"])
            self.assertNotIn("flat", report["results"][0]["params"])
        with self.subTest("hotspots"):
            done, report = self.job(launcher, ALL, "hotspots", "-D", "1")
            watched = {(port["host"], port["device"]) for port in report["hotspots"]["ports"]}
            self.assertLessEqual({("a", "eth0"), ("b", "enp5s0np0"), ("c", "ens1f0"), ("d", "ib0")}, watched)

    def test_open_mpi_over_ssh(self):
        self.check_launcher(OpenMpi(), 2)

    def test_hydra_over_ssh(self):
        self.check_launcher(Hydra())

    def test_srun_pmi2(self):
        self.check_launcher(Srun("pmi2"))

    def test_srun_pmix(self):
        self.check_launcher(Srun("pmix"))

    def test_uid(self):
        """PEs that ssh has started: nobody tells them their number but the options."""
        _, report = self.uid_job(ALL, "bringup")
        self.assert_verified(report, NAMES)
        self.assertEqual((report["job"]["pes"], report["job"]["nodes"], report["job"]["bootstrap"]),
                         (4, 4, "uid"))


class UnequalNodes(FourHosts):
    """Three hosts with 3, 1 and 2 PEs, in blocks and round robin: `moe` needs to be told nothing."""

    def check_moe(self, launcher, by_node):
        _, report = self.job(launcher, {"a": 3, "b": 1, "c": 2}, *MOE, by_node=by_node)
        self.assert_verified(report, ["a", "b", "c"])
        self.assertEqual(report["job"]["pes"], 6)
        self.assertTrue(report["results"][0]["params"]["flat"])

    def test_open_mpi_in_blocks(self):
        self.check_moe(OpenMpi(), False)

    def test_open_mpi_round_robin(self):
        self.check_moe(OpenMpi(), True)

    def test_srun_in_blocks(self):
        self.check_moe(Srun("pmi2"), False)


if __name__ == "__main__":
    hosts_support.main()
