"""Starts jobs with `shmemctl run`, and finds remaining processes."""
import pathlib
import signal
import subprocess
import sys
import time
import uuid

from support import BINARY, CliTest, clean_environment

PYTHON = sys.executable
PATIENCE_S = 300


def marked():
    """A variable that finds every process that inherited it."""
    return {"SHMEMCTL_TEST_MARK": uuid.uuid4().hex}


def processes_with(mark):
    entry = f"SHMEMCTL_TEST_MARK={mark['SHMEMCTL_TEST_MARK']}".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if entry in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def default_signals():
    """Test runners may have been started with some of them ignored."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)


def start(*arguments, mark=None, env=None, **keywords):
    keywords.setdefault("stdin", subprocess.DEVNULL)
    keywords.setdefault("stdout", subprocess.PIPE)
    keywords.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([BINARY, "run", *map(str, arguments)], preexec_fn=default_signals,
                            env=clean_environment(**(mark or {}), **(env or {})), **keywords)


def run_bytes(*arguments, stdin=b"", env=None):
    done = subprocess.run([BINARY, "run", *map(str, arguments)], input=stdin, capture_output=True,
                          env=clean_environment(**(env or {})), timeout=PATIENCE_S,
                          preexec_fn=default_signals, check=False)
    return done.returncode, done.stdout, done.stderr


def sh(script):
    return ["sh", "-c", script]


class RunTest(CliTest):
    def setUp(self):
        self.mark = marked()

    def assert_no_orphan(self):
        end = time.monotonic() + PATIENCE_S
        while processes_with(self.mark):
            self.assertLess(time.monotonic(), end, f"left: {processes_with(self.mark)}")
            time.sleep(0.02)

    def wait_for_line(self, process, count=1):
        return [process.stdout.readline() for _ in range(count)]
