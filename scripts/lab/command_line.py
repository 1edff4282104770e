"""scripts/lab/run and scripts/lab/shell."""
import signal
import sys
import termios

import options as lab_options
from errors import EXIT_FAILED, EXIT_UNAVAILABLE, EXIT_USAGE, LabError, Unavailable
from lab import Lab

EXIT_INTERRUPTED = 130


class Printer:
    """Passes output on as it comes; with two machines each line says whose it is."""

    def __init__(self, machines):
        self.prefixed = machines > 1
        self.rest = {}

    def __call__(self, machine, channel, data):
        stream = sys.stdout.buffer if channel == "stdout" else sys.stderr.buffer
        if not self.prefixed:
            stream.write(data)
        else:
            *lines, rest = (self.rest.get((machine.name, channel), b"") + data).split(b"\n")
            self.rest[machine.name, channel] = rest
            for line in lines:
                stream.write(f"{machine.name}: ".encode() + line + b"\n")
        stream.flush()

    def finish(self):
        for (name, channel), rest in self.rest.items():
            if rest:
                stream = sys.stdout.buffer if channel == "stdout" else sys.stderr.buffer
                stream.write(f"{name}: ".encode() + rest + b"\n")
                stream.flush()


def say(error):
    print(f"lab: error: {error}\nlab: fix: {error.fix}", file=sys.stderr)


def terminated(_number, _frame):
    raise KeyboardInterrupt


def run(options, verbose):
    printer = Printer(options.machines)
    terminal = termios.tcgetattr(0) if options.shell and sys.stdin.isatty() else None
    try:
        result = Lab(options, printer).run()
    finally:
        printer.finish()
        if terminal:
            termios.tcsetattr(0, termios.TCSADRAIN, terminal)
    if verbose:
        ready = ", ".join("never" if at is None else f"{at:.1f} s" for at in result.ready_s)
        print(f"lab: ready after {ready}; ended after {result.seconds:.1f} s with "
              f"{result.exit_codes}", file=sys.stderr)
    if result.error:
        say(result.error)
    return result.exit_code


def main(program, shell=False):
    signal.signal(signal.SIGTERM, terminated)
    given = lab_options.parser(program, not shell).parse_args()
    try:
        options = lab_options.from_arguments(given, shell)
    except LabError as error:
        say(error)
        return EXIT_USAGE
    try:
        return run(options, given.verbose)
    except Unavailable as error:
        say(error)
        return EXIT_UNAVAILABLE
    except LabError as error:
        say(error)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
