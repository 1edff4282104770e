"""Text from other hosts and files is printed safe by every command: no control character but line ends and tabs, no
mark that changes the direction of writing, no formula in CSV, no markup in pages."""
import csv
import functools
import html.parser
import io
import itertools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from support import BINARY, DATA, CliTest, clean_environment, run

BIDI = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
HOSTILE = ["\x1b[2J\x1b]0;title\x07", "\x9b31m\x85", "over\rwritten\b\b", BIDI, "two\nlines\x0b", "\x7f\x01",
           "</script><script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>&amp;]]>", "=cmd|' /C calc'!A0",
           "+1+1", "-2+3", "@SUM(A1)", "\uff1d1+1", "\t=1", "::error::x", "`$(id)` [a](javascript:b) |", "\\",
           "x" * 300]
# All that a terminal acts on in one text, then what must be by itself.
COMBINED = ["".join(HOSTILE[:6]), HOSTILE[6] + HOSTILE[7], HOSTILE[8], "two\nlines", "x" * 3000]
# What spreadsheets compute: not a negative number.
FORMULA = re.compile(r"[=+@\uff0b\uff0d\uff1d\uff20]|-(?!\d+(\.\d+)?(e-?\d+)?$)")
# Keys whose values are any text, by the schema.
FREE = re.compile(r"^(message|subject|fix|name|host|.*_host|hostname|kernel|model|cpus|driver|firmware|guid|uuid|value"
                  r"|reason|.*_reason|.*_origin|way|transport|clock|limited_by|netdev|note|title|evidence"
                  r"|cpu_affinity|command|nics|transports)$")


def hostile(value, texts, key=""):
    """The document with hostile text wherever any text may be."""
    if isinstance(value, dict):
        return {name: inner if name in ("schema", "tool") else hostile(inner, texts, name)
                for name, inner in value.items()}
    if isinstance(value, list):
        return [hostile(inner, texts, key) for inner in value]
    return next(texts) if isinstance(value, str) and FREE.match(key) else value


def endless(first):
    """The texts again and again, from one of them on."""
    return itertools.cycle(HOSTILE[first:] + HOSTILE[:first])


class Texts(html.parser.HTMLParser):
    """The data block of a page, and how many elements run code."""
    def __init__(self):
        super().__init__()
        self.tags, self.data, self.inside = [], "", False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = tag == "script" and ("id", "model") in attrs

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.data += data


class HostileText(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_safe(self, text, what, also="\n\t"):
        bad = sorted({c for c in text if (ord(c) < 0x20 or 0x7f <= ord(c) <= 0x9f or c in BIDI) and c not in also})
        self.assertEqual(bad, [], f"{what}: {text[:2000]!r}")

    def output_of(self, *arguments, also="\n\t", **keywords):
        """stdout of a command whose stdout and stderr are safe."""
        code, out, err = run(*arguments, **keywords)
        self.assertIn(code, (0, 1, 2, 3), err)
        self.assert_safe(out, arguments, also)
        self.assert_safe(err, arguments)
        return out

    def documents(self):
        """(name of the command that wrote it, file of a report full of hostile text)"""
        for name in ("topo", "bench"):
            document = json.loads((DATA / "report" / f"{name}-1.0.0.json").read_text())
            for first in range(0, len(HOSTILE), 6):
                path = self.folder / f"{name}{first}.json"
                path.write_text(json.dumps(hostile(document, endless(first))))
                code, out, err = run("report", "validate", path)
                self.assertEqual(code, 0, out + err)
                yield name, path

    def test_every_report_command(self):
        for name, path in self.documents():
            with self.subTest(path.name):
                harmless = DATA / "report" / f"{name}-1.0.0.json"
                for words in (("show", path), ("show", path, "--verbose", "--width", "60"), ("prom", path),
                              ("merge", path), ("diff", path, harmless), ("diff", harmless, path, "--json", "-"),
                              ("check", path, "--require", "put.p50_us<1")):
                    self.output_of("report", *words)
                for kind in ("github", "gitlab", "markdown"):
                    self.output_of("report", "annotate", "--format", kind, path)
                self.check_table(self.output_of("report", "csv", path, also="\r\n"))
                xml.etree.ElementTree.fromstring(self.output_of("report", "junit", path).encode())
                self.check_page(self.output_of("report", "html", path))

    def check_table(self, table):
        for row in csv.reader(io.StringIO(table, newline="")):
            for cell in row:
                self.assertFalse(FORMULA.match(cell), row)

    @staticmethod
    @functools.cache
    def tags_of_page():
        """Of any page: what a report holds adds none."""
        texts = Texts()
        texts.feed(run("report", "html", DATA / "report" / "topo-1.0.0.json")[1])
        return texts.tags

    def check_page(self, page):
        texts = Texts()
        texts.feed(page)
        self.assertEqual(texts.tags, self.tags_of_page())

        def walk(value):
            if isinstance(value, dict):
                for key, inner in value.items():
                    walk(key)
                    walk(inner)
            elif isinstance(value, list):
                for inner in value:
                    walk(inner)
            elif isinstance(value, str):
                self.assert_safe(value, "the page", "")
        walk(json.loads(texts.data))

    def test_recorded_machines(self):
        for _, path in self.documents():
            for words in (("topo", "--from", path), ("topo", "--from", path, "--json", "-"),
                          ("sim", "--from", path, "--nodes", "2", "--num-tokens", "8", "--steps", "1"),
                          ("topo", "--from", path, "--compare-versions", "--verbose"),
                          ("topo", "--from", path, "--dump", "nccl-xml"),
                          ("topo", "--from", path, "--dump", "hwloc-xml")):
                self.output_of(*words)
            self.check_table(self.output_of("topo", "--from", path, "--csv", "-", also="\r\n"))
        xml_text = (DATA / "nccl" / "small.xml").read_text()
        smi = (DATA / "nvidia-smi" / "session.txt").read_text()
        for text in COMBINED:
            quoted = "".join(c if c in "\t\n\r" or ord(c) >= 0x20 else f"&#{ord(c)};" for c in
                             text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;"))
            for broken in (xml_text.replace("mlx5_10", quoted),
                           xml_text.replace("<nic", f'<foreign a="{quoted}"/><nic', 1),
                           xml_text.replace("busid", "busid" + text, 1), smi.replace("mlx5_0", text),
                           smi.replace("NIC0", text), smi.replace("PIX", text, 1), text):
                for words in (("topo", "--from", "-"), ("topo", "--from", "-", "--verbose", "--json", "-")):
                    self.output_of(*words, stdin=broken.encode("utf-8", "surrogateescape"))

    def test_input_that_is_not_a_report(self):
        good = json.loads((DATA / "report" / "bench-1.0.0.json").read_text())
        for number, text in enumerate(COMBINED):
            path = self.folder / f"bad{number}.json"
            for document in (good | {text: 1}, good | {"status": text}, good | {"results": [{text: text}]},
                             good | {"schema": {"name": "shmemctl.report", "version": text}},
                             good | {"findings": [{"id": text, "severity": text}]}):
                path.write_text(json.dumps(document))
                for words in (("validate", path), ("show", path), ("diff", path, path)):
                    self.output_of("report", *words)
                self.output_of("topo", "--from", path)
            path.write_text('{"a": ' + text)
            self.output_of("report", "show", path)

    def test_names_of_files_options_and_variables(self):
        """Also bytes that are not UTF-8."""
        names = [text.encode().replace(b"\0", b"").replace(b"/", b"_")[:200] for text in COMBINED] + [b"\xff\xfe\x9b2J"]
        for name in names:
            path = os.path.join(os.fsencode(self.folder), name)
            for words in ((b"topo", b"--from", path), (b"report", b"show", path), (b"report", b"validate", path),
                          (b"topo", b"--hca-list", name), (b"bench", name), (b"doctor", b"--only", name),
                          (b"report", b"check", os.fsencode(DATA / "report" / "bench-1.0.0.json"), b"--require", name),
                          (b"sim", b"--pattern", name), (b"topo", b"--nvshmem-version", name), (name,)):
                self.check_bytes(words, {})
            variables = {variable: name for variable in (
                b"NVSHMEM_HCA_LIST", b"SHMEMCTL_NVSHMEM_VERSION", b"NVSHMEM_REMOTE_TRANSPORT", b"UCX_NET_DEVICES",
                b"SHMEMCTL_BOOTSTRAP", b"SHMEMCTL_" + name.replace(b"=", b""))}
            self.check_bytes((b"env",), variables)
            for variable in variables:
                self.check_bytes((b"topo", b"--from", os.fsencode(DATA / "nccl" / "small.xml")), {variable: name})

    def check_bytes(self, words, variables):
        environment = {os.fsencode(k): os.fsencode(v) for k, v in clean_environment().items()} | variables
        done = subprocess.run([os.fsencode(BINARY), *words], stdin=subprocess.DEVNULL, capture_output=True,
                              env=environment, timeout=300, check=False)
        for stream in (done.stdout, done.stderr):
            self.assert_safe(stream.decode("utf-8"), (words, variables))


if __name__ == "__main__":
    unittest.main()
