"""Nodes of tests/recorded: folders as `--sysroot` reads them, made from the tables of a case.json.

A whole tree of a node with eight GPUs is some thousand files and links, nearly all alike. What is the
same on all nodes of a kind is here, and a case.json says how its node differs.
"""
import json
import pathlib

from test_inspect import RecordedNode, elf

# What a NIC of a kind says of itself. `name` and `netdev` take its number, EFA's name its PCI bus.
INFINIBAND, ETHERNET, EFA = "InfiniBand", "Ethernet", "Unknown"
NICS = {
    "cx6-ib": {"driver": "mlx5_core", "ids": "15b3:101b", "layer": INFINIBAND, "rate": "200 Gb/sec (4X HDR)",
               "link": "16.0 GT/s PCIe", "firmware": "20.41.1000", "name": "mlx5_{}", "netdev": "ib{}", "mbps": 200000},
    "cx6-roce": {"driver": "mlx5_core", "ids": "15b3:101d", "layer": ETHERNET, "rate": "100 Gb/sec (4X EDR)",
                 "link": "16.0 GT/s PCIe", "firmware": "22.41.1000", "name": "mlx5_{}", "netdev": "ens{}np0", "mbps": 100000},
    "cx7-ib": {"driver": "mlx5_core", "ids": "15b3:1021", "layer": INFINIBAND, "rate": "400 Gb/sec (4X NDR)",
               "link": "32.0 GT/s PCIe", "firmware": "28.43.2026", "name": "mlx5_{}", "netdev": "ib{}", "mbps": 400000},
    "cx7-roce": {"driver": "mlx5_core", "ids": "15b3:1021", "layer": ETHERNET, "rate": "400 Gb/sec (4X NDR)",
                 "link": "32.0 GT/s PCIe", "firmware": "28.43.2026", "name": "mlx5_{}", "netdev": "ens{}np0", "mbps": 400000},
    "cx8-ib": {"driver": "mlx5_core", "ids": "15b3:1023", "layer": INFINIBAND, "rate": "800 Gb/sec (4X XDR)",
               "link": "64.0 GT/s PCIe", "firmware": "40.46.1006", "name": "mlx5_{}", "netdev": "ib{}", "mbps": 800000},
    "efa": {"driver": "efa", "ids": "1d0f:efa3", "layer": EFA, "rate": "200 Gb/sec (4X HDR)",
            "link": "32.0 GT/s PCIe", "firmware": "0.0.0.0", "name": "rdmap{}s0", "netdev": "", "mbps": 0},
    "bnxt": {"driver": "bnxt_en", "ids": "14e4:1760", "layer": ETHERNET, "rate": "400 Gb/sec (4X NDR)",
             "link": "32.0 GT/s PCIe", "firmware": "231.0.162.0", "name": "bnxt_re{}", "netdev": "ens{}np0", "mbps": 400000},
    "irdma": {"driver": "ice", "ids": "8086:1592", "layer": ETHERNET, "rate": "100 Gb/sec (4X EDR)",
              "link": "16.0 GT/s PCIe", "firmware": "1.77", "name": "irdma{}", "netdev": "ens{}f0", "mbps": 100000},
}
GPUS = {
    "A100": {"model": "NVIDIA A100-SXM4-80GB", "device": "20b2", "link": "16.0 GT/s PCIe"},
    "H100": {"model": "NVIDIA H100 80GB HBM3", "device": "2330", "link": "32.0 GT/s PCIe"},
    "H200": {"model": "NVIDIA H200", "device": "2335", "link": "32.0 GT/s PCIe"},
    "B200": {"model": "NVIDIA B200", "device": "2901", "link": "32.0 GT/s PCIe"},
    "GB200": {"model": "NVIDIA GB200", "device": "2941", "link": "32.0 GT/s PCIe"},
}
GIDS = [("fe80:0000:0000:0000:0200:00ff:fe00:{:04x}", "IB/RoCE v1"), ("fe80:0000:0000:0000:0200:00ff:fe00:{:04x}", "RoCE v2"),
        ("0000:0000:0000:0000:0000:ffff:0a00:{:04x}", "IB/RoCE v1"), ("0000:0000:0000:0000:0000:ffff:0a00:{:04x}", "RoCE v2")]

# What a healthy node has, whatever its devices are.
HOST_FILES = {
    "proc/sys/kernel/osrelease": "6.8.0-45-generic\n",
    "proc/sys/kernel/numa_balancing": "0\n",
    "proc/sys/kernel/yama/ptrace_scope": "0\n",
    "proc/self/limits": "Max open files            1048576              1048576              files\n"
                        "Max locked memory         unlimited            unlimited            bytes\n",
    "proc/self/status": "Name:\tshmemctl\nCapEff:\t000001ffffffffff\n",
    "proc/mounts": "tmpfs /dev/shm tmpfs rw,size=1056755920k 0 0\n",
    "proc/uptime": "86400.00 1.00\n",
    "proc/net/dev": "Inter-|   Receive\n face |bytes\n    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance\n",
}
GPU_FILES = {
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n",
    "proc/driver/nvidia/params": 'EnableStreamMemOPs: 1\nRegistryDwords: "PeerMappingOverride=1;"\n',
    "sys/module/gdrdrv/initstate": "live\n",
    "sys/module/gdrdrv/version": "2.5\n",
}
# Installed, and not loaded unless a process of the case does: doctor searches for them.
DISTRIBUTION = ["libibverbs.so.1", "libmlx5.so.1", "librdmacm.so.1", "libfabric.so.1", "libucp.so.0", "libmpi.so.40",
                "libpmix.so.2", "libefa.so.1"]
OF_GPUS = ["libcuda.so.1", "libnvidia-ml.so.1", "libgdrapi.so.2"]


def config_space(acs):
    """The configuration space of a PCIe bridge, with this value of the ACS control register."""
    space = bytearray(512)
    for at, value in ((0x06, 0x10), (0x34, 0x40), (0x40, 0x6001), (0x60, 0x0010), (0x100, 0x0001), (0x102, 0x1482),
                      (0x148, 0x000d), (0x14a, 0x0001), (0x14e, acs)):
        space[at:at + 2] = value.to_bytes(2, "little")
    return bytes(space)


class RecordedMachine(RecordedNode):
    """The tree of a case.json's `node`."""

    def __init__(self, folder, spec):
        super().__init__(folder)
        self.gpus, self.nics = [], []  # PCI addresses; names
        self._add_host(spec)
        for number, switch in enumerate(self._switches(spec)):
            self._add_switch(number, switch, spec)
        for number in range(spec.get("nvswitches", 0)):
            address = f"0000:{0xe0 + number:02x}:00.0"
            self._bus(address[:7], f"sys/devices/pci{address[:7]}")
            self._function(f"sys/devices/pci{address[:7]}/{address}", address, "10de:22a3", 0x068000, 1, "5.0 GT/s PCIe",
                           "nvidia-nvswitch")
        for name, entry in spec.get("libraries", {}).items():
            self.library(name, elf(entry.get("texts", []), entry.get("soname", pathlib.PurePath(name).name),
                                   entry.get("defined", []), list(entry.get("needed", {}).items())))
        for entry in spec.get("processes", []):
            self._add_processes(entry)
        for name, content in spec.get("files", {}).items():
            self.write(name, content)
        for name in spec.get("remove", []):
            self._remove(self.folder / name)

    @staticmethod
    def _switches(spec):
        """PCIe switches with what hangs on each; `gpu_switches`: how many have a GPU and a NIC, on two sockets."""
        if "gpu_switches" in spec:
            count = spec["gpu_switches"]
            return [{"gpus": 1, "nics": [spec["nic"]] * spec.get("nics_per_gpu", 1), "numa": 2 * i // count}
                    for i in range(count)]
        return spec.get("switches", [])

    def _remove(self, path):
        if path.is_dir() and not path.is_symlink():
            for child in path.iterdir():
                self._remove(child)
            path.rmdir()
        else:
            path.unlink()

    def link(self, name, to):
        """A link from one path of the machine to another, as /sys has them."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to("/".join([".."] * (len(pathlib.PurePath(name).parts) - 1)) + "/" + to)

    def _add_host(self, spec):
        self.write("proc/sys/kernel/hostname", spec.get("host", "node1") + "\n")
        files = dict(HOST_FILES)
        if spec.get("gpu"):
            files.update(GPU_FILES)
            self._daemon(9, "nvidia-persiste")
            if spec.get("nvswitches") and spec.get("fabric_manager", True):
                self._daemon(10, "nv-fabricmanage")
        for name, content in files.items():
            self.write(name, content)
        for name in DISTRIBUTION + (OF_GPUS if spec.get("gpu") else []):
            self.write(f"usr/lib/x86_64-linux-gnu/{name}", "")
        self._daemon(1, "systemd")
        (self.folder / "sys/class/iommu").mkdir(parents=True)
        self._link_text("proc/self/ns/pid", "pid:[4026531836]")
        self._add_cpus()

    def _daemon(self, pid, name):
        self.write(f"proc/{pid}/comm", name + "\n")
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) S 1 1 1 0 -1 0 1 2 3 4 5 5 0 0 20 0 1 0 5 1 2\n")

    def _link_text(self, name, target):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def _add_cpus(self):
        """Two sockets of two cores, a NUMA node each."""
        info = ""
        for cpu in range(4):
            package, topology = cpu // 2, f"sys/devices/system/cpu/cpu{cpu}/topology/"
            for name, text in (("physical_package_id", package), ("core_id", cpu % 2), ("core_cpus", f"{1 << cpu:x}"),
                               ("thread_siblings", f"{1 << cpu:x}"), ("package_cpus", f"{3 << 2 * package:x}"),
                               ("core_siblings", f"{3 << 2 * package:x}")):
                self.write(topology + name, f"{text}\n")
            info += f"processor\t: {cpu}\nvendor_id\t: GenuineIntel\nmodel name\t: CPU\nphysical id\t: {package}\ncore id\t\t: {cpu % 2}\n\n"
        self.write("proc/cpuinfo", info)
        for name in ("online", "possible", "present"):
            self.write(f"sys/devices/system/cpu/{name}", "0-3\n")
            self.write(f"sys/devices/system/node/{name}", "0-1\n")
        for node in range(2):
            folder = f"sys/devices/system/node/node{node}/"
            for name, text in (("cpumap", f"{3 << 2 * node:x}"), ("cpulist", f"{2 * node}-{2 * node + 1}"),
                               ("distance", "10 20" if node == 0 else "20 10"),
                               ("meminfo", f"Node {node} MemTotal:       528000000 kB\nNode {node} MemFree:        500000000 kB")):
                self.write(folder + name, text + "\n")

    def _function(self, folder, address, ids, pci_class, numa, link, driver):
        vendor, device = ids.split(":")
        self.link(f"sys/bus/pci/devices/{address}", folder)
        for name, text in (("class", f"0x{pci_class:06x}"), ("vendor", f"0x{vendor}"), ("device", f"0x{device}"),
                           ("subsystem_vendor", f"0x{vendor}"), ("subsystem_device", "0x0001"), ("numa_node", numa),
                           ("current_link_speed", link), ("current_link_width", 16), ("max_link_speed", link),
                           ("max_link_width", 16)):
            self.write(f"{folder}/{name}", f"{text}\n")
        self.link(f"{folder}/driver", f"sys/bus/pci/drivers/{driver}")
        self.link(f"sys/bus/pci/drivers/{driver}/{address}", folder)
        if not (self.folder / f"sys/module/{driver}").exists():
            self.write(f"sys/module/{driver}/initstate", "live\n")

    def _bridge(self, folder, address, numa, spec):
        self._function(folder, address, "1000:c030", 0x060400, numa, "32.0 GT/s PCIe", "pcieport")
        self.write(f"{folder}/config", config_space(spec.get("acs", 0)))

    def _bus(self, bus, folder):
        self.link(f"{folder}/pci_bus/{bus}/device", folder)
        self.link(f"sys/class/pci_bus/{bus}", f"{folder}/pci_bus/{bus}")

    def _add_switch(self, number, switch, spec):
        """A root port, a switch below it, and a port of the switch for each device; flat: all on the root bus,
        as in a virtual machine that hides the switches."""
        first, numa = 0x10 + 0x18 * number, switch.get("numa", 0)
        below, flat = [], spec.get("flat", False)
        root = f"sys/devices/pci0000:{'00' if flat else format(first, '02x')}"
        if not flat:
            self._bus(f"0000:{first:02x}", root)
            port, upstream = f"0000:{first:02x}:01.0", f"0000:{first + 1:02x}:00.0"
            below = [port, upstream]
            for depth, address in enumerate(below):
                folder = root + "/" + "/".join(below[:depth + 1])
                self._bridge(folder, address, numa, spec)
                self._bus(f"0000:{first + 1 + depth:02x}", folder)
        devices = ["gpu"] * switch.get("gpus", 0) + switch.get("nics", [])
        for index, kind in enumerate(devices):
            if flat:
                address, folder = f"0000:00:{len(self.gpus) + len(self.nics) + 1:02x}.0", root
                folder += "/" + address
            else:
                above = f"0000:{first + 2:02x}:{index:02x}.0"
                bus = first + 3 + index
                bridge = root + "/" + "/".join(below + [above])
                self._bridge(bridge, above, numa, spec)
                self._bus(f"0000:{bus:02x}", bridge)
                address, folder = f"0000:{bus:02x}:00.0", f"{bridge}/0000:{bus:02x}:00.0"
            if kind == "gpu":
                self._add_gpu(folder, address, numa, spec)
            else:
                self._add_nic(folder, address, kind, numa, spec)

    def _add_gpu(self, folder, address, numa, spec):
        gpu = GPUS[spec["gpu"]]
        self._function(folder, address, f"10de:{gpu['device']}", 0x030200, numa, gpu["link"], "nvidia")
        number = len(self.gpus)
        self.write(f"proc/driver/nvidia/gpus/{address}/information",
                   f"Model: \t\t {gpu['model']}\nIRQ:   \t\t 100\nGPU UUID: \t GPU-00000000-0000-0000-0000-{number:012x}\n"
                   f"Video BIOS: \t 96.00.74.00.01\nBus Type: \t PCIe\nBus Location: \t {address}\nDevice Minor: \t {number}\n")
        self.gpus.append(address)

    def _add_nic(self, folder, address, kind, numa, spec):
        number = len(self.nics)
        bus = int(address.split(":")[1], 16)
        name = NICS[kind]["name"].format(bus if kind == "efa" else number)
        nic = {**NICS[kind], "state": "4: ACTIVE", "phys_state": "5: LinkUp", "gids": len(GIDS),
               **spec.get("nics", {}).get(name, {})}
        self._function(folder, address, nic["ids"], 0x020700 if nic["layer"] == INFINIBAND else 0x020000, numa, nic["link"],
                       nic["driver"])
        rdma = f"{folder}/infiniband/{name}"
        port = f"{rdma}/ports/1"
        self.link(f"sys/class/infiniband/{name}", rdma)
        self.link(f"{rdma}/device", folder)
        for file, text in (("node_type", "1: CA"), ("fw_ver", nic["firmware"]), ("node_guid", f"0200:00ff:fe00:{number + 1:04x}"),
                           ("ports/1/state", nic["state"]), ("ports/1/phys_state", nic["phys_state"]),
                           ("ports/1/link_layer", nic["layer"]), ("ports/1/rate", nic["rate"]),
                           ("ports/1/lid", f"0x{number + 1:x}" if nic["layer"] == INFINIBAND else "0x0"),
                           *((f"ports/1/{counter}", 1000) for counter in
                             (("hw_counters/tx_bytes", "hw_counters/rx_bytes") if nic["layer"] == EFA
                              else ("counters/port_xmit_data", "counters/port_rcv_data")))):
            self.write(f"{rdma}/{file}", f"{text}\n")
        netdev = nic["netdev"].format(number)
        gids = GIDS[:nic["gids"]] if nic["layer"] == ETHERNET else GIDS[:1]
        for index, (value, gid_type) in enumerate(gids):
            self.write(f"{port}/gids/{index}", value.format(number + 1) + "\n")
            if nic["layer"] != EFA:
                self.write(f"{port}/gid_attrs/types/{index}", gid_type + "\n")
            if nic["layer"] == ETHERNET:
                self.write(f"{port}/gid_attrs/ndevs/{index}", netdev + "\n")
        if nic["layer"] == INFINIBAND:
            self.write(f"{port}/pkeys/0", "0xffff\n")
        if netdev:
            device = f"{folder}/net/{netdev}"
            self.link(f"sys/class/net/{netdev}", device)
            self.link(f"{device}/device", folder)
            for file, text in (("speed", nic["mbps"]), ("operstate", "up"), ("mtu", 4092 if nic["layer"] == INFINIBAND else 9000),
                               ("type", 32 if nic["layer"] == INFINIBAND else 1), ("dev_port", 0),
                               ("address", f"02:00:00:00:00:{number + 1:02x}")):
                self.write(f"{device}/{file}", f"{text}\n")
        self.write(f"sys/class/infiniband_verbs/uverbs{number}/ibdev", name + "\n")
        self.nics.append(name)

    def _add_processes(self, entry):
        """`count` processes alike; {i} in what they have open and in their variables is the number of each."""
        for i in range(entry.get("count", 1)):
            def filled(text, number=i):
                return str(text).replace("{i}", str(number))
            pid = entry["pid"] + i
            links = [(f"fd/{10 + n}", filled(target)) for n, target in enumerate(entry.get("open", []))]
            links += [(f"ns/{kind}", f"{kind}:[{4026531800 + entry.get('namespace', 0)}]")
                      for kind in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")]
            links.append(("exe", entry.get("exe", "/usr/bin/python3.12")))
            connections = entry.get("connections", [])
            links += [(f"fd/{100 + n}", f"socket:[{9000 + 100 * i + n}]") for n in range(len(connections))]
            self.process(pid, entry.get("libraries", []), [f"{k}={filled(v)}" for k, v in entry.get("environment", {}).items()],
                         name=entry.get("name", "python3"), parent=entry.get("parent", 1), state=entry.get("state", "R"),
                         links=links)
            table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
            for n, connection in enumerate(connections):
                table += (f"   {n}: 0100000A:{0x8000 + n:04X} {connection} 01 00000000:00000000 00:00000000 00000000  1000"
                          f"        0 {9000 + 100 * i + n} 1\n")
            self.write(f"proc/{pid}/net/tcp", table)
            self.write(f"proc/{pid}/net/dev", (self.folder / "proc/net/dev").read_text())


class Recording:
    """A folder of tests/recorded: its case.json, its logs, and its trees below a temporary folder."""

    def __init__(self, folder, temporary):
        self.folder, self.name = folder, folder.name
        self.case = json.loads((folder / "case.json").read_text())
        self.trees = {}
        node = self.case.get("node")
        if node is not None:
            self.trees["{root}"] = RecordedMachine(pathlib.Path(temporary) / "root", node).folder
        if "node_after" in self.case:  # the same node some time later: what differs then
            after = {**node, "files": {**node.get("files", {}), **self.case["node_after"]}}
            self.trees["{after}"] = RecordedMachine(pathlib.Path(temporary) / "after", after).folder

    def arguments(self, line):
        """A command line of the case: names of its files and trees become paths, and commands that look at a node
        look at the tree."""
        words = line.split()
        if words[0] in ("inspect", "doctor", "topo", "hotspots") and "{root}" not in words:
            words += ["--sysroot", "{root}"]
        return [self.trees.get(word, self.folder / word if (self.folder / word).is_file() else word) for word in words]
