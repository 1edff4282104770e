"""Whole jobs over the network transports of this host: bringup, and the OpenSHMEM conformance
programs unchanged. What needs an RDMA stack is in tests/lab."""
import json
import os
import unittest

from support import BINARY, run
from test_openshmem import CONFORMANCE, OpenShmemTest

LIBFABRIC = {"SHMEMCTL_TRANSPORT": "libfabric", "SHMEMCTL_LIBFABRIC_PROVIDER": "tcp"}
EMULATED = {"SHMEMCTL_EMULATED_HCA_OVER": "shm"}
#: An HCA that carries out a queue's operations in any order that the specification allows.
ANY_ORDER = {"SHMEMCTL_EMULATED_HCA_PLACEMENT": "any"}
WAYS = {
    "libfabric-tcp": LIBFABRIC,
    "libfabric-tcp-by-efas-rules": {**LIBFABRIC, "SHMEMCTL_LIBFABRIC_PROFILE": "efa"},
    "ucx": {"SHMEMCTL_TRANSPORT": "ucx"},
    "ucx-tcp": {"SHMEMCTL_TRANSPORT": "ucx", "UCX_TLS": "tcp,self"},
    "ibdevx": {"SHMEMCTL_TRANSPORT": "ibdevx", **EMULATED},
    "ibgda": {"SHMEMCTL_TRANSPORT": "ibgda", **EMULATED},
    "ibdevx-any-order": {"SHMEMCTL_TRANSPORT": "ibdevx", **EMULATED, **ANY_ORDER},
    "ibgda-any-order": {"SHMEMCTL_TRANSPORT": "ibgda", **EMULATED, **ANY_ORDER},
}
#: Between nodes, where that is not what the way says: there no memory is shared, and ibgda is not
#: among NVSHMEM's remote transports.
BETWEEN_NODES = {
    "ibdevx": {"NVSHMEM_REMOTE_TRANSPORT": "ibdevx", "SHMEMCTL_EMULATED_HCA_OVER": "libfabric",
               "SHMEMCTL_LIBFABRIC_PROVIDER": "tcp"},
    "ibgda": {"SHMEMCTL_TRANSPORT": "shm,ibgda", "SHMEMCTL_EMULATED_HCA_OVER": "ucx"},
    "ibdevx-any-order": {"NVSHMEM_REMOTE_TRANSPORT": "ibdevx",
                         "SHMEMCTL_EMULATED_HCA_OVER": "libfabric",
                         "SHMEMCTL_LIBFABRIC_PROVIDER": "tcp", **ANY_ORDER},
    "ibgda-any-order": {"SHMEMCTL_TRANSPORT": "shm,ibgda", "SHMEMCTL_EMULATED_HCA_OVER": "ucx",
                        **ANY_ORDER},
}
#: Their own subject is the process or the headers, not what goes from PE to PE.
LEFT_OUT = ("setup", "profile", "names")


def bringup(*arguments, env, n_pes=4):
    return run("run", "-n", n_pes, *arguments, "bringup", "--json", "-", env=env)


def missing(env, *arguments):
    """Why this network cannot be used here, according to bringup; None if it can."""
    code, out, _ = bringup(*arguments, env=env, n_pes=2)
    if code == 0:
        return None
    try:
        findings = json.loads(out)["findings"]
    except ValueError:
        return None
    return next((f["message"] for f in findings if f["id"] == "pair-unreachable"
                 and "is not installed" in f["message"]), None)


class WholeJobs(OpenShmemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.missing = {name: missing(env) for name, env in WAYS.items()}

    def each(self, test):
        """Runs test(name, environment) for every network."""
        for name, env in WAYS.items():
            with self.subTest(way=name):
                if self.missing[name]:
                    self.skipTest(self.missing[name])
                test(name, env)

    def test_bringup_verifies_every_pair(self):
        def one(_, env):
            code, out, err = bringup(env=env)
            self.assertEqual(code, 0, err)
            report = json.loads(out)
            self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})
            pairs = {(row["source"], row["target"]) for row in report["connections"]}
            self.assertTrue({(a, b) for a in range(4) for b in range(4) if a != b} <= pairs)
        self.each(one)

    def test_between_virtual_nodes_only(self):
        """Memory within a node, the network between nodes."""
        def one(name, env):
            remote = {k: v for k, v in env.items() if k != "SHMEMCTL_TRANSPORT"}
            remote["NVSHMEM_REMOTE_TRANSPORT"] = env["SHMEMCTL_TRANSPORT"]
            remote = BETWEEN_NODES.get(name, remote)
            if name in BETWEEN_NODES and missing(remote, "--nodes", 2):
                self.skipTest(missing(remote, "--nodes", 2))
            code, out, err = bringup("--nodes", 2, env=remote)
            self.assertEqual(code, 0, f"{name}: {err}")
            rows = json.loads(out)["results"]
            self.assertEqual({row["params"]["transport"] for row in rows},
                             {"shm", "registered buffer", env["SHMEMCTL_TRANSPORT"]})
            self.assertEqual({row["verified"] for row in rows}, {"passed"})
        self.each(one)

    def test_openshmem_programs(self):
        """Each program over two of the networks; over each of them in the soak, because PEs that poll on
        a few processors make this the longest of all tests."""
        programs = [program for program in CONFORMANCE if program not in LEFT_OUT]
        everything = os.environ.get("SHMEMCTL_SOAK") == "1"

        def one(name, env):
            for index, program in enumerate(programs):
                if (list(WAYS).index(name) - index) % 4 and not everything:
                    continue
                code, _, err = self.run_pes(4, self.conformance(program), **env)
                self.assertEqual(code, 0, f"{name} {program}: {err}")
        self.each(one)

    def test_bench_is_verified(self):
        def one(_, env):
            code, out, err = run("run", "-n", 2, "bench", "put", "get", "put-signal",
                                 "atomic-fetch-add", "barrier", "--quick", "--json", "-", env=env)
            self.assertEqual(code, 0, err)
            rows = json.loads(out)["results"]
            self.assertEqual({row["verified"] for row in rows}, {"passed"})
        self.each(one)

    def test_the_emulated_hca_is_labelled(self):
        for transport in ("ibdevx", "ibgda"):
            with self.subTest(transport=transport):
                code, out, err = run("run", "-n", 2, "bench", "put", "--quick", "--json", "-",
                                     env={"SHMEMCTL_TRANSPORT": transport, **EMULATED})
                self.assertEqual(code, 0, err)
                report = json.loads(out)
                self.assertEqual({row["way"] for row in report["connections"]},
                                 {"emulated-mlx5:1 -> emulated-mlx5:1, 2 QPs, emulated HCA over shm"})
                self.assertEqual([f["subject"] for f in report["findings"]
                                  if f["id"] == "emulated-hca"], [transport])

    def test_without_a_device_the_error_has_a_fix(self):
        """Unless there is a real one."""
        code, out, _ = bringup(env={"SHMEMCTL_TRANSPORT": "ibdevx"}, n_pes=2)
        if code == 0:
            self.skipTest("there is an mlx5 device here")
        self.assertEqual(code, 1)
        message = next(f["message"] for f in json.loads(out)["findings"]
                       if f["id"] == "pair-unreachable")
        self.assertIn("no mlx5 device on this node", message)
        self.assertIn("SHMEMCTL_MLX5_DEVICE=emulated selects the emulated HCA", message)

    def test_a_killed_peer_ends_the_job(self):
        """Memory outlives its owner: the job's failure detection names the lost PE."""
        for transport in ("ibdevx", "ibgda"):
            with self.subTest(transport=transport):
                code, _, err = run("run", "-n", 3, "bench", "put", "barrier", "--quick",
                                   env={"SHMEMCTL_TRANSPORT": transport, **EMULATED,
                                        "SHMEMCTL_FAULT": "kill:1:bench-barrier"})
                self.assertEqual(code, 128 + 9, err)
                self.assertIn("PE 1 (host", err)
                self.assertIn("was lost in phase bench", err)

    def test_unknown_transports_are_refused(self):
        for text, problem, fix in (("carrier-pigeon", "unknown transport", "choose from shm, ibrc"),
                                   ("ucx,ucx", "named twice", "name each transport once")):
            code, _, err = run("run", "-n", 2, "bringup", "--transport", text)
            self.assertEqual(code, 2, err)
            self.assertIn(problem, err)
            self.assertIn("fix: " + fix, err)


if __name__ == "__main__":
    print(BINARY)
    unittest.main()
