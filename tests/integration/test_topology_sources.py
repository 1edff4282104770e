"""Sources that lack something: what could not be read, was left out, mirrored or invented is a finding in every output,
and nothing that is printed builds on it."""
import csv
import io
import json
import re
import tempfile
import pathlib
import unittest
from xml.etree import ElementTree

from support import CliTest, report_of, run

CPU = '<system version="1">\n<cpu host_hash="{host}" numaid="0" affinity="ff">\n{inside}</cpu>\n'
GPU = '<pci busid="0000:{bus}:00.0" class="0x030200"><gpu dev="{dev}">{links}</gpu></pci>\n'
NIC = '<pci busid="0000:{bus}:00.0" class="0x020700"><nic><net name="{name}" dev="{dev}" speed="400000" port="1"/></nic></pci>\n'
LINKS = '<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>'


def nccl(inside, host="0x1"):
    return CPU.format(host=host, inside=inside) + "</system>\n"


def pairs(names, devs):
    """A GPU and a NIC below a switch each."""
    inside = ""
    for i, (name, dev) in enumerate(zip(names, devs)):
        inside += (f'<pci busid="0000:{i}1:00.0" class="0x060400">' + GPU.format(bus=f"{i}2", dev=i, links="") +
                   NIC.format(bus=f"{i}3", name=name, dev=dev) + "</pci>\n")
    return nccl(inside)


TWO_HOSTS = nccl(GPU.format(bus="02", dev=0, links="")).replace(
    "</system>", '<cpu host_hash="0x2" numaid="0">\n' + GPU.format(bus="02", dev=0, links="") + "</cpu></system>")
MATRIX = "\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\t X \tNV18\tPIX\tNODE\nGPU1\tNV18\t X \tNODE\tPIX\n" \
         "NIC0\tPIX\tNODE\t X \tNODE\nNIC1\tNODE\tPIX\tNODE\t X \n"
LEGEND = "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"
# What a source lacks, and words that its finding has.
LACKING = {
    "another host": (TWO_HOSTS, "other hosts were left out"),
    "another matrix": (MATRIX + LEGEND + "\nthe next one:\n\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n", "another matrix"),
    "cut columns": ("\tGPU0\nGPU0\t X \nGPU1\tNV18\nNIC0\tPIX\n", "distances are not in the text and stay unknown"),
    "short rows": ("\tGPU0\tGPU1\nGPU0\t X \nGPU1\tNV18\t X \n", "taken from the other half"),
    "hidden NICs": ("4 NICs found in the topology, only displaying 2 in the matrix.\n" + MATRIX + LEGEND,
                    "the matrix shows 2 of 4 NICs"),
    "no names": (MATRIX, "names unknown"),
    "no names in XML": (nccl('<pci busid="0000:02:00.0" class="0x030200"/>\n'
                             '<pci busid="0000:03:00.0" class="0x020700"/>\n'), "names unknown"),
    "no class": (nccl('<pci busid="0000:02:00.0"/>\n'), "no GPU and no NIC that is recognized"),
    "foreign elements": (nccl(GPU.format(bus="02", dev=0, links="") + "<card/>"), "elements that NCCL does not have"),
}
EXPORTS = re.compile(r"\bexport (?:NVSHMEM_HCA|NCCL_IB_HCA|UCX_NET)|by_rank=")


class Findings(CliTest):
    def test_what_a_source_lacks_is_said_in_text_and_json(self):
        for what, (source, words) in LACKING.items():
            with self.subTest(what):
                code, out, err = run("topo", "--from", "-", stdin=source.encode())
                self.assertEqual((code, err), (0, ""))
                self.assertIn(words, " ".join(out.split()))
                self.assertNotIn("No findings", out)
                document = report_of("topo", "--from", "-", stdin=source.encode())[1]
                messages = [f["message"] for f in document["findings"] if f["severity"] != "info"]
                self.assertTrue(any(words in message for message in messages), messages)
                report = json.dumps(document).encode()
                self.assertEqual(run("report", "validate", "-", stdin=report)[0], 0)
                self.assertIn(words, " ".join(run("report", "show", "-", stdin=report)[1].split()))
                # A report that is read again lacks the same facts.
                again = report_of("topo", "--from", "-", stdin=report)[1]
                self.assertTrue(any(words in f["message"] for f in again["findings"]), again["findings"])

    def test_findings_are_in_json_and_csv(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.json"
            for what, (source, words) in LACKING.items():
                with self.subTest(what):
                    code, out, err = run("topo", "--from", "-", "--csv", "-", stdin=source.encode())
                    self.assertEqual(code, 0, err)
                    self.assertIn("shmemctl: warning: ", err)
                    self.assertIn(words, err)
                    for row in csv.DictReader(io.StringIO(out, newline="")):
                        self.assertRegex(row["source_findings"], "topology-incomplete|nic-names-unknown")
                    document = report_of("topo", "--from", "-", stdin=source.encode())[1]
                    path.write_text(json.dumps(document))
                    self.assertEqual(run("report", "csv", path)[1], out)
                    suites = ElementTree.fromstring(run("report", "junit", path)[1])
                    self.assertEqual(suites.get("failures"), "0")
                    remarks = [element.text for element in suites.iter("system-out")]
                    self.assertTrue(any(words in remark for remark in remarks), remarks)
                    for form in (("html", path), ("annotate", "--format", "github", path),
                                 ("annotate", "--format", "gitlab", path)):
                        self.assertIn(words, run("report", *form)[1])
                    self.assertRegex(run("report", "prom", path)[1],
                                     'shmemctl_findings{id="[a-z-]+",severity="warning"}')
        code, _, err = run("topo", "--from", "-", "--csv", "-", "--quiet", stdin=TWO_HOSTS.encode())
        self.assertEqual((code, err), (0, ""))

    def test_a_dump_prints_findings_on_stderr_and_keeps_them(self):
        code, out, err = run("topo", "--from", "-", "--dump", "nccl-xml", stdin=TWO_HOSTS.encode())
        self.assertEqual(code, 0)
        self.assertIn("other hosts were left out", err)
        self.assertIn("other hosts were left out", run("topo", "--from", "-", stdin=out.encode())[1])

    def test_a_simulation_reports_findings_of_the_source(self):
        source = pairs(["mlx5_0", "mlx5_1"], [0, 1]).replace("</system>", '<cpu host_hash="0x2" numaid="0"/></system>')
        document = report_of("sim", "--from", "-", "--pattern", "all-to-all", stdin=source.encode())[1]
        self.assertIn("topology-incomplete", [f["id"] for f in document["findings"]])

    def test_foreign_files_are_refused_with_the_place(self):
        rack = '<system version="2">\n<rack><cpu numaid="0"><pci><gpu dev="0"/></pci></cpu></rack></system>'
        self.assertIn("line 2, column 1", self.assert_refused(run("topo", "--from", "-", stdin=rack.encode())))


class Names(CliTest):
    def test_labels_are_not_taken_for_device_names(self):
        lists = {"NVSHMEM_HCA_LIST": "mlx5_0:1,mlx5_1:1"}, {"NVSHMEM_HCA_PE_MAPPING": "mlx5_0:1:1,mlx5_1:1:1"}
        for source in (MATRIX, LACKING["no names in XML"][0]):
            text = run("topo", "--from", "-", stdin=source.encode())[1]
            self.assertNotRegex(text, EXPORTS)
            self.assertIn("name unknown", text)
            for env in lists:
                code, text, _ = run("topo", "--from", "-", stdin=source.encode(), env=env)
                self.assertEqual(code, 0, "a list is no error against labels")
                self.assertNotRegex(text, EXPORTS)
                self.assertIn("which NIC a PE uses is unknown", " ".join(text.split()))

    def test_names_of_nccl_are_matched_by_those_of_verbs(self):
        for names in (["mlx5_0_dma", "mlx5_1_dma"], ["mlx5_0+mlx5_1", "mlx5_2+mlx5_3"]):
            source = pairs(names, [0, 1])
            code, document = report_of("topo", "--from", "-", stdin=source.encode(),
                                       env={"NVSHMEM_HCA_LIST": "mlx5_0:1,mlx5_1:1"})
            self.assertEqual(code, 0)
            self.assertEqual(document["mapping"]["list"]["unmatched"], [])
            self.assertEqual([row["device"] for row in document["mapping"]["table"]], ["mlx5_0", "mlx5_1"])

    def test_devices_stand_in_the_order_of_dev(self):
        document = report_of("topo", "--from", "-", stdin=pairs(["mlx5_0", "mlx5_1"], [1, 0]).encode(),
                             env={"NVSHMEM_ENABLE_NIC_PE_MAPPING": "1"})[1]
        self.assertEqual([pe["nics"][0]["device"] for pe in document["mapping"]["pes"]], ["mlx5_1", "mlx5_0"])


class Matrices(CliTest):
    def test_hidden_nics_leave_the_mapping_unknown(self):
        document = report_of("topo", "--from", "-", stdin=LACKING["hidden NICs"][0].encode())[1]
        self.assertEqual([pe["nics"] for pe in document["mapping"]["pes"]], [[], []])
        self.assertEqual(document["mapping"]["advice"], [])
        self.assertEqual(document["topology"]["hidden_nics"], 2)
        self.assertIn("mapping-unknown", [f["id"] for f in document["findings"]])

    def test_numa_lists_and_the_gpus_own_node_are_printed(self):
        source = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n" \
                 "GPU0\t X \tNV6\t0-71\t0,3-9\t2\nGPU1\tNV6\t X \t72-143\t1\tN/A\n"
        text = run("topo", "--from", "-", stdin=source.encode())[1]
        self.assertIn("\t0-71\t0,3-9\t\t2\n", text)
        self.assertIn("\t72-143\t1\t\tN/A\n", text)

    def test_numbers_of_titles_are_kept(self):
        source = (MATRIX + LEGEND).replace("NIC1", "NIC6")
        text = run("topo", "--from", "-", stdin=source.encode())[1]
        self.assertRegex(text, r"(?m)^\tGPU0\tGPU1\tNIC0\tNIC6\t")
        self.assertRegex(text, r"(?m)^NIC6\t")
        self.assertIn("  NIC6: mlx5_1\n", text)

    def test_a_text_without_nics_does_not_say_that_the_node_has_none(self):
        text = run("topo", "--from", "-", stdin=b"\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n")[1]
        self.assertIn("not list", " ".join(text.split()))
        self.assertIn("this text lists no NIC", " ".join(text.split()))
        self.assertNotIn("cannot reach other nodes", text)
        self.assertNotIn("mlx5_ib", text)

    def test_partitions_of_a_gpu_are_gpus(self):
        two = GPU.format(bus="02", dev=0, links=LINKS).replace("</pci>", f'<gpu dev="0">{LINKS}</gpu></pci>')
        four = two + two.replace("0000:02", "0000:03").replace('dev="0"', 'dev="1"')
        document = report_of("topo", "--from", "-", stdin=nccl(four).encode())[1]
        matrix = document["topology"]["distances"]["matrix"]
        self.assertEqual(matrix, [["X" if i == j else "NV18" for j in range(4)] for i in range(4)])


class OldReports(CliTest):
    def test_a_report_without_the_newer_keys_is_read(self):
        document = report_of("topo", "--from", "-", stdin=(MATRIX + LEGEND).encode())[1]
        model = document["topology"]["model"]
        for key in ("remarks", "hidden_nics"):
            model.pop(key, None)
        for device in model["gpus"] + model["nics"]:
            for key in ("numa_affinity", "memory_numa", "unnamed", "source_number"):
                for name in [name for name in device if name.startswith(key)]:
                    del device[name]
        again = report_of("topo", "--from", "-", stdin=json.dumps(document).encode())[1]
        self.assertEqual(again["mapping"]["pes"], document["mapping"]["pes"])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "old.json"
            path.write_text(json.dumps(document))
            self.assertEqual(run("report", "validate", path)[0], 0)


if __name__ == "__main__":
    unittest.main()
