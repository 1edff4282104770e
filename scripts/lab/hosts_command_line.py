"""scripts/lab/hosts."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import host_options
from cluster import Cluster
from command_line import exit_code, terminated, usage_error
from errors import LabError, Overdue

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LOOK_S = 0.05


def run(cluster, line, events, timeout_s):
    """The exit code of a shell line on the first host, or of a shell."""
    first = cluster.all[0]
    words = ["/bin/sh", "-c", line] if line else ["/bin/bash", "--norc", "-i"]
    process = subprocess.Popen([*first.inside(), *words], cwd="/", env=first.environment({}),
                               preexec_fn=first.prepare)
    begin = time.monotonic()
    waiting = sorted(events, key=lambda event: event.after_s)
    while process.poll() is None:
        passed = time.monotonic() - begin
        while waiting and waiting[0].after_s <= passed:
            cluster.happen(waiting.pop(0))
        if line and passed > timeout_s:
            raise Overdue(f"the command still ran after {timeout_s:g} s and was ended",
                          "raise --timeout, or see what it waited for")
        try:
            process.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            pass
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def run_in_cluster(given, options, line, events):
    """The exit code of the shell line, after all hosts have ended."""
    begin = time.monotonic()
    with Cluster(options) as cluster:
        for key, rule in given.cable:
            cluster.cable(key, rule)
        for key, rate in given.rate:
            cluster.rate(key, rate)
        if given.verbose:
            print(f"lab: {len(cluster.all)} hosts after {time.monotonic() - begin:.1f} s", file=sys.stderr)
        code = run(cluster, line, events, given.timeout)
        for key, found in cluster.left().items():
            print(f"lab: left on host {key}: {'; '.join(found)}", file=sys.stderr)
    return code


def main(program):
    signal.signal(signal.SIGTERM, terminated)
    given = host_options.parser(program).parse_args()
    try:
        options, line, events = host_options.from_arguments(given, SOURCE / "build" / "shmemctl")
    except LabError as error:
        return usage_error(error)
    if not os.access(options.binary, os.X_OK):
        return usage_error(LabError(f"{options.binary}: there is no such program",
                                    "build it, or name one with --binary"))
    return exit_code(lambda: run_in_cluster(given, options, line, events))
