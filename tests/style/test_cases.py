#!/usr/bin/env python3
"""Bench cases: each is its class, and one row of src/instruments/bench/case_table.cpp. And the diffs of
docs/development.md, which show how one is added: what they leave as it is, is in the tree.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "src" / "instruments" / "bench" / "case_table.cpp"
DEFINED = re.compile(r"^SHMEMCTL_CASE(?:_BY_MEMORY)?\((\w+),", re.MULTILINE)
BY_MEMORY = re.compile(r"^SHMEMCTL_CASE_BY_MEMORY\(\w+, [^;]*?(\w+)\);", re.MULTILINE)
NAMED = re.compile(r"\b(host|stream|kernel)\(MAKER\((\w+)\)")
ROW = re.compile(r'^      \{"([a-z0-9-]+)", ', re.MULTILINE)
DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sources(*folders):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))
            if path.suffix in (".h", ".cpp", ".cu", ".cuh")]


def context_of(diff):
    """(file, line) of each line that a diff neither adds nor removes. "…" stands for lines left out."""
    name, lines = None, []
    for line in diff.splitlines():
        if line.startswith(("--- ", "+++ ")):
            name = line[4:].strip() if line[4:].strip() != "/dev/null" else name
        elif line.startswith(" ") and line.strip() not in ("", "…"):
            lines.append((name, line[1:].rstrip()))
    return lines


class Cases(unittest.TestCase):
    def setUp(self):
        self.table = TABLE.read_text(encoding="utf-8")
        self.texts = {path: path.read_text(encoding="utf-8") for path in sources("src/instruments/bench", "kernels/bench")}

    def test_every_maker_is_defined_once_and_named_by_a_row(self):
        defined = [name for path, text in self.texts.items() if path != TABLE for name in DEFINED.findall(text)]
        inner = {name for text in self.texts.values() for name in BY_MEMORY.findall(text)}
        named = {name for _, name in NAMED.findall(self.table)}
        self.assertGreater(len(named), 60)
        rows = re.sub(r"//.*|#define.*", "", self.table)
        self.assertEqual(rows.count("MAKER("), len(NAMED.findall(rows)), "a MAKER() that this test does not read")
        self.assertEqual(sorted(defined), sorted(set(defined)))
        self.assertEqual(sorted(set(defined) - inner), sorted(named))

    def test_a_maker_is_declared_nowhere_but_in_its_row(self):
        named = {name for _, name in NAMED.findall(self.table)}
        for path, text in self.texts.items():
            if path != TABLE:
                left = re.sub(r"^SHMEMCTL_CASE\w*\(\w+,|^ *//.*$", "", text, flags=re.MULTILINE)
                self.assertEqual(named & set(re.findall(r"\w+_by_(?:host|gpu)\b", left)), set(), path.relative_to(ROOT))

    def test_initiators_have_makers_of_their_own(self):
        for initiator, name in NAMED.findall(self.table):
            self.assertTrue(name.endswith("_by_host" if initiator == "host" else "_by_gpu"), f"{initiator}({name})")

    def test_every_case_has_one_row(self):
        names = ROW.findall(self.table)
        self.assertGreater(len(names), 40)
        self.assertEqual(sorted(names), sorted(set(names)))

    def test_a_launcher_is_declared_once(self):
        declared = [name for path, text in self.texts.items() if path.name not in ("launcher.h", "case_file.h")
                    for name in re.findall(r"^SHMEMCTL_(?:INNER_)?LAUNCHER\((\w+),", text, re.MULTILINE)]
        self.assertGreater(len(declared), 10)
        self.assertEqual(sorted(declared), sorted(set(declared)))


class Diffs(unittest.TestCase):
    def test_what_they_leave_stands_in_the_tree(self):
        page = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
        lines = [line for diff in DIFF.findall(page) for line in context_of(diff)]
        self.assertGreater(len(lines), 8)
        for name, line in lines:
            self.assertIsNotNone(name, f"no file for: {line}")
            text = (ROOT / name).read_text(encoding="utf-8").splitlines()
            self.assertIn(line, [one.rstrip() for one in text], f"docs/development.md: {name} has no such line")

    def test_the_macros_that_they_use_are_defined(self):
        page = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
        used = {name for diff in DIFF.findall(page) for name in re.findall(r"^\+.*?\b(SHMEMCTL_\w+|MAKER)\b", diff, re.MULTILINE)}
        self.assertGreater(len(used), 3)
        defined = {name for path in sources("src/instruments/bench", "kernels/bench")
                   for name in re.findall(r"^ *#define (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)}
        self.assertEqual(used - defined, set())

    def test_context_is_read(self):
        self.assertEqual(context_of("--- /dev/null\n+++ a/b.cu\n+new\n--- c.h\n+++ c.h\n@@ -1,2 @@\n kept\n …\n-old\n"),
                         [("c.h", "kept")])


if __name__ == "__main__":
    unittest.main()
