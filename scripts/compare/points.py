"""What is compared with what, in which environment, and the goals."""
import dataclasses
import fcntl
import pathlib
import socket
import struct

from compare.programs import OurBench, perftest, ucx_perftest

MIB = 1 << 20
UCX_VERBS = {"UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_IB_GID_INDEX": "0", "UCX_LOG_LEVEL": "error"}
LIBFABRIC_VERBS = {"FI_UNIVERSE_SIZE": "8"}
CPUS = ("0", "1")


@dataclasses.dataclass
class Goal:
    """Of `name`: its figure / that of `beside`, in each round; the median of these against `bound`."""
    name: str
    beside: str
    bound: float
    at_least: bool

    def met(self, ratio):
        return ratio >= self.bound if self.at_least else ratio <= self.bound

    def words(self):
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


@dataclasses.dataclass
class Point:
    """Programs that measure the same, one after the other in each round."""
    what: str
    size_bytes: int
    unit: str  # "GB/s" or "us"
    programs: dict  # name: what measures
    goals: list
    limit: str  # what bounds it, in words


def bandwidth_goals(names, peer, bound):
    return [Goal(name, peer, bound, True) for name in names]


def lab_points(binary):
    """In a machine of the lab, everything over rxe0, which sends to itself."""
    limit = "the guest's processors: kernel's Soft-RoCE under emulation"

    def ours(case, size_bytes, *extra):
        def bench(words, variables):
            return OurBench(binary, case, size_bytes, (*words, *extra), variables)
        return {"ibrc": bench(("--transport", "ibrc"), {}),
                "libfabric verbs": bench(("--transport", "libfabric", "--libfabric-provider", "verbs"),
                                         LIBFABRIC_VERBS),
                "ucx rc_verbs": bench(("--transport", "ucx"), UCX_VERBS)}

    points = []
    for size_bytes, window, iterations in ((65536, 64, 768), (MIB, 8, 64)):
        programs = {"ib_write_bw": perftest("ib_write_bw", size_bytes, iterations, CPUS, depth=window),
                    **ours("put", size_bytes, "--window", str(window))}
        goals = [Goal("ibrc", "ib_write_bw", 0.97, True)] + bandwidth_goals(
            ("libfabric verbs", "ucx rc_verbs"), "ibrc", 0.9)
        points.append(Point("bandwidth of puts", size_bytes, "GB/s", programs, goals, limit))
    programs = {"ib_write_lat": perftest("ib_write_lat", 8, 4000, CPUS), **ours("put-pingpong", 8)}
    goals = [Goal("ibrc", "ib_write_lat", 1.05, False)] + [
        Goal(name, "ibrc", round(1 / 0.9, 2), False) for name in ("libfabric verbs", "ucx rc_verbs")]
    points.append(Point("latency of puts", 8, "us", programs, goals, limit))
    return points


def rails_points(binary):
    """One NIC and two, each sending to itself, two PEs on virtual nodes of their own."""
    def bench(nics):
        return OurBench(binary, "put", MIB, ("--transport", "ibrc", "--window", "8"), {"SHMEMCTL_HCA_LIST": nics},
                        ("--nodes", "2"))
    return [Point("bandwidth of puts, one NIC and two", MIB, "GB/s",
                  {"one NIC": bench("rxe0"), "two NICs": bench("rxe0,rxe1")},
                  [Goal("two NICs", "one NIC", 1.8, True)],
                  "the guest's processors: both NICs are software on the same two")]


def interface():
    """The first that is no loopback and has an IPv4 address; else lo. All programs get the same."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for path in sorted(pathlib.Path("/sys/class/net").iterdir()):
            if path.name == "lo":
                continue
            try:
                fcntl.ioctl(asking, 0x8915, struct.pack("256s", path.name.encode()))  # SIOCGIFADDR
            except OSError:
                continue
            return path.name
    return "lo"


def host_points(binary, device):
    """Over TCP on this machine, everything on one interface."""
    limit = "the kernel's TCP, both ends on this machine's processors"
    ucx = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": device, "UCX_LOG_LEVEL": "error"}
    fabric = {"SHMEMCTL_LIBFABRIC_INTERFACE": device}

    def ours(case, size_bytes, *extra):
        return {"libfabric tcp": OurBench(binary, case, size_bytes, ("--transport", "libfabric",
                                                                     "--libfabric-provider", "tcp", *extra), fabric),
                "ucx tcp": OurBench(binary, case, size_bytes, ("--transport", "ucx", *extra), ucx)}
    names = ("libfabric tcp", "ucx tcp")
    return [Point("bandwidth of puts", MIB, "GB/s",
                  {"ucx_perftest": ucx_perftest("ucp_put_bw", MIB, 600, 100, CPUS, ucx),
                   **ours("put", MIB)}, bandwidth_goals(names, "ucx_perftest", 0.95), limit),
            Point("latency of puts", 8, "us",
                  {"ucx_perftest": ucx_perftest("ucp_put_lat", 8, 10000, 1000, CPUS, ucx), **ours("put-pingpong", 8)},
                  [Goal(name, "ucx_perftest", 1.05, False) for name in names], limit)]
