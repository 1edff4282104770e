"""The lab's options, from the command line or from a test."""
import argparse
import dataclasses
import os
import pathlib
import re
import shlex

import network
from errors import LabError
from topology import Topology, load

MAX_HCAS = 8


@dataclasses.dataclass(frozen=True)
class Event:
    """A command that a machine runs after_s seconds after the lab's command began."""
    machine: int | None
    after_s: float
    command: str


@dataclasses.dataclass
class Options:
    """What lab to make. `command` and `peer` are shell commands, run in `directory`."""
    command: str = "true"
    peer: str | None = None
    machines: int = 1
    pes: int = 0
    hcas: int = 1
    topology: Topology | None = None
    cpus: int = 0
    memory_mib: int = 2048
    hugepages: int = 0
    mtu: int = 4200
    netem: list = dataclasses.field(default_factory=list)
    events: list = dataclasses.field(default_factory=list)
    environment: dict = dataclasses.field(default_factory=dict)
    directory: str = dataclasses.field(default_factory=os.getcwd)
    out: pathlib.Path | None = None
    timeout_s: float | None = 60
    grace_s: float = 10
    shell: bool = False

    def __post_init__(self):
        if self.topology:
            self.hcas = len(self.topology.nics) if self.hcas is None else self.hcas
            if self.hcas > len(self.topology.nics):
                raise LabError(f"--hcas {self.hcas}: the topology has {len(self.topology.nics)} NICs",
                               "ask for fewer")
        elif self.hcas is None:
            self.hcas = 1
        if self.netem and self.machines == 1 and self.nics != 2:
            raise LabError(f"--netem: in one machine it needs two NICs, and there are {self.nics}: what "
                           "a device sends to itself never leaves it", "add --hcas 2 or --machines 2")
        self.cpus = self.cpus or (2 if self.machines == 1 else 1)

    @property
    def nics(self):
        """NICs of each machine; there is one also where there is no RDMA device."""
        return len(self.topology.nics) if self.topology else max(self.hcas, 1)


def parse_event(after, command):
    found = re.fullmatch(r"(?:(\d)/)?(\d+(?:\.\d+)?)s?", after)
    if not found:
        raise LabError(f"--at {after}: not [MACHINE/]SECONDS", "write for example --at 3s 'CMD'")
    machine, seconds = found.groups()
    return Event(int(machine) if machine else None, float(seconds), command)


def parse_variable(text):
    name, equals, value = text.partition("=")
    if not equals and name in os.environ:
        value = os.environ[name]
    elif not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise LabError(f"--env {text}: not NAME=VALUE, and not a variable that is set",
                       "write for example --env UCX_TLS=rc")
    return name, value


def parser(program, needs_command):
    made = argparse.ArgumentParser(
        prog=program, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs a command in a virtual machine with Soft-RoCE devices; see docs/explanation/lab.md.")
    add = made.add_argument
    add("--hcas", type=int, metavar="N", help="RDMA devices rxe0, rxe1, ... of each machine (default "
        "1, or one on each NIC of the topology); 0: no RDMA, one NIC")
    add("--topology", metavar="FILE|NAME", help="PCIe tree: a JSON file, or numa2")
    add("--machines", type=int, choices=(1, 2), default=1, help="machines with a wire between them")
    add("--peer", metavar="CMD", help="shell command of machine 1, instead of the command of both")
    add("--pes", type=int, default=0, metavar="N", help="starts N of the command on each machine, as "
        "the PEs of one job over shmemctl's bootstrap uid")
    add("--cpus", type=int, default=0, metavar="N", help="CPUs of each machine (default 2, with "
        "two machines 1)")
    add("--memory", type=int, default=2048, metavar="MIB", help="memory of each (default 2048)")
    add("--hugepages", type=int, default=0, metavar="N", help="huge pages of 2 MiB, on /dev/hugepages")
    add("--mtu", type=int, default=4200, metavar="BYTES", help="of every NIC (default 4200, which "
        "gives RDMA 4096)")
    add("--netem", action="append", default=[], metavar="[M/]DEV: ARGS",
        help="what tc's netem does to what leaves a NIC, e.g. 'eth0: delay 5ms loss 1%%'")
    add("--at", action="append", default=[], nargs=2, metavar=("[M/]S", "CMD"),
        help="runs a shell command S seconds after the command began")
    add("--env", action="append", default=[], metavar="NAME[=VALUE]",
        help="variable of the command; nothing else comes from this environment")
    add("--out", type=pathlib.Path, metavar="DIR", help="folder that the machines may write to, "
        "at the same path; output and consoles go there as well")
    add("--timeout", type=float, default=60, metavar="S", help="deadline of the command, after which "
        "the machines are ended (default 60); booting has a limit of its own")
    add("--verbose", "-v", action="store_true", help="says how long each step took")
    if needs_command:
        add("command", nargs=argparse.REMAINDER, metavar="-- CMD...", help="what to run")
    return made


def from_arguments(given, shell=False):
    """Options of what argparse has read."""
    words = [] if shell else given.command
    words = words[1:] if words[:1] == ["--"] else words
    if not words and not shell:
        raise LabError("no command", "write it behind --, for example: scripts/lab/run -- ibv_devinfo")
    if given.hcas is not None and not 0 <= given.hcas <= MAX_HCAS:
        raise LabError(f"--hcas {given.hcas}: not 0..{MAX_HCAS}", "ask for fewer")
    if given.peer and given.machines != 2:
        raise LabError("--peer is for two machines", "add --machines 2")
    # One word is a line for the shell, as with ssh.
    command = words[0] if len(words) == 1 else shlex.join(words)
    return Options(
        command=command or "true", peer=given.peer, machines=given.machines, pes=given.pes,
        hcas=given.hcas,
        topology=load(given.topology) if given.topology else None, cpus=given.cpus,
        memory_mib=given.memory, hugepages=given.hugepages, mtu=given.mtu,
        netem=[network.parse_netem(text) for text in given.netem],
        events=[parse_event(*words) for words in given.at],
        environment=dict(parse_variable(text) for text in given.env), out=given.out,
        timeout_s=None if shell else given.timeout, shell=shell)
