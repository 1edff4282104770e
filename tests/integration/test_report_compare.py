"""`report diff`, `check` and `merge`: from existing reports to an exit code."""
import copy
import json
import os
import pathlib
import random
import re
import tempfile
import time
import unittest

from support import DATA, CliTest, error_lines, report_of, run
from test_hotspots import GB, Tree


def fake_report(name, rows, host="node1", **more):
    """A report as another run would have written it."""
    return {
        "schema": {"name": "shmemctl.report", "version": "1.0.0"},
        "tool": {"name": "shmemctl", "version": "0.1.0", "git_revision": "abc", "git_dirty": False, "build": {}},
        "command": ["shmemctl", "bench", name], "started_at": "2026-11-21T03:33:00Z",
        "finished_at": "2026-11-21T03:34:00Z", "status": "complete", "exit_code": 0,
        "job": {"pes": 2, "nodes": 1, "bootstrap": "local", "launcher": "run"},
        "hosts": [{"name": host}], "env": {}, "results": rows, "nic_counters": [], "findings": [], **more}


def row(size_bytes, middle, seed, **more):
    noise = random.Random(seed)
    samples = sorted(middle * noise.lognormvariate(0, 0.02) for _ in range(30))
    return {"case": "put", "params": {"size_bytes": size_bytes, "traffic": "pair"}, "unit": "us",
            "stats": {"n": 30, "min": samples[0], "p50": samples[15], "p90": samples[27], "p99": None,
                      "p99_reason": "fewer than 100 samples", "max": samples[-1], "mean": sum(samples) / 30,
                      "stddev": 0.02 * middle},
            "samples": samples, "bandwidth_GBps": size_bytes / samples[15] / 1e3,
            "link_fraction": None, "link_fraction_reason": "not known", "limited_by": None,
            "limited_by_reason": "not known", "verified": "passed", "status": "pass", **more}


class Compare(CliTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, document):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path


class Diff(Compare):
    def test_a_regression_is_1_and_named(self):
        base = self.write("base.json", fake_report("a", [row(8, 10, 1), row(1 << 20, 100, 2)]))
        worse = self.write("worse.json", fake_report("b", [row(8, 10, 3), row(1 << 20, 120, 4)]))
        code, out, err = run("report", "diff", base, worse)
        self.assertEqual((code, err), (1, ""), out)
        for words in ("worse    put", "size_bytes=1M", "[x] regression", "1 worse"):
            self.assertIn(words, out)
        code, document = report_of("report", "diff", base, worse)
        self.assertEqual(code, 1)
        self.assertEqual([r["verdict"] for r in document["comparison"]["rows"]], ["same", "worse"])
        self.assertEqual(document["exit_code"], 1)
        code, out, _ = run("report", "diff", worse, base)
        self.assertEqual(code, 0, out)
        self.assertIn("1 better", out)
        # 20% is what counts now.
        self.assertEqual(run("report", "diff", base, worse, "--min-effect", "30%")[0], 0)

    def test_the_output_of_diff_is_a_report(self):
        base = self.write("base.json", fake_report("a", [row(8, 10, 1)]))
        worse = self.write("worse.json", fake_report("b", [row(8, 13, 2)], host="node2"))
        out = self.folder / "diff.json"
        self.assertEqual(run("report", "diff", base, worse, "--json", out, "--csv", self.folder / "diff.csv")[0], 1)
        self.assertEqual(run("report", "validate", out)[0], 0)
        shown = run("report", "show", out)[1]
        self.assertEqual(shown, run("report", "diff", base, worse)[1])
        self.assertTrue(shown.startswith("BASE: "))
        self.assertLess(shown.index("not the same on both sides"), shown.index("worse "))
        lines = (self.folder / "diff.csv").read_bytes().decode().split("\r\n")
        self.assertTrue(lines[0].startswith("verdict,case,size_bytes,traffic,unit,base,new,change"))
        self.assertTrue(lines[1].startswith("worse,put,8,pair,us,"))

    def test_missing_rows_are_1_unless_allowed(self):
        base = self.write("base.json", fake_report("a", [row(8, 10, 1), row(64, 10, 2)]))
        less = self.write("less.json", fake_report("b", [row(8, 10, 3)]))
        code, out, _ = run("report", "diff", base, less)
        self.assertEqual(code, 1)
        self.assertIn("row-missing", out)
        self.assertEqual(run("report", "diff", base, less, "--allow-missing")[0], 0)
        self.assertEqual(run("report", "diff", less, base)[0], 0)  # what is new is no failure

    def test_folders_are_several_runs(self):
        for side, factor in (("base", 1), ("new", 1.3)):
            for i in range(3):
                self.write(f"{side}/run{i}.json", fake_report(f"{side}{i}", [row(8, 10 * factor, f"{side}{i}")]))
        code, document = report_of("report", "diff", self.folder / "base", self.folder / "new")
        self.assertEqual(code, 1)
        (only,) = document["comparison"]["rows"]
        self.assertEqual((only["verdict"], only["test"]), ("worse", "samples and runs"))
        self.assertEqual(only["base"]["runs"], 3)

    def test_bad_input_is_2(self):
        good = self.write("good.json", fake_report("a", [row(8, 10, 1)]))
        text = good.read_text()
        newer = copy.deepcopy(json.loads(text))
        newer["schema"]["version"] = "2.0.0"
        negative = fake_report("a", [row(8, 10, 1, bandwidth_GBps=-5)])
        for name, document, words in (
                ("cut.json", text[:len(text) // 2], "line 1"), ("newer.json", newer, "2.0.0"),
                ("nan.json", text.replace('"pes": 2', '"pes": NaN'), "invalid JSON"),
                ("negative.json", negative, "/results/0/bandwidth_GBps"),
                ("other.json", fake_report("c", [dict(row(8, 10, 1), case="get")]), "none of its 1 row"),
                ("empty.json", fake_report("c", []), "no results"), ("blank.json", "", "the file is empty")):
            bad = self.write(name, document)
            self.assertIn(words, self.assert_refused(run("report", "diff", good, bad)), name)
            self.assertIn(name, self.assert_refused(run("report", "diff", bad, good)))
        self.assert_refused(run("report", "diff", good, self.folder / "nothing.json"))
        self.assert_refused(run("report", "diff", good, good, "--min-effect", "5"))
        self.assert_refused(run("report", "diff", good, good, "--alpha", "0"))
        self.assert_refused(run("report", "diff", "-", "-"))
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("no *.json file in this directory", self.assert_refused(run("report", "diff", good, empty)))

    def test_large_reports(self):
        good = self.write("good.json", fake_report("a", [row(8, 10, 1)]))
        # More than other input may have; its rows are read one by one.
        text = json.dumps(fake_report("b", [row(8, 10, 2), row(64, 10, 3)]))
        large = self.write("large.json", text.replace('"results": [', '"results": [' + " " * (70 << 20)))
        code, document = report_of("report", "diff", good, large)
        self.assertEqual((code, [r["verdict"] for r in document["comparison"]["rows"]]), (0, ["same", "new"]))
        self.assertEqual(run("report", "validate", large)[:2], (0, f"{large}: valid\n"))
        # A file with holes: it is refused before it is read.
        huge = self.folder / "huge.json"
        with open(huge, "wb") as file:
            file.truncate((4 << 30) + 1)
        for arguments in (("show", huge), ("diff", good, huge), ("csv", huge), ("validate", huge)):
            self.assertIn("larger than the limit of 4GB", self.assert_refused(run("report", *arguments)))

    def test_invalid_numbers(self):
        text = json.dumps(fake_report("a", [row(8, 10, 1)]))
        one = json.loads(text)["results"][0]["bandwidth_GBps"]
        for words, number in (("invalid JSON", "NaN"), ("invalid JSON", "-Infinity"), ("number overflow", "1e999"),
                              ("/results/0/bandwidth_GBps", "-1"), ("/results/0/bandwidth_GBps", "1e19"),
                              ("/results/0/bandwidth_GBps", '"12"'), ("/results/0", "null")):
            bad = self.write("bad.json", text.replace(f'"bandwidth_GBps": {one}', f'"bandwidth_GBps": {number}'))
            for command in ("show", "csv", "junit", "prom"):
                self.assertIn(words, self.assert_refused(run("report", command, bad)), number)
            self.assertIn(words, self.assert_refused(run("report", "annotate", "--format", "github", bad)), number)
        missing = json.loads(text)
        del missing["results"][0]["bandwidth_GBps"]
        self.assertIn("bandwidth_GBps", self.assert_refused(run("report", "show", self.write("missing.json", missing))))
        code, out, _ = run("report", "validate", self.folder / "missing.json")
        self.assertEqual(code, 1)
        self.assertIn("/results/0", out)

    def test_impossible_numbers_give_an_unclear_verdict(self):
        base = self.write("base.json", fake_report("a", [row(8, 10, 1)]))
        zero = row(8, 10, 2)
        zero["samples"] = [0] * 30
        code, out, _ = run("report", "diff", base, self.write("zero.json", fake_report("b", [zero])))
        self.assertEqual(code, 0)
        self.assertIn("no ratio", out)


    def test_max_unclear_makes_a_comparison_fail_that_decides_nothing(self):
        noisy = {"samples": [5, 7, 9, 11, 14, 20, 31, 40]}
        base = self.write("base.json", fake_report("a", [row(8, 10, 1, **noisy), row(64, 10, 2)]))
        new = self.write("new.json", fake_report("b", [row(8, 10, 3, **noisy), row(64, 10, 4)]))
        code, out, _ = run("report", "diff", base, new)
        self.assertEqual(code, 0, out)
        self.assertIn("Nothing is worse; 1 of 2 rows is decided, 1 is unclear.", out)
        self.assertRegex(out, r"unclear: put, 1 row, change .*: the noise exceeds --min-effect")
        self.assertNotIn("size_bytes=8", out)
        self.assertIn("size_bytes=8", run("report", "diff", base, new, "--verbose")[1])
        self.assertEqual(run("report", "diff", base, new, "--max-unclear", "50%")[0], 0)
        self.assertEqual(run("report", "diff", base, new, "--max-unclear", "100%")[0], 0)
        failed = self.folder / "failed.json"
        code, out, _ = run("report", "diff", base, new, "--max-unclear", "0.2", "--json", failed)
        self.assertEqual(code, 1)
        self.assertIn("[x] comparison-unclear  1 of 2 rows is unclear: more than --max-unclear 20%", out)
        self.assertEqual(run("report", "validate", failed)[0], 0)
        self.assertIn('classname="comparison-unclear"', run("report", "junit", failed)[1])
        self.assert_refused(run("report", "diff", base, new, "--max-unclear", "2"))


class Thresholds(Compare):
    def test_exit_codes(self):
        report = self.write("r.json", fake_report("a", [row(8, 10, 1), row(1 << 20, 100, 2)]))
        kept, missed = "put[bytes=1M].bandwidth_GBps>=10", "put[bytes=1M].bandwidth_GBps>=11"
        code, out, _ = run("report", "check", report, "--require", kept)
        self.assertEqual(code, 0, out)
        self.assertIn("passed", out)
        code, out, _ = run("report", "check", report, "--require", kept, "--require", missed)
        self.assertEqual(code, 1)
        self.assertIn("threshold-missed", out)
        limits = self.write("limits.txt", f"# what we paid for\n{kept}\nput.p50_us<1000\n")
        self.assertEqual(run("report", "check", report, "--require-file", limits)[0], 0)
        self.assertEqual(run("report", "diff", report, report, "--require", kept)[0], 0)
        self.assertEqual(run("report", "diff", report, report, "--require", missed)[0], 1)
        code, document = report_of("report", "check", report, "--require", missed)
        self.assertEqual(document["thresholds"][0]["passed"], False)

    def test_about_nothing_or_not_parsed_is_2(self):
        report = self.write("r.json", fake_report("a", [row(8, 10, 1)]))
        self.assertIn("matches nothing", self.assert_refused(
            run("report", "check", report, "--require", "put[bytes=3M].p50_us<4")))
        self.assertIn("column 5, expected a metric", self.assert_refused(
            run("report", "check", report, "--require", "put.nothing<4")).replace(": expected", ", expected"))
        limits = self.write("limits.txt", "put.p50_us<3\n\nput.p50_us=3\n")
        err = self.assert_refused(run("report", "check", report, "--require-file", limits))
        for words in ("limits.txt", "line 3", "column 11", ">=, <=, > or <"):
            self.assertIn(words, err)
        self.assert_refused(run("report", "check", report))


class FailOn(Compare):
    """Findings and NIC loads turn a job red."""

    def hot(self, *arguments):
        """`hotspots` of two trees: mlx5_1 sends at 88% of its link, the others at a fifth of it."""
        before, after = self.folder / "before", self.folder / "after"
        if not before.exists():
            Tree(before)
            tree = Tree(after, uptime_s=110)
            for index, share in enumerate((0.2, 0.88, 0.2, 0.2)):
                tree.traffic(index, int(share * 500 * GB))
        path = self.folder / f"hot{len(list(self.folder.iterdir()))}.json"
        result = run("hotspots", "--sysroot", before, "--sysroot-after", after, "--json", path, *arguments)
        return path, result

    def test_a_warning_fails_where_it_is_asked_for(self):
        path, (code, out, _) = self.hot()
        self.assertEqual(code, 0, out)
        self.assertIn("[!] nic-hotspot-measured", out)
        self.assertNotIn("fail_on", json.loads(path.read_text()))
        path, (code, out, _) = self.hot("--fail-on", "warning")
        self.assertEqual(code, 1, out)
        self.assertTrue(out.endswith("Exit code 1: --fail-on warning.\n"), out)
        document = json.loads(path.read_text())
        self.assertEqual((document["fail_on"], document["exit_code"]), ("warning", 1))
        self.assertEqual(run("report", "validate", path)[0], 0)
        self.assertIn("<failure", run("report", "junit", path)[1])
        self.assertIn("shmemctl_run_success 0", run("report", "prom", path)[1])
        _, (code, out, err) = self.hot("--quiet", "--fail-on", "warning")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("shmemctl: warning: nic-hotspot-measured", err)

    def test_every_command_that_has_findings_takes_it(self):
        node = DATA / "nccl" / "hgx-8gpu-8nic.xml"
        for command in (("topo", "--from", node), ("sim", "--from", node, "--steps", "2"), ("env",),
                        ("doctor", "--only", "memlock")):
            with self.subTest(command=command):
                severities = ("info", "warning", "error")
                for place, severity in enumerate(severities):
                    code, document = report_of(*command, "--fail-on", severity, env={"SHMEMCTL_NO_SUCH": "1"})
                    expected = any(f["severity"] in severities[place:] for f in document["findings"])
                    self.assertEqual(code, int(expected), severity)
                self.assertEqual(code, report_of(*command, env={"SHMEMCTL_NO_SUCH": "1"})[0])
        self.assertEqual(run("env", env={"SHMEMCTL_NO_SUCH": "1", "SHMEMCTL_FAIL_ON": "warning"})[0], 1)
        self.assert_refused(run("topo", "--from", node, "--fail-on", "warn"))

    def test_all_pes_of_a_job_return_what_pe_0_found(self):
        job = ("run", "-n", "2", "bench", "put", "-b", "8", "-e", "8", "--quick", "--symmetric-size", "16M", "--json", "-")
        code, out, err = run(*job, "--fail-on", "info")
        document = json.loads(out)
        self.assertEqual(code, 1 if document["findings"] else 0, err)
        self.assertEqual(document["exit_code"], code)
        code, out, err = run(*job, "--fail-on", "warning", "--pin", "none")
        document = json.loads(out)
        self.assertEqual(code, int(any(f["severity"] != "info" for f in document["findings"])), err)

    def test_report_check_holds_findings_and_loads(self):
        path, _ = self.hot()
        for kept in ("hotspots[device=mlx5_0].utilisation<=0.7", "findings[severity=error]==0",
                     "hotspots.imbalance<=3"):
            self.assertEqual(run("report", "check", path, "--require", kept)[0], 0, kept)
        for missed, words in (
                ("hotspots[device=mlx5_1].utilisation<=0.7", "node7 mlx5_1:1 sent has 0.88"),
                ("hotspots.utilisation<=0.7", "missed by 1 NIC port of 4"),
                ("hotspots[kind=node].imbalance<=1.5", "missed by 1 NIC group of"),
                ("findings[id=nic-hotspot-measured]==0", "there is 1: nic-hotspot-measured (")):
            code, out, _ = run("report", "check", path, "--require", missed)
            self.assertEqual(code, 1, missed)
            self.assertIn(words, out)
        for wrong, words in (("hotspots[device=mlx5_9].utilisation<=1", "did you mean device=mlx5_"),
                             ("findings[id=nic-hotpsot]==0", "did you mean nic-hotspot?"),
                             ("findings[severity=waring]==0", "did you mean warning?")):
            self.assertIn(words, self.assert_refused(run("report", "check", path, "--require", wrong)))
        code, out, _ = run("report", "check", path, "--fail-on", "warning")
        self.assertEqual(code, 1)
        self.assertIn("findings[severity=warning]==0", out)
        self.assertEqual(run("report", "check", path, "--fail-on", "error")[0], 0)
        # A comparison has rows; what NEW found is held, too.
        base = self.write("base.json", fake_report("a", [row(8, 10, 1)]))
        new = json.loads(path.read_text())
        new["results"] = [row(8, 10, 2)]
        new = self.write("new.json", new)
        self.assertEqual(run("report", "diff", base, new, "--require", "hotspots.utilisation<=0.9")[0], 0)
        diff = self.folder / "diff.json"
        self.assertEqual(run("report", "diff", base, new, "--require", "hotspots.utilisation<=0.7", "--json", diff)[0], 1)
        self.assertIn('name="hotspots.utilisation&lt;=0.7"', run("report", "junit", diff)[1])
        self.assertIn('shmemctl_threshold_success{threshold="hotspots.utilisation<=0.7"} 0',
                      run("report", "prom", diff)[1])

    def test_markdown(self):
        path, _ = self.hot()
        code, out, _ = run("report", "show", path, "--format", "markdown")
        self.assertEqual(code, 0)
        self.assertIn("| node7 | mlx5_1:1 | 44 GB/s 88% | 0 GB/s 0% | **hot** |", out)
        self.assertIn("| warning | nic-hotspot-measured | ", out)
        self.assert_refused(run("report", "show", path, "--format", "md"))


class Merge(Compare):
    def test_nodes_and_runs_become_one_valid_report(self):
        paths = [self.write(f"{host}.json", fake_report(host, [row(8, 10, host)], host=host)) for host in ("n1", "n2")]
        merged = self.folder / "all.json"
        self.assertEqual(run("report", "merge", *paths, "--json", merged), (0, "", ""))
        self.assertEqual(run("report", "validate", merged)[0], 0)
        document = json.loads(merged.read_text())
        self.assertEqual([r["hosts"] for r in document["runs"]], [["n1"], ["n2"]])
        self.assertEqual([r["run"] for r in document["results"]], [0, 1])
        self.assertEqual(run("report", "show", merged)[0], 0)
        self.assert_refused(run("report", "merge", *paths, "--json", merged))  # the file exists
        self.assertIn("same run", self.assert_refused(run("report", "merge", merged, paths[0])))
        self.assertEqual(run("report", "diff", merged, merged)[0], 0)


class Shown(Compare):
    def matrix(self, pes):
        rows = []
        for first in range(pes):
            for second in range(pes):
                pair = row(1 << 20, 100, 1)
                pair["params"].update(first_pe=first, second_pe=second)
                pair["bandwidth_GBps"] = 20 if (first, second) == (31, 7) else 100
                rows += [pair] if first != second else []
        return self.write("matrix.json", fake_report("m", rows))

    def test_heat_maps_fit_the_width(self):
        report = self.matrix(40)
        code, out, _ = run("report", "show", report, "--width", 30)
        self.assertEqual(code, 0)
        lines = out[out.index("rows: from PE"):].splitlines()
        for words in ("each cell is the worst of 2", "worst: from PE 31 to PE 7: 20", "\u2588"):
            self.assertIn(words, " ".join(" ".join(lines).split()))
        self.assertLessEqual(max(map(len, lines[:24])), 34, lines)
        wide = run("report", "show", report, "--width", 200)[1]
        self.assertNotIn("each cell is", wide)
        self.assertIn("\u2588\u2588", wide)
        plain = run("report", "show", report, env={"LC_ALL": "C"})[1]
        self.assertTrue(plain.isascii())
        self.assertIn("\n31 .......#....", plain)
        self.assertNotIn("\x1b[", plain)
        self.assertIn("\x1b[31m", run("report", "show", report, "--color", "always")[1])
        self.assert_refused(run("report", "show", report, "--width", "5"))

    def test_labels_of_metrics(self):
        report = self.write("r.json", fake_report("a", [row(8, 10, 1)]))
        code, out, _ = run("report", "prom", report, "--label", "suite=nightly", "--label", 'x="')
        self.assertEqual(code, 0)
        self.assertIn('shmemctl_run_success{suite="nightly",x="\\""} 1', out)
        for label in ("suite", "9=a", "__x=a", "a b=c", "=x"):
            self.assert_refused(run("report", "prom", report, "--label", label))

    def test_annotations(self):
        report = fake_report("a", [row(8, 10, 1)])
        report["findings"] = [{"id": "nic-hotspot", "severity": "error", "subject": "x::y", "message": "a\n::error::b",
                               "fix": "100%"}]
        path = self.write("r.json", report)
        code, out, _ = run("report", "annotate", "--format", "github", path)
        self.assertEqual((code, out), (0, "::error title=nic-hotspot (x%3A%3Ay)::a\\x0a::error::b%0Afix: 100%25\n"))
        quality = self.folder / "quality.json"
        self.assertEqual(run("report", "annotate", "--format", "gitlab", path, "-o", quality), (0, "", ""))
        self.assertEqual(json.loads(quality.read_text())[0]["check_name"], "nic-hotspot")
        # the file exists
        self.assert_refused(run("report", "annotate", "--format", "gitlab", path, "-o", quality))
        self.assert_refused(run("report", "annotate", "--format", "teletype", path))
        self.assert_refused(run("report", "annotate", path))


class AnyFile(Compare):
    """What every command that reads reports does with a file that is none, or a hostile one."""

    # What a terminal would act on; CSV has line ends of two characters.
    HOSTILE = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f"
                         "\\u2028-\\u202e\\u2066-\\u2069\\ufeff]")

    def commands(self, path):
        good = self.write("good.json", fake_report("good", [row(8, 10, 9)]))
        return [("show", path), ("validate", path), ("diff", path, good), ("diff", good, path),
                ("check", path, "--require", "put.p50_us<1000"), ("merge", path, good), ("html", path),
                ("html", good, "--baseline", path), ("csv", path), ("junit", path), ("prom", path),
                ("annotate", "--format", "github", path), ("annotate", "--format", "markdown", path)]

    def test_a_nul_byte_is_not_the_end_of_a_report(self):
        text = json.dumps(fake_report("a", [row(8, 10, 1)])).encode()
        for name, rest in (("torn", b"\0garbage{{{"), ("padded", b"\0" * 4096)):
            path = self.folder / (name + ".json")
            path.write_bytes(text + rest)
            for command in self.commands(path):
                with self.subTest(command=command, file=name):
                    err = self.assert_refused(run("report", *command))
                    self.assertIn(f"{path}: line 1, column {len(text) + 1}: invalid JSON: NUL byte", err)
            self.assert_refused(run("topo", "--from", path))
            self.assert_refused(run("report", "show", "-", stdin=text + rest))

    def test_every_command_has_a_deadline(self):
        """A pipe that nobody writes to."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        thresholds = ("check", self.write("r.json", fake_report("a", [row(8, 10, 1)])), "--require-file", pipe)
        for command in [*self.commands(pipe), thresholds]:
            with self.subTest(command=command):
                code, out, err = run("report", *command, "--timeout", "1")
                self.assertEqual((code, out), (124, ""), err)
                self.assertEqual(len(error_lines(err)), 1, err)
                self.assertIn("timed out after 1 s", err)
                self.assertRegex(err, "shmemctl: fix: .*--timeout")

    def test_names_of_parameters_cost_no_more_than_their_bytes(self):
        """600 rows that have no parameter in common; it took the product of rows and names."""
        rows = [row(8, 10, 1, params={"size_bytes": 8, **{f"p{i * 50 + k}": i for k in range(50)}}, samples=[])
                for i in range(600)]
        path = self.write("names.json", fake_report("a", rows))
        for command in (("show", path), ("html", path, "-o", self.folder / "page.html"), ("junit", path),
                        ("prom", path), ("diff", path, path)):
            with self.subTest(command=command):
                self.assertEqual(run("report", *command)[0], 0)

    def test_no_text_of_a_report_reaches_a_terminal_as_it_is(self):
        bad = "x\x1b]0;title\x07\x1b[2J\x7f\x9b31m\u202e\u2028\ufeff\r\n=1"
        document = fake_report("a" + bad, [row(8, 10, 1, case=bad, unit=bad, reason=bad, limited_by=bad,
                                           params={"size_bytes": 8, bad: bad}),
                                       row(8, 10, 1, params={"first_pe": bad, "second_pe": "b" + bad}),
                                       row(8, 10, 1)],
                           host=bad, env={bad: bad})
        document["results"][0]["link_fraction"] = 0.5
        del document["results"][0]["link_fraction_reason"], document["results"][0]["limited_by_reason"]
        document["command"] = ["shmemctl", bad]
        document["findings"] = [{"id": "x", "severity": "error", "subject": bad, "message": bad, "fix": bad}]
        document["checks"] = [{"id": "a-check", "title": bad, "status": "fail", "reason": bad, "evidence": bad,
                               "fix": bad, "group": bad}]
        path = self.write("hostile.json", document)
        self.assertEqual(run("report", "validate", path)[0], 0, run("report", "validate", path))
        broken = self.write("broken.json", {**document, bad: bad, "status": bad})
        for file in (path, broken):
            for command in [*self.commands(file), ("show", file, "--verbose"), ("show", file, "--color", "never")]:
                with self.subTest(command=command):
                    code, out, err = run("report", *command)
                    self.assertIn(code, (0, 1) if file == path else (1, 2), err)
                    self.assertIsNone(self.HOSTILE.search(out + err), (out + err)[:2000])
        # What is escaped in JSON is still the same text.
        merged = json.loads(run("report", "merge", path, self.folder / "good.json")[1])
        self.assertEqual(merged["results"][0]["case"], bad)


class RealChecks(Compare):
    def test_two_checks_of_this_machine(self):
        paths = []
        for name in ("base.json", "new.json"):
            paths.append(self.folder / name)
            code, _, err = run("check", "--json", paths[-1])
            self.assertIn(code, (0, 1, 3), err)
        code, document = report_of("report", "diff", *paths)
        self.assertIn(code, (0, 1))  # this machine may be noisy
        comparison = document["comparison"]
        self.assertGreater(len(comparison["rows"]), 10)
        # A part that did not end within its limit, on a busy machine, lacks its last rows.
        if not [f for path in paths for f in json.loads(path.read_text())["findings"] if f["id"].startswith("check-")]:
            self.assertEqual(comparison["counts"]["missing"], 0, comparison["rows"])
            self.assertEqual(comparison["counts"]["new"], 0, comparison["rows"])
        measured = [r for r in comparison["rows"] if r["case"] == "put"]
        self.assertTrue(all(r["test"] == "samples" for r in measured), measured)
        # A run that is ten times as slow is found. A machine that does much else measures few samples in
        # the time, too few to decide by, so these rows get their number.
        base, slow = (json.loads(paths[0].read_text()) for _ in range(2))
        slow["started_at"] = "2026-01-01T00:00:00Z"
        for document, factor in ((base, 1), (slow, 10)):
            for result in document["results"]:
                if result["case"] == "put-pingpong":
                    samples = [factor * result["stats"]["p50"] * (1 + 0.001 * i) for i in range(-10, 11)]
                    result["samples"] = samples
                    result["stats"].update(n=len(samples), min=samples[0], p50=samples[10], p90=samples[18],
                                           max=samples[-1], mean=samples[10])
        code, out, _ = run("report", "diff", self.write("few.json", base), self.write("slow.json", slow))
        self.assertEqual(code, 1, out)
        self.assertIn("[x] regression  put-pingpong: ", out)


@unittest.skipUnless(os.environ.get("SHMEMCTL_SOAK") == "1", "for a quiet machine: SHMEMCTL_SOAK=1 runs it")
class Speed(Compare):
    def test_ten_thousand_rows_with_a_hundred_samples(self):
        """The aim is 2 s for 2 x 10,000 rows."""
        noise = random.Random(1)
        paths = []
        for side in ("base", "new"):
            rows = []
            for i in range(10_000):
                samples = [round(noise.lognormvariate(3, 0.05), 4) for _ in range(100)]
                rows.append(row(8, 20, 1, samples=samples, params={"size_bytes": 8 + i}))
            paths.append(self.write(f"{side}.json", fake_report(side, rows)))
        begin = time.monotonic()
        code, out, err = run("report", "diff", *paths)
        seconds = time.monotonic() - begin
        print(f"report diff of 2 x 10,000 rows with 100 samples: {seconds:.2f} s")
        self.assertEqual(code, 0, out + err)
        self.assertIn("10000 rows: 0 worse", out)
        self.assertLessEqual(seconds, 2)


if __name__ == "__main__":
    unittest.main()
