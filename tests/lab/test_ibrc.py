"""ibrc over Soft-RoCE: two NICs, what it says where it cannot connect, where others hold the device,
and where a PE falls silent. What all transports do is in test_transports.py, links are in
test_links.py."""
import pathlib

import lab_support

SCRIPT = pathlib.Path(__file__).parent / "guest_ibrc.sh"
PROGRAMS = pathlib.Path(lab_support.BINARY).parent


class Ibrc(lab_support.Jobs):
    words = ("--hcas", 2, "--", "sh", SCRIPT, lab_support.BINARY, PROGRAMS)

    def ways(self, name):
        report = self.assert_verified(name)
        return {(row["source"], row["target"]): row["way"] for row in report["connections"]}

    def unreachable(self, name):
        """The message of the one finding."""
        findings = self.report(name, 1)["findings"]
        self.assertEqual([row["id"] for row in findings], ["pair-unreachable"])
        self.assertIn("0>1, 1>0", findings[0]["message"])
        self.assertTrue(findings[0]["fix"])
        return findings[0]["message"]

    def test_pes_of_a_node_share_its_nics(self):
        ways = self.ways("shared")
        self.assertIn("rxe0:1 -> rxe1:1", ways[0, 1])
        self.assertIn("rxe1:1 -> rxe0:1", ways[1, 0])

    def test_a_pe_alone_on_its_node_uses_all(self):
        ways = self.ways("both")
        self.assertIn("rxe0:1 -> rxe0:1", ways[0, 1])
        self.assertIn("rxe1:1 -> rxe1:1", ways[0, 1])

    def test_addresses_of_different_kinds(self):
        self.assertRegex(self.unreachable("kinds"),
                         "here RoCE v2 link-local, there RoCE v2 IPv4; SHMEMCTL_IB_GID_INDEX")

    def test_no_dev_infiniband(self):
        self.assertIn("the kernel has rxe0, rxe1, but /dev/infiniband/uverbs* is missing",
                      self.unreachable("devices"))

    def test_the_smaller_mtu_of_two_is_used(self):
        ways = self.ways("smaller")
        self.assertIn("MTU 4096", ways[0, 0])
        self.assertIn("MTU 1024", ways[0, 1])

    def test_an_mtu_that_a_port_does_not_have(self):
        # By whoever finds it first; the other repeats that.
        fix = self.assert_refused("mismatch", 3, "cannot connect", "host lab0, PE", "device rxe", "port 1",
                                  "IB_MTU is 4096, and the port rxe1:1", "has 1024")
        self.assertIn("unset SHMEMCTL_IB_MTU", fix)

    def test_a_wrong_key_is_a_remote_access_error(self):
        self.assert_ended("key", 0)
        self.assertIn("[  PASSED  ] 1 test", self.text("key.text"))
        self.assertNotIn("SKIPPED", self.text("key.text"))

    def test_a_device_that_another_process_holds(self):
        fix = self.assert_refused("held", 3, "device rxe0, port 1", "Resource temporarily unavailable",
                                  "rdma.max of /sys/fs/cgroup/lab allows hca_handle=1",
                                  "in use are hca_handle=1")
        self.assertIn("rdma resource show", fix)

    def test_too_few_objects_of_a_device(self):
        fix = self.assert_refused("objects", 3, "host lab0", "device rxe0",
                                  "Resource temporarily unavailable",
                                  "rdma.max of /sys/fs/cgroup/lab allows hca_handle=max hca_object=6")
        self.assertIn("raise rdma.max", fix)

    def test_resources_of_other_processes_are_freed(self):
        self.ways("again")

    def test_a_peer_that_is_stopped_is_named_at_the_deadline(self):
        """Its NIC answers all the same."""
        self.assert_refused("stopped", 124, "PE 1 (host lab0) does not answer")
        self.assert_incomplete("stopped", 124)


if __name__ == "__main__":
    lab_support.main()
