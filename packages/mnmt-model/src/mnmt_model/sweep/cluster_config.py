"""What a job of a sweep asks of the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SIGNAL_SECONDS = 120
"""Seconds before its time is up at which a job is told to save checkpoints; Slurm may be a minute early."""
SETUP = "export SUBMITIT_PREEMPT_SIGNAL=USR1"  # the signal that training handles


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """What a job of a sweep asks of the cluster."""

    nodes: int = 1
    """Machines that train one run together."""
    processes: int | None = None
    """Processes on each machine that train one run together; by default one a GPU, or one."""
    gpus_per_node: int | None = None
    """GPUs of each machine."""
    cpus_per_task: int | None = None
    """Cores of each process."""
    memory: float | None = None
    """GB of memory of each machine."""
    minutes: int = 60
    """Time limit of a job; when it is up, training goes on in another."""
    partition: str | None = None
    """Partition of the cluster."""
    account: str | None = None
    """Account that is charged."""
    slurm: dict[str, str] | None = None  # a Mapping has no `--slurm.NAME` on the command line
    """Further options of sbatch, such as `--slurm.qos high`."""

    def __post_init__(self) -> None:
        for name in ("nodes", "processes", "cpus_per_task", "minutes"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {number}.")
        if self.memory is not None and not self.memory > 0:
            raise ValueError(f"`memory` must be above 0, but is {self.memory}.")

    @property
    def tasks_per_node(self) -> int:
        """Processes on each machine."""
        return self.processes or self.gpus_per_node or 1

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of submitit's executor."""
        cpus = [] if self.cpus_per_task is None else [f"--cpus-per-task={self.cpus_per_task}"]
        parameters = {
            "nodes": self.nodes,
            "ntasks_per_node": self.tasks_per_node,
            "gpus_per_node": self.gpus_per_node,
            "cpus_per_task": self.cpus_per_task,
            "mem": None if self.memory is None else f"{round(self.memory * 1024)}M",
            "time": self.minutes,
            "partition": self.partition,
            "account": self.account,
            "setup": [SETUP],
            "srun_args": ["--kill-on-bad-exit=1", *cpus],
            "stderr_to_stdout": True,
            "additional_parameters": {
                "requeue": True,
                "signal": f"USR1@{SIGNAL_SECONDS}",
                **(self.slurm or {}),
            },
        }
        return {key: value for key, value in parameters.items() if value is not None}
