"""One lab at a time on a host: two would each take more than twice as long, and miss deadlines."""
import contextlib
import fcntl
import os
import sys
import tempfile
import time

PATIENCE_S = 300
LOOK_S = 0.5


@contextlib.contextmanager
def my_turn():
    """Waits for the other labs of this host; goes on all the same when that takes too long."""
    path = os.path.join(tempfile.gettempdir(), "shmemctl-lab.lock")
    lock = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        end = time.monotonic() + PATIENCE_S
        told = False
        while not taken(lock) and time.monotonic() < end:
            if not told:
                print("lab: waiting for another lab on this host", file=sys.stderr, flush=True)
                told = True
            time.sleep(LOOK_S)
        yield
    finally:
        os.close(lock)


def taken(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
