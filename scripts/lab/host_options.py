"""What test hosts to make, from the command line or from a test."""
import argparse
import dataclasses
import pathlib
import re
import shlex

import host_network
from errors import LabError

MAX_HOSTS = 8
LETTERS = "abcdefgh"
FAMILIES = ("4", "6", "46")
HOSTS_FILES = ("plain", "loopback", "local")


@dataclasses.dataclass(frozen=True)
class HostOptions:
    """What differs from host to host."""
    #: How the others call it, and the tests: a, b, ...
    key: str
    number: int
    #: What `hostname` says.
    hostname: str
    interface: str = "eth0"
    mtu: int = 1500
    #: More interfaces that lead to the same bridge, in a subnet of their own each: rails.
    rails: int = 0
    #: A bridge of containers: up, with an address that every host has, and leading nowhere.
    docker: bool = False
    #: Seconds by which the monotonic clock differs from the machine's.
    clock_s: int = 0
    #: A fake machine's tree: /run/lab/sysroot on this host, and SHMEMCTL_SYSROOT says so.
    sysroot: pathlib.Path | None = None
    #: The binary of this host, if it has one of its own.
    binary: pathlib.Path | None = None


@dataclasses.dataclass
class ClusterOptions:
    """What hosts there are, and what is the same on all of them."""
    hosts: list
    family: str = "46"
    #: plain: each host with its addresses. loopback: as Debian's installer writes it, a host's own name
    #: is 127.0.1.1 there. local: the file knows localhost only.
    hosts_file: str = "plain"
    same_machine_id: bool = False
    same_boot_id: bool = False
    shm: str = "1g"
    slurm: bool = False
    binary: pathlib.Path | None = None
    #: A folder of the caller's that all hosts may write to, at the same path.
    out: pathlib.Path | None = None
    #: Further folders or files of the machine that a host's own /tmp, /run and /root would hide.
    visible: list = dataclasses.field(default_factory=list)


def hosts_of(count, hostnames=(), interfaces=("eth0",), mtus=(1500,), rails=0, docker=False,
             clocks=(0,), sysroots=(), binaries=()):
    """Options of `count` hosts. Of a list that is shorter, the last value holds for the rest."""
    if not 2 <= count <= MAX_HOSTS:
        raise LabError(f"{count} hosts: not 2..{MAX_HOSTS}", "ask for another number")

    def value(values, index, default=None):
        return values[min(index, len(values) - 1)] if values else default
    return [HostOptions(
        key=LETTERS[index], number=index + 1, hostname=value(hostnames, index, LETTERS[index]),
        interface=value(interfaces, index), mtu=value(mtus, index), rails=rails, docker=docker,
        clock_s=value(clocks, index), sysroot=value(sysroots, index), binary=value(binaries, index))
        for index in range(count)]


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happens to a host after_s seconds after the command began."""
    after_s: float
    host: str
    what: str
    arguments: str


def parse_event(after, text):
    """3s `b down|up|vanish|cable RULES`."""
    time_found = re.fullmatch(r"(\d+(?:\.\d+)?)s?", after)
    found = re.fullmatch(rf"([{LETTERS}])\s+(down|up|vanish|cable)\s*(.*)", text)
    if not time_found or not found or bool(found[3]) != (found[2] == "cable"):
        raise LabError(f"--at {after} '{text}': not SECONDS 'HOST down|up|vanish' or 'HOST cable RULE'",
                       "write for example --at 3s 'b down'")
    if found[3]:
        host_network.parse_rule(found[3])
    return Event(float(time_found[1]), found[1], found[2], found[3])


def words(text):
    return [word.strip() for word in text.split(",")]


def integers(text):
    return [int(word) for word in words(text)]


def paths(text):
    return [pathlib.Path(word).resolve() for word in words(text)]


def parser(program):
    made = argparse.ArgumentParser(
        prog=program, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Makes hosts out of namespaces and runs a command on the first; without a command, "
                    "a shell. See docs/development.md. Lists are separated by commas, and their last "
                    "value holds for the hosts that are left.")
    add = made.add_argument
    add("--hosts", type=int, default=4, metavar="N", help=f"how many, a, b, ... (2 to {MAX_HOSTS}, default 4)")
    add("--binary", type=pathlib.Path, metavar="FILE", help="shmemctl on the hosts (default build/shmemctl)")
    add("--family", choices=FAMILIES, default="46", help="IPv4 only, IPv6 only, or both (default)")
    add("--hostnames", type=words, default=[], metavar="NAMES", help="what `hostname` says (default a,b,...)")
    add("--interfaces", type=words, default=["eth0"], metavar="NAMES", help="e.g. eth0,enp5s0")
    add("--mtus", type=integers, default=[1500], metavar="BYTES", help="e.g. 1500,9000")
    add("--rails", type=int, default=0, metavar="N", help="further interfaces rail1, ... of each host")
    add("--docker", action="store_true", help="a docker0 with 172.17.0.1/16 on each, which leads nowhere")
    add("--hosts-file", choices=HOSTS_FILES, default="plain", help="/etc/hosts: all hosts; loopback: a "
        "host's own name is 127.0.1.1; local: localhost only")
    add("--same-machine-id", action="store_true", help="as of cloned images")
    add("--same-boot-id", action="store_true", help="as of containers of one machine")
    add("--clocks", type=integers, default=[0], metavar="S", help="seconds added to the monotonic clock")
    add("--sysroots", type=paths, default=[], metavar="DIRS", help="trees of fake machines, for SHMEMCTL_SYSROOT")
    add("--shm", default="1g", metavar="SIZE", help="of each /dev/shm (default 1g)")
    add("--slurm", action="store_true", help="munged and slurmd on each host, slurmctld on the first")
    add("--cable", action="append", default=[], nargs=2, metavar=("HOST", "RULE"), help="e.g. b 'delay "
        "5ms jitter 2ms loss 1%% reorder 10%%', b 'to c loss 100%%', b 'from c delay 20ms'")
    add("--rate", action="append", default=[], nargs=2, metavar=("HOST", "RATE"), help="e.g. b 100mbit, "
        "b 'to c 10mbit'")
    add("--at", action="append", default=[], nargs=2, metavar=("S", "EVENT"), help="S seconds after the "
        "command began: 'b down', 'b up', 'b vanish', 'b cable RULE'")
    add("--out", type=pathlib.Path, metavar="DIR", help="folder that all hosts may write to, at the same path")
    add("--timeout", type=float, default=300, metavar="S", help="deadline of the command (default 300)")
    add("--verbose", "-v", action="store_true", help="says how long making the hosts took")
    add("command", nargs=argparse.REMAINDER, metavar="-- CMD...", help="what to run")
    return made


def from_arguments(given, default_binary):
    """(ClusterOptions, command or None for a shell, events) of what argparse has read."""
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    # One word is a line for the shell, as with ssh.
    line = command[0] if len(command) == 1 else shlex.join(command) if command else None
    options = ClusterOptions(
        hosts=hosts_of(given.hosts, given.hostnames, given.interfaces, given.mtus, given.rails,
                       given.docker, given.clocks, given.sysroots),
        family=given.family, hosts_file=given.hosts_file, same_machine_id=given.same_machine_id,
        same_boot_id=given.same_boot_id, shm=given.shm, slurm=given.slurm,
        binary=(given.binary or default_binary).resolve(), out=given.out)
    keys = {host.key for host in options.hosts}
    for host in [host for host, _ in given.cable + given.rate]:
        if host not in keys:
            raise LabError(f"there is no host {host}", f"name one of {', '.join(sorted(keys))}")
    for _, rule in given.cable:
        host_network.parse_rule(rule)
    for _, rate in given.rate:
        host_network.parse_rate(rate)
    return options, line, [parse_event(*event) for event in given.at]
