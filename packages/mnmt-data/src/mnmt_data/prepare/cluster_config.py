"""What a job of a preparation asks of the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """What a job of a preparation asks of the cluster."""

    processes: int = 1
    """Worker processes of a job, all on one machine."""
    cpus_per_task: int | None = None
    """Cores of each process, which uses one."""
    memory: float | None = None
    """GB of memory of each machine."""
    minutes: int = 60
    """Time limit of a job; when it is up, another takes its place."""
    partition: str | None = None
    """Partition of the cluster."""
    account: str | None = None
    """Account that is charged."""
    slurm: dict[str, str] | None = None  # a Mapping has no `--slurm.NAME` on the command line
    """Further options of sbatch, such as `--slurm.qos high`."""

    def __post_init__(self) -> None:
        for name in ("processes", "cpus_per_task", "minutes"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {number}.")
        if self.memory is not None and not self.memory > 0:
            raise ValueError(f"`memory` must be above 0, but is {self.memory}.")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of submitit's executor for Slurm."""
        parameters = {
            "nodes": 1,
            "ntasks_per_node": self.processes,
            "cpus_per_task": self.cpus_per_task,
            "mem": None if self.memory is None else f"{round(self.memory * 1024)}M",
            "time": self.minutes,
            "partition": self.partition,
            "account": self.account,
            "srun_args": None if self.cpus_per_task is None else [f"--cpus-per-task={self.cpus_per_task}"],
            "stderr_to_stdout": True,
            # A job that is preempted is replaced; requeued as well, it would become two.
            "additional_parameters": {"no-requeue": True, **(self.slurm or {})},
        }
        return {key: value for key, value in parameters.items() if value is not None}
