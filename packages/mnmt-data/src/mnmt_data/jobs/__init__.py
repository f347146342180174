"""Work shared between processes: jobs in folders, claims by locks, and the workers that do the jobs.

Each job has a file or a folder on a disk that all machines share. A process claims a job with a lock, which
the system releases when the process ends, so a killed worker's job is free again. Progress is read from
disk, so interrupted work resumes. `mnmt-data prepare` puts its jobs into a `JobQueue`; the jobs of
`mnmt-model sweep` are the folders of its runs. For both, a `Crew` starts and replaces workers: processes of
this machine (`LocalWorkers`) or Slurm jobs (`SlurmWorkers`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
