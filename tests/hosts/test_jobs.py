"""Jobs over hosts beyond a sweep: worlds by local rank, the checks of a node under a launcher, eight hosts."""
import json

import hosts_support
from hosts_support import PATIENCE_S, HostsTest, Hydra, OpenMpi


class TwoHosts(HostsTest):
    count = 2

    def tearDown(self):
        self.assert_nothing_left()

    def test_worlds_of_one_local_rank_each_write_one_report(self):
        done, report = self.job(OpenMpi(), {"a": 2, "b": 2}, "bringup", "--init-mode", "per-local-rank")
        self.assert_verified(report, ["a", "b"])
        self.assertEqual(done.out.count("world 0 of 2"), 1, done)

    def test_check_looks_at_each_host_once(self):
        path = self.report_path()
        # Neither GPU nor RDMA device: nothing to check.
        done = self.start(OpenMpi(), {"a": 1, "b": 1}, "check", "--level", "1", "--json", path).wait(PATIENCE_S)
        report = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual([host["name"] for host in report["hosts"]], ["a", "b"], done)
        self.assertIn("== host b (PE 1) ==", done.out)
        self.assertNotIn("shmemctl: error:", done.err)

    def test_topo_and_doctor_tell_the_hosts_apart(self):
        for command in ("topo", "doctor"):
            with self.subTest(command):
                done = self.start(OpenMpi(), {"a": 1, "b": 1}, command).wait(PATIENCE_S)
                self.assertIn("== host b (PE 1) ==", done.out, done)


class EightHosts(HostsTest):
    count = 8

    def test_sixteen_pes(self):
        for launcher in (OpenMpi(), Hydra()):
            with self.subTest(launcher.name):
                _, report = self.job(launcher, {host.key: 2 for host in self.cluster.all}, "bringup", "--timeout", 120)
                self.assert_verified(report, list("abcdefgh"))
                self.assertEqual((report["job"]["pes"], report["job"]["nodes"]), (16, 8))
                self.assert_nothing_left()


if __name__ == "__main__":
    hosts_support.main()
