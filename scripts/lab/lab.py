"""A lab: its machines, their output as it comes, one deadline for all."""
import dataclasses
import pathlib
import selectors
import shutil
import tempfile
import time

import image
from errors import EXIT_FAILED, EXIT_TIMEOUT, LabError
from machine import Machine

PRINTED = ("stdout", "stderr")
BOOT_LIMIT_S = 240


class DeadlinePassed(LabError):
    """The machines had no more time."""


def deadline_passed(late, limit_s, what):
    told = "; ".join(f"{machine.name}: {machine.last_words()}" for machine in late)
    return DeadlinePassed(
        f"{' and '.join(machine.name for machine in late)} {what} after {limit_s:g} s and was ended; "
        f"{told}", "raise --timeout, or see what it waited for")


@dataclasses.dataclass
class Result:
    """How a lab ended. Exit codes and output are those of machine 0, 1."""
    exit_codes: list
    stdout: list
    stderr: list
    seconds: float
    ready_s: list
    error: LabError | None = None
    timed_out: bool = False

    @property
    def exit_code(self):
        """Of the first machine whose command failed; else 124 or 3 if the lab failed; else 0."""
        failed = next((code for code in self.exit_codes if code), None)
        if self.error is None or (failed and not self.timed_out):
            return failed or 0
        return EXIT_TIMEOUT if self.timed_out else EXIT_FAILED


class Lab:
    """Runs the machines of `options`; `sink(machine, channel, data)` gets their output."""

    LOOK_S = 0.2

    def __init__(self, options, sink=None):
        self.options = options
        self.sink = sink or (lambda machine, channel, data: None)
        self.selector = selectors.DefaultSelector()
        self.machines = []
        self.output = {}
        self.status = {}

    def run(self):
        kernel, initramfs = image.prepare()
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="lab.") as work:
            work = pathlib.Path(work)
            if self.options.out is None:
                self.options.out = work / "out"
            self.options.out = self.options.out.resolve()
            self.options.out.mkdir(parents=True, exist_ok=True)
            self.machines = [Machine(number, self.options, work / f"lab{number}", work)
                             for number in range(self.options.machines)]
            error, timed_out = None, False
            try:
                for machine in self.machines:
                    self.start(machine, kernel, initramfs)
                self.watch(lambda machine: machine.ready_s is not None, BOOT_LIMIT_S,
                           "was not up")
                for machine in self.machines:
                    machine.begin()
                self.watch(lambda machine: machine.ended or machine.gone, self.options.timeout_s,
                           "still ran")
                self.drain()
                self.look_for_gone()
            except DeadlinePassed as caught:
                error, timed_out = caught, True
            except LabError as caught:
                error = caught
            finally:
                for machine in self.machines:
                    machine.stop()
                self.selector.close()
                self.keep(work)
            return self.result(started, error, timed_out)

    def start(self, machine, kernel, initramfs):
        machine.start(kernel, initramfs)
        for channel in PRINTED:
            self.output[machine.number, channel] = bytearray()
        self.status[machine.number] = b""
        for channel, listener in machine.listeners.items():
            self.selector.register(listener, selectors.EVENT_READ, (machine, channel, True))

    # --- the loop ---

    def watch(self, done, limit_s, what):
        """Until done(machine) is true for all. DeadlinePassed: limit_s passed, and somebody `what`."""
        deadline = None if limit_s is None else time.monotonic() + limit_s
        while late := [machine for machine in self.machines if not done(machine)]:
            self.give_up_on_others()
            left = self.LOOK_S if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise deadline_passed(late, limit_s, what)
            events = self.selector.select(min(left, self.LOOK_S))
            for key, _ in events:
                self.take(key)
            if not events:
                self.look_for_gone()

    def drain(self):
        """Ends the machines. What they printed before they ended is in the sockets by then."""
        for machine in self.machines:
            machine.process.kill()
        while any(not key.data[2] for key in self.selector.get_map().values()):
            for key, _ in self.selector.select():
                self.take(key)

    def give_up_on_others(self):
        """A machine that waits for one that has failed would wait until the deadline."""
        failed = [machine for machine in self.machines if machine.exit_code]
        running = [m for m in self.machines if not m.ended and not m.gone]
        if not failed or not running:
            return
        if time.monotonic() - failed[0].ended_at > self.options.grace_s:
            raise LabError(
                f"{running[0].name} still ran {self.options.grace_s:g} s after {failed[0].name} had "
                f"ended with {failed[0].exit_code}; {running[0].last_words()}",
                f"look at {failed[0].name} first")

    def look_for_gone(self):
        """A machine may power itself off; the other one goes on without it."""
        for machine in self.machines:
            machine.gone = machine.gone or (not machine.ended and machine.process.poll() is not None)
        gone = [machine for machine in self.machines if machine.gone]
        waiting = [m for m in self.machines if not m.gone and not m.ended and m.ready_s is not None]
        if gone and not waiting:
            raise LabError(f"{gone[0].name} ended without an exit code "
                           f"(QEMU: {gone[0].process.returncode}); {gone[0].last_words()}",
                           "look at its console with --out DIR")

    def take(self, key):
        machine, channel, is_listener = key.data
        if is_listener:
            self.selector.unregister(key.fileobj)
            self.selector.register(machine.accept(channel), selectors.EVENT_READ,
                                   (machine, channel, False))
            key.fileobj.close()
            return
        data = key.fileobj.recv(65536)
        if not data:
            self.selector.unregister(key.fileobj)
        elif channel == "status":
            *lines, self.status[machine.number] = (self.status[machine.number] + data).split(b"\n")
            for line in lines:
                machine.note_status(line.decode(errors="replace"))
        else:
            self.output[machine.number, channel] += data
            lines = [line for line in data.decode(errors="replace").splitlines() if line.strip()]
            machine.last_line = lines[-1].strip() if lines else machine.last_line
            self.sink(machine, channel, data)

    # --- the end ---

    def keep(self, work):
        """Leaves consoles and output in the out folder, if it is the caller's."""
        if self.options.out.is_relative_to(work):
            return
        for machine in self.machines:
            for channel in PRINTED:
                path = self.options.out / f"{machine.name}.{channel}"
                path.write_bytes(self.output.get((machine.number, channel), b""))
            if machine.console.is_file():
                shutil.copy(machine.console, self.options.out / f"{machine.name}.console")

    def result(self, started, error, timed_out):
        def text(channel):
            return [self.output.get((machine.number, channel), b"").decode(errors="replace")
                    for machine in self.machines]
        codes = [machine.exit_code for machine in self.machines]
        return Result(codes, text("stdout"), text("stderr"), time.monotonic() - started,
                      [machine.ready_s for machine in self.machines], error, timed_out)
