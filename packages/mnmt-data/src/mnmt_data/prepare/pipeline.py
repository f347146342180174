"""`prepare_study`: the stages one after the other, each only where it is not done."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.prepare.clean import clean
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.describe import describe
from mnmt_data.prepare.encode import SEGMENT_PAIRS, encode
from mnmt_data.prepare.inputs import Digests, Inputs, find_inputs, is_made, make_corpus
from mnmt_data.prepare.splits import choose
from mnmt_data.prepare.vocabulary_sample import check_tags, learn_vocabulary
from mnmt_data.prepare.workers import Report, Workers
from mnmt_data.prepare.workspace import Workspace
from mnmt_data.readers.reader import BLOCK_PAIRS
from mnmt_data.store.atomic_file import write_json
from mnmt_data.store.lock import file_lock
from mnmt_data.store.prepared import DESCRIPTION, SCHEMA, PreparedData, open_prepared
from mnmt_data.study import StudyFile

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def prepare_study(
    study: StudyFile, out: Path, *, report: Report = lambda line: None, workers: int | None = None
) -> PreparedData:
    """Prepare the data of `study` in `out/data`, unless the same was prepared there before.

    The folder appears complete or not at all. What was finished before an earlier call was stopped is used
    again, and the data are the same bytes, whatever stopped it and however many workers there are.

    Args:
        study: Its `[data]` section says what to prepare.
        out: The study's results.
        report: Called with a line at each stage.
        workers: Processes; as many as there are processors by default.

    Raises:
        DataError: If the text, or a file of it, cannot be used, the disk is full, or another call is at work.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"`workers` must be at least 1, but is {workers}.")
    config = study.section("data", DataConfig)
    out.mkdir(parents=True, exist_ok=True)
    with (
        _study_named(study),
        _room_told(out),
        file_lock(out / ".data.lock", name=out),
        Workers(workers) as processes,
    ):
        return _prepare(study, config, out, report, processes)


def _prepare(
    study: StudyFile, config: DataConfig, out: Path, report: Report, workers: Workers
) -> PreparedData:
    digests = Digests(out / ".data.digests.json")
    inputs = find_inputs(config, _corpus(config, out, digests, report))
    fingerprint = _fingerprint(config, inputs, digests)
    digests.save()
    folder, space = out / "data", Workspace(folder=out / ".data.partial")
    if _is_current(folder, fingerprint):
        space.remove()
        report(f"up to date: {folder}")
        return open_prepared(folder)
    if space.open(_identity(fingerprint)):
        report(f"going on with what is in {space.folder}")
    if not space.is_described():
        described = _fill(config, inputs, digests, space, workers, report)
        described |= {
            "study": study.name,
            "irreducible": dict(inputs.irreducible),
            "fingerprint": fingerprint,
        }
        write_json(space.folder / DESCRIPTION, described)
    space.publish(folder)
    return open_prepared(folder)


def _corpus(config: DataConfig, out: Path, digests: Digests, report: Report) -> Path | None:
    """The corpus folder, if the text is not in single files; made first if the languages are."""
    if config.synthetic is None:
        return config.corpus
    corpus = out / "corpus"
    if not is_made(config.synthetic, corpus, digests):
        report("making synthetic languages")
        make_corpus(config.synthetic, corpus)
    return corpus


def _fill(
    config: DataConfig, inputs: Inputs, digests: Digests, space: Workspace, workers: Workers, report: Report
) -> dict[str, Any]:
    """Run the stages in the workspace; returns what there is to say of the data."""
    parts = clean(config, inputs, space, workers, report)
    try:
        digests.check_unchanged()
    except DataError:
        space.remove()
        raise
    report("choose: training, dev and test pairs")
    chosen = choose(config, inputs, parts, space)
    report("learn: the vocabulary")
    learn_vocabulary(config, parts, space)
    written = encode(config, parts, space, workers, report)
    return describe(config, space.folder, parts["train"], chosen, written)


def _fingerprint(config: DataConfig, inputs: Inputs, digests: Digests) -> str:
    """Of the settings, and of the contents of all that is read."""
    total = sha256(f"{SCHEMA} {json.dumps(asdict(config), default=str, sort_keys=True)}".encode())
    for name, path in inputs.paths:
        total.update(f" {name} {path.name} {digests.of(path)}".encode())
    if config.vocab.path is not None:
        check_tags(config.vocab.path, config.target_languages)
        total.update(digests.of(config.vocab.path).encode())
    return total.hexdigest()


def _identity(fingerprint: str) -> list[str | int]:
    """What a partial folder must have been begun with to be gone on with."""
    return [fingerprint, version("mnmt-data"), BLOCK_PAIRS, SEGMENT_PAIRS]


def _is_current(folder: Path, fingerprint: str) -> bool:
    try:
        return open_prepared(folder).fingerprint == fingerprint
    except (DataError, KeyError):
        return False


@contextmanager
def _room_told(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        reason = f"{error.strerror} ({error.filename})" if error.filename else error.strerror
        raise DataError(f"{out}: {reason}; make room and prepare again, which goes on from here.") from error


@contextmanager
def _study_named(study: StudyFile) -> Iterator[None]:
    """Put the name of the study before messages about its settings."""
    try:
        yield
    except DataError as error:
        if not str(error).startswith("[data"):
            raise
        raise DataError(f"{study.path}: {error}") from error
