"""scripts/lab/run and scripts/lab/shell."""
import signal
import sys
import termios

import options as lab_options
from errors import EXIT_USAGE, LabError
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


def exit_code(action):
    """What action() returns, or the exit code of the error that ends it, which is printed."""
    try:
        return action()
    except LabError as error:
        say(error)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def usage_error(error):
    say(error)
    return EXIT_USAGE


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
        return usage_error(error)
    return exit_code(lambda: run(options, given.verbose))
