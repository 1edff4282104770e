"""Whole jobs over the network transports of this host: bringup, and the OpenSHMEM conformance
programs unchanged. What needs an RDMA stack is in tests/lab."""
import json
import unittest

from support import BINARY, run
from test_openshmem import CONFORMANCE, OpenShmemTest

LIBFABRIC = {"SHMEMCTL_TRANSPORT": "libfabric", "SHMEMCTL_LIBFABRIC_PROVIDER": "tcp"}
WAYS = {
    "libfabric-tcp": LIBFABRIC,
    "libfabric-tcp-by-efas-rules": {**LIBFABRIC, "SHMEMCTL_LIBFABRIC_PROFILE": "efa"},
    "ucx": {"SHMEMCTL_TRANSPORT": "ucx"},
    "ucx-tcp": {"SHMEMCTL_TRANSPORT": "ucx", "UCX_TLS": "tcp,self"},
}
#: Their own subject is the process or the headers, not what goes from PE to PE.
LEFT_OUT = ("setup", "profile", "names")


def bringup(*arguments, env, n_pes=4):
    return run("run", "-n", n_pes, *arguments, "bringup", "--json", "-", env=env)


def missing(env):
    """Why this way cannot be gone here, as bringup tells it; nothing if it can."""
    code, out, _ = bringup(env=env, n_pes=2)
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
        """Runs test(name, environment) for every way."""
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
            code, out, err = bringup("--nodes", 2, env=remote)
            self.assertEqual(code, 0, f"{name}: {err}")
            rows = json.loads(out)["results"]
            self.assertEqual({row["params"]["transport"] for row in rows},
                             {"shm", env["SHMEMCTL_TRANSPORT"]})
            self.assertEqual({row["verified"] for row in rows}, {"passed"})
        self.each(one)

    def test_openshmem_programs(self):
        def one(name, env):
            for program in CONFORMANCE:
                if program in LEFT_OUT:
                    continue
                code, _, err = self.run_pes(4, self.conformance(program), **env)
                self.assertEqual(code, 0, f"{name} {program}: {err}")
        self.each(one)

    def test_bench_is_verified(self):
        def one(_, env):
            code, out, err = run("run", "-n", 2, "bench", "put", "get", "put-signal",
                                 "atomic-fetch-add", "barrier", "--quick", "--json", "-", env=env,
                                 timeout=120)
            self.assertEqual(code, 0, err)
            rows = json.loads(out)["results"]
            self.assertEqual({row["verified"] for row in rows}, {"passed"})
        self.each(one)

    def test_unknown_transports_are_refused(self):
        for text, problem in (("carrier-pigeon", "there is none of that name"),
                              ("ucx,ucx", "it is named twice")):
            code, _, err = run("run", "-n", 2, "bringup", "--transport", text)
            self.assertEqual(code, 2, err)
            self.assertIn(problem, err)
            self.assertIn("name some of shm, ibrc", err)


if __name__ == "__main__":
    print(BINARY)
    unittest.main()
