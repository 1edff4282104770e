"""A Slurm of one node in a temporary folder: munged, slurmctld and slurmd, started and stopped here.

    with OneNodeSlurm() as slurm:
        slurm.srun("-n", "4", "--mpi=pmi2", "program")

Needs root (slurmd starts jobs as their users) and the distribution's packages; no systemd, nothing in
/etc, ports of its own. `why_not()` says what is missing.
"""
import ctypes
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
START_TIMEOUT_S = 90
NODE = "lab"
PR_SET_PDEATHSIG = 1

CONFIGURATION = """\
ClusterName=shmemctltest
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
SlurmctldPort={controller_port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
SelectType=select/linear
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=300
KillWait=1
MpiDefault=none
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs=16 State=UNKNOWN
PartitionName=all Nodes={node} Default=YES MaxTime=INFINITE State=UP
"""


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def why_not():
    """Why no Slurm can be started here, or None."""
    missing = [name for name in PROGRAMS if program(name) is None]
    if missing:
        return (f"{', '.join(missing)} not installed "
                "(apt install munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins)")
    if os.geteuid() != 0:
        return "slurmd needs root"
    return None


def free_ports(count):
    """Ports that are free now; all are held until all are chosen."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def slurm_version():
    text = subprocess.run([program("slurmd"), "-V"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


class OneNodeSlurm:
    def __init__(self):
        self.folder = None
        self.daemons = []
        self.environment = {}

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm-"))
        try:
            self._configure()
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._kill_step_daemons()
        shutil.rmtree(self.folder, ignore_errors=True)

    def srun(self, *arguments, timeout=300, environment=None):
        """(exit code, stdout, stderr) of srun with these arguments."""
        whole = {**os.environ, **self.environment, **(environment or {})}
        done = subprocess.run([program("srun"), *map(str, arguments)], env=whole, timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def mpi_types(self):
        """What --mpi accepts here."""
        _, out, err = self.srun("--mpi=list")
        return set(re.findall(r"[a-z0-9_]+", out + err))

    def logs(self):
        return "\n".join(f"== {log.name}\n{log.read_text(errors='replace')[-4000:]}"
                         for log in sorted(self.folder.glob("*.log")))

    def _configure(self):
        self.folder.chmod(0o755)  # munged checks the permissions of its socket's folder
        for name in ("state", "spool"):
            (self.folder / name).mkdir(mode=0o755)
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        controller_port, node_port = free_ports(2)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            folder=self.folder, host=socket.gethostname().split(".")[0], node=NODE,
            controller_port=controller_port, node_port=node_port))
        # The words for "leave control groups alone" changed.
        lines = ("CgroupPlugin=disabled\n" if slurm_version() >= (23, 2)
                 else "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        (self.folder / "cgroup.conf").write_text(lines)
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def _start(self):
        folder = self.folder
        self._daemon("munged", "-F", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key",
                     f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log",
                     f"--seed-file={folder}/munge.seed")
        self._wait_for("munged", lambda: (folder / "munge.socket").exists())
        configuration = str(folder / "slurm.conf")
        self._daemon("slurmctld", "-D", "-f", configuration)
        self._daemon("slurmd", "-D", "-N", NODE, "-f", configuration)
        self._wait_for("the node", self._node_is_idle)

    @staticmethod
    def _die_with_the_test():
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def _daemon(self, name, *arguments):
        with open(self.folder / f"{name}.out.log", "wb") as out:
            self.daemons.append(subprocess.Popen(
                [program(name), *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env={**os.environ, **self.environment}, start_new_session=True,
                preexec_fn=self._die_with_the_test))

    def _node_is_idle(self):
        done = subprocess.run([program("sinfo"), "-h", "-o", "%t"], capture_output=True, text=True,
                              env={**os.environ, **self.environment}, check=False)
        return done.stdout.strip() == "idle"

    def _wait_for(self, what, ready):
        end = time.monotonic() + START_TIMEOUT_S
        while not ready():
            ended = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if ended or time.monotonic() > end:
                raise RuntimeError(f"{what} is not ready; ended: {ended}\n{self.logs()}")
            time.sleep(0.05)

    def _kill_step_daemons(self):
        """slurmstepd survives slurmd; ours are those whose environment or command names our folder."""
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if not (entry / "comm").read_text().startswith("slurmstepd"):
                    continue
                words = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.folder).encode() in words:
                os.kill(int(entry.name), signal.SIGKILL)
