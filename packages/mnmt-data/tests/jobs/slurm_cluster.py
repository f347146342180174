"""A Slurm cluster of Debian's packages on this machine alone: no systemd, no cgroups, no database."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("munged", "mungekey", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel")
START_SECONDS = 120

CONFIG = """\
ClusterName=mnmt
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,defer
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=5
MinJobAge=20
InactiveLimit=0
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 Port={slurmd_port} CPUs=8 RealMemory=4096 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES PriorityTier=1 MaxTime=60 State=UP
PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=60 State=UP
"""


def missing_programs() -> list[str]:
    """Return Slurm's programs that this machine lacks, or why they cannot be started."""
    lacking = [program for program in PROGRAMS if shutil.which(program, path=_search_path()) is None]
    return lacking or ([] if os.geteuid() == 0 else ["the rights of root"])


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[Mapping[str, str]]:
    """Start a cluster of one node with eight cores, and yield the environment in which its commands work.

    Args:
        folder: For its configuration, state and logs.
    """
    folder.mkdir(parents=True)
    (folder / "state").mkdir()
    values = {"folder": folder, "host": socket.gethostname(), "user": "root"}
    ports = {"ctld_port": _free_port(), "slurmd_port": _free_port()}
    (folder / "slurm.conf").write_text(CONFIG.format(**values, **ports), encoding="utf-8")
    environ = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": _search_path()}
    _call(["mungekey", "--create", f"--keyfile={folder / 'munge.key'}"], environ)
    munge = [
        f"--{name}={folder / f'munge.{name[:-5]}'}"
        for name in ("key-file", "pid-file", "log-file", "seed-file")
    ]
    with ExitStack() as stack:
        for command in (
            ["munged", "--foreground", "--force", f"--socket={folder / 'munge.socket'}", *munge],
            ["slurmctld", "-D", "-c"],
            ["slurmd", "-D"],
        ):
            stack.enter_context(_daemon(command, environ, folder))
        _wait_for_node(environ, folder)
        yield environ


@contextmanager
def _daemon(command: list[str], environ: Mapping[str, str], folder: Path) -> Iterator[None]:
    log = folder / f"{command[0]}.output"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=os.environ | environ, stdout=output, stderr=output)
        try:
            if command[0] == "munged":
                _wait((folder / "munge.socket").exists, log)
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for_node(environ: Mapping[str, str], folder: Path) -> None:
    def is_idle() -> bool:
        command = ["sinfo", "--noheader", "--format=%T", "--partition=main"]
        answer = subprocess.run(
            command, check=False, env=os.environ | environ, capture_output=True, text=True
        )
        return answer.stdout.strip() == "idle"

    _wait(is_idle, folder / "slurmctld.log")


def _wait(condition: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"no Slurm after {START_SECONDS} s; {log}:\n{log.read_text(errors='replace')[-2000:]}"
            )
        time.sleep(0.1)


def _call(command: list[str], environ: Mapping[str, str]) -> None:
    subprocess.run(command, env=os.environ | environ, check=True, capture_output=True)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return int(free.getsockname()[1])


def _search_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
