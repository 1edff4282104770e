"""A report of every released schema is still read (docs/reference/compatibility.md)."""
import json
import unittest

from support import DATA, SOURCE, CliTest, run

# Schemas that a release has written. The samples are as that release wrote them, and are never renewed.
RELEASED = ["1.0.0", "1.1.0"]


def samples():
    reports = {}
    for file in sorted((DATA / "report").rglob("*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        if "schema" in document:
            reports.setdefault(document["schema"]["version"], []).append(file)
    return reports


class ReleasedReports(CliTest):
    def test_there_is_a_sample_of_each_and_this_ones_schema_is_among_them(self):
        self.assertEqual(sorted(samples()), RELEASED)
        self.assertEqual(json.loads(run("--version", "--json")[1])["report_schema"], RELEASED[-1])
        page = (SOURCE / "docs/reference/compatibility.md").read_text(encoding="utf-8")
        for version in RELEASED:
            self.assertIn(f"| {version} |", page)

    def test_every_reader_takes_them(self):
        for version, files in samples().items():
            for file in files:
                for command in ("validate", "show", "csv", "junit", "prom", "html", "annotate"):
                    with self.subTest(schema=version, report=file.name, command=command):
                        code, out, err = run("report", command, file,
                                             *(["--format", "github"] if command == "annotate" else []))
                        self.assertIn(code, (0, 1), err)
                        self.assertNotIn("error:", err)
                        self.assertTrue(out or command in ("validate", "annotate"))

    def test_those_of_two_versions_are_compared(self):
        old, new = samples()["1.0.0"][0], samples()["1.1.0"][0]
        code, _, err = run("report", "diff", old, new)
        self.assertIn(code, (0, 1), err)
        self.assertNotIn("error:", err)

    def test_a_topology_of_an_old_report_is_still_a_machine(self):
        found = 0
        for files in samples().values():
            for file in files:
                if json.loads(file.read_text(encoding="utf-8")).get("topology"):
                    code, out, err = run("topo", "--from", file)
                    self.assertIn(code, (0, 1), err)
                    self.assertIn("GPU", out)
                    found += 1
        self.assertGreater(found, 0)


if __name__ == "__main__":
    unittest.main()
