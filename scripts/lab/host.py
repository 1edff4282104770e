"""One test host: starts its namespaces, runs commands in them, sees what is left there."""
import dataclasses
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time

from errors import LabError
from machine import die_with_parent

START_LIMIT_S = 60
BIN = "/run/lab/bin"
SYSROOT = "/run/lab/files/sysroot"
PATH = f"{BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What belongs to the host itself, not to a job.
SERVICES = ("sshd", "munged", "slurmctld", "slurmscriptd", "slurmd")
LISTENING = "0A"


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int  # as the machine knows it
    command: tuple
    environment: dict

    @property
    def name(self):
        return pathlib.Path(self.command[0]).name if self.command else ""

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)


@dataclasses.dataclass(frozen=True)
class Finished:
    code: int | None  # None: it was ended at the time limit
    out: str
    err: str
    seconds: float

    def __str__(self):
        return f"exit {self.code} after {self.seconds:.1f} s\n{self.out}\n{self.err}"


class Command:
    """A command that runs on a host; its output goes to files, so that it never blocks."""

    def __init__(self, process, folder, number):
        self.process = process
        self.files = [folder / f"{number}.{name}" for name in ("out", "err")]
        self.started = time.monotonic()

    def text(self):
        return [path.read_text(errors="replace") for path in self.files]

    def running(self):
        return self.process.poll() is None

    def wait(self, timeout):
        """A Finished; its code is None if it still ran after `timeout` seconds and was ended."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        return Finished(code, *self.text(), time.monotonic() - self.started)


def share_of_cpus(number, count):
    """CPUs of host `number` (from 1) of `count`: a part of the machine's, or one that is shared."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[number - 1::count] or [cpus[(number - 1) % len(cpus)]]


class Host:
    """`options` is host_options.HostOptions; `rack` the process that holds the bridge; `folder` is this
    host's in the rack's /media, seen from the machine; `cpus` are those that it may use."""

    def __init__(self, options, rack, folder, work, cpus):
        self.options = options
        self.cpus = cpus
        self.rack = rack
        self.folder = folder
        self.work = work
        self.process = None
        self.pid = None
        self.commands = []

    @property
    def key(self):
        return self.options.key

    # --- start and end ---

    def start(self):
        """Begins; came_up() waits for the end of it, so that several start at once."""
        clock = ["--time", "--monotonic", str(self.options.clock_s), "--boottime",
                 str(self.options.clock_s)] if self.options.clock_s else []
        init = pathlib.Path(__file__).resolve().with_name("host_init.sh")
        self.process = subprocess.Popen(
            ["nsenter", "-t", str(self.rack), "-m", "-n", "-p", "unshare", "-m", "-u", "-n", "-i", "-p",
             *clock, "--fork", "--kill-child", "--propagation", "private", "/bin/sh", init,
             str(self.options.number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
            preexec_fn=die_with_parent, start_new_session=True)

    def came_up(self):
        ready, _, _ = select.select([self.process.stdout], [], [], START_LIMIT_S)
        line = self.process.stdout.readline().strip() if ready else b""
        if not line.isdigit():
            self.process.kill()
            words = self.process.stderr.read().decode(errors="replace").strip()
            raise LabError(f"host {self.key} did not come up: {words or 'it said nothing'}",
                           "run scripts/lab/hosts as root, where mounts and namespaces are allowed")
        self.pid = int(line)

    def end(self):
        """At once, with all that runs there. Its cables vanish too: see Cluster.vanish()."""
        if self.pid is not None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process is not None:
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                stream.close()
        self.pid = self.process = None

    # --- commands ---

    def inside(self, *namespaces):
        clock = ["-T"] if self.options.clock_s and not namespaces else []
        return ["nsenter", "-t", str(self.pid), *(namespaces or ("-m", "-u", "-n", "-i", "-p")), *clock, "--"]

    def prepare(self):
        """Runs in the process that becomes a command."""
        die_with_parent()
        os.sched_setaffinity(0, self.cpus)

    def environment(self, variables):
        sysroot = {"SHMEMCTL_SYSROOT": SYSROOT} if self.options.sysroot else {}
        return {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "USER": "root", "SHELL": "/bin/sh",
                "SLURM_CONF": "/run/lab/slurm/slurm.conf", "TERM": os.environ.get("TERM", "dumb"), "LAB_HOST": self.key,
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "XDG_CONFIG_HOME": "/nonexistent", **sysroot, **variables}

    def start_command(self, *words, **variables):
        """A Command; `variables` are added to its environment."""
        number = f"{self.key}{len(self.commands)}"
        with open(self.work / f"{number}.out", "wb") as out, open(self.work / f"{number}.err", "wb") as err:
            process = subprocess.Popen(
                [*self.inside(), *map(str, words)], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                cwd="/", env=self.environment({name: str(value) for name, value in variables.items()}),
                preexec_fn=self.prepare, start_new_session=True)
        self.commands.append(Command(process, self.work, number))
        return self.commands[-1]

    def end_commands(self):
        """Ends those that were started here and still run."""
        for command in self.commands:
            if command.running():
                command.wait(0)

    def run(self, *words, timeout=120, **variables):
        return self.start_command(*words, **variables).wait(timeout)

    def must_run(self, what, *words, timeout=START_LIMIT_S, **variables):
        """The output of a step that has to work."""
        return self.require(what, self.run(*words, timeout=timeout, **variables))

    def require(self, what, done):
        """The output of a step that has worked."""
        if done.code != 0:
            said = done.err.strip() or done.out.strip() or "no output"
            raise LabError(f"host {self.key}: {what}: exit {done.code}: {said.splitlines()[-1]}",
                           "run the command by hand in scripts/lab/hosts")
        return done.out

    # --- what is there ---

    def processes(self):
        """Those of jobs, and sessions of sshd: not the host's own, nor the dead that nobody has reaped."""
        own = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(entry / "ns/pid") != own:
                    continue
                comm, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
                if rest.split()[0] == "Z" or int(entry.name) == self.pid:
                    continue
                command = tuple(word.decode(errors="replace")
                                for word in (entry / "cmdline").read_bytes().split(b"\0") if word)
                if comm in SERVICES and "@" not in "".join(command):
                    continue
                variables = dict(part.decode(errors="replace").split("=", 1) for part in
                                 (entry / "environ").read_bytes().split(b"\0") if b"=" in part)
            except OSError:
                continue  # it has ended
            found.append(Process(int(entry.name), command, variables))
        return found

    def pes(self):
        """Processes of shmemctl by PE, where the launcher's variables tell it."""
        found = {}
        for process in self.processes():
            if process.name != "shmemctl":
                continue
            for name in ("SHMEMCTL_BOOTSTRAP_UID_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                         "SLURM_PROCID"):
                if name in process.environment:
                    found[int(process.environment[name])] = process
                    break
        return found

    def left(self):
        """What jobs left: processes, shared memory, sockets. Empty if nothing."""
        found = [f"process {' '.join(process.command)}" for process in self.processes()]
        found += [f"/dev/shm/{path.name}" for path in pathlib.Path(f"/proc/{self.pid}/root/dev/shm").iterdir()]
        segments = subprocess.run([*self.inside("-i"), "cat", "/proc/sysvipc/shm"], capture_output=True,
                                  text=True, check=True).stdout.splitlines()[1:]
        found += [f"System V segment {line.split()[1]}" for line in segments]
        for line in pathlib.Path(f"/proc/{self.pid}/net/unix").read_text().splitlines()[1:]:
            words = line.split()
            if len(words) > 7 and words[7].startswith("@shmemctl"):
                found.append(f"socket {words[7]}")
        for name in ("tcp", "tcp6"):
            path = pathlib.Path(f"/proc/{self.pid}/net/{name}")
            for line in path.read_text().splitlines()[1:] if path.exists() else []:
                words = line.split()
                listens_at = int(words[1].rpartition(":")[2], 16)
                if words[3] == LISTENING and listens_at not in (22, 6817, 6818):
                    found.append(f"listener at port {listens_at}")
        return found

    def kill_jobs(self):
        """Ends whatever a test left, so that the next one starts from nothing."""
        for process in self.processes():
            try:
                process.kill()
            except ProcessLookupError:
                pass
        for path in pathlib.Path(f"/proc/{self.pid}/root/dev/shm").iterdir():
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
