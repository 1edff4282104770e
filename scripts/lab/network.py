"""Addresses of a lab's NICs, their wires, and the commands that set them up in a guest.

NIC i of machine m is eth<i> with 10.77.<i>.<m+1>/16 and the device rxe<i>. All NICs are on one
segment. Two NICs of one machine reach each other over it as well: what is bound to a NIC, as RDMA
is, leaves through that NIC even towards another address of the same machine.
"""
import dataclasses
import re
import shlex

from errors import LabError
from image import program

UPLINK_MTU = 9000


@dataclasses.dataclass(frozen=True)
class Nic:
    """One NIC of one machine."""
    machine: int
    index: int

    @property
    def netdev(self):
        return f"eth{self.index}"

    @property
    def rdma(self):
        return f"rxe{self.index}"

    @property
    def mac(self):
        return f"52:54:00:77:{self.index:02x}:{self.machine + 1:02x}"

    @property
    def address(self):
        return f"10.77.{self.index}.{self.machine + 1}"


@dataclasses.dataclass(frozen=True)
class Netem:
    """What tc's netem does to what leaves a NIC."""
    machine: int | None
    netdev: str
    arguments: str


def parse_netem(text):
    """[MACHINE/]DEVICE: ARGUMENTS, e.g. `eth0: loss 1%`."""
    found = re.fullmatch(r"(?:(\d)/)?([A-Za-z0-9_.-]+)\s*(?::|\s)\s*(\S.*)", text.strip())
    if not found:
        raise LabError(f"--netem {text}: not [MACHINE/]DEVICE: ARGUMENTS",
                       "write for example --netem 'eth0: loss 1%'")
    machine, netdev, arguments = found.groups()
    return Netem(int(machine) if machine else None, netdev, arguments)


def nics_of(machine, count):
    return [Nic(machine, index) for index in range(count)]


def nic_device(nic, model, bus):
    """QEMU's device for one NIC on a PCI bus."""
    mtu = f",host_mtu={UPLINK_MTU}" if model == "virtio-net-pci" else ""
    return f"{model},netdev=wire{nic.index},mac={nic.mac},bus={bus},romfile={mtu}"


def wire_arguments(machine, machines, count, folder):
    """QEMU's arguments for the segment; devices attach to the netdevs wire0, wire1, ..."""
    arguments = []
    for index in range(count):
        arguments += ["-netdev", f"hubport,hubid=0,id=wire{index}"]
    if machines == 2:
        here, there = folder / f"wire{machine}", folder / f"wire{1 - machine}"
        arguments += [
            "-netdev", f"dgram,id=uplink,local.type=unix,local.path={here},"
                       f"remote.type=unix,remote.path={there}",
            "-netdev", "hubport,hubid=0,id=uplinkport,netdev=uplink"]
    return arguments


def address_batch(nics, mtu):
    """Input of `ip -batch` that gives every NIC its address and its way to all others.

    Nothing here is lost when a link goes down and comes up again, as routes and neighbours are.
    """
    lines = ["link set lo up"]
    for nic in nics:
        lines += [f"link set {nic.netdev} mtu {mtu}",
                  f"address add {nic.address}/16 dev {nic.netdev} metric {100 + nic.index}",
                  f"link set {nic.netdev} up"]
    if len(nics) > 1:
        # What is bound to a NIC finds the others' addresses there, before they are found to be ours.
        lines += ["rule add pref 1 lookup local", "rule del pref 0 lookup local"]
        lines += [f"rule add pref 0 oif {nic.netdev} to {other.address} lookup main"
                  for nic in nics for other in nics if other != nic]
    return "\n".join(lines) + "\n"


def redirect_batch(nics, netems):
    """Input of `tc -batch`: what goes to another NIC of the same machine stays in the guest.

    QEMU would carry it as well, a hundred times slower. What netem holds back has to take that way.
    """
    lines = []
    slowed = {netem.netdev for netem in netems if netem.machine in (None, nics[0].machine)}
    for nic in nics:
        if len(nics) > 1 and nic.netdev not in slowed:
            lines.append(f"qdisc add dev {nic.netdev} clsact\n")
            lines += [f"filter add dev {nic.netdev} egress protocol all flower dst_mac {other.mac} "
                      f"action mirred ingress redirect dev {other.netdev}\n"
                      for other in nics if other != nic]
    return "".join(lines)


def setup_script(machine, count, hcas, netems):
    """Shell commands that bring NICs, RDMA devices and netem up; they run in the guest."""
    nics = nics_of(machine, count)
    lines = ["sysctl net/ipv6/conf/default/accept_dad 0", "sysctl net/ipv6/conf/all/accept_dad 0",
             "sysctl net/ipv4/conf/all/accept_local 1", "sysctl net/ipv4/conf/all/rp_filter 0",
             "sysctl net/ipv4/conf/default/rp_filter 0", "sysctl net/ipv4/conf/all/arp_ignore 1",
             "sysctl net/ipv4/ping_group_range '0 2147483647'"]
    if nics:
        # The kernel's order is that of the buses; ours is the number in the MAC address.
        lines += ["rename_nics " + " ".join(f"{nic.mac}={nic.netdev}" for nic in nics)]
    lines += [f"host {program('ip')} -b /run/lab/address.batch || fail 'cannot set the addresses up'"]
    redirects = redirect_batch(nics, netems)
    if redirects:
        lines += [f"printf %s {shlex.quote(redirects)} | host {program('tc')} -b - || fail 'cannot redirect'"]
    if hcas:
        batch = "".join(f"link add {nic.rdma} type rxe netdev {nic.netdev}\n"
                        for nic in nics[:hcas])
        lines += [f"printf %s {shlex.quote(batch)} | host {program('rdma')} -b - || fail 'cannot add rxe'"]
    for netem in netems:
        if netem.machine in (None, machine):
            lines += [f"host {program('tc')} qdisc add dev {shlex.quote(netem.netdev)} root netem {netem.arguments}"
                      f" || fail 'cannot add netem to {netem.netdev}'"]
    return "\n".join(lines) + "\n"
