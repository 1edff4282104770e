"""The examples of scripts/ci: their shape, and their shell steps run as a CI system would run them.

Of `shmemctl check` itself only the call is tried here: in its place a report that is there already is
copied, as a check of a real node takes long and measures what it likes. All else is the real program.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
import unittest

from support import BINARY, SOURCE, clean_environment, run
from test_report_compare import fake_report, row

try:
    import yaml
except ImportError:
    yaml = None

EXAMPLES = SOURCE / "scripts" / "ci"
needs_yaml = unittest.skipIf(yaml is None, "python3-yaml is not installed")
MODEL = re.compile('<script type="application/json" id="model">(.*?)</script>', re.DOTALL)
HAS_HTML = bool(re.search(r"^ +html\b", run("report", "--help")[1], re.MULTILINE))

# Calls the real program for everything but `check`, whose result was prepared.
STAND_IN = """#!/bin/sh
echo "$*" >> "$STAND_IN_LOG"
[ "$1" = "$PREPARED" ] || exec {binary} "$@"
while [ $# -gt 1 ]; do
  [ "$1" = --json ] && [ -n "$PREPARED_REPORT" ] && cp "$PREPARED_REPORT" "$2"
  shift
done
[ -z "$PREPARED_TEXT" ] || cat "$PREPARED_TEXT"
[ -z "$PREPARED_SLEEP" ] || sleep "$PREPARED_SLEEP"
exit "$PREPARED_CODE"
"""


def executable(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


class Example(unittest.TestCase):
    """A folder to work in, with a `shmemctl` of its own on PATH."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        (self.folder / "work").mkdir()
        executable(self.folder / "bin" / "shmemctl", STAND_IN.format(binary=shlex.quote(BINARY)))
        self.log = self.folder / "log"
        self.runs = 0

    def environment(self, **variables):
        settings = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "STAND_IN_LOG": str(self.log),
                    "PREPARED": "check", "PREPARED_CODE": "0"}
        settings.update(dict.fromkeys(("PREPARED_REPORT", "PREPARED_TEXT", "PREPARED_SLEEP"), ""))
        return clean_environment(**{**settings, **variables})

    def shell(self, script, *flags, shell="bash", **variables):
        return subprocess.run([shell, *flags, "-c", script], cwd=self.folder / "work", capture_output=True, text=True,
                              env=self.environment(**variables), timeout=120, check=False)

    def prepared(self, p50_us=10, code=0):
        """A check's report; each is a run of its own."""
        self.runs += 1
        report = fake_report(f"check{self.runs}", [row(8, p50_us, self.runs), row(1 << 20, 100, self.runs + 50)])
        report.update(exit_code=code, command=["shmemctl", "check"], started_at=f"2026-11-{self.runs:02}T03:00:00Z")
        if code:
            report["findings"] = [{"id": "nic-hotspot", "severity": "error", "subject": "mlx5_0", "message": "hot: 2x",
                                   "fix": "map"}]
        path = self.folder / f"prepared{self.runs}.json"
        path.write_text(json.dumps(report))
        return {"PREPARED_REPORT": str(path), "PREPARED_CODE": str(code)}

    def require(self, value, shape, where="document"):
        """The value has the keys and types of `shape`: a type, a tuple of types, {key: shape}, or [shape]."""
        if isinstance(shape, dict):
            self.assertIsInstance(value, dict, where)
            for key, inner in shape.items():
                self.assertIn(key, value, where)
                self.require(value[key], inner, f"{where}.{key}")
        elif isinstance(shape, list):
            self.assertIsInstance(value, list, where)
            self.assertTrue(value, where)
            for i, item in enumerate(value):
                self.require(item, shape[0], f"{where}[{i}]")
        else:
            self.assertIsInstance(value, shape, where)

    def work(self, path):
        return self.folder / "work" / path

    def page(self):
        """What the page shows: its model (reports/html/page_model.h)."""
        return json.loads(MODEL.search(self.work("page/index.html").read_text()).group(1))

    def assert_page(self, level, sections=(), findings=()):
        """The page's verdict, which sections it has of a comparison, and findings among others."""
        if not HAS_HTML:
            return
        model = self.page()
        self.assertEqual(model["verdict"]["level"], level)
        shown = {section["id"]: section for section in model["sections"]}
        self.assertEqual({"comparison", "trend"} & set(shown), set(sections))
        told = {item["id"] for block in shown["findings"]["blocks"] for item in block.get("items", [])}
        self.assertEqual(told & {"nic-hotspot", "regression", "row-missing"}, set(findings))

    def nothing_measured(self):
        """A check that ended before its first row."""
        prepared = self.prepared(code=1)
        path = pathlib.Path(prepared["PREPARED_REPORT"])
        report = json.loads(path.read_text())
        report.update(results=[], status="incomplete")
        path.write_text(json.dumps(report))
        return prepared


@needs_yaml
class GitHub(Example):
    def setUp(self):
        super().setUp()
        self.workflow = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())
        self.steps = self.workflow["jobs"]["check"]["steps"]

    def test_shape(self):
        # YAML 1.1 reads the key `on` as true.
        self.assertEqual(set(self.workflow[True]), {"schedule", "workflow_dispatch"})
        for job in self.workflow["jobs"].values():
            self.require(job, {"runs-on": (str, list), "steps": [{"name": str}]})
            for step in job["steps"]:
                self.assertEqual(len({"run", "uses"} & set(step)), 1, step)
                if "uses" in step:
                    self.assertRegex(step["uses"], r"^actions/[a-z-]+(/[a-z]+)?@v\d+$")
                self.assertLessEqual(set(step), {"name", "run", "uses", "with", "if", "id"})
        self.assertIn(self.workflow["jobs"]["publish"]["needs"], self.workflow["jobs"])
        # Text of others in a shell step would be a script of others.
        for step in self.steps:
            self.assertNotIn("${{", step.get("run", ""))
        kept, restored = (next(s for s in self.steps if s.get("uses", "").startswith(f"actions/cache/{way}"))["with"]
                          for way in ("save", "restore"))
        self.assertEqual(kept["key"], restored["key"])
        self.assertTrue(kept["key"].startswith(restored["restore-keys"].strip()))

    def night(self, **variables):
        """(whether the job is red, output): steps as the runner runs them."""
        summary = self.folder / "summary"
        summary.write_text("")
        self.runs_of_job = getattr(self, "runs_of_job", 0) + 1
        red, output = False, ""
        for step in self.steps:
            always = "!cancelled()" in step.get("if", "")
            if "run" not in step or (red and not always) or ("report html" in step["run"] and not HAS_HTML):
                continue
            done = self.shell(step["run"], "-e", "-o", "pipefail", GITHUB_STEP_SUMMARY=str(summary),
                              GITHUB_RUN_ID=str(self.runs_of_job), **variables)
            red = red or done.returncode != 0
            output += done.stdout + done.stderr
        return red, output, summary.read_text()

    def test_nightly_run(self):
        red, output, summary = self.night(**self.prepared())
        self.assertFalse(red, output)
        self.assertIn("no error", summary)
        self.assertEqual([p.name for p in self.work("baseline").iterdir()], ["1.json"])
        # the first run has nothing to compare with
        self.assertFalse(self.work("out/diff.json").exists())
        self.assert_page("pass")
        red, output, _ = self.night(**self.prepared())
        self.assertFalse(red, output)
        self.assertTrue(self.work("out/diff.json").exists())
        self.assert_page("pass", {"comparison", "trend"})
        # Three times as slow: red, annotated, and no part of the baseline.
        red, output, summary = self.night(**self.prepared(p50_us=30))
        self.assertTrue(red)
        self.assertIn("::error title=regression (put)::put: 1 row is worse", output)
        self.assertIn("**worse**", summary)
        self.assert_page("fail", {"comparison", "trend"}, {"regression"})
        self.assertEqual(len(list(self.work("baseline").iterdir())), 2)
        # A check that finds something is red whatever the figures say.
        red, output, summary = self.night(**self.prepared(code=1))
        self.assertTrue(red)
        self.assertIn("::error title=nic-hotspot (mlx5_0)::hot: 2x%0Afix: map", output)
        self.assertEqual(len(list(self.work("baseline").iterdir())), 2)
        self.assert_page("fail", {"comparison", "trend"}, {"nic-hotspot"})
        # One that measured nothing cannot be compared, and still has its page.
        red, output, _ = self.night(**self.nothing_measured())
        self.assertTrue(red)
        self.assert_page("fail", (), {"nic-hotspot"})
        # The baseline keeps the last five.
        for _ in range(5):
            red, output, _ = self.night(**self.prepared())
            self.assertFalse(red, output)
        self.assertEqual(len(list(self.work("baseline").iterdir())), 5)

    def test_a_check_that_could_not_run_is_red(self):
        red, output, _ = self.night(PREPARED_CODE="3")
        self.assertTrue(red)
        self.assertFalse(self.work("baseline").exists() and list(self.work("baseline").iterdir()), output)


@needs_yaml
class GitLab(Example):
    def setUp(self):
        super().setUp()
        self.pipeline = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text())
        self.job = self.pipeline["gpu-communication"]

    def test_shape(self):
        stages = self.pipeline["stages"]
        jobs = {name: job for name, job in self.pipeline.items() if name != "stages"}
        for job in jobs.values():
            self.require(job, {"stage": str, "script": [str], "artifacts": {"paths": [str]}})
            self.assertIn(job["stage"], stages)
        self.require(self.job, {"artifacts": {"when": str, "reports": {"codequality": str, "junit": str}},
                                "cache": {"key": str, "paths": [str]}})

    def night(self, number, **variables):
        # The runner gives all lines to one shell, with errexit.
        script = "\n".join(line for line in self.job["script"] if HAS_HTML or "report html" not in line)
        return self.shell(script, "-e", "-o", "pipefail", CI_JOB_ID=str(number), **variables)

    def test_nightly_run(self):
        done = self.night(1, **self.prepared())
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.night(2, **self.prepared())
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.night(3, **self.prepared(p50_us=30, code=1))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(sorted(p.name for p in self.work("baseline").iterdir()), ["1.json", "2.json"])
        self.assert_page("fail", {"comparison", "trend"}, {"nic-hotspot", "regression"})
        reports = self.job["artifacts"]["reports"]
        issues = json.loads(self.work(reports["codequality"]).read_text())
        self.assertEqual({issue["check_name"] for issue in issues}, {"nic-hotspot", "regression"})
        junit = sorted(path.name for path in self.work(".").glob(reports["junit"]))
        self.assertEqual(junit, ["check.xml", "diff.xml"])
        self.assertEqual(self.night(4, PREPARED_CODE="3").returncode == 0, False)
        self.assertEqual(self.night(5, **self.nothing_measured()).returncode, 2)
        self.assert_page("fail", (), {"nic-hotspot"})


@needs_yaml
class Kubernetes(Example):
    def setUp(self):
        super().setUp()
        self.document = yaml.safe_load((EXAMPLES / "kubernetes-job.yaml").read_text())
        self.pod = self.document["spec"]["template"]["spec"]
        (self.container,) = self.pod["containers"]

    def test_shape(self):
        self.assertEqual((self.document["apiVersion"], self.document["kind"]), ("batch/v1", "Job"))
        self.require(self.document, {"metadata": {"name": str}, "spec": {
            "backoffLimit": int, "activeDeadlineSeconds": int, "ttlSecondsAfterFinished": int}})
        self.assertEqual(self.pod["restartPolicy"], "Never")  # what a Job takes
        self.assertRegex(self.document["metadata"]["name"], r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
        self.require(self.container, {"name": str, "image": str, "command": [str], "args": [str],
                                      "resources": {"limits": {"nvidia.com/gpu": int, "cpu": str, "memory": str}},
                                      "volumeMounts": [{"name": str, "mountPath": str}]})
        self.assertEqual({mount["name"] for mount in self.container["volumeMounts"]},
                         {volume["name"] for volume in self.pod["volumes"]})

    def test_the_container_says_what_is_wrong_and_keeps_the_code(self):
        (script,) = self.container["args"]
        report, message = self.folder / "report", self.folder / "termination-log"
        report.mkdir()
        script = script.replace("/report/", f"{report}/").replace("/dev/termination-log", str(message))
        for code in (0, 1):
            done = self.shell(script, shell="/bin/sh", **self.prepared(code=code))
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("nic-hotspot", message.read_text())
        self.assertEqual(self.shell(script, shell="/bin/sh", PREPARED_CODE="124").returncode, 124)
        self.assertIn("--timeout 300", self.log.read_text())


class SlurmProlog(Example):
    def setUp(self):
        super().setUp()
        self.scontrol = self.folder / "scontrol"
        executable(self.folder / "bin" / "scontrol",
                   f'#!/bin/sh\nfor word; do echo "$word" >> {self.scontrol}; done\nexit "${{SCONTROL_CODE:-0}}"\n')

    def prolog(self, code, text="", **variables):
        words = self.folder / "text"
        words.write_text(text)
        self.scontrol.write_text("")
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        begin = time.monotonic()
        done = subprocess.run([EXAMPLES / "slurm-prolog.sh"], capture_output=True, text=True, timeout=60, check=False,
                              env=self.environment(PREPARED="doctor", PREPARED_CODE=str(code), PREPARED_TEXT=str(words),
                                                   SLURMD_NODENAME="node7", TMPDIR=str(temporary), **variables))
        self.assertEqual(list(temporary.iterdir()), [])  # nothing is left behind
        return done, self.scontrol.read_text().splitlines(), time.monotonic() - begin

    def test_a_good_node_takes_the_job(self):
        done, calls, _ = self.prolog(0)
        self.assertEqual((done.returncode, calls), (0, []))

    def test_a_bad_node_is_drained_with_the_reason(self):
        text = "[ok]   memlock  unlimited\n[FAIL] peer-memory  no module `reboot` $(reboot)\n[FAIL] other  x\n"
        done, calls, _ = self.prolog(1, text)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(calls, ["update", "NodeName=node7", "State=DRAIN",
                                 "Reason=shmemctl doctor: exit code 1: peer-memory no module reboot (reboot)"])
        # Slurm drains a node whose prolog fails, so the exit code stays.
        self.assertEqual(self.prolog(1, text, SCONTROL_CODE="1")[0].returncode, 1)

    def test_an_unknown_state_drains_only_on_request(self):
        for code in (2, 3, 124, 130, 127):
            done, calls, _ = self.prolog(code)
            self.assertEqual((done.returncode, calls), (0, []), code)
            self.assertIn("the job starts", done.stderr)
        done, calls, _ = self.prolog(3, SHMEMCTL_PROLOG_DRAIN_ON="1 3 124")
        self.assertEqual((done.returncode, len(calls)), (1, 4))

    def test_the_prolog_ends_in_time(self):
        done, calls, seconds = self.prolog(1, PREPARED_SLEEP="50", SHMEMCTL_PROLOG_SECONDS="1")
        self.assertEqual((done.returncode, calls), (0, []))
        self.assertIn("exit code 124", done.stderr)
        self.assertLess(seconds, 40)

    def test_with_the_real_doctor(self):
        temporary = self.folder / "tmp"
        temporary.mkdir()
        done = subprocess.run([EXAMPLES / "slurm-prolog.sh"], capture_output=True, text=True, timeout=60, check=False,
                              env=self.environment(PREPARED="nothing", SLURMD_NODENAME="node7", TMPDIR=str(temporary),
                                                   SHMEMCTL_PROLOG_SECONDS="30"))
        code = run("doctor", timeout=60)[0]
        self.assertIn(code, (0, 1))
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(self.scontrol.exists(), code == 1)


class TextfileCollector(Example):
    def test_the_service_leaves_metrics(self):
        service = (EXAMPLES / "shmemctl-metrics.service").read_text()
        settings = dict(line.split("=", 1) for line in service.splitlines()
                        if "=" in line and not line.startswith(("#", "ExecStart")))
        commands = [shlex.split(line.split("=", 1)[1]) for line in service.splitlines() if line.startswith("ExecStart=")]
        self.assertEqual(settings["Type"], "oneshot")  # only such a service may have several commands
        self.assertEqual(settings["SuccessExitStatus"], "1")
        metrics = self.folder / "metrics"
        metrics.mkdir()
        for _ in range(2):  # the second time the files exist
            for command in commands:
                self.assertEqual(command[0], "/usr/bin/shmemctl")
                words = [word.replace("/run/shmemctl", str(self.folder)).replace(
                    "/var/lib/prometheus/node-exporter", str(metrics)) for word in command[1:]]
                code, _, err = run(*words)
                self.assertIn(code, (0, int(settings["SuccessExitStatus"])), err)
        text = (metrics / "shmemctl-doctor.prom").read_text()
        self.assertIn('shmemctl_run_success{report="doctor"}', text)
        self.assertIn('shmemctl_check{report="doctor",id="', text)

    def test_the_timer_starts_the_service(self):
        timer = (EXAMPLES / "shmemctl-metrics.timer").read_text()
        # a unit for the timer of the same name
        self.assertTrue((EXAMPLES / "shmemctl-metrics.service").is_file())
        for words in (r"^\[Timer\]$", r"^OnUnitActiveSec=\d+min$", r"^WantedBy=timers\.target$"):
            self.assertRegex(timer, re.compile(words, re.MULTILINE))

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_systemd_takes_the_units(self):
        # It also looks for the programs; here only for the units' words.
        done = subprocess.run(["systemd-analyze", "verify", EXAMPLES / "shmemctl-metrics.timer"], capture_output=True,
                              text=True, timeout=60, check=False)
        wrong = [line for line in done.stderr.splitlines()
                 if "shmemctl" in line and "is not executable" not in line and "Failed to" not in line]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
