"""docs/reference matches the program, and man can show the man pages."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import SOURCE, clean_environment, report_of, run

REFERENCE = SOURCE / "docs" / "reference"
SINGLE = ("options.md", "findings.md", "exit-codes.md", "report-keys.md", "bench-cases.md")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def subcommands(page="shmemctl", words=()):
    """Words of every subcommand, as the pages' tables list them."""
    text = (REFERENCE / "commands" / f"{page}.md").read_text(encoding="utf-8")
    for name, file in re.findall(r"^\| \[`([\w-]+)`\]\(([\w-]+)\.md\)", text, re.MULTILINE):
        yield (*words, name)
        yield from subcommands(file, (*words, name))


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.made = pathlib.Path(cls.folder.name) / "markdown"
        cls.man = pathlib.Path(cls.folder.name) / "man"
        for format_, folder in (("markdown", cls.made), ("man", cls.man)):
            code, out, err = run("reference", format_, folder)
            assert (code, out, err) == (0, "", ""), err

    def test_no_page_is_older_than_the_program(self):
        made = {str(p.relative_to(self.made)) for p in self.made.rglob("*.md")}
        kept = {f"commands/{p.name}" for p in (REFERENCE / "commands").glob("*.md")} | set(SINGLE)
        self.assertEqual(made, kept, "run scripts/generate_reference.sh")
        stale = [name for name in sorted(made)
                 if (self.made / name).read_bytes() != (REFERENCE / name).read_bytes()]
        self.assertEqual(stale, [], "run scripts/generate_reference.sh")

    def test_every_flag_of_the_help_has_its_row(self):
        commands = list(subcommands())
        self.assertGreater(len(commands), 15)
        for words in commands:
            code, out, _ = run(*words, "--help")
            self.assertEqual(code, 0, words)
            # A flag that is defined there is at the beginning of its line.
            flags = set()
            for line in out.splitlines():
                if re.match(r" {1,8}-", line):
                    flags.update(FLAG.findall(re.split(r"\s{2,}", line.strip())[0]))
            page = (REFERENCE / "commands" / f"{'-'.join(words)}.md").read_text(encoding="utf-8")
            common = (REFERENCE / "commands" / "shmemctl.md").read_text(encoding="utf-8")
            missing = {flag for flag in flags if f"`{flag}`" not in page and f"`{flag}`" not in common}
            self.assertEqual(missing - {"--help"}, set(), words)

    def test_readme_has_the_number_of_doctors_checks(self):
        code, out, _ = run("doctor", "--list")
        self.assertEqual(code, 0)
        number = re.search(r"(\d+) preconditions", (SOURCE / "README.md").read_text(encoding="utf-8"))
        self.assertEqual(int(number[1]), len(out.splitlines()) - 1, "README.md")

    def test_every_subcommand_has_a_man_page(self):
        names = {p.name for p in (self.man / "man1").iterdir()}
        self.assertEqual(names, {"shmemctl.1"} | {f"shmemctl-{'-'.join(w)}.1" for w in subcommands()})

    def test_man_pages_are_troff_without_warnings(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        for page in sorted(self.man.rglob("*.[17]")):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-P-cbou", "-ww", "-rLL=100n", page], capture_output=True,
                                  text=True, check=False, env=clean_environment())
            self.assertEqual(done.returncode, 0, page)
            # A long word that cannot be filled is the terminal's matter.
            said = [line for line in done.stderr.splitlines() if "break" not in line and "adjust" not in line]
            self.assertEqual(said, [], page)
            self.assertIn("NAME", done.stdout)

    def test_the_exit_codes_are_those_of_the_code(self):
        header = (SOURCE / "src" / "base" / "error.h").read_text(encoding="utf-8")
        values = re.search(r"enum class ExitCode[^{]*\{(.*?)\};", header, re.DOTALL)[1]
        in_code = set(re.findall(r"= (\d+)", values))
        page = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"^\| (\d+) \|", page, re.MULTILINE)), in_code)

    def test_every_option_of_the_table_is_on_the_page(self):
        names = {row["name"].removeprefix("SHMEMCTL_") for row in report_of("env")[1]["options"]}
        page = (REFERENCE / "options.md").read_text(encoding="utf-8")
        self.assertGreater(len(names), 50)
        self.assertEqual(names - set(re.findall(r"^## (\w+)$", page, re.MULTILINE)), set())

    def test_the_hidden_command_refuses_a_target_that_it_cannot_write(self):
        self.assertNotIn("reference", run("--help")[1])
        self.assertNotIn("reference", run("completion", "bash")[1])
        self.assertEqual(run("reference", "html", self.made)[0], 2)
        code, _, err = run("reference", "man", "/proc/no-such-folder")
        self.assertEqual(code, 3)
        self.assertIn("/proc/no-such-folder", err)


if __name__ == "__main__":
    unittest.main()
