"""The sizes of a study: each a model and its training settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from mnmt_data.errors import StudyError
from mnmt_data.study import StructureError, StudyFile, structure
from mnmt_model.errors import RunError
from mnmt_model.planning.presets import preset
from mnmt_model.sweep.sweep_config import SweepConfig
from mnmt_model.train_config import TrainConfig
from mnmt_model.transformer.model_config import ModelConfig


@dataclass(frozen=True, kw_only=True)
class Size:
    """A size of a study."""

    changes: Mapping[str, Any]
    """The settings of the size itself."""
    model: ModelConfig
    train: TrainConfig


def read_sizes(study: StudyFile, sweep: SweepConfig) -> dict[str, Size]:
    """Return {name: size} of a study.

    Raises:
        StudyError: If a size has a mistake, or no size uses the section `[model]`.
    """
    if study.tables.get("model") and all("preset" in changes for changes in sweep.sizes.values()):
        raise StudyError(f"{study.path}: [model] has no effect, since every size starts from a `preset`.")
    return {name: _size(study, name, changes) for name, changes in sweep.sizes.items()}


def _size(study: StudyFile, name: str, changes: Mapping[str, Any]) -> Size:
    where, base = f"sweep.sizes.{name}", study.tables.get("model", {})
    try:
        if "preset" in changes:
            base = asdict(preset(changes["preset"]).config)
        return Size(
            changes=changes,
            model=structure(base | _keys(changes, ModelConfig), ModelConfig, where=where),
            train=structure(
                study.tables.get("train", {}) | _keys(changes, TrainConfig), TrainConfig, where=where
            ),
        )
    except StructureError as error:
        raise StudyError(f"{study.path}: {error}") from None
    except RunError as error:
        raise StudyError(f"{study.path}: [{where}] `preset`: {error}") from None


def _keys(changes: Mapping[str, Any], config: type[ModelConfig | TrainConfig]) -> dict[str, Any]:
    names = {field.name for field in fields(config)}
    return {key: value for key, value in changes.items() if key in names}
