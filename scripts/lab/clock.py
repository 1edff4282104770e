"""The rate of this host's time stamp counter, which is the guest's as well under emulation.

A guest that measures it while the host is busy gets it wrong, and then every time that it tells.
"""
import ctypes
import mmap
import time

WINDOW_NS = 50_000_000
# rdtsc; shl rdx, 32; or rax, rdx; ret
READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")


def counter_reader():
    """A function that reads the counter."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(READ_COUNTER)
    function = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    function.page = page
    return function


def stamp(read_counter):
    """(time in ns, counter) of one moment: the closest pair of a few."""
    pairs = []
    for _ in range(20):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        counter = read_counter()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        pairs.append((after - before, (before + after) // 2, counter))
    return min(pairs)[1:]


def counter_khz():
    """Thousand counts a second, or None where no code may be made at run time."""
    try:
        read_counter = counter_reader()
    except OSError:
        return None
    start_ns, start = stamp(read_counter)
    time.sleep(WINDOW_NS / 1e9)
    end_ns, end = stamp(read_counter)
    return round((end - start) * 1_000_000 / (end_ns - start_ns))
