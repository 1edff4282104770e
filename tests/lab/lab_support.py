"""Boots labs for tests; skips, with the reason, where this host cannot."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LAB = SOURCE / "scripts" / "lab"
sys.path.insert(0, str(LAB))

# pylint: disable=wrong-import-position
import image  # noqa: E402
from errors import EXIT_UNAVAILABLE, Unavailable  # noqa: E402
from lab import Lab  # noqa: E402
from options import Options, parser, from_arguments  # noqa: E402

BINARY = os.environ.get("SHMEMCTL_BINARY", str(SOURCE / "build" / "shmemctl"))


def options(*words):
    """Options as scripts/lab/run reads them."""
    return from_arguments(parser("run", True).parse_args([str(word) for word in words]))


def run_lab(*words):
    """A Result; arguments are those of scripts/lab/run. Machines that did not come up get one more
    try: their command has not begun, and a boot under emulation depends on the host's load."""
    result = Lab(options(*words)).run()
    if result.error and None in result.ready_s:
        print(f"not up, once more: {result.error}", file=sys.stderr)
        result = Lab(options(*words)).run()
    if result.error and None in result.ready_s:
        raise AssertionError(f"the lab did not come up, twice: {result.error}")
    return result


class Jobs(unittest.TestCase):
    """Runs one lab for all tests of a class. Its jobs leave in a folder, by name: the exit code, what
    they printed (.text, .errors), a report (.json) and the processes that outlived them (.left)."""
    words = ()
    result = None
    out = None

    @classmethod
    def setUpClass(cls):
        if not cls.words:
            raise unittest.SkipTest("no lab of its own")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name) / "out"
        cls.result = run_lab("--timeout", 500, "--out", cls.out, *cls.words)

    def text(self, name):
        path = self.out / name
        self.assertTrue(path.is_file(), f"{path} is missing; the lab said: {self.result}")
        return path.read_text(encoding="utf-8")

    def assert_ended(self, name, code):
        """With that exit code, and no PE left behind."""
        said = self.text(name + ".errors") + self.text(name + ".text")
        self.assertEqual(self.text(name), f"{code}\n", said)
        self.assertEqual(self.text(name + ".left"), "", said)

    def report(self, name, code=0):
        self.assert_ended(name, code)
        return json.loads(self.text(name + ".json"))

    def assert_verified(self, name):
        report = self.report(name)
        self.assertEqual({row["verified"] for row in report["results"]}, {"passed"})
        return report

    def assert_refused(self, name, code, *words):
        """One line of error that has all words, and behind it one that says what to do."""
        self.assert_ended(name, code)
        lines = self.text(name + ".errors").splitlines()
        found = [number for number, line in enumerate(lines)
                 if line.startswith("shmemctl: error: ") and all(word in line for word in words)]
        self.assertTrue(found, f"no line has all of {words}: {lines}")
        self.assertTrue(lines[found[0] + 1].startswith("shmemctl: fix: "), lines)
        return lines[found[0] + 1]

    def assert_incomplete(self, name, code):
        self.assertEqual(self.report(name, code)["status"], "incomplete")


def main():
    """Runs the tests of the calling file; exit code 77 where there can be no lab."""
    try:
        image.prepare()
    except Unavailable as error:
        print(f"skipped: {error}; fix: {error.fix}")
        sys.exit(EXIT_UNAVAILABLE)
    unittest.main()
