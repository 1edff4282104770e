"""Machines of tests/data/machines, all invented: what `topo` says of each of them.

Beside NAME lie NAME.expected.txt, the text of `topo`, and NAME.expected.json, which NIC each PE uses by
each policy and what is found. SHMEMCTL_UPDATE_GOLDEN=1 writes both anew; read the difference before
committing it. What must be true whatever these files say is in FACTS, written by hand.
"""
import functools
import importlib.util
import json
import os
import sys
import unittest

from support import DATA, CliTest, report_of, run

MACHINES = DATA / "machines"
RUNS = {"nvshmem": [], "nvshmem, deepep-ht": ["--world", "deepep-ht"], "nccl": ["--policy", "nccl"],
        "optimal": ["--policy", "optimal"]}


def each(pattern, numbers):
    """The names of nearest NICs of several GPUs that have one each."""
    return [{pattern.format(number)} for number in numbers]


# By machine: the nearest NICs for RDMA of each GPU (None: not decidable), how many there are in all, and
# the findings by `topo` without a flag.
FACTS = {
    "bond-4gpu-3nic.txt": (each("mlx5_bond_{}", (0, 0, 1, 1)), 3, {"nic-hotspot", "nic-without-gpu"}),
    "cut-2gpu-2nic.txt": (each("NIC{}", (0, 1)), 2, {"nic-names-unknown", "topology-incomplete", "mapping-unknown"}),
    "efa-2gpu-8nic.xml": ([{f"rdmap66s{i}" for i in range(4)}, {f"rdmap130s{i}" for i in range(4)}], 8, {"nic-idle"}),
    "efa-shipped-4gpu-16nic.xml": ([{f"nic{4 * gpu + i}" for i in range(4)} for gpu in range(4)], 16,
                                   {"nic-names-unknown", "nic-idle"}),
    "grace-4gpu-4nic.xml": ([{"ibp3s0", "ibp4s0"}] * 2 + [{"ibp5s0", "ibp6s0"}] * 2, 4, set()),
    "no-rdma-4gpu.xml": ([set()] * 4, 0, {"nic-not-rdma"}),
    "numa-off-4gpu-2nic.json": (each("mlx5_{}", (0, 1)) + [None, None], 2,
                                {"numa-unknown", "pcie-degraded", "nic-hotspot"}),
    "partitions-4of1gpu-2nic.xml": ([{"mlx5_0", "mlx5_1"}] * 4, 2, {"nic-hotspot"}),
    "pcie-4gpu-2nic.txt": (each("mlx5_{}", (0, 0, 1, 1)), 2, {"nic-hotspot"}),
    "port-down-2gpu-2nic.xml": (each("mlx5_{}", (0, 1)), 2, {"port-down", "nic-hotspot"}),
    "rail-8gpu-9nic.xml": (each("mlx5_{}", (0, 1, 3, 4, 5, 6, 7, 8)), 9, {"nic-without-gpu"}),
    "shared-8gpu-4nic.xml": (each("mlx5_{}", (0, 0, 1, 1, 2, 2, 3, 3)), 4, {"nic-hotspot"}),
    "vm-flat-8gpu-8nic.xml": ([{f"mlx5_{i}" for i in range(8)}] * 8, 8, set()),
    "xgmi-8gpu-4nic.xml": (each("bnxt_re{}", (0, 0, 1, 1, 2, 2, 3, 3)), 4, {"nic-hotspot"}),
}
FROM_NEAR_TO_FAR = ["PIX", "PXB", "PHB", "NODE", "SYS"]


def machines():
    return sorted(p for p in MACHINES.iterdir() if ".expected." not in p.name and p.suffix != ".md")


def nearest_nics(topology):
    """By GPU, from the printed distances alone."""
    labels, matrix = topology["distances"]["labels"], topology["distances"]["matrix"]
    nics = [i for i, label in enumerate(labels) if not label.startswith("GPU")]
    found = []
    for gpu, row in enumerate(matrix[:len(labels) - len(nics)]):
        known = [FROM_NEAR_TO_FAR.index(row[i]) for i in nics if row[i] is not None]
        # no NIC is nearer than that
        complete = len(known) == len(nics) or min(known, default=9) == 0
        found.append({labels[i] for i in nics if row[i] == FROM_NEAR_TO_FAR[min(known)]} if known and complete
                     else None if nics else set())
    return found


@functools.lru_cache(maxsize=None)
def summary(path):
    """Which NICs PEs use, and what is found, by policy and world."""
    result = {}
    for name, flags in RUNS.items():
        code, document = report_of("topo", "--from", path, *flags)
        mapping = document["mapping"]
        result[name] = {
            "exit": code,
            "load factor": mapping["load_factor"],
            "pes of nics": {f"{nic['device']}/{nic['port']}": " ".join(map(str, nic["pes"])) for nic in mapping["nics"]},
            "findings": [f"{f['severity']} {f['id']}: {f['subject']}" for f in document["findings"]],
        }
    return result


def values(model):
    """The model without where its facts came from."""
    if isinstance(model, dict):
        return {k: values(v) for k, v in model.items()
                if k not in ("origin", "reason", "format", "notes", "remarks") and
                not k.endswith(("_reason", "_origin"))}
    return [values(item) for item in model] if isinstance(model, list) else model


class Machines(CliTest):
    maxDiff = None

    def compare(self, path, text):
        if os.environ.get("SHMEMCTL_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        self.assertEqual(text, path.read_text(encoding="utf-8"), path.name)

    def test_the_text(self):
        for path in machines():
            with self.subTest(path.name):
                code, out, err = run("topo", "--from", path)
                self.assertEqual(err, "")
                self.compare(path.with_name(path.name + ".expected.txt"), f"{out}exit {code}\n")

    def test_mappings_and_findings(self):
        for path in machines():
            with self.subTest(path.name):
                self.compare(path.with_name(path.name + ".expected.json"),
                             json.dumps(summary(path), indent=1) + "\n")

    def test_invariants_of_all_machines(self):
        self.assertEqual([path.name for path in machines()], sorted(FACTS))
        for path in machines():
            nearest, n_nics, findings = FACTS[path.name]
            with self.subTest(path.name):
                _, document = report_of("topo", "--from", path)
                topology = document["topology"]
                self.assertEqual(len(topology["gpus"]), len(nearest))
                self.assertEqual(len(topology["nics"]), n_nics)
                self.assertEqual({finding["id"] for finding in document["findings"]}, findings)
                self.assertEqual(nearest_nics(topology), nearest)

    def test_nvshmem_is_never_better_than_the_optimum(self):
        # Both give a PE one NIC; NCCL gives several.
        for path in machines():
            with self.subTest(path.name):
                factors = {name: entry["load factor"] for name, entry in summary(path).items()}
                for name in ("nvshmem", "nvshmem, deepep-ht"):
                    if factors[name] and factors["optimal"]:  # both are known, and have a NIC
                        self.assertGreaterEqual(factors[name], factors["optimal"], name)

    def test_a_dump_reads_back_as_the_same_model(self):
        for path in machines():
            with self.subTest(path.name):
                before = report_of("topo", "--from", path)[1]["topology"]["model"]
                for dump_format in ("hwloc-xml", "nccl-xml", "report"):
                    dump = run("topo", "--from", path, "--dump", dump_format)[1]
                    after = report_of("topo", "--from", "-", stdin=dump.encode())[1]["topology"]["model"]
                    self.assertEqual(values(before), values(after), dump_format)

    def test_reports_are_valid(self):
        if importlib.util.find_spec("jsonschema") is None:
            self.skipTest(f"{sys.executable} has no jsonschema: install python3-jsonschema")
        import jsonschema
        validator = jsonschema.Draft202012Validator(json.loads(run("report", "schema")[1]))
        for path in machines():
            with self.subTest(path.name):
                validator.validate(report_of("topo", "--from", path)[1])


if __name__ == "__main__":
    unittest.main()
