"""A program on a pseudo terminal of its own."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

from support import clean_environment


class Terminal:
    """with Terminal(["bash"]) as terminal: terminal.type("ls\\n"); terminal.wait_for("file")"""

    def __init__(self, arguments, environment=None, rows=24, columns=80, seconds=120):
        self.deadline = time.monotonic() + seconds
        self.shown = ""
        variables = environment if environment is not None else clean_environment(TERM="xterm")
        size = struct.pack("HHHH", rows, columns, 0, 0)
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, size) # before the program can look
            os.execvpe(str(arguments[0]), [str(word) for word in arguments], variables)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.descriptor)

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def _read(self):
        """False at the end."""
        left = self.deadline - time.monotonic()
        if left <= 0 or not select.select([self.descriptor], [], [], left)[0]:
            raise TimeoutError(f"the terminal shows {self.shown!r}")
        try:
            data = os.read(self.descriptor, 65536)
        except OSError: # EIO: the program has ended
            return False
        self.shown += data.decode("utf-8", errors="replace")
        return bool(data)

    def wait_for(self, text):
        """Until this is shown; what was shown so far is forgotten, and returned."""
        while text not in self.shown:
            if not self._read():
                raise EOFError(f"the program has ended; the terminal shows {self.shown!r}")
        shown, self.shown = self.shown, ""
        return shown

    def read_to_end(self):
        while self._read():
            pass
        return self.shown
