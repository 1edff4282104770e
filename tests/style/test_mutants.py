#!/usr/bin/env python3
"""Mutants: every one of tests/mutants/table.py applies to the sources, which know nothing of them.

What the mutants show is not tried here: tests/support/device_mutants.sh and tests/gpu do that.
"""

import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

import mutate  # noqa: E402 (found by the line above)
import table  # noqa: E402

PRODUCT = ("cli", "kernels", "reports", "src", "transports")
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".c"}
CONDITION = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*MUTA", re.MULTILINE)


def mutant(**changes):
    """A mutant of a file x.cuh."""
    values = {"name": "X", "drops": "", "tried": (table.LITMUS,), "edits": [table.Edit("x.cuh", "a;", "b;")]}
    return table.Mutant(**{**values, **changes})


class Mutate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def source(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def test_the_copy_lies_at_the_path_of_the_include(self):
        self.source("kernels/x.cuh", "a; c;")
        edits = [table.Edit("kernels/x.cuh", "a;", "b;"), table.Edit("kernels/x.cuh", "c;", "")]
        mutate.write(mutant(edits=edits), self.root / "out", root=self.root)
        self.assertEqual((self.root / "out/kernels/x.cuh").read_text(), "b; ")
        self.assertEqual((self.root / "kernels/x.cuh").read_text(), "a; c;")

    def test_a_copy_that_is_there_already_stays(self):
        self.source("x.cuh", "a;")
        mutate.write(mutant(), self.root / "out", root=self.root)
        os.utime(self.root / "out/x.cuh", (1, 1))
        mutate.write(mutant(), self.root / "out", root=self.root)
        self.assertEqual((self.root / "out/x.cuh").stat().st_mtime, 1)

    def test_missing_or_ambiguous_old_text_fails(self):
        for text, count in (("c;", 0), ("a; a;", 2)):
            self.source("x.cuh", text)
            with self.assertRaisesRegex(mutate.MutantError, f"occurs {count} times in x.cuh"):
                mutate.mutated_files(mutant(), root=self.root)

    def test_a_file_that_is_missing(self):
        with self.assertRaisesRegex(mutate.MutantError, "x.cuh does not exist"):
            mutate.mutated_files(mutant(), root=self.root)

    def test_on_the_host_the_replacement_of_a_file_is_mutated(self):
        self.source("x.cuh", "a;")
        self.source(table.HOST_FILES + "x.cuh", "host a;")
        edits = [table.Edit("x.cuh", "a;", "b;"), table.Edit(table.HOST_FILES + "x.cuh", "host a;", "host b;")]
        for on_host, text in ((False, "b;"), (True, "host b;")):
            self.assertEqual(mutate.mutated_files(mutant(edits=edits), on_host, self.root), {"x.cuh": text})

    def test_unknown_name(self):
        with self.assertRaisesRegex(mutate.MutantError, "mutant NO_SUCH"):
            mutate.find("NO_SUCH")


class Table(unittest.TestCase):
    def test_every_mutant_applies(self):
        for one in table.MUTANTS:
            self.assertTrue(one.tried, one.name)
            for on_host in {where == table.HOST for where in one.tried}:
                with self.subTest(mutant=one.name, on_host=on_host):
                    self.assertTrue(mutate.mutated_files(one, on_host))
            for edit in one.edits:
                self.assertNotEqual(edit.old, edit.new, one.name)

    def test_names_are_unique(self):
        names = [one.name for one in table.MUTANTS]
        self.assertEqual(len(names), len(set(names)))

    def test_sources_of_kernels_exist(self):
        for one in table.MUTANTS:
            for kernel in one.kernels:
                self.assertTrue((ROOT / f"kernels/moe/{kernel}.cu").exists(), one.name)

    def test_known_survivors_are_mutants(self):
        verdict = (ROOT / "tests/gpu/litmus_verdict.h").read_text()
        names = set(re.findall(r'"([A-Z_]{3,})"', verdict)) - {"NONE", "NETWORK"}
        soak = (ROOT / "scripts/soak.sh").read_text()
        for line in re.findall(r'^(moe|kernel)_survivors="(?:\$\w+ )?([A-Z_ ]+)"', soak, re.MULTILINE):
            names |= {("MOE_" if line[0] == "moe" else "") + name for name in line[1].split()}
        self.assertGreater(len(names), 15)
        self.assertEqual(names - {one.name for one in table.MUTANTS}, set())


class Product(unittest.TestCase):
    def test_no_source_of_the_product_has_a_condition_for_a_mutant(self):
        found = [str(path.relative_to(ROOT)) for folder in PRODUCT for path in (ROOT / folder).rglob("*")
                 if path.suffix in SOURCES and CONDITION.search(path.read_text())]
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
