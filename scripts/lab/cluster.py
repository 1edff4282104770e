"""Hosts made of namespaces, joined by a bridge.

    with Cluster(ClusterOptions(hosts_of(4), binary=path)) as cluster:
        cluster.host("a").run("mpirun", "--host", "a:1,b:1", "shmemctl", "bringup")

Each host has its own network, host name, processes, System V IPC, mounts, /dev/shm, /tmp, /run, machine id
and boot id. The bridge is in a network namespace of its own, and all processes are in a PID namespace
whose first process ends with this one, however this one ends: nothing is left of the hosts, and nothing
of the machine beside them is touched.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess

import host_network
import host_services
from errors import LabError, Unavailable
from host import START_LIMIT_S, Host, share_of_cpus
from image import program
from machine import die_with_parent

# The rack's first process: it holds the bridge and a small file system, and ends with its input.
RACK = "mount -t tmpfs -o mode=755 rack /media && read -r pid _ </proc/self/stat && echo $pid && " \
       "exec env --ignore-signal=CHLD cat >/dev/null"
PROGRAMS = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "tc": "iproute2",
            "ssh": "openssh-client", "ssh-keygen": "openssh-client", "sshd": "openssh-server"}
# A folder of the machine below these would be hidden by a host's own.
HIDDEN = ("/tmp", "/run", "/root", "/media", "/var/tmp", "/dev/shm")
SHADOW = "root:*:19000:0:99999:7:::\n"


def check_machine():
    """Raises Unavailable, with the reason, where no hosts can be made."""
    if os.geteuid() != 0:
        raise Unavailable("test hosts need root, for mounts and network interfaces", "run it as root")
    for name, package in PROGRAMS.items():
        if not shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            raise Unavailable(f"test hosts need {name}, which is not on this machine",
                              f"install the package {package}")


def interpreter():
    """A Python that hosts see at its path, too."""
    return shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or program("python3")


class Cluster:
    """`options` is host_options.ClusterOptions. Enter it to make the hosts; leaving ends them."""

    def __init__(self, options):
        self.options = options
        self.hosts = {}
        self.rack = None
        self.rack_pid = None
        self.work = None
        self.cables = {}

    def host(self, key):
        return self.hosts[key]

    @property
    def all(self):
        return list(self.hosts.values())

    def __enter__(self):
        check_machine()
        try:
            self.start_rack()
            self.start_hosts()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_):
        for host in self.all:
            host.end()
        for cable in self.cables.values():
            cable.kill()
            cable.wait()
            cable.stdout.close()
        if self.rack is not None:
            self.rack.kill()
            self.rack.wait()
            self.rack.stdin.close()
            self.rack.stdout.close()
            self.rack.stderr.close()

    # --- start ---

    def start_rack(self):
        self.rack = subprocess.Popen(
            [program("unshare"), "-m", "-n", "-p", "--fork", "--kill-child", "--propagation", "private",
             "/bin/sh", "-c", RACK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd="/", preexec_fn=die_with_parent, start_new_session=True)
        line = self.rack.stdout.readline().strip()
        if not line.isdigit():
            words = self.rack.stderr.read().decode(errors="replace").strip() or "it said nothing"
            raise Unavailable(f"this machine allows no namespaces: {words}",
                              "run it as root, in a container with --privileged")
        self.rack_pid = int(line)
        # In its memory: nothing of it is left on a disk, whatever happens.
        self.work = pathlib.Path(f"/proc/{self.rack_pid}/root/media/work")
        self.work.mkdir(mode=0o700)
        self.in_rack("ip", host_network.bridge_batch(max(host.rails for host in self.options.hosts)))

    def in_rack(self, name, batch):
        """A batch for `ip` or `tc`, in the bridge's namespace."""
        self.batch(["nsenter", "-t", str(self.rack_pid), "-n", "--"], name, batch)

    @staticmethod
    def batch(inside, name, batch):
        done = subprocess.run([*inside, program(name), "-batch", "-"], input=batch, capture_output=True,
                              text=True, check=False)
        if done.returncode:
            raise LabError(f"cannot set up the network: {name}: {done.stderr.strip()}; input: {batch.strip()}",
                           "see which of these commands this kernel does not know")

    def start_hosts(self):
        options = self.options
        top = pathlib.Path(f"/proc/{self.rack_pid}/root/media")
        key = self.work / "key"
        subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        munge_key = os.urandom(128)
        for host_options in options.hosts:
            folder = top / str(host_options.number)
            host = Host(host_options, self.rack_pid, folder, self.work,
                        share_of_cpus(host_options.number, len(options.hosts)))
            self.hosts[host.key] = host
            self.write_folder(host, key, munge_key)
        for host in self.all:
            host.start()
        for host in self.all:
            host.came_up()
        self.in_rack("ip", "".join(host_network.plug_batch(host.options, host.pid) for host in self.all))
        for host in self.all:
            self.batch(host.inside("-n"), "ip", host_network.address_batch(host.options, options.family))
        self.must_run_on_all("cannot start sshd", lambda host: host_services.SSHD)
        if options.slurm:
            host_services.start_slurm(self)

    def must_run_on_all(self, what, words_of):
        """Runs the command words_of(host) on all hosts at once; it has to work."""
        # No threads: a child that dies with its parent would die with the thread.
        commands = [(host, host.start_command(*words_of(host))) for host in self.all]
        for host, command in commands:
            host.require(what, command.wait(START_LIMIT_S))

    def write_folder(self, host, key, munge_key):
        """What the host's first process reads, and what its jobs find in /run/lab/files."""
        options, mine = self.options, host.options
        for name in ("etc", "bin", "files", "out", "aside"):
            (host.folder / name).mkdir(parents=True)
        out = options.out.resolve() if options.out else None
        texts = {
            "settings": f"hostname={mine.hostname}\nfamily={options.family}\nshm={options.shm}\n"
                        f"out='{out or ''}'\n",
            "visible": "".join(f"{path}\n" for path in self.visible()),
            "etc/hostname": mine.hostname + "\n",
            "etc/hosts": host_network.hosts_file(mine, options.hosts, options.family, options.hosts_file),
            "etc/machine-id": f"{0x77 if options.same_machine_id else 0x770 + mine.number:032x}\n",
            "etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
            "etc/resolv.conf": "", "etc/shadow": SHADOW,
            "boot_id": "" if options.same_boot_id else f"00000000-0000-4000-8000-{mine.number:012d}\n",
            "ssh_config": host_services.SSH_CONFIG, "files/sshd_config": host_services.sshd_config()}
        for name, text in texts.items():
            (host.folder / name).write_text(text, encoding="utf-8")
        for source, name in ((key, "key"), (key, "files/host_key"), (key.with_suffix(".pub"), "files/key.pub")):
            shutil.copy(source, host.folder / name)
            (host.folder / name).chmod(0o600)
        (host.folder / "files/munge.key").write_bytes(munge_key)
        (host.folder / "files/munge.key").chmod(0o600)
        if options.slurm:
            host_services.write_slurm(host, options)
        self.inside_rack_bind(host, out)

    def inside_rack_bind(self, host, out):
        """Binaries and folders of the machine, mounted where the host's first process finds them."""
        binds = []
        binary = host.options.binary or self.options.binary
        if binary:
            binds.append((pathlib.Path(binary).resolve(), "bin/shmemctl"))
            (host.folder / "bin/shmemctl").touch()
        if out:
            out.mkdir(parents=True, exist_ok=True)
            binds.append((out, "out"))
        if host.options.sysroot:
            (host.folder / "files/sysroot").mkdir()
            binds.append((host.options.sysroot.resolve(), "files/sysroot"))
        for source, name in binds:
            subprocess.run(["nsenter", "-t", str(self.rack_pid), "-m", "--", "mount", "--bind", source,
                            f"/media/{host.options.number}/{name}"], check=True, cwd="/")

    def visible(self):
        source = pathlib.Path(__file__).resolve().parents[2]
        paths = {source, *(pathlib.Path(path).resolve() for path in self.options.visible)}
        return sorted(str(path) for path in paths
                      if any(str(path).startswith(top + "/") for top in HIDDEN))

    # --- what happens to hosts and cables ---

    def link(self, key, state):
        """Pulls the cable of a host ("down") or puts it back ("up")."""
        self.in_rack("ip", f"link set {host_network.port(self.hosts[key].options.number)} {state}\n")

    def vanish(self, key):
        """As if its power failed: it sends nothing any more, not even that its connections end."""
        self.link(key, "down")
        self.hosts.pop(key).end()

    def cable(self, key, *rules):
        """Replaces the cable of a host by one that delays, loses or reorders (host_network.parse_rule()).
        Without rules: by a good one."""
        host = self.hosts[key].options
        port = host_network.port(host.number)
        old = self.cables.pop(key, None)
        if old:
            old.kill()
            old.wait()
            old.stdout.close()
            self.in_rack("ip", f"link del in{port}\nlink set {port} master {host_network.bridge()}\n")
        if not rules:
            return
        made = [host_network.parse_rule(text) for text in rules]
        for rule in made:
            peer = rule.pop("peer")
            rule["mac"] = host_network.mac(self.hosts[peer].options.number) if peer else None
        self.in_rack("ip", f"link set {port} nomaster\n"
                           f"link add in{port} mtu {host_network.MTU_OF_BRIDGE} type veth peer name out{port} "
                           f"mtu {host_network.MTU_OF_BRIDGE}\n"
                           f"link set in{port} up\nlink set out{port} master {host_network.bridge()} up\n")
        program_path = pathlib.Path(__file__).resolve().with_name("cable.py")
        self.cables[key] = subprocess.Popen(
            ["nsenter", "-t", str(self.rack_pid), "-n", "--", interpreter(), program_path, port, f"in{port}",
             json.dumps(made)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd="/", preexec_fn=die_with_parent)
        if self.cables[key].stdout.readline().strip() != b"ready":
            raise LabError(f"the cable of host {key} did not start", "see what cable.py printed")

    def rate(self, key, text, rail=0, others="100gbit"):
        """Limits what leaves and reaches a host (host_network.parse_rate()), on its interface or a rail.
        `others` is the limit of the other hosts, where `text` names one."""
        side, peer, rate = host_network.parse_rate(text)
        self.shape(key, host_network.rate_batches(
            self.hosts[key].options, self.hosts[peer].options if peer else None, side, rate, rail, others))

    def lose(self, key, share, side=None, rail=0):
        """The cable of a host loses this share of the frames (0 to 1) that it sends (side "a") or receives
        ("b"), or of both; 0 ends that. Unlike cable(), it is as fast as others."""
        self.shape(key, host_network.loss_batches(self.hosts[key].options, side, share, rail))

    def shape(self, key, batches):
        for inside, batch in batches:
            self.batch(self.hosts[key].inside("-n") if inside
                       else ["nsenter", "-t", str(self.rack_pid), "-n", "--"], "tc", batch)

    def happen(self, event):
        """Carries out a host_options.Event."""
        if event.what == "vanish":
            self.vanish(event.host)
        elif event.what == "cable":
            self.cable(event.host, *re.split(r"\s*;\s*", event.arguments))
        else:
            self.link(event.host, event.what)

    # --- what is there ---

    def pes(self):
        """{PE: Process} of the job that runs."""
        return {pe: process for host in self.all for pe, process in host.pes().items()}

    def left(self):
        """What jobs left, by host."""
        return {host.key: found for host in self.all if (found := host.left())}
