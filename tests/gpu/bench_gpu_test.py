"""Every case of `bench --initiator gpu|stream` and of the host on GPU memory, at small sizes on two PEs: verified.
Skipped without a GPU. Two PEs may share one GPU: they take turns on it, which is slow and as right as on two."""
import json
import os
import re
import subprocess
import unittest

BINARY = os.environ.get("SHMEMCTL_BINARY", "shmemctl")
PATIENCE_S = 280
COLLECTIVES = ("broadcast", "fcollect", "alltoall*", "reduce*")
#: Where there is no HCA: the emulated one, and a network between virtual nodes.
WIRE = {"SHMEMCTL_MLX5_DEVICE": "emulated", "SHMEMCTL_REMOTE_TRANSPORT": "libfabric",
        "SHMEMCTL_LIBFABRIC_PROVIDER": "tcp"}


def gpus():
    try:
        done = subprocess.run(["nvidia-smi", "-L"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=60)
    except OSError:
        return 0
    return len([line for line in done.stdout.splitlines() if line.startswith("GPU")]) if done.returncode == 0 else 0


def bench(*words, n_pes=2, nodes=1):
    done = subprocess.run([BINARY, "run", "-n", str(n_pes), "--nodes", str(nodes), "bench", *words, "-n", "200",
                           "--json", "-"], check=False, env={**os.environ, **WIRE},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout, done.stderr


def names_of(initiator):
    done = subprocess.run([BINARY, "bench", "--list", "--initiator", initiator, "--json", "-"], check=True,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    return sorted(entry["name"] for entry in json.loads(done.stdout)["cases"])


@unittest.skipIf(gpus() == 0, "nvidia-smi shows no GPU")
class EveryCase(unittest.TestCase):
    def rows(self, *words, n_pes=2, nodes=1):
        code, out, err = bench(*words, n_pes=n_pes, nodes=nodes)
        self.assertEqual(code, 0, err + out[-2000:])
        rows = json.loads(out)["results"]
        for row in rows:
            with self.subTest(case=row["case"], params=row["params"]):
                self.assertEqual((row["status"], row["verified"]), ("pass", "passed"), row.get("reason"))
                self.assertGreater(row["stats"]["min"], 0)
                if row["bandwidth_GBps"] and row["limited_by"] is None:
                    self.assertRegex(row["link_fraction_reason"], "^no limit is known for ")
        return rows

    def test_kernel_cases(self):
        rows = self.rows("all", "--initiator", "gpu", "-b", "8", "-e", "8K", "-f", "32")
        self.assertEqual(sorted({row["case"] for row in rows}), names_of("gpu"))
        for row in rows:
            self.assertEqual((row["params"]["initiator"], row["params"]["memory"]), ("gpu", "gpu"))

    def test_cases_of_every_scope(self):
        for scope in ("thread", "warp", "block"):
            self.rows("put", "get", "put-message", "get-message", "message-rate", "put-latency", "get-latency",
                      "put-pingpong", "put-signal-pingpong", "wait-forward", "barrier", "sync", "--initiator", "gpu",
                      "--scope", scope, "-b", "1", "-e", "4097", "-f", "64")

    def test_both_ways_and_to_all(self):
        self.rows("put", "get", "put-latency", "--initiator", "gpu", "--bidir", "-b", "1K", "-e", "1M", "-f", "32")
        self.rows("put", "get", "--initiator", "gpu", "--traffic", "all-to-all", "-b", "1K", "-e", "1M", "-f", "32")

    def test_matrix_has_a_row_for_each_pair(self):
        rows = self.rows("put", "--initiator", "gpu", "--traffic", "matrix", "-b", "64K", "-e", "64K")
        self.assertEqual([(row["params"]["first_pe"], row["params"]["second_pe"]) for row in rows], [(0, 1), (1, 0)])

    def test_collectives_by_a_grid(self):
        self.rows("broadcast", "fcollect", "alltoall*", "reduce*", "--initiator", "gpu", "--ctas", "8", "-b", "8",
                  "-e", "1M", "-f", "64")

    def test_the_largest_grid_runs_and_a_larger_one_is_skipped(self):
        """Also where two PEs share a GPU, whose grids wait for each other."""
        words = ("put", "--initiator", "gpu", "-b", "64K", "-e", "64K", "--ctas")
        code, out, err = bench(*words, "4096")
        row = json.loads(out)["results"][0]
        self.assertEqual(row["status"], "skip", (code, err))
        found = re.search(r"4096 blocks of 1024 threads do not run at once on .*: at most (\d+)", row["reason"])
        self.assertIsNotNone(found, row["reason"])
        most = int(found.group(1))
        self.rows(*words, str(most))
        row = json.loads(bench(*words, str(most + 1))[1])["results"][0]
        self.assertEqual(row["status"], "skip", row)

    def test_stream_cases(self):
        rows = self.rows("all", "--initiator", "stream", "-b", "8", "-e", "256K", "-f", "64")
        self.assertEqual(sorted({row["case"] for row in rows}), names_of("stream"))

    def test_graph_cases(self):
        rows = self.rows("all", "--initiator", "stream", "--graph", "-b", "8", "-e", "256K", "-f", "64")
        self.assertTrue(all(row["params"]["graph"] for row in rows))

    def test_over_networks_no_link_of_gpus_is_a_limit(self):
        """Memory of GPUs and of the host, two virtual nodes, and the paths that are asked for."""
        for nodes, flags in ((2, ()), (2, ("--heap", "host")), (1, ("--device-path", "proxy")),
                             (1, ("--heap", "host", "--device-path", "proxy")),
                             (1, ("--heap", "host", "--device-path", "ibgda", "--transport", "shm,ibgda"))):
            with self.subTest(nodes=nodes, flags=flags):
                rows = self.rows("put", "get", "put-signal-pingpong", "atomic-fetch-add", "barrier", "alltoall",
                                 "--initiator", "gpu", "-b", "8", "-e", "64K", "-f", "128", *flags, nodes=nodes)
                for row in rows:
                    self.assertNotRegex(row.get("limited_by") or "", "NVLink|PCIe|memory of")
                    if row["bandwidth_GBps"]:
                        self.assertRegex(row["link_fraction_reason"], "^no limit is known for .*(proxy|NIC)")

    def test_what_stays_on_gpus_names_their_limit(self):
        """The link between two, or the memory of one that they share."""
        for initiator in ("gpu", "stream"):
            ring = ("wait-forward",) if initiator == "gpu" else ()
            rows = self.rows("put", "get", *COLLECTIVES, *ring, "--initiator", initiator, "-b", "1M", "-e", "1M")
            for row in rows:
                with self.subTest(initiator=initiator, case=row["case"]):
                    self.assertRegex(row["limited_by"], "NVLink|PCIe|measured" if gpus() > 1 else "memory of the GPU")
                    self.assertEqual("the share counts the least" in row["limited_by"],
                                     row["params"]["traffic"] == "collective")
                    self.assertGreater(row["link_fraction"], 0)

    def test_a_heap_of_host_memory_names_the_link_to_it(self):
        """PCIe, or why its rate is not known; no share is above one, which would be no limit."""
        for initiator in ("gpu", "stream"):
            rows = self.rows("put", "get", *COLLECTIVES, "--initiator", initiator, "--heap", "host", "-b", "8M",
                             "-e", "8M")
            for row in rows:
                with self.subTest(initiator=initiator, case=row["case"]):
                    if row["limited_by"]:
                        self.assertRegex(row["limited_by"], "(PCIe|C2C).* to the host's memory: .* by the model")
                        self.assertGreater(row["link_fraction"], 0)
                        self.assertLess(row["link_fraction"], 1)
                    else:
                        self.assertRegex(row["link_fraction_reason"], "^no limit is known for .* to the host's memory")

    def test_copies_between_each_gpu_and_its_host(self):
        """By one PE and by two, each on its own GPU if there are two; both ways at once; as graphs."""
        cases = ("host-to-device", "device-to-host")
        for n_pes, words in ((1, ()), (2, ()), (2, ("--bidir",)), (2, ("--graph",)), (2, ("--graph", "--bidir"))):
            rows = self.rows(*cases, "--initiator", "stream", "--sizes", "1,4097,1M,64M", *words, n_pes=n_pes)
            self.assertEqual([row["case"] for row in rows], [name for name in cases for _ in range(4)])
            for row in rows:
                with self.subTest(n_pes=n_pes, words=words, case=row["case"], params=row["params"]):
                    self.assertEqual((row["params"]["traffic"], row["path"]["transports"]), ("local", ["copy engine"]))
                    if not row["limited_by"]:
                        self.assertRegex(row["link_fraction_reason"], "the link of GPU .* to the host's memory")
                        continue
                    self.assertRegex(row["limited_by"], "(PCIe|C2C).* to the host's memory.* by the model")
                    self.assertEqual("both ways" in row["limited_by"], "--bidir" in words)
                    self.assertEqual("together" in row["limited_by"], min(n_pes, gpus()) > 1)
                    self.assertGreater(row["link_fraction"], 0)
                    self.assertLess(row["link_fraction"], 1)

    def test_of_the_host_on_gpu_memory(self):
        self.rows("all", "--memory", "gpu", "-b", "1", "-e", "1M", "-f", "64")


if __name__ == "__main__":
    unittest.main()
