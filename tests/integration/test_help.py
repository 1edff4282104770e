"""--help of every subcommand: what it lists, in which groups, how wide it is."""
import re
import tempfile
import unittest

import support
from support import CliTest, run
from terminal import Terminal

COMMON = ("--json FILE", "--csv FILE", "-q, --quiet", "-v, --verbose", "--force", "--config FILE",
          "--color {auto,always,never}", "--timeout SECONDS", "--no-progress", "--log-level")


def help_of(*words, columns="80"):
    code, out, err = run(*words, "--help", env={"COLUMNS": columns})
    assert (code, err) == (0, ""), (words, code, err)
    return out


def subcommands(*words):
    """The subcommands that this help lists, and theirs."""
    found = []
    group = ""
    for line in help_of(*words).splitlines():
        if re.match(r"\S.*:$", line):
            group = line
        elif group and not re.match(r"(Common|.*options|Arguments)", group):
            if match := re.match(r"  ([a-z]+) {2,}\S", line):
                found.append((*words, match[1]))
    return [each for path in found for each in (path, *(subcommands(*path) if path == ("report",) else ()))]


class Help(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.paths = subcommands()

    def test_all_are_listed(self):
        names = {" ".join(path) for path in self.paths}
        self.assertLessEqual({"check", "topo", "doctor", "env", "run", "bringup", "bench", "moe", "sim", "hotspots", "fabric", "inspect", "gather", "explain",
                              "report", "report show", "report diff", "report prom", "help", "version",
                              "completion"}, names)

    def test_no_line_is_wider_than_the_terminal(self):
        for columns in (60, 80, 100):
            for path in [(), *self.paths]:
                for line in help_of(*path, columns=str(columns)).splitlines():
                    with self.subTest(path=path, columns=columns, line=line):
                        # A word that is longer than a line cannot be broken.
                        self.assertTrue(len(line) <= columns or " " not in line.strip())

    def test_lines_are_never_longer_than_can_be_read(self):
        self.assertLessEqual(max(map(len, help_of("bench", columns="300").splitlines())), 100)

    def test_a_terminal_has_its_own_width(self):
        with Terminal([support.BINARY, "moe", "--help"], rows=50, columns=72) as terminal:
            lines = terminal.read_to_end().replace("\r", "").splitlines()
        self.assertLessEqual(max(map(len, lines)), 72)
        self.assertGreater(max(map(len, lines)), 60)

    def test_every_subcommand_lists_the_common_options(self):
        for path in [(), *self.paths]:
            text = help_of(*path)
            for option in COMMON:
                with self.subTest(path=path, option=option):
                    self.assertIn(option.split()[-2 if option.endswith("}") else 0].rstrip(","), text)
            self.assertRegex(text, r"(?m)^Common options")

    def test_options_stand_in_groups(self):
        for path, groups in ((("bench",), ("Sizes and traffic", "Transports", "Runtime")),
                             (("moe",), ("Model", "Routing", "Slow and lost ranks")),
                             (("topo",), ("What is read", "Mapping of PEs to NICs")),
                             (("sim",), ("Cluster", "Traffic", "What if")),
                             ((), ("Look at a machine", "Measure a job", "Find the hot spot"))):
            for group in groups:
                with self.subTest(path=path, group=group):
                    self.assertRegex(help_of(*path), rf"(?m)^{group}:$")

    def test_values_have_names_of_their_own(self):
        for path in self.paths:
            with self.subTest(path=path):
                self.assertNotRegex(help_of(*path), r"\b(TEXT|UINT|FLOAT|INT)\b|\{1\}| \{,")

    def test_every_subcommand_has_an_example(self):
        for path in self.paths:
            if path != ("report",):
                with self.subTest(path=path):
                    self.assertRegex(help_of(*path), r"(?m)^ *(Example: )?.*shmemctl " + " ".join(path[:1]))
                    self.assertRegex(help_of(*path), r"(?m)^Examples?:")

    def test_the_programs_notes_are_not_those_of_its_subcommands(self):
        notes = "shmemctl help SUBCOMMAND shows the options of a subcommand"
        self.assertIn(notes, help_of())
        for path in self.paths:
            with self.subTest(path=path):
                self.assertNotIn(notes, help_of(*path))

    def test_help_is_a_word_too(self):
        for path in [(), *self.paths]:
            with self.subTest(path=path):
                self.assertEqual(run("help", *path), run(*path, "--help"))

    def test_version_is_a_word_too(self):
        self.assertEqual(run("version"), run("--version"))
        self.assertEqual(run("-V"), run("--version"))

    def test_they_may_stand_behind_other_flags(self):
        with tempfile.TemporaryDirectory() as folder:
            report = f"{folder}/r.json"
            self.assertEqual(run("--json", report, "help", "topo"), run("topo", "--help"))
            self.assertEqual(run("--json", report, "version"), run("--version"))
            self.assertEqual(run("--json", report, "help"), run("--help"))
            self.assert_refused(run("--json", report, "help", "tpo"))

    def test_short_flags(self):
        node = support.DATA / "nccl" / "hgx-8gpu-8nic.xml"
        self.assertEqual(run("topo", "-q", "--from", node), run("topo", "--quiet", "--from", node))
        self.assertEqual(run("-v", "topo", "--from", node), run("topo", "--verbose", "--from", node))

    def test_a_broken_configuration_file_does_not_hide_help(self):
        self.assertEqual(run("topo", "--help", "--config", "/no/such/file"), run("topo", "--help"))


class Colour(CliTest):
    NODE = support.DATA / "nccl" / "hgx-8gpu-8nic.xml"

    def coloured(self, *arguments, **variables):
        return "\x1b[" in run("topo", "--from", self.NODE, *arguments, env=variables)[1]

    def test_variables_that_force_colours(self):
        for variables, expected in (({}, False), ({"CLICOLOR_FORCE": "1"}, True), ({"FORCE_COLOR": "1"}, True),
                                    ({"FORCE_COLOR": "3"}, True), ({"CLICOLOR_FORCE": "0"}, False),
                                    ({"FORCE_COLOR": ""}, False), ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True),
                                    ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
                                    ({"CLICOLOR_FORCE": "1", "SHMEMCTL_COLOR": "never"}, False)):
            with self.subTest(variables=variables):
                self.assertEqual(self.coloured(**variables), expected)
        self.assertFalse(self.coloured("--color", "never", FORCE_COLOR="1"))
        self.assertTrue(self.coloured("--color", "always", NO_COLOR="1"))

    def test_a_terminal_has_colours_unless_it_is_refused(self):
        for variables, expected in (({}, True), ({"CLICOLOR": "0"}, False), ({"NO_COLOR": "1"}, False),
                                    ({"TERM": "dumb"}, False)):
            with self.subTest(variables=variables):
                environment = support.clean_environment(**{"TERM": "xterm", **variables})
                with Terminal([support.BINARY, "topo", "--from", str(self.NODE)], environment) as terminal:
                    self.assertEqual("\x1b[" in terminal.read_to_end(), expected)


if __name__ == "__main__":
    unittest.main()
