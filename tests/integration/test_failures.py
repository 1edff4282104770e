"""Twenty failures of real jobs, and healthy nodes, as recordings (tests/recorded/README.md): which are named, and that
no healthy one is.

A failure is named if each of the findings that its case.json expects is there, with what it must say of the cause and
the fix. A finding that this revision does not have yet in that command is not asked for.
"""
import json
import pathlib
import re
import tempfile
import unittest

from recorded_nodes import Recording
from support import SOURCE, CliTest, report_of

RECORDED = SOURCE / "tests" / "recorded"
FAILURES = sorted(folder for folder in (RECORDED / "failures").iterdir() if folder.is_dir())
HEALTHY = sorted(folder for folder in (RECORDED / "healthy").iterdir() if folder.is_dir())
LEAST_NAMED = 17


def known_findings():
    """Ids in the table of findings."""
    tables = "".join(path.read_text() for path in (SOURCE / "reports").glob("*_findings.cpp"))
    return set(re.findall(r'^ +\{"([a-z0-9-]+)",', tables, re.MULTILINE))


def inspected_findings():
    """Ids in the sources of what looks at nodes and processes: some are of other commands too."""
    sources = [path for path in (SOURCE / "src" / "instruments").rglob("*.cpp") if path.parent.name != "explain"]
    return set(re.findall(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"', "".join(path.read_text() for path in sources)))


def is_known(expected):
    """Whether this revision has the finding in that command."""
    known = expected["finding"] in known_findings()
    return known and (not expected["run"].startswith("inspect") or expected["finding"] in inspected_findings())


class Recordings(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def recording(self, folder):
        return Recording(folder, self.folder / folder.name)

    def findings(self, recording, line):
        _, document = report_of(*recording.arguments(line), env=recording.case.get("environment"))
        return document["findings"]

    def missing(self, recording):
        """What of the expected findings is not there, as sentences."""
        missing = []
        for expected in recording.case["named"]:
            if not is_known(expected):
                continue
            found = [each for each in self.findings(recording, expected["run"]) if each["id"] == expected["finding"]
                     and expected.get("subject", each["subject"]) == each["subject"]]
            if not any(self.says(each, expected) for each in found):
                missing.append(f"{expected['run']}: no {expected['finding']} {expected.get('subject', '')} with "
                               f"{expected['cause']} and {expected['fix']}, but {found}")
        return missing

    @staticmethod
    def says(finding, expected):
        severities = [expected["severity"]] if "severity" in expected else ["warning", "error"]
        return (finding["severity"] in severities and all(word in finding["message"] for word in expected["cause"])
                and all(word in finding["fix"] for word in expected["fix"]))


class Failures(Recordings):
    def test_each_is_named_with_its_cause_and_its_fix(self):
        named = 0
        for folder in FAILURES:
            recording = self.recording(folder)
            if "not_named" in recording.case:
                continue
            with self.subTest(recording.name):
                self.assertTrue([each for each in recording.case["named"] if is_known(each)], "nothing is asked")
                self.assertEqual(self.missing(recording), [])
                named += 1
        self.assertGreaterEqual(named, LEAST_NAMED)

    def test_those_that_cannot_be_named_are_not(self):
        for folder in FAILURES:
            recording = self.recording(folder)
            if "not_named" not in recording.case:
                continue
            with self.subTest(recording.name):
                self.assertNotEqual(self.missing(recording), [], "it is named now: take not_named out of its case.json")

    def test_there_are_twenty_and_each_says_what_is_invented(self):
        self.assertEqual([folder.name[:2] for folder in FAILURES], [f"{number:02}" for number in range(1, 21)])
        for folder in FAILURES + HEALTHY:
            with self.subTest(folder.name):
                case = self.recording(folder).case
                self.assertTrue(case["title"] and case["invented"])
        page = (SOURCE / "docs" / "explanation" / "failures.md").read_text()
        for folder in FAILURES:
            case = json.loads((folder / "case.json").read_text())
            self.assertIn(f"| `{folder.name}` | {case['title']} | ", page)
            self.assertIn(f"| `{folder.name}` | {case['invented']} |", page)


class Healthy(Recordings):
    def test_no_false_alarm(self):
        self.assertGreaterEqual(len(HEALTHY), 10)
        for folder in HEALTHY:
            recording = self.recording(folder)
            true = {each["finding"] for each in recording.case.get("true", [])}
            for line in recording.case["runs"]:
                with self.subTest(recording.name, run=line):
                    alarms = [each for each in self.findings(recording, line) if each["severity"] != "info"]
                    self.assertEqual([each for each in alarms if each["id"] not in true], [])


if __name__ == "__main__":
    unittest.main()
