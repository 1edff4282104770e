"""One virtual machine: its folder, QEMU's arguments, its output, its end."""
import ctypes
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import time
import uuid

import clock
import image
import network
from errors import LabError

CHANNELS = ("status", "stdout", "stderr")
# What a tmpfs of the guest hides of the host.
HIDDEN = ("/tmp", "/run", "/dev/shm")
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp",
    "LANG": "C.UTF-8", "TERM": os.environ.get("TERM", "dumb"),
    "PYTHONDONTWRITEBYTECODE": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Without what is slow under emulation: string moves of bytes, which the kernel and the C library then
# use for every copy, and the carry-less multiplication of Soft-RoCE's checksums.
CPU = "max,-erms,-pclmulqdq,-smap"
PR_SET_PDEATHSIG = 1
# Of the bootstrap of --pes.
JOB_PORT = 7077


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def hidden(path):
    return any(str(path) == top or str(path).startswith(top + "/") for top in HIDDEN)


class Machine:
    """A machine of a lab. `options` is options.Options, `folder` belongs to this machine alone."""

    def __init__(self, number, options, folder, wires):
        self.number = number
        self.name = f"lab{number}"
        self.options = options
        self.folder = folder
        self.wires = wires
        self.shell = options.shell and number == 0
        self.share = folder / "share"
        self.share.mkdir(parents=True)
        self.console = folder / "console"
        self.process = None
        self.sockets = {}
        self.listeners = {}
        self.exit_code = None
        self.ended_at = None
        self.gone = False
        self.ready_s = None
        self.last_line = ""

    # --- what the guest reads ---

    def environment(self):
        machines, number = self.options.machines, self.number
        peer = network.Nic(1 - number if machines == 2 else number, 0)
        return {**ENVIRONMENT, "LAB_MACHINE": str(number), "LAB_MACHINES": str(machines),
                "LAB_HCAS": str(self.options.hcas), "LAB_OUT": str(self.options.out),
                "LAB_ADDRESS": network.Nic(number, 0).address, "LAB_PEER": peer.address,
                **self.options.environment}

    def hosts(self):
        return "127.0.0.1 localhost\n::1 localhost\n" + "".join(
            f"{network.Nic(machine, 0).address} lab{machine}\n"
            for machine in range(self.options.machines))

    def visible(self):
        """Folders of the host that the guest's own /tmp would hide."""
        paths = {image.SOURCE, pathlib.Path(self.options.directory)}
        return sorted(str(path) for path in paths if hidden(path))

    def setup(self):
        options = self.options
        out = shlex.quote(f"/host{options.out}")
        lines = [f"mkdir -p {out}", f"mount_9p out {out} rw,cache=none"]
        if options.hugepages:
            lines += ["mkdir -p /dev/hugepages", "mount -t hugetlbfs none /host/dev/hugepages"]
        lines += options.topology.setup() if options.topology else []
        return "\n".join(lines) + "\n" + network.setup_script(
            self.number, options.machines, options.nics, options.hcas, options.netem)

    def events(self):
        return "".join(
            f"(sleep {event.after_s}; exec chroot /host /bin/sh -c {shlex.quote(event.command)}) &\n"
            for event in self.options.events if event.machine in (None, self.number))

    def command(self):
        """The shell lines that the guest runs."""
        if self.shell:
            return "exec setsid -c /bin/bash --norc -i </dev/ttyS0 >/dev/ttyS0 2>&1\n"
        options = self.options
        command = options.peer if self.number == 1 and options.peer else options.command
        if not options.pes:
            return command + "\n"
        size = options.pes * options.machines
        variables = {"SHMEMCTL_BOOTSTRAP": "uid", "SHMEMCTL_BOOTSTRAP_UID_SIZE": size,
                     "SHMEMCTL_BOOTSTRAP_UID_SESSION_ID": f"{network.Nic(0, 0).address}:{JOB_PORT}",
                     "SHMEMCTL_BOOTSTRAP_UID_SECRET": "of this lab alone"}
        lines = [f"export {name}='{value}'" for name, value in variables.items()]
        first = options.pes * self.number
        lines += [f"SHMEMCTL_BOOTSTRAP_UID_RANK={rank} /bin/sh -c {shlex.quote(command)} & "
                  f"pes=\"$pes $!\"" for rank in range(first, first + options.pes)]
        lines += ["for pe in $pes; do wait $pe || code=$?; done", "exit $code"]
        return "\n".join(lines) + "\n"

    def write_share(self):
        options = self.options
        exports = "".join(f"export {name}={shlex.quote(value)}\n"
                          for name, value in self.environment().items())
        files = {
            "hostname": self.name + "\n", "hosts": self.hosts(),
            "machine-id": uuid.uuid4().hex + "\n", "environment": exports,
            "address.batch": network.address_batch(
                network.nics_of(self.number, options.nics), options.machines, options.mtu),
            "setup": self.setup(), "events": self.events(),
            "visible": "".join(path + "\n" for path in self.visible()),
            "command": f"cd {shlex.quote(str(options.directory))} || exit 126\n{self.command()}"}
        for name, text in files.items():
            (self.share / name).write_text(text, encoding="utf-8")

    # --- QEMU ---

    def device_arguments(self):
        options = self.options
        if options.topology:
            return options.topology.arguments(self.number)
        arguments = ["-m", str(options.memory_mib), "-smp", str(options.cpus)]
        for nic in network.nics_of(self.number, options.nics):
            arguments += ["-device", network.nic_device(nic, "virtio-net-pci", "pcie.0")]
        return arguments

    def modules(self):
        """What nothing in the guest would load by itself."""
        rdma = ("rdma_rxe", "ib_uverbs", "ib_umad", "rdma_ucm") if self.options.hcas else ()
        return (*rdma, *(self.options.topology.modules() if self.options.topology else ()))

    def arguments(self, kernel, initramfs):
        options = self.options
        append = ["console=ttyS0", "quiet", "panic=-1", "nokaslr", "mitigations=off",
                  "lpj=10000000", "cryptomgr.notests", "audit=0", "ima=off",
                  "no_timer_check",
                  # Its memcpy() moves the last 1 to 7 bytes one by one: words would be seen torn.
                  "clearcpuid=rep_good",
                  "lab_modules=" + ",".join(self.modules())]
        counter_khz = clock.counter_khz()
        if counter_khz:
            append += ["tsc=reliable", f"tsc_early_khz={counter_khz}"]
        if options.hugepages:
            append.append(f"hugepages={options.hugepages}")
        arguments = [
            image.program("qemu-system-x86_64"), "-accel", "tcg,thread=multi", "-cpu", CPU,
            "-M", "q35,sata=off,smbus=off,i8042=off,vmport=off", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", str(kernel), "-initrd", str(initramfs), "-append", " ".join(append)]
        arguments += self.device_arguments()
        for tag, path, rights in (("host", "/", ",readonly=on"), ("lab", self.share, ""),
                                  ("out", options.out, "")):
            path = str(path).replace(",", ",,")
            arguments += [
                "-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{rights}",
                "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag},bus=pcie.0"]
        arguments += ["-device", "virtio-serial-pci,bus=pcie.0,id=serial"]
        for number, channel in enumerate(CHANNELS, start=1):
            arguments += ["-chardev", f"socket,id={channel},path={self.folder / channel}",
                          "-device", f"virtserialport,bus=serial.0,nr={number},chardev={channel}"]
        if self.shell:
            arguments += ["-chardev", "stdio,id=console,mux=on,signal=off", "-mon", "console",
                          "-serial", "chardev:console"]
        else:
            arguments += ["-serial", f"file:{self.console}"]
        return arguments + network.wire_arguments(self.number, options.machines, options.nics,
                                                  self.wires)

    def start(self, kernel, initramfs):
        self.write_share()
        for channel in CHANNELS:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self.folder / channel))
            listener.listen(1)
            self.listeners[channel] = listener
        with open(self.folder / "qemu", "wb") as log:
            self.process = subprocess.Popen(
                self.arguments(kernel, initramfs), stderr=log, preexec_fn=die_with_parent,
                stdin=None if self.shell else subprocess.DEVNULL,
                stdout=None if self.shell else subprocess.DEVNULL)

    def accept(self, channel):
        self.sockets[channel] = self.listeners.pop(channel).accept()[0]
        return self.sockets[channel]

    def begin(self):
        """Lets the guest, which is ready, run its command."""
        self.sockets["status"].sendall(b"go\n")

    def stop(self):
        """Ends QEMU, if it still runs, and closes what the host holds of it."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for handle in (*self.listeners.values(), *self.sockets.values()):
            handle.close()
        self.listeners, self.sockets = {}, {}

    # --- what is known about it ---

    @property
    def ended(self):
        return self.exit_code is not None

    def note_status(self, line):
        """Takes one line of the guest's status channel."""
        word, _, rest = line.partition(" ")
        if word == "ready":
            self.ready_s = float(rest)
        elif word == "exit":
            self.exit_code = int(rest)
            self.ended_at = time.monotonic()
        elif word == "failed":
            raise LabError(f"{self.name}: {rest}; {self.last_words()}",
                           "look at the machine's console with --out DIR")

    def last_words(self):
        """What it printed last, for messages."""
        told = []
        if self.last_line:
            told.append(f"it last printed: {self.last_line[-200:]}")
        for name, path in (("console", self.console), ("QEMU", self.folder / "qemu")):
            lines = path.read_text(errors="replace").split("\n") if path.is_file() else []
            lines = [line.strip() for line in lines if line.strip() and "warning:" not in line]
            if lines:
                told.append(f"{name}: {lines[-1][-200:]}")
        return ", ".join(told) or "it printed nothing"
