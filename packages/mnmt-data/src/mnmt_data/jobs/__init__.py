"""Work that many processes share: jobs in folders, claims by locks, and the workers that do them.

Each job has a file or a folder that all machines see. A process claims it by a lock, which ends with the
process, however that ends, so the job of a killed worker is free again. Whatever has been done is read from
disk, so interrupted work resumes. `mnmt-data prepare` puts its jobs into a `JobQueue`; those of `mnmt-model
sweep` are the folders of its runs. For both, a `Crew` keeps workers at work: processes of this machine
(`LocalWorkers`), or jobs that Slurm schedules (`SlurmWorkers`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
