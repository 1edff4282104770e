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
    """QEMU's arguments for the wires; devices attach to the netdevs wire0, wire1, ...

    A wire joins the NICs of one number of two machines, or the two NICs of one machine. Other NICs
    have one that ends nowhere. No two wires are joined here: QEMU's hubs change the packets' order.
    """
    arguments = []
    for index in range(count):
        if machines == 2:
            ends = (f"wire{index}-{machine}", f"wire{index}-{1 - machine}")
        elif count == 2:
            ends = (f"wire-{index}", f"wire-{1 - index}")
        else:
            arguments += ["-netdev", f"hubport,hubid={index},id=wire{index}"]
            continue
        here, there = (folder / end for end in ends)
        arguments += ["-netdev", f"dgram,id=wire{index},local.type=unix,local.path={here},"
                                 f"remote.type=unix,remote.path={there}"]
    return arguments


def address_batch(nics, machines, mtu):
    """Input of `ip -batch` that gives every NIC its address and its way to all others.

    Nothing here is lost when a link goes down and comes up again, as routes and neighbours are.
    """
    lines = ["link set lo up"]
    for nic in nics:
        lines += [f"link set {nic.netdev} mtu {mtu}",
                  f"address add {nic.address}/16 dev {nic.netdev} metric {100 + nic.index}",
                  f"link set {nic.netdev} up"]
    if len(nics) > 1 and machines == 2:
        # A frame may come in for another NIC of this machine.
        lines += [f"link set {nic.netdev} promisc on" for nic in nics]
    if len(nics) > 1:
        # What is bound to a NIC finds the others' addresses there, before they are found to be ours.
        lines += ["rule add pref 1 lookup local", "rule del pref 0 lookup local"]
        lines += [f"rule add pref 0 oif {nic.netdev} to {other.address} lookup main"
                  for nic in nics for other in nics if other != nic]
    return "\n".join(lines) + "\n"


def segment_batch(nics, machines, netems):
    """Input of `tc -batch` that makes one segment of several NICs of a machine and their wires.

    A frame for another NIC of this machine is handed over in the guest, where QEMU would take a
    hundred times longer; what netem holds back on a NIC of one machine takes the wire. A frame for
    all goes to all, and is marked, so that none gets it twice.
    """
    if len(nics) < 2:
        return ""
    crossover = machines == 1 and len(nics) == 2
    slowed = {netem.netdev for netem in netems} if machines == 1 else set()
    everybody = "flower dst_mac 01:00:00:00:00:00/01:00:00:00:00:00"
    lines = [f"qdisc add dev {nic.netdev} clsact" for nic in nics]
    for nic in nics:
        others = [other for other in nics if other != nic]
        copies = "action skbedit mark 77 " + "".join(
            f"pipe action mirred ingress mirror dev {other.netdev} " for other in others)
        out = f"filter add dev {nic.netdev} egress protocol all"
        into = f"filter add dev {nic.netdev} ingress protocol all"
        for other in others:
            handed = f"flower dst_mac {other.mac} action skbedit ptype host " \
                     f"pipe action mirred ingress redirect dev {other.netdev}"
            if nic.netdev not in slowed:
                lines.append(f"{out} prio 2 {handed}")
            if machines == 2:
                lines.append(f"{into} prio 2 {handed}")
        if not crossover:
            lines.append(f"{out} prio 3 {everybody} {copies}")
        if machines == 2:
            lines += [f"{into} prio 1 handle 77 fw action ok", f"{into} prio 3 {everybody} {copies}"]
    return "\n".join(lines) + "\n"


def setup_script(machine, machines, count, hcas, netems):
    """Shell commands that bring NICs, RDMA devices and netem up; they run in the guest."""
    nics = nics_of(machine, count)
    lines = [f"sysctl net/{name} {value}" for name, value in (
        # The usual one drops what waits for 5 ms, as packets do under emulation.
        ("core/default_qdisc", "pfifo_fast"),
        ("ipv6/conf/default/accept_dad", 0), ("ipv6/conf/all/accept_dad", 0),
        ("ipv4/conf/all/accept_local", 1), ("ipv4/conf/all/rp_filter", 0),
        ("ipv4/conf/default/rp_filter", 0), ("ipv4/conf/all/arp_ignore", 1),
        ("ipv4/conf/all/arp_announce", 2))]
    # The kernel's order is that of the buses; ours is the number in the MAC address.
    lines += ["rename_nics " + " ".join(f"{nic.mac}={nic.netdev}" for nic in nics),
              f"host {program('ip')} -b /run/lab/address.batch || fail 'cannot set the addresses up'",
              "wait_for_carrier " + " ".join(nic.netdev for nic in nics)]
    lines += piped(segment_batch(nics, machines, netems), "tc", "cannot join the NICs")
    lines += piped("".join(f"link add {nic.rdma} type rxe netdev {nic.netdev}\n"
                           for nic in nics[:hcas]), "rdma", "cannot add Soft-RoCE devices")
    for netem in netems:
        if netem.machine in (None, machine):
            lines += piped(f"qdisc add dev {netem.netdev} root netem {netem.arguments}\n", "tc",
                           f"cannot add netem to {netem.netdev}: {netem.arguments}")
    return "\n".join(lines) + "\n"


def piped(batch, name, failure):
    """A shell line that gives a batch to a program of iproute2; none for no batch."""
    if not batch:
        return []
    return [f"printf %s {shlex.quote(batch)} | host {program(name)} -b - || "
            f"fail {shlex.quote(failure)}"]
