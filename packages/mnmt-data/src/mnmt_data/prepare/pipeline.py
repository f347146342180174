"""`prepare_study`: run the stages that are not done, one after the other."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from mnmt_data.errors import DataError
from mnmt_data.jobs.cluster import ClusterConfig, SlurmWorkers
from mnmt_data.jobs.queue import JobPool, JobQueue, QueueWork
from mnmt_data.jobs.workers import Crew, LocalWorkers, num_cores
from mnmt_data.prepare.changes import DIGESTS, Digests, differences, first_change, input_digests
from mnmt_data.prepare.checksums import ChecksumCache
from mnmt_data.prepare.clean import clean
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.describe import describe, valid_losses
from mnmt_data.prepare.encode import SEGMENT_PAIRS, encode, tasks_to_shuffle, write_weights
from mnmt_data.prepare.fingerprint import PAIRS_VERSION, fingerprint_of, shuffled
from mnmt_data.prepare.inputs import Inputs, find_inputs, synthetic_corpus
from mnmt_data.prepare.splits import split_pairs
from mnmt_data.prepare.stages import Progress, Report, Stages
from mnmt_data.prepare.vocabulary_sample import prepare_vocabulary
from mnmt_data.prepare.workspace import Workspace
from mnmt_data.readers.reader import BLOCK_PAIRS
from mnmt_data.store.atomic_file import remove_temporaries
from mnmt_data.store.description import PreparedDescription
from mnmt_data.store.lock import file_lock
from mnmt_data.store.prepared import PreparedData, open_prepared
from mnmt_data.store.vocabulary import Vocabulary
from mnmt_data.study import StudyFile

PARTIAL = ".data.partial"
"""Name of the folder where data are prepared."""

QUEUE = ".data.queue"
"""Name of the folder of the workers' jobs."""

LOCK_SECONDS = 0.5
"""Seconds to wait for the lock; workers take it briefly to check whether their leader has ended."""

Cluster = Literal["local", "slurm"]

LOCK = ".data.lock"
"""Name of the lock of the process that prepares; workers end with it."""

JOBS = "jobs/prepare"
"""Folder of the logs of Slurm's jobs."""

CLUSTER_JOBS = 8
"""Jobs of Slurm by default."""

OTHER = "its text has changed, or another version of mnmt-data wrote it"
"""Why data are not current whose settings are."""

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def prepare_study(
    study: StudyFile,
    out: Path,
    *,
    report: Report = lambda line: None,
    progress: Progress = lambda stage, pairs: None,
    jobs: int | None = None,
    cluster: Cluster = "local",
    cluster_config: ClusterConfig = ClusterConfig(),  # noqa: B008 - it is frozen
) -> PreparedData:
    """Prepare the data of `study` in `out/data`, unless the same was prepared there before.

    The folder appears complete or not at all. A call continues where an earlier one was stopped. The bytes do
    not depend on interruptions, or on the number of processes and machines.

    Args:
        study: The study; its `[data]` section says what to prepare.
        out: The folder of the study's results.
        report: Called with a line at each stage.
        progress: Called with the name of a stage and the number of pairs that it has just done.
        jobs: Processes; one for each processor by default, and 8 jobs of Slurm.
        cluster: Where the processes work; one that is killed is replaced.
        cluster_config: Resources that a job requests.

    Raises:
        DataError: If the text, or a file of it, cannot be used, the disk is full, another call is at work, or
            submitit or Slurm is missing.
        ValueError: If `jobs` is less than 1.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"`jobs` must be at least 1, but is {jobs}.")
    config = study.section("data", DataConfig)
    out.mkdir(parents=True, exist_ok=True)
    with (
        _prefix_with_study(study),
        _explain_full_disk(out),
        file_lock(out / LOCK, name=out, seconds=LOCK_SECONDS),
        _stages(study, out, jobs, report, progress, cluster, cluster_config) as stages,
    ):
        return _prepare(study, config, out, stages)


def _stages(
    study: StudyFile,
    out: Path,
    jobs: int | None,
    report: Report,
    progress: Progress,
    cluster: Cluster,
    config: ClusterConfig,
) -> Stages:
    queue = JobQueue((out / QUEUE).resolve())
    queue.clear()
    work = QueueWork(queue.folder, (out / LOCK).resolve())
    if cluster == "slurm":
        jobs = jobs or CLUSTER_JOBS
        crew = Crew(SlurmWorkers(work, folder=out / JOBS, name=f"mnmt-{study.name}", config=config), jobs)
        count = jobs * config.num_tasks
    else:
        count = jobs or num_cores()
        if count == 1:
            return Stages(report=report, progress=progress)
        crew = Crew(LocalWorkers(work, count=count, preload=["mnmt_data.prepare.pipeline"]), count)
    open_pool = partial(JobPool, queue, crew, outputs=out / PARTIAL)
    return Stages(count, open_pool=open_pool, report=report, progress=progress)


def _prepare(study: StudyFile, config: DataConfig, out: Path, stages: Stages) -> PreparedData:
    checksums = ChecksumCache(out / DIGESTS, stages)
    inputs = find_inputs(config, _corpus(config, out, checksums, stages.report))
    fingerprint, digests = fingerprint_of(config, inputs, checksums), input_digests(config, inputs, checksums)
    checksums.save()
    folder, space = out / "data", Workspace(folder=out / PARTIAL)
    if _is_current(folder, fingerprint, config, digests, stages.report):
        space.remove()
        stages.report(f"up to date: {folder}")
        return open_prepared(folder)
    _open(space, fingerprint, config, digests, stages.report)
    if not space.is_complete():
        described = _run_stages(config, inputs, checksums, space, stages)
        if tasks_to_shuffle(config, space):
            fingerprint = shuffled(fingerprint)
        described = _with_known_losses(described, inputs, stages.report)
        described = replace(described, inputs=digests, pairs_version=PAIRS_VERSION)
        replace(described, study=study.name, fingerprint=fingerprint).write(space.folder)
    space.publish(folder)
    return open_prepared(folder)


def _open(space: Workspace, fingerprint: str, config: DataConfig, digests: Digests, report: Report) -> None:
    """Continue the unfinished data of the same settings and text, or begin new ones and report why."""
    identity: list[str | int] = [fingerprint, version("mnmt-data"), BLOCK_PAIRS, SEGMENT_PAIRS]
    if (before := space.mark("config")) is not None and space.mark("identity") != identity:
        change = first_change(before, config, differences(space.mark("inputs") or {}, digests))
        report(f"{space.folder}: begun anew, since {change or OTHER}")
    if space.open(identity):
        report(f"continuing with {space.folder}")
    else:
        space.set_mark("config", asdict(config))
        space.set_mark("inputs", digests)


def _corpus(config: DataConfig, out: Path, checksums: ChecksumCache, report: Report) -> Path | None:
    """Return the corpus folder, if the study has one; write the corpus of synthetic languages."""
    if config.synthetic is None:
        return config.corpus
    return synthetic_corpus(config.synthetic, out / "corpus", checksums, report)


def _run_stages(
    config: DataConfig, inputs: Inputs, checksums: ChecksumCache, space: Workspace, stages: Stages
) -> PreparedDescription:
    """Run the stages in the workspace, and return the description of the data."""
    parts = clean(config, inputs, space, stages)
    try:
        checksums.check_unchanged()
    except DataError:
        space.remove()
        raise
    stages.report("split: training, dev and test pairs")
    split = split_pairs(config, inputs, parts, space, stages)
    size = Vocabulary.load(prepare_vocabulary(config, parts, space, stages)).size
    if config.vocab.path is None and size < config.vocab.size:
        stages.report(f"vocabulary: {size:,} of {config.vocab.size:,} ids; the text has no more pieces")
    splits = encode(config, inputs, parts, space, stages)
    write_weights(inputs, splits, space)
    remove_temporaries(space.folder)  # of workers that were killed meanwhile
    warnings = space.mark("warnings")
    return describe(config, space.folder, parts["train"], split, splits, stages, warnings=warnings)


def _with_known_losses(described: PreparedDescription, inputs: Inputs, report: Report) -> PreparedDescription:
    """Add the known losses of synthetic languages where each word is one token."""
    irreducible, limits = (
        valid_losses(losses, described.coverage) for losses in (inputs.irreducible, inputs.power_law_limit)
    )
    if unknown := sorted(inputs.irreducible.keys() - irreducible.keys()):
        remedy = "give [data.vocab] kind = 'word', and a size for all words"
        report(f"no irreducible loss of {', '.join(unknown)}: words are not one token each; {remedy}")
    return replace(described, irreducible=irreducible, power_law_limit=limits)


def _is_current(folder: Path, fingerprint: str, config: DataConfig, digests: Digests, report: Report) -> bool:
    """Return whether a folder has the data; if it has others, report why they are prepared again."""
    try:
        data = open_prepared(folder).description
    except DataError:
        return False
    if data.fingerprint in (fingerprint, shuffled(fingerprint)):
        return True
    others = differences(data.inputs, digests)
    change = first_change(data.config, config, others)
    if change is None and data.pairs_version == PAIRS_VERSION and not others:
        return True
    report(f"{folder}: prepared again, since {change or OTHER}; runs on the old data cannot be continued")
    return False


@contextmanager
def _explain_full_disk(out: Path) -> Iterator[None]:
    """Turn a full disk into a message that names the folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        reason = f"{error.strerror} ({error.filename})" if error.filename else error.strerror
        raise DataError(
            f"{out}: {reason}; make room and prepare again, which continues from here."
        ) from error


@contextmanager
def _prefix_with_study(study: StudyFile) -> Iterator[None]:
    """Put the name of the study before messages about its settings."""
    try:
        yield
    except DataError as error:
        if not str(error).startswith("[data"):
            raise
        raise DataError(f"{study.path}: {error}") from error
