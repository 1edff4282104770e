"""scripts/lab/hosts."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import host_options
from cluster import Cluster
from command_line import EXIT_INTERRUPTED, say, terminated
from errors import EXIT_FAILED, EXIT_TIMEOUT, EXIT_UNAVAILABLE, EXIT_USAGE, LabError, Unavailable

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
            raise TimeoutError
        try:
            process.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            pass
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def main(program):
    signal.signal(signal.SIGTERM, terminated)
    given = host_options.parser(program).parse_args()
    try:
        options, line, events = host_options.from_arguments(given, SOURCE / "build" / "shmemctl")
    except LabError as error:
        say(error)
        return EXIT_USAGE
    if not os.access(options.binary, os.X_OK):
        say(LabError(f"{options.binary}: there is no such program", "build it, or name one with --binary"))
        return EXIT_USAGE
    try:
        begin = time.monotonic()
        with Cluster(options) as cluster:
            for key, rule in given.cable:
                cluster.cable(key, rule)
            for key, rate in given.rate:
                cluster.rate(key, rate)
            if given.verbose:
                print(f"lab: {len(cluster.all)} hosts after {time.monotonic() - begin:.1f} s", file=sys.stderr)
            code = run(cluster, line, events, given.timeout)
            left = cluster.left()
            for key, found in left.items():
                print(f"lab: left on host {key}: {'; '.join(found)}", file=sys.stderr)
        return code
    except TimeoutError:
        say(LabError(f"the command still ran after {given.timeout:g} s and was ended",
                     "raise --timeout, or see what it waited for"))
        return EXIT_TIMEOUT
    except Unavailable as error:
        say(error)
        return EXIT_UNAVAILABLE
    except LabError as error:
        say(error)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
