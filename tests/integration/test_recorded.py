"""Every recorded machine beside this checkout: distances, nearest NICs, mapping, dumps, schema.

The expectations are read here by code of its own, not by the tool's readers.
"""
import csv
import importlib.util
import json
import re
import sys
import unittest

import support
from support import RECORDED, CliTest, error_lines, needs_recorded, report_of, run

# Damaged as found (INDEX.md): they must be refused. The `graph.xml` is not a topology.
REFUSED = {
    "h200-vm-flat/host-nccl-topo.TRUNCATED.xml", "h200-vm-flat/vm-nccl-topo.TRUNCATED.xml",
    "rtx3090-8x-1nic/graph.xml"}
# A copy that lost columns: refused, or recovered from the transposed rows.
CUT = "a800-4nic-irregular/nvidia-smi-topo-m.CUT-copy.txt"


def recorded(pattern):
    return sorted(p for p in RECORDED.glob(pattern))


def name_of(path):
    return str(path.relative_to(RECORDED))


def readable_files():
    files = recorded("*/*.xml") + matrix_files()
    return [p for p in files if name_of(p) not in REFUSED and name_of(p) != CUT]


def matrix_files():
    return [p for p in recorded("*/*topo*.txt") if "nvidia-smi topo" in name_of(p) or
            re.search(r"^\s*(\x1b\[[0-9;]*m)*\s*GPU0", p.read_text(), re.M)]


def cells_of(path):
    """(labels, {(row, column): word}) of an nvidia-smi matrix, by words alone."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", path.read_text())
    lines = [line.split() for line in text.splitlines()]
    start = next(i for i, words in enumerate(lines)
                 if words[:1] == ["GPU0"] and (len(words) < 2 or words[1] in ("GPU1", "NIC0") or
                                               words[1] == "CPU" or not words[1].isupper()))
    header = lines[start]
    labels = header[:header.index("CPU")] if "CPU" in header else header
    cells = {}
    for words in lines[start + 1:]:
        if words and words[0] in labels:
            for label, word in zip(labels, words[1:]):
                cells[words[0], label] = word
    return labels, cells


def legend_of(path):
    return dict(re.findall(r"^\s*(NIC\d+): (\S+)", path.read_text(), re.M))


@needs_recorded
class Reading(CliTest):
    def test_every_file_is_read_and_its_report_is_valid(self):
        if importlib.util.find_spec("jsonschema") is None:
            self.skipTest(f"{sys.executable} has no jsonschema: install python3-jsonschema")
        import jsonschema
        schema = json.loads(run("report", "schema")[1])
        validator = jsonschema.Draft202012Validator(schema)
        for path in readable_files():
            with self.subTest(name_of(path)):
                _, document = report_of("topo", "--from", path)
                validator.validate(document)

    def test_damaged_files_are_refused_in_one_line(self):
        for name in REFUSED:
            with self.subTest(name):
                err = self.assert_refused(run("topo", "--from", RECORDED / name))
                if "TRUNCATED" in name:
                    self.assertIn("line", err)

    def test_a_dump_reads_back_as_the_same_model(self):
        for path in readable_files():
            with self.subTest(name_of(path)):
                before = report_of("topo", "--from", path)[1]["topology"]
                for dump_format in ("hwloc-xml", "nccl-xml"):
                    dump = run("topo", "--from", path, "--dump", dump_format)[1]
                    after = report_of("topo", "--from", "-", stdin=dump.encode())[1]["topology"]
                    self.assertEqual(values(before["model"]), values(after["model"]), dump_format)
                again = run("topo", "--from", path, "--dump", "report")[1]
                after = report_of("topo", "--from", "-", stdin=again.encode())[1]["topology"]
                self.assertEqual(values(before["model"]), values(after["model"]), "report")


def values(model):
    """The model without where its facts came from."""
    if isinstance(model, dict):
        return {k: values(v) for k, v in model.items()
                if k not in ("origin", "reason", "format", "notes") and not k.endswith("_reason")
                and not k.endswith("_origin")}
    if isinstance(model, list):
        return [values(item) for item in model]
    return model


@needs_recorded
class Matrices(CliTest):
    def test_printed_matrix_is_the_recorded_one_cell_by_cell(self):
        paths = [p for p in matrix_files() if name_of(p) != CUT]
        self.assertGreaterEqual(len(paths), 14)
        for path in paths:
            with self.subTest(name_of(path)):
                labels, cells = cells_of(path)
                out = run("topo", "--from", path)[1]
                rows = {}
                for line in out.splitlines():
                    words = line.split("\t")
                    if words[0] in ("", "\t") and not rows and "GPU0" in words:
                        columns = [w for w in words[1:]]
                    elif re.fullmatch(r"(GPU|NIC)\d+", words[0]) and words[0] not in rows:
                        rows[words[0]] = dict(zip(columns, (w.strip() for w in words[1:])))
                printed = [c for c in columns if re.fullmatch(r"(GPU|NIC)\d+", c)]
                self.assertEqual(len(printed), len(labels))
                rename = dict(zip(labels, printed)) # an old matrix titles columns by device name
                for (row, column), word in cells.items():
                    self.assertEqual(rows[rename[row]][rename[column]], word, (row, column))

    def test_a_cut_copy_is_refused_or_recovered_never_guessed(self):
        code, out, err = run("topo", "--from", RECORDED / CUT, "--json", "-")
        if code == 2:
            self.assertEqual(len(error_lines(err)), 1)
            return
        whole = report_of("topo", "--from", RECORDED / "a800-4nic-irregular/nvidia-smi-topo-m.txt")[1]
        got = json.loads(out)["topology"]["distances"]
        expected = whole["topology"]["distances"]
        self.assertEqual(got["labels"], expected["labels"])
        for row, right_row in zip(got["matrix"], expected["matrix"]):
            for cell, right in zip(row, right_row):
                self.assertIn(cell, (right, None)) # known and right, or said to be unknown

    def test_nearest_nics_of_the_recorded_matrices(self):
        tested = 0
        for path in matrix_files():
            if name_of(path) == CUT:
                continue
            for expected in sorted(path.parent.glob("expected-nearest*.tsv")):
                tag = expected.name.removeprefix("expected-nearest").removesuffix(".tsv").strip(".")
                if tag and not path.name.startswith(tag):
                    continue
                with self.subTest(name_of(expected), matrix=path.name):
                    self.check_nearest(path, expected)
                    tested += 1
        self.assertGreaterEqual(tested, 13)

    def check_nearest(self, path, expected):
        distances = report_of("topo", "--from", path)[1]["topology"]["distances"]
        order = ["PIX", "PXB", "PHB", "NODE", "SYS"]
        labels, matrix = distances["labels"], distances["matrix"]
        nics = [label for label in labels if not re.fullmatch(r"GPU\d+", label)]
        legend = legend_of(path)
        with open(expected, newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                if row.get("file") not in (None, path.name) and "file" in row:
                    continue
                cells = dict(zip(labels, matrix[labels.index(row["gpu"])]))
                best = min((cells[nic] for nic in nics), key=order.index)
                nearest = {nic for nic in nics if cells[nic] == best}
                names = [legend.get(n, n) for n in row["nearest_nics"].split(",")]
                if best == "SYS" and row["nearest_relation"] in ("-", "none"):
                    continue
                self.assertEqual(best, row["nearest_relation"], row["gpu"])
                self.assertEqual(nearest, set(names), row["gpu"])


# expected-derived.tsv is a second opinion computed from the XML (INDEX.md), not ground truth. Where
# it differs from the tool, the reason is here.
DERIVED_DIFFERS = {
    # It calls devices of one package NODE; by nvidia-smi's words NODE is one NUMA node, and these
    # packages have several (Group objects), so the way between them is SYS.
    ("amd-corona-tioga/epyc-corona.xml", "0000:13:00.0"),
    ("amd-corona-tioga/epyc-corona.xml", "0000:23:00.0"),
    # The model names eight different switches by one bus id (0000:c5:00.0); it takes them for one.
    ("rccl-models/topo_4p4h.xml", "*"),
}


@needs_recorded
class SecondOpinion(CliTest):
    def test_nearest_nics_derived_from_the_tree(self):
        tested = 0
        for table in recorded("*/expected-derived.tsv"):
            rows = {}
            with open(table, newline="") as file:
                for row in csv.DictReader(file, delimiter="\t"):
                    rows.setdefault(row["file"], []).append(row)
            for name, expected in rows.items():
                with self.subTest(f"{table.parent.name}/{name}"):
                    tested += self.check_file(table.parent / name, expected)
        self.assertGreater(tested, 300)

    def check_file(self, path, expected):
        topology = report_of("topo", "--from", path)[1]["topology"]
        labels = topology["distances"]["labels"]
        matrix = topology["distances"]["matrix"]
        order = ["PIX", "PXB", "PHB", "NODE", "SYS", "?"]
        gpus = {gpu["pci"]: f"GPU{gpu['index']}" for gpu in topology["gpus"]}
        nics = {nic["name"]: nic["pci"] for nic in topology["nics"] if nic["name"] in labels}
        tested = 0
        for row in expected:
            key = (name_of(path), row["gpu_busid"])
            if key in DERIVED_DIFFERS or (name_of(path), "*") in DERIVED_DIFFERS:
                continue
            cells = dict(zip(labels, matrix[labels.index(gpus[row["gpu_busid"]])]))
            if not nics: # the file has Ethernet only, which is not in the matrix
                continue
            best = min((cells[nic] for nic in nics), key=order.index)
            nearest = {nics[nic] for nic in nics if cells[nic] == best}
            relation = {"PIX": "shared-pci-ancestor", "PXB": "shared-pci-ancestor"}.get(best, best)
            self.assertEqual(relation, row["nearest_relation"], key)
            expected_nics = set(row["nearest_nic_busids"].split(","))
            if relation == "shared-pci-ancestor": # it counts hops, where nvidia-smi's words tie
                self.assertLessEqual(expected_nics, nearest, key)
            else:
                self.assertEqual(nearest, expected_nics, key)
            tested += 1
        return tested


@needs_recorded
class Mappings(CliTest):
    def test_optimal_is_never_worse_than_nvshmem_on_the_worst_nic(self):
        compared = 0
        for path in readable_files():
            with self.subTest(name_of(path)):
                loads = {}
                for policy in ("nvshmem", "optimal"):
                    mapping = report_of("topo", "--from", path, "--policy", policy)[1]["mapping"]
                    loads[policy] = {(n["device"], n["port"]): n["load"] for n in mapping["nics"]
                                     if n["pes"] or policy == "optimal"}
                # Where NVSHMEM also uses NICs of another network, the two are no match.
                if set(loads["nvshmem"]) <= set(loads["optimal"]):
                    self.assertLessEqual(max(loads["optimal"].values(), default=0),
                                         max(loads["nvshmem"].values(), default=0) + 1e-9)
                    compared += 1

        self.assertGreater(compared, 80)

    def test_every_pe_gets_a_nic_where_there_is_one(self):
        for path in readable_files():
            with self.subTest(name_of(path)):
                mapping = report_of("topo", "--from", path, "--policy", "optimal")[1]["mapping"]
                for pe in mapping["pes"]:
                    self.assertEqual(bool(pe["nics"]), bool(mapping["nics"]) and pe["gpu"] is not None)

    def expect(self, path, expected, *flags):
        mapping = report_of("topo", "--from", RECORDED / path, *flags)[1]["mapping"]
        got = [[nic["device"] for nic in pe["nics"][:1]] for pe in mapping["pes"]]
        self.assertEqual([n for nics in got for n in nics], expected)

    def test_gcp_a4_ties_are_shared_out_by_the_optimal_policy(self):
        self.expect("gcp-a4-b200/nvidia-smi-topo-m.txt", [f"mlx5_{i}" for i in range(8)],
                    "--policy", "optimal")

    def test_deepep_issue_336_every_rank_on_the_first_nic(self):
        # DeepEP's high-throughput mode: each rank is alone, so the PE mapping counts for nothing.
        code, document = report_of(
            "topo", "--from", RECORDED / "gcp-a4-b200/nvidia-smi-topo-m.txt", "--world", "deepep-ht",
            env={"NVSHMEM_ENABLE_NIC_PE_MAPPING": "1",
                 "NVSHMEM_HCA_PE_MAPPING": ",".join(f"mlx5_{i}:1:1" for i in range(8))})
        self.assertEqual({pe["nics"][0]["device"] for pe in document["mapping"]["pes"]}, {"mlx5_0"})
        self.assertIn("mapping-collapse", [f["id"] for f in document["findings"]])
        self.assertEqual(code, 1)

    def test_gcp_a4_in_deepeps_high_throughput_mode_two_gpus_share_a_nic(self):
        # deepseek-ai/DeepEP pull request 466: GPU0 and GPU1 were both given NIC 0.
        mapping = report_of("topo", "--from", RECORDED / "gcp-a4-b200/nvidia-smi-topo-m.txt",
                            "--world", "deepep-ht")[1]["mapping"]
        devices = [pe["nics"][0]["device"] for pe in mapping["pes"]]
        self.assertEqual(devices[0::2], devices[1::2])
        self.assertEqual(devices[0], "mlx5_0")


if __name__ == "__main__":
    unittest.main()
