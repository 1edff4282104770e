"""Services of test hosts: sshd with keys made for this run, munged, and Slurm."""
import re
import subprocess
import time

import host
from errors import LabError, Unavailable
from image import program

SSH_CONFIG = """\
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
ConnectTimeout 10
"""
READY_LIMIT_S = 90
SLURM_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
SLURM = "/run/lab/slurm"
# sshd wants to be called by its whole path.
SSHD = ("sh", "-c", 'exec "$(command -v sshd)" -f /run/lab/files/sshd_config')


def sshd_config():
    return (f"HostKey /run/lab/files/host_key\nAuthorizedKeysFile /run/lab/files/key.pub\nStrictModes no\n"
            "UsePAM no\nSubsystem sftp internal-sftp\nPermitRootLogin yes\nMaxStartups 200\nMaxSessions 200\n"
            "UseDNS no\nPidFile none\n"
            f"SetEnv PATH={host.PATH} LC_ALL=C.UTF-8 XDG_CONFIG_HOME=/nonexistent\n")


# --- Slurm ---

SLURM_CONFIGURATION = """\
ClusterName=testhosts
SlurmctldHost={first}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=/run/lab/slurm/munge.socket
CryptoType=crypto/munge
StateSaveLocation=/run/lab/slurm/state
SlurmdSpoolDir=/run/lab/slurm/spool
SlurmctldPidFile=/run/lab/slurm/slurmctld.pid
SlurmdPidFile=/run/lab/slurm/slurmd.pid
SlurmctldLogFile=/run/lab/slurm/slurmctld.log
SlurmdLogFile=/run/lab/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=300
KillWait=1
MpiDefault=none
NodeName={nodes} CPUs=16 State=UNKNOWN
PartitionName=all Nodes={nodes} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


def why_no_slurm():
    """Why there can be no Slurm on hosts of this machine, or None."""
    try:
        for name in SLURM_PROGRAMS:
            program(name)
    except Unavailable:
        return f"{name} is not installed (apt install munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins)"
    return None


def slurm_version():
    text = subprocess.run([program("slurmd"), "-V"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def write_slurm(one, options):
    nodes = ",".join(other.hostname for other in options.hosts)
    (one.folder / "files/slurm.conf").write_text(
        SLURM_CONFIGURATION.format(first=options.hosts[0].hostname, nodes=nodes), encoding="utf-8")
    # The words for "leave control groups alone" changed.
    (one.folder / "files/cgroup.conf").write_text(
        "CgroupPlugin=disabled\n" if slurm_version() >= (23, 2)
        else "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n", encoding="utf-8")


def start_slurm(cluster):
    """munged and slurmd on all hosts, slurmctld on the first; srun then works there without an option."""
    why_not = why_no_slurm()
    if why_not:
        raise Unavailable(why_not, "install the packages")
    # munged checks who may write to the folders of its files.
    cluster.must_run_on_all("cannot prepare Slurm", lambda one: (
        "sh", "-c", f"mkdir -p {SLURM}/state {SLURM}/spool && chmod 755 /run /run/lab {SLURM} && "
        f"cp /run/lab/files/slurm.conf /run/lab/files/cgroup.conf /run/lab/files/munge.key {SLURM} && "
        f"chmod 600 {SLURM}/munge.key"))
    cluster.must_run_on_all("cannot start munged", lambda one: (
        program("munged"), f"--socket={SLURM}/munge.socket", f"--key-file={SLURM}/munge.key",
        f"--pid-file={SLURM}/munged.pid", f"--log-file={SLURM}/munged.log", f"--seed-file={SLURM}/munge.seed"))
    first = cluster.all[0]
    first.must_run("cannot start slurmctld", program("slurmctld"))
    cluster.must_run_on_all("cannot start slurmd", lambda one: (program("slurmd"), "-N", one.options.hostname))
    end = time.monotonic() + READY_LIMIT_S
    while True:
        states = first.run(program("sinfo"), "-h", "-N", "-o", "%t").out.split()
        if states == ["idle"] * len(cluster.all):
            return
        if time.monotonic() > end:
            raise LabError(f"Slurm is not ready after {READY_LIMIT_S} s; states of its nodes: {states}",
                           "look at /run/lab/slurm/*.log on the hosts")
        time.sleep(0.1)
