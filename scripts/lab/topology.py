"""PCIe trees of a machine: NUMA nodes, host bridges, switches, and what sits below them.

A tree is JSON. Each NUMA node is a host bridge of its own; a leaf at its top has a root port of its
own, `{"switch": [...]}` is a PCIe switch with a port for each entry, and may hold switches:

    {"nodes": [{"cpus": 1, "memory_mib": 1024, "below": ["nic", {"switch": ["nic", "gpu"]}]}]}

Leaves are `nic` (virtio), `e1000e` and `gpu` (its class and ids in sysfs are those of an H100). NICs
are numbered in the order in which they are written: eth0, eth1, ...
"""
import json
import pathlib

import network
from errors import LabError

NUMA2 = {"nodes": [
    {"cpus": 1, "memory_mib": 1024,
     "below": [{"switch": ["nic", "nic", "gpu", {"switch": ["nic"]}]}, "nic"]},
    {"cpus": 1, "memory_mib": 1024, "below": [{"switch": ["nic", "nic", "gpu"]}]}]}
BUILT_IN = {"numa2": NUMA2}

NIC_MODELS = {"nic": "virtio-net-pci", "e1000e": "e1000e"}
GPU_IDS = {"class": "0x030200", "vendor": "0x10de", "device": "0x2330"}
MAX_PORTS = 32
MAX_CPUS = 16
MAX_MEMORY_MIB = 16384


def refuse(what, fix="see scripts/lab/topology.py for the form"):
    raise LabError(f"topology: {what}", fix)


class Topology:
    """A tree that QEMU can build. `nics` are the leaves that are NICs, `gpus` how many GPUs."""

    def __init__(self, tree):
        if not isinstance(tree, dict) or not isinstance(tree.get("nodes"), list) or not tree["nodes"]:
            refuse("no list of nodes")
        self.nodes = tree["nodes"]
        self.nics = []
        self.gpus = 0
        self.ports = 0
        self.devices = []
        if len(self.nodes) > 2:
            refuse(f"{len(self.nodes)} NUMA nodes, and 2 is the most", "leave the others out")
        for number, node in enumerate(self.nodes):
            if not isinstance(node, dict) or not isinstance(node.get("below"), list):
                refuse(f"node {number} has no list `below`")
            for name, most in (("cpus", MAX_CPUS), ("memory_mib", MAX_MEMORY_MIB)):
                value = node.get(name, 1)
                if not isinstance(value, int) or not 1 <= value <= most:
                    refuse(f"{name} of node {number} is {value}, not a number from 1 to {most}")
            self.add_host_bridge(number, node["below"])
        if not self.nics:
            refuse("it has no NIC", "add one")

    # --- the tree, in QEMU's words; NICs are filled in for each machine ---

    def add_host_bridge(self, number, children):
        name = f"host{number}"
        self.devices.append(f"pxb-pcie,id={name},bus=pcie.0,bus_nr={32 + 64 * number},"
                            f"numa_node={number}")
        for place, child in enumerate(children, start=1):
            port = self.port("pcie-root-port", name, place)
            self.add(child, port)

    def port(self, model, bus, place):
        self.ports += 1
        if self.ports > MAX_PORTS:
            refuse(f"more than {MAX_PORTS} ports", "leave some out")
        name = f"port{self.ports}"
        self.devices.append(f"{model},id={name},bus={bus},addr={place}.0,chassis={self.ports},"
                            f"slot={self.ports}")
        return name

    def add(self, child, bus):
        if isinstance(child, dict) and isinstance(child.get("switch"), list) and child["switch"]:
            upstream = f"switch{self.ports}"
            self.devices.append(f"x3130-upstream,id={upstream},bus={bus}")
            for place, below in enumerate(child["switch"]):
                self.add(below, self.port("xio3130-downstream", upstream, place))
        elif isinstance(child, str) and child in NIC_MODELS:
            self.devices.append((NIC_MODELS[child], bus, len(self.nics)))
            self.nics.append(child)
        elif child == "gpu":
            self.devices.append(f"virtio-gpu-pci,bus={bus},romfile=")
            self.gpus += 1
        else:
            refuse(f"{json.dumps(child)} is none of nic, e1000e, gpu and a switch")

    # --- what the lab asks ---

    @property
    def cpus(self):
        return sum(node.get("cpus", 1) for node in self.nodes)

    def arguments(self, machine):
        """QEMU's arguments for processors, memory and the tree."""
        memories = [node.get("memory_mib", 1024) for node in self.nodes]
        arguments = ["-m", str(sum(memories)), "-smp", str(self.cpus)]
        first = 0
        for number, node in enumerate(self.nodes):
            last = first + node.get("cpus", 1) - 1
            arguments += ["-object", f"memory-backend-ram,id=memory{number},size={memories[number]}M",
                          "-numa", f"node,nodeid={number},cpus={first}-{last},memdev=memory{number}"]
            first = last + 1
        for device in self.devices:
            if isinstance(device, tuple):
                model, bus, index = device
                device = network.nic_device(network.Nic(machine, index), model, bus)
            arguments += ["-device", device]
        return arguments

    def modules(self):
        return ("e1000e",) if "e1000e" in self.nics else ()

    def setup(self):
        """Shell lines for the guest: its graphics functions show a GPU's class and ids."""
        if not self.gpus:
            return []
        files = " ".join(f"{name}={value}" for name, value in GPU_IDS.items())
        return [f"disguise_gpus {files}"]


def load(name):
    """A built-in tree by its name, else the file of that name."""
    if name in BUILT_IN:
        return Topology(BUILT_IN[name])
    try:
        return Topology(json.loads(pathlib.Path(name).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"topology {name}: {error}", f"name a file, or {', '.join(BUILT_IN)}") from error
    except ValueError as error:
        raise LabError(f"topology {name}: not JSON: {error}", "correct it") from error
