"""The checkers of links and flags find what is wrong, and nothing else."""
import pathlib
import tempfile
import unittest

import check_flags
import check_links


class Links(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "docs").mkdir()

    def problems(self, **pages):
        for name, text in pages.items():
            (self.root / "docs" / f"{name}.md").write_text(text, encoding="utf-8")
        return check_links.broken_links(self.root, sorted((self.root / "docs").glob("*.md")))

    def test_good_links(self):
        self.assertEqual(self.problems(
            a="# A\n[b](b.md) [there](b.md#the-moe-page-1-2) [here](#a) [out](https://example.org/x)",
            b="## The `moe` page, 1 + 2\n`[no](link.md)`\n```\n[no](link.md)\n```\n[a](a.md)\n"), [
                "docs/a.md:2: b.md#the-moe-page-1-2: b.md has no heading with that anchor"])
        self.assertEqual(self.problems(a="# A\n[b](b.md#the-moe-page-1--2) [here](#a)"), [])

    def test_headings_of_one_text_are_numbered(self):
        self.assertEqual(self.problems(a="# X\n# X\n[1](#x) [2](#x-1) [a](a.md)"), [])
        self.assertEqual(len(self.problems(a="# X\n[2](#x-1) [a](a.md)")), 1)

    def test_no_file_and_no_link_to_a_page(self):
        self.assertEqual(self.problems(a="[x](gone.md)"), [
            "docs/a.md:1: gone.md: there is no such file", "docs/a.md: no page links to it"])


class Flags(unittest.TestCase):
    own = {"--json", "--iters"}
    root = pathlib.Path(__file__).resolve().parents[2]

    def unknown(self, span):
        return check_flags.unknown_flags(span, self.own, self.root)

    def test_flags_of_this_program_and_of_others(self):
        self.assertEqual(self.unknown("shmemctl bench --json a --iterations 3"), ["--iterations"])
        self.assertEqual(self.unknown("--json"), [])
        self.assertEqual(self.unknown("--gid-index"), ["--gid-index"])

    def test_flags_after_another_tools_name_belong_to_that_tool(self):
        self.assertEqual(self.unknown("docker run --gpus all image"), [])
        self.assertEqual(self.unknown("mpirun --oversubscribe -n 2 shmemctl bench --oversubscribe"), ["--oversubscribe"])
        self.assertEqual(self.unknown("docker ps | shmemctl topo --gpus-all"), ["--gpus-all"])

    def test_a_script_has_the_flags_of_its_text(self):
        self.assertEqual(self.unknown("scripts/generate_reference.sh --man x"), [])
        self.assertEqual(self.unknown("scripts/generate_reference.sh --women x"), ["--women"])

    def test_strings_of_sources(self):
        text = '''// names "--nothing"
  fail("set it with " // --comment
       "--iters", "a \\"quoted\\" --json");'''
        self.assertEqual([literal for _, literal in check_flags.strings_of(text)],
                         ["set it with ", "--iters", 'a \\"quoted\\" --json'])

    def test_a_source_that_names_no_flag_of_ours(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src").mkdir()
            (root / "src" / "a.cpp").write_text(
                'fail("raise --iters, or nvidia-smi --reset-gpu",\n     "name it with " "--gid-index");\n', encoding="utf-8")
            self.assertEqual(check_flags.problems_of_sources(root, self.own), [
                "src/a.cpp:2: no subcommand has --gid-index: name it with --gid-index"])


if __name__ == "__main__":
    unittest.main()
