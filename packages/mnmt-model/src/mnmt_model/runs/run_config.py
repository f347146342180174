"""The configuration of a run, and its initial record."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from os.path import relpath
from pathlib import Path
from typing import Any

from mnmt_data.store import VOCABULARY, PreparedData, checksum
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.runs.run_record import Role, RunRecord, utc_now
from mnmt_model.train_config import TrainConfig, free_settings
from mnmt_model.transformer.model_config import ModelConfig

RESERVED = {"CON", "PRN", "AUX", "NUL", *(port + number for port in ("COM", "LPT") for number in "123456789")}
"""Names of devices on Windows, with or without a suffix."""


def check_folder_name(name: str) -> None:
    """Check that a name is a plain folder name on any system.

    Raises:
        ValueError: If it is not.
    """
    plain = re.fullmatch(r"\w[\w.+-]*", name) and not name.endswith(".")
    if not plain or name.split(".")[0].upper() in RESERVED:
        raise ValueError(
            f"A folder must have a plain name of letters, digits, `_`, `-`, `+`, `.`, but one has {name!r}."
        )


@dataclass(frozen=True, kw_only=True)
class Branch:
    """The point at which a run branches off another, its trunk, whose earlier steps it shares."""

    run: str
    """Name of the trunk."""
    step: int
    """The step of the trunk after which the branch starts."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One model of a study: everything needed to train it."""

    name: str
    """Name of the run's folder."""
    study: str
    """Name of the study it belongs to."""
    role: Role
    """Whether the laws are fitted to this run, or must predict it."""
    model: ModelConfig
    train: TrainConfig
    mixture: Mapping[str, float]
    """{task: training weight}."""
    seed: int
    """Seed of the initial weights, the dropout and the order of the data."""
    data: Path
    """Folder of the prepared data."""
    branch: Branch | None = None
    """Where it branches off another run; None if it is trained from the first step."""

    def __post_init__(self) -> None:
        check_folder_name(self.name)

    @property
    def steps(self) -> int:
        """Steps to train: all, or for a branch only the steps after it leaves its trunk."""
        return self.train.steps - (self.branch.step if self.branch else 0)


def new_record(run: RunConfig, folder: Path, *, vocab_size: int, data: PreparedData | None) -> RunRecord:
    """Return the record of a run that is about to start.

    Args:
        run: The run.
        folder: Its folder.
        vocab_size: Tokens of its vocabulary.
        data: Its training data; None if it is not trained here.
    """
    vocabulary = run.data / VOCABULARY
    counts = count_parameters(run.model, vocab_size)
    return RunRecord(
        run=run.name,
        study=run.study,
        role=run.role,
        architecture=run.model.architecture,
        size=counts.size,
        encoder_size=counts.encoder_size,
        decoder_size=counts.decoder_size,
        active_size=counts.active_size,
        num_params=counts.num_params,
        vocab_size=vocab_size,
        vocabulary=checksum(vocabulary) if vocabulary.is_file() else None,
        mixture=dict(run.mixture),
        irreducible=dict(data.irreducible) if data else {},
        seed=run.seed,
        data=relpath(run.data.resolve(), folder.resolve()),
        data_fingerprint=data.fingerprint if data else None,
        data_config=data.description.config if data else None,
        config_fingerprint=config_fingerprint(run),
        branch=asdict(run.branch) if run.branch else None,
        config=_as_read({"model": asdict(run.model.resolved()), "train": asdict(run.train)}),
        versions={
            "mnmt-model": version("mnmt-model"),
            "torch": version("torch"),
            "python": platform.python_version(),
        },
        host=f"{platform.system()} {platform.machine()}",
        started=utc_now(),
        wall_seconds=0.0,
    )


def config_fingerprint(run: RunConfig) -> str:
    """Return a checksum of the settings that affect the weights, without data, mixture and seed.

    Defaults are left out, so that it stays the same when a later version adds settings.
    """
    train = asdict(run.train)
    learned = {key: value for key, value in train.items() if key not in free_settings(train)}
    settings = {"model": asdict(run.model), "train": learned}
    defaults = {"model": asdict(ModelConfig()), "train": asdict(TrainConfig())}
    return sha256(json.dumps(_without(settings, defaults), sort_keys=True).encode()).hexdigest()


def _without(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that differ from their defaults."""
    return {
        key: _without(value, default) if isinstance(default := defaults.get(key), dict) else value
        for key, value in settings.items()
        if value != defaults.get(key)
    }


def _as_read(config: dict[str, Any]) -> Any:
    """Return `config` as read back from JSON, with lists for tuples, to compare with a record's."""
    return json.loads(json.dumps(config))
