"""Runs the bootstrap probe under a launcher, and checks that no process of it remains."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest
import uuid

import support

PROBE = os.environ.get("SHMEMCTL_BOOTSTRAP_PROBE",
                       str(pathlib.Path(support.BINARY).parent / "tests" / "bootstrap_probe"))
MARK = "PROBE_TEST_MARK"


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


def has_library(name):
    found = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False,
                           env={"PATH": "/sbin:/usr/sbin:" + os.environ.get("PATH", "")})
    return name in found.stdout


def marked_processes(mark):
    """Living processes that carry this job's mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue  # the process has ended, or belongs to another user
    return found


class Outcome:
    def __init__(self, code, out, err, seconds, left):
        self.code, self.out, self.err, self.seconds, self.left = code, out, err, seconds, left
        self.ok = sorted(line for line in out.splitlines() if line.startswith("OK "))
        # Whole lines of ours may follow the begun line of a library.
        self.errors = re.findall(r"shmemctl: error: .*", err)
        self.fixes = re.findall(r"shmemctl: fix: .*", err)

    def __str__(self):
        return f"exit {self.code} after {self.seconds:.1f} s\n{self.out}\n{self.err}\nleft: {self.left}"


def wait_until_gone(mark, seconds=60):
    """Launchers return a moment before the last process is reaped."""
    end = time.monotonic() + seconds
    left = marked_processes(mark)
    while left and time.monotonic() < end:
        time.sleep(0.05)
        left = marked_processes(mark)
    return left


def launch(command, env=None, timeout=300):
    """Runs a launcher's command line; ends whatever is left of it and says what that was."""
    mark = str(uuid.uuid4())
    environment = support.clean_environment(
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        **support.launcher_environment(), **(env or {}))
    environment[MARK] = mark
    started = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                               env=environment, start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        kill_all([process.pid] + marked_processes(mark))
        out, err = process.communicate()
        err += "\n(the test's own time limit was over)"
    seconds = time.monotonic() - started
    left = wait_until_gone(mark)
    kill_all(left)
    return Outcome(process.returncode, out, err, seconds, left)


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


class LauncherTest(unittest.TestCase):
    """Adds what every run of the probe must fulfil."""

    def assert_all_ok(self, outcome, name, ranks):
        self.assertEqual(outcome.code, 0, outcome)
        expected = [f"OK {name} rank {rank} of {ranks}, " for rank in range(ranks)]
        self.assertEqual(len(outcome.ok), ranks, outcome)
        for line, start in zip(outcome.ok, sorted(expected)):
            self.assertTrue(line.startswith(start), outcome)
        self.assertEqual(outcome.errors, [], outcome)
        self.assert_clean_end(outcome)

    def assert_clean_end(self, outcome):
        self.assertEqual(outcome.left, [], outcome)
        self.assertNotIn("egmentation", outcome.err, outcome)
        self.assertNotIn("(the test's own time limit was over)", outcome.err)

    def assert_failed(self, outcome, code, words=(), ranks_that_speak=1):
        """At least that many ranks say all the words in their one error line."""
        self.assertEqual(outcome.code, code, outcome)
        self.assertEqual(outcome.ok, [], outcome)
        speaking = [line for line in outcome.errors if all(word in line for word in words)]
        self.assertGreaterEqual(len(speaking), ranks_that_speak, outcome)
        self.assertEqual(len(outcome.errors), len(outcome.fixes), outcome)
        self.assert_clean_end(outcome)
