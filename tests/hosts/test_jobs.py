"""Jobs over hosts beyond a sweep: worlds by local rank, the checks of a node under a launcher, eight hosts."""
import json

import hosts_support
from hosts_support import PATIENCE_S, HostsTest, Hydra, OpenMpi, Srun


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


class Fabric(HostsTest):
    """What it finds on sound and slow networks is test_fabric.py's: here it runs, under every launcher."""
    count = 3
    slurm = True

    def tearDown(self):
        self.assert_nothing_left()

    def check_launcher(self, launcher):
        path = self.report_path()
        done = self.start(launcher, {"a": 1, "b": 1, "c": 1}, "fabric", "--quick", "--json", path).wait(PATIENCE_S)
        self.assertIn(done.code, (0, 1), done)  # a busy machine may have a slow host
        report = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual((report["status"], report["job"]["launcher"], report["job"]["nodes"]),
                         ("complete", launcher.name, 3))
        for case in ("fabric-pair", "fabric-latency"):
            pairs = {(row["params"]["from_host"], row["params"]["to_host"]) for row in report["results"]
                     if row["case"] == case}
            self.assertEqual(pairs, {(one, other) for one in "abc" for other in "abc" if one != other}, case)

    def test_hydra(self):
        self.check_launcher(Hydra())

    def test_srun_pmi2(self):
        self.check_launcher(Srun("pmi2"))

    def test_srun_pmix(self):
        self.check_launcher(Srun("pmix"))


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
