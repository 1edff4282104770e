"""topo, doctor and check as a job: one run on each host, one merged result."""
import json
import pathlib
import socket
import tempfile
import unittest

from launchers import launch, needs
from support import BINARY, DATA, CliTest, error_lines, run
from test_hotspots import Tree

NODE = DATA / "nccl" / "hgx-8gpu-8nic.xml"


class NodeJobTest(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trees = [Tree(self.folder / name, hostname=name, nics=2) for name in ("nodea", "nodeb")]

    def job(self, tree_of_pe, *arguments, env=None):
        """`shmemctl run` of processes that each see the tree of that number, as if on several hosts."""
        choose = " ".join(f"{pe}) tree={self.trees[tree].folder};;" for pe, tree in enumerate(tree_of_pe))
        words = f'case $SHMEMCTL_LOCAL_RANK in {choose} esac; SHMEMCTL_SYSROOT=$tree exec "$0" "$@"'
        code, out, err = run("run", "-n", len(tree_of_pe), "sh", "-c", words, BINARY, *arguments, env=env)
        # To `run` this is a program like any other, whose last line it repeats.
        return code, out, "".join(line for line in err.splitlines(True) if "PEs ended with exit code" not in line)


class OneHost(NodeJobTest):
    def test_the_node_is_read_once(self):
        file = self.folder / "r.json"
        for command in ("topo", "doctor"):
            with self.subTest(command):
                alone = run(command, env={"SHMEMCTL_SYSROOT": str(self.trees[0].folder)})
                together = self.job([0, 0, 0], command, "--json", file, "--force")
                self.assertEqual(together[:2], alone[:2], together[2])
                document = json.loads(file.read_text())
                self.assertNotIn("runs", document)
                self.assertEqual(document["exit_code"], alone[0])
                self.assertEqual(run("report", "validate", file)[0], 0)

    def test_this_machine(self):
        code, out, err = run("run", "-n", "3", "doctor", "--only", "memlock")
        self.assertEqual((code, out), run("doctor", "--only", "memlock")[:2], err)

    def test_a_recorded_machine_is_printed_once(self):
        self.assertEqual(run("run", "-n", "3", "topo", "--from", NODE)[:2], run("topo", "--from", NODE)[:2])


    def test_env_and_sim_run_once(self):
        sim = ("sim", "--from", NODE, "--nodes", "2", "--num-tokens", "16", "--steps", "2")
        file = self.folder / "r.json"
        self.assertEqual(run("run", "-n", "3", *sim, "--json", file)[:2], run(*sim)[:2])
        self.assertEqual(json.loads(file.read_text())["status"], "complete")
        code, out, err = run("run", "-n", "3", "env")
        self.assertEqual(code, 0, err)
        for heading in ("Bootstrap: the first that applies", "Remote transport: the first that reaches all PEs", "No findings."):
            self.assertEqual(out.count(heading), 1, out)
        # What is wrong is said once, and PE 0's exit code is the job's.
        code, out, err = run("run", "-n", "3", "env", env={"NVSHMEM_REMOTE_TRANSPORT": "ibgda"})
        self.assertEqual((code, out.count("[x] remote-transport-unknown")), (1, 1), out + err)


class TwoHosts(NodeJobTest):
    def test_both_are_shown_by_name_and_merged(self):
        file = self.folder / "r.json"
        code, out, err = self.job([0, 0, 1], "topo", "--json", file)
        self.assertIn(code, (0, 1), err)
        headings = [line for line in out.splitlines() if line.startswith("== host ")]
        self.assertEqual(headings, ["== host nodea (PEs 0 to 1, 2 of them) ==", "== host nodeb (PE 2) =="])
        document = json.loads(file.read_text())
        self.assertEqual(run("report", "validate", file)[0], 0)
        self.assertEqual([(host["name"], host["nodes"], host["pes"]) for host in document["hosts"]],
                         [("nodea", [0], [0, 1]), ("nodeb", [1], [2])])
        self.assertRegex(run("report", "show", file)[1], r"(?m)^host +node +PEs ")
        self.assertEqual(len(document["runs"]), 2)
        self.assertEqual((document["job"]["pes"], document["job"]["nodes"]), (3, 2))
        self.assertEqual((document["job"]["launcher"], document["exit_code"]), ("run", code))

    def test_the_worst_host_decides_for_all(self):
        self.trees[1].write("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN")
        alone = [run("doctor", env={"SHMEMCTL_SYSROOT": str(tree.folder)})[0] for tree in self.trees]
        code, out, err = self.job([0, 1], "doctor")
        self.assertEqual(code, max(alone), out + err)

    def test_json_on_stdout_is_one_document(self):
        _, out, err = self.job([0, 1], "doctor", "--json", "-")
        self.assertEqual(len(json.loads(out)["runs"]), 2, err)

    def test_a_file_that_exists_is_refused_once_and_before_anything(self):
        file = self.folder / "r.json"
        file.write_text("mine")
        code, out, err = self.job([0, 1], "doctor", "--json", file)
        self.assertEqual((code, out, file.read_text()), (2, "", "mine"), err)
        self.assertEqual(len(error_lines(err)), 1, err)

    def test_a_usage_error_is_printed_once(self):
        code, out, err = self.job([0, 1, 1], "doctor", "--only", "rmda")
        self.assertEqual((code, out), (2, ""), err)
        self.assertEqual(len([line for line in error_lines(err) if "rmda" in line]), 1, err)

    def test_quiet_names_the_host(self):
        code, out, err = self.job([0, 1], "topo", "--quiet", "--hca-list", "mlx5_77")
        self.assertEqual((code, out), (1, ""), err)
        for host in ("nodea", "nodeb"):
            self.assertTrue(any(f"host {host}: " in line for line in error_lines(err)), err)


class NamesWithHosts(NodeJobTest):
    def test_the_host_stands_in_the_name(self):
        code, _, err = run("topo", "--from", NODE, "--json", self.folder / "t.%h.json")
        self.assertIn(code, (0, 1), err)
        self.assertTrue((self.folder / f"t.{socket.gethostname()}.json").exists())

    def test_each_host_writes_its_own(self):
        code, _, err = run("run", "-n", "2", "doctor", "--only", "memlock", "--json", self.folder / "d.%h.json",
                           "--csv", self.folder / "d.csv")
        self.assertIn(code, (0, 1), err)
        document = json.loads((self.folder / f"d.{socket.gethostname()}.json").read_text())
        self.assertNotIn("runs", document)
        self.assertTrue((self.folder / "d.csv").exists())


class NoBootstrap(NodeJobTest):
    """A launcher whose library is not there: what doctor is needed for most."""

    def alone(self, local_rank, *arguments):
        return run("doctor", "--only", "memlock", *arguments,
                   env={"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": str(local_rank),
                        "OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank), "SHMEMCTL_MPI_LIBRARY": "no-such-library.so",
                        "SHMEMCTL_PMIX_LIBRARY": "no-such-library.so"})

    def test_a_host_reports_its_own_node_without_a_bootstrap(self):
        file = self.folder / "r.json"
        code, out, err = self.alone(0, "--json", file)
        self.assertEqual(code, 3, err)
        self.assertTrue(out.startswith(f"== host {socket.gethostname()} ==\n"), out)
        self.assertIn("memlock", out)
        self.assertEqual(len(error_lines(err)), 1, err)
        self.assertIn("hosts of this job", err)
        self.assertEqual(json.loads(file.read_text())["checks"][0]["id"], "memlock")

    def test_other_processes_of_the_host_print_nothing(self):
        self.assertEqual(self.alone(1), (3, "", ""))


class Launchers(NodeJobTest):
    @needs("mpirun")
    def test_mpirun(self):
        file = self.folder / "r.json"
        outcome = launch(["mpirun", "-n", "3", "--oversubscribe", BINARY, "doctor", "--only", "memlock",
                          "--json", file])
        alone = run("doctor", "--only", "memlock")
        self.assertEqual(outcome.code, alone[0], outcome)
        self.assertEqual(outcome.out.count("memlock"), alone[1].count("memlock"), outcome)
        self.assertNotIn("runs", json.loads(file.read_text()))
        self.assertEqual(outcome.left, [], outcome)

    @needs("mpirun")
    def test_check_is_one_check(self):
        outcome = launch(["mpirun", "-n", "2", "--oversubscribe", BINARY, "check", "--timeout", "200"],
                         env={"SHMEMCTL_SYMMETRIC_SIZE": "64M"})
        self.assertIn(outcome.code, (0, 1, 3), outcome)
        self.assertEqual(len([line for line in outcome.out.splitlines() if "] bringup " in line]), 1, outcome)


if __name__ == "__main__":
    unittest.main()
