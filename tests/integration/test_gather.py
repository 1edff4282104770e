"""gather: a node as an archive, in which topo, doctor and inspect find the same; archives that are hostile."""
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

from recorded_nodes import Recording
from support import BINARY, SOURCE, CliTest, clean_environment, report_of, run
from test_inspect import RecordedNode, elf


def findings(document, *ids):
    return sorted((each["id"], each["severity"], each["subject"], each["message"], each["fix"])
                  for each in document["findings"] if not ids or each["id"] in ids)


def checks(document):
    return {each["id"]: (each["status"], each["reason"], each["fix"]) for each in document["checks"]}


def packed(entries):
    """A .tar.zst of these (name, type, content or target)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, content in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                tar.addfile(info)
    return subprocess.run(["zstd", "-qc"], input=buffer.getvalue(), capture_output=True, check=True).stdout


class Gather(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.archive = self.folder / "node.tar.zst"

    def gather(self, *arguments):
        code, out, err = run("gather", "-o", self.archive, *arguments)
        self.assertEqual((code, err), (0, ""), out)
        return out

    def unpacked(self):
        """The archive's files as name -> bytes."""
        plain = subprocess.run(["zstd", "-dqc", self.archive], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
            return {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}


class ThisMachine(Gather):
    def test_the_same_findings_as_live(self):
        self.gather("--keep-names")
        # What changes from second to second is not the archive's to keep.
        moving = {"kernel-log-other", "dev-shm"}
        live, recorded = (checks(report_of("doctor", *source)[1]) for source in ((), ("--from", self.archive)))
  # a reader of the archive cannot run it there as root
        for check, (status, reason, fix) in live.items():
            if fix.startswith("sudo shmemctl doctor"):
                live[check] = status, reason, "record that node again as root: sudo shmemctl gather -o node.tar.zst"
        self.assertEqual({k: v for k, v in recorded.items() if k not in moving},
                         {k: v for k, v in live.items() if k not in moving})
        self.assertEqual(findings(report_of("topo", "--from", self.archive)[1]), findings(report_of("topo")[1]))
        self.assertEqual(report_of("topo", "--from", self.archive)[1]["topology"]["distances"],
                         report_of("topo")[1]["topology"]["distances"])

    def test_names_do_not_leave_it(self):
        out = self.gather()
        self.assertIn("replaced", out)
        name = pathlib.Path("/proc/sys/kernel/hostname").read_text().strip()
        addresses = [path.read_text().strip() for path in pathlib.Path("/sys/class/net").glob("*/address")]
        secret = [address for address in addresses if address and address.strip("0:") and address != "ff:ff:ff:ff:ff:ff"]
        for path, content in self.unpacked().items():
            self.assertNotRegex(content.decode(errors="replace"), rf"\b{name}\b" if len(name) > 3 else "\0never", path)
            for address in secret:
                self.assertNotIn(address.encode(), content, path)
        self.assertIn(run("doctor", "--from", self.archive)[0], (0, 1))

    def test_a_folder_that_cannot_be_written_and_a_file_that_exists(self):
        self.archive.write_bytes(b"x")
        code, _, err = run("gather", "-o", self.archive)
        self.assertEqual((code, self.archive.read_bytes()), (2, b"x"))
        self.assertIn("the file exists", err)
        code, _, err = run("gather", "-o", self.folder / "none" / "node.tar.zst")
        self.assertEqual(code, 3, err)
        self.assertEqual(len(err.splitlines()), 2, err)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["node.tar.zst"])
        if pathlib.Path("/dev/full").exists():
            code, _, err = run("gather", "-o", "/dev/full", "--force")
            self.assertEqual((code, len(err.splitlines())), (3, 2), err)


class ARecordedTree(Gather):
    def setUp(self):
        super().setUp()
        self.tree = self.folder / "tree"
        node = RecordedNode(self.tree)
        node.write("proc/sys/kernel/hostname", "gpu-node-07\n")
        first = node.library("/home/ann/a/libnccl.so.2", elf(["NCCL version 2.21.5+cuda12.4", "NCCL_DEBUG", "NCCL_IB_HCA"], "libnccl.so.2"))
        second = node.library("/opt/b/libnccl.so.2", elf(["NCCL version 2.18.1+cuda12.1", "NCCL_DEBUG"], "libnccl.so.2"))
        node.process(4711, [first, second], ("RANK=0", "NCCL_IB_HCAS=mlx5_0", "HOME=/home/ann", "API_TOKEN=secret123"))
        node.process(4712, [first], ("RANK=1", "NCCL_DEBUG=odd"))

    def test_the_same_findings(self):
        self.gather("--sysroot", self.tree, "--keep-names")
        _, of_tree = report_of("inspect", "--all", "--sysroot", self.tree)
        self.assertIn("env-ignored", {each["id"] for each in of_tree["findings"]})
        for source in (("--from", self.archive), ("--sysroot", self.archive)):
            _, of_archive = report_of("inspect", "--all", *source)
            self.assertEqual(findings(of_archive), findings(of_tree))
            versions = [[library["version"] for library in each["libraries"]] for each in of_archive["processes"]]
            self.assertEqual(versions, [[library["version"] for library in each["libraries"]] for each in of_tree["processes"]])
        self.assertEqual(checks(report_of("doctor", "--from", self.archive)[1]),
                         checks(report_of("doctor", "--sysroot", self.tree)[1]))

    def test_names_are_replaced_and_findings_remain(self):
        self.gather("--sysroot", self.tree)
        whole = b"".join(name.encode() + content for name, content in self.unpacked().items())
        for word in (b"gpu-node-07", b"/home/ann", b"secret123", b"train.py"):
            self.assertNotIn(word, whole)
        self.assertEqual(sorted(each["id"] for each in report_of("inspect", "--all", "--from", self.archive)[1]["findings"]),
                         sorted(each["id"] for each in report_of("inspect", "--all", "--sysroot", self.tree)[1]["findings"]))

    def test_stdin_and_stdout(self):
        plain = subprocess.run([BINARY, "gather", "-o", "-", "--sysroot", self.tree], capture_output=True,
                               env=clean_environment(), check=True).stdout
        self.assertEqual(plain[:4], b"\x28\xb5\x2f\xfd")
        self.assertEqual(run("topo", "--from", "-", stdin=plain)[0], run("topo", "--sysroot", self.tree)[0])


class RecordedRelease(Gather):
    """topo simulates the NVSHMEM that the recorded node has."""

    def topo(self, *arguments):
        code, document = report_of("topo", "--from", self.archive, *arguments)
        self.assertEqual(code, 0)
        report = json.dumps(document).encode()
        self.assertEqual(run("report", "validate", "-", stdin=report)[0], 0)
        return document["mapping"]["version"], document["mapping"].get("version_source")

    def record(self, *versions):
        tree = self.folder / "-".join(versions)
        node = RecordedNode(tree)
        for number, version in enumerate(versions):
            path = f"/opt/{version}/libnvshmem_host.so.3"
            node.library(path, elf([f"NVSHMEM v{version}", "NVSHMEM_DEBUG", "HCA_LIST"], "libnvshmem_host.so.3"))
            node.process(4711 + number, [path])
        self.gather("--force", "--sysroot", tree)

    def test_that_of_the_processes_unless_another_one_is_asked_for(self):
        self.record("3.4.5")
        self.assertEqual(self.topo(), ("3.4.5", "loaded by PID 4711"))
        self.assertEqual(self.topo("--nvshmem-version", "3.5.19"), ("3.5.19", None))

    def test_of_several_none_is_chosen(self):
        self.record("3.4.5", "3.5.19")
        version, source = self.topo()
        self.assertNotIn(version, ("3.4.5", "3.5.19"))
        self.assertIn("several are recorded, 3.4.5, 3.5.19", source)

    def test_the_table_says_which(self):
        node = Recording(SOURCE / "tests" / "recorded" / "healthy" / "deepep-on-infiniband", self.folder / "node")
        self.assertIn("NICs by policy nvshmem 3.4.5 (loaded by PID ", run(*node.arguments("topo"))[1])


class Hostile(Gather):
    def test_archives_that_are_refused(self):
        regular, link, hard = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
        outside = self.folder / "outside"
        good = packed([("sys/a", regular, b"1")])
        cases = {
            "leaves": packed([(f"../../../..{outside}", regular, b"x")]),
            "absolute": packed([(str(outside), regular, b"x")]),
            "below a link": packed([("a", link, str(self.folder)), ("a/outside", regular, b"x")]),
            "hard link": packed([("a", regular, b"x"), ("b", hard, "a")]),
            "twice": packed([("a", regular, b"x"), ("a", regular, b"y")]),
            "cut off": good[:len(good) // 2],
            "bomb": subprocess.run(["zstd", "-qc"], input=bytes(300 << 20), capture_output=True, check=True).stdout,
            "no tar": subprocess.run(["zstd", "-qc"], input=b"garbage" * 200, capture_output=True, check=True).stdout,
            "bad results": packed([("shmemctl/results.json", regular, b"{"), ("shmemctl/node.json", regular, b"[]")]),
        }
        for name, content in cases.items():
            self.archive.write_bytes(content)
            for call in (("topo",), ("doctor",), ("inspect", "--all")):
                if name == "bad results" and call != ("doctor",):
                    continue
                with self.subTest(archive=name, call=call):
                    code, out, err = run(*call, "--from", self.archive)
                    self.assertEqual((code, out), (2, ""), err)
                    self.assertEqual(len(err.splitlines()), 2, err)
                    self.assertIn("fix: ", err)
        self.assertFalse(outside.exists())

    def test_links_lead_nowhere_else(self):
        self.archive.write_bytes(packed([("proc/sys/kernel/hostname", tarfile.SYMTYPE, "/etc/hostname"),
                                         ("sys/class/net/x", tarfile.SYMTYPE, "../../../../../../sys/class/net/lo")]))
        code, document = report_of("topo", "--from", self.archive)
        self.assertIn(code, (0, 1))
        self.assertNotIn(pathlib.Path("/proc/sys/kernel/hostname").read_text().strip(), str(document["hosts"]))

    def test_what_is_no_archive(self):
        (self.folder / "text").write_text("text")
        for call in (("doctor",), ("inspect", "--all"), ("topo",)):
            code, _, err = run(*call, "--from", self.folder / "text")
            self.assertEqual((code, len(err.splitlines())), (2, 2), err)


if __name__ == "__main__":
    sys.exit(unittest.main())
