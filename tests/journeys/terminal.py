"""A program on a terminal of 80 x 24, and what its user sees there."""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from support import clean_environment  # noqa: E402

ROWS, COLUMNS = 24, 80
# Colours, and the rest of the line: all that the program sends besides text.
SEQUENCE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")


class Screen:
    """Text as a terminal shows it: lines, the oldest first, of which the last 24 are on the screen."""

    def __init__(self, columns=COLUMNS):
        self.columns = columns
        self.lines = [""]
        self.column = 0
        self.rest = ""

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                sequence = SEQUENCE.match(text, at)
                if not sequence:
                    if len(text) - at > 20:
                        raise AssertionError(f"unknown escape sequence: {text[at:at + 20]!r}")
                    self.rest = text[at:]  # cut in the middle: more comes
                    return
                self.obey(sequence)
                at = sequence.end()
                continue
            self.put(text[at])
            at += 1

    def obey(self, sequence):
        if sequence[2] == "K" and sequence[1] in ("", "0"):
            self.lines[-1] = self.lines[-1][:self.column]
        elif sequence[2] != "m":
            raise AssertionError(f"unexpected escape sequence {sequence[0]!r}")

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.lines.append("")
            self.column = 0
        else:
            if self.column == self.columns:
                self.lines.append("")
                self.column = 0
            line = self.lines[-1].ljust(self.column)
            self.lines[-1] = line[:self.column] + character + line[self.column + 1:]
            self.column += 1

    def text(self):
        return "\n".join(line.rstrip() for line in self.lines)

    def visible(self):
        return "\n".join(line.rstrip() for line in self.lines[-ROWS:])


class Terminal:
    """Runs a command on a terminal until it ends. `moments` are the screens on the way, each once."""

    def __init__(self, *command, typed=(), environment=None, timeout_s=300, rows=ROWS, columns=COLUMNS):
        """typed: pairs of what must be on the screen (a regular expression) and what is typed then."""
        self.screen = Screen(columns)
        self.raw = ""
        self.moments = []
        typed = list(typed)
        begin = time.monotonic()
        pid, master = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(command[0], [str(word) for word in command],
                      clean_environment(TERM="xterm-256color", **(environment or {})))
        try:
            while True:
                left = timeout_s - (time.monotonic() - begin)
                if left <= 0:
                    os.kill(pid, 9)
                    raise AssertionError(f"{command} has not ended after {timeout_s} s:\n{self.screen.text()}")
                if not select.select([master], [], [], min(left, 1))[0]:
                    continue
                try:
                    data = os.read(master, 65536)
                except OSError:  # all have closed it
                    break
                if not data:
                    break
                text = data.decode("utf-8", "replace")
                self.raw += text
                self.screen.feed(text)
                if not self.moments or self.moments[-1] != self.screen.text():
                    self.moments.append(self.screen.text())
                if typed and re.search(typed[0][0], self.screen.text()):
                    os.write(master, typed.pop(0)[1].encode())
        finally:
            os.close(master)
            _, status = os.waitpid(pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - begin
        if typed:
            raise AssertionError(f"{typed[0][0]!r} was never on the screen:\n{self.screen.text()}")
