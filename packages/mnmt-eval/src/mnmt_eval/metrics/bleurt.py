"""BLEURT, a learned metric."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import file_digest
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.config import BleurtConfig
from mnmt_eval.metrics.protocol import MeanMetric, make_signature

if TYPE_CHECKING:
    from mnmt_eval.metrics.bleurt_model import BleurtModel

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


class Bleurt(MeanMetric):
    """The mean of BLEURT's scores (Sellam et al. 2020; Pu et al. 2021), by bleurt-pytorch.

    A learned regression of human judgements from hypothesis and reference, about 0 to 1 for BLEURT-20, not
    confined to them. Texts longer than the model's positions are cut at the end, the longer of the two first.
    """

    def __init__(self, config: BleurtConfig) -> None:
        """Check the checkpoint; the model is loaded when the first sentences are scored.

        Raises:
            EvalError: If no checkpoint is named, the named one is missing, or the extra is not installed.
        """
        super().__init__(num_references=1)
        self._version = _installed_version()
        self._checkpoint, self._weights = _find_weights(config.checkpoint)

    @property
    def name(self) -> str:
        """`bleurt`."""
        return "bleurt"

    @property
    def signature(self) -> str:
        """The checkpoint's folder, the first digits of its weights' SHA-256, and bleurt-pytorch's version."""
        digest = _digest(self._weights, self._weights.stat().st_mtime_ns)
        return make_signature(
            nrefs=1, model=self._checkpoint.name, sha256=digest, version=f"bleurt-pytorch-{self._version}"
        )

    def _scores(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str]
    ) -> Sequence[float]:
        model = _load(self._checkpoint)
        return model.score(hypotheses, references[0])


# A model serves all systems and texts of a command.
@lru_cache(maxsize=1)
def _load(checkpoint: Path) -> BleurtModel:
    from mnmt_eval.metrics.bleurt_model import BleurtModel

    return BleurtModel(checkpoint)


@lru_cache(maxsize=1)
def _digest(weights: Path, modified: int) -> str:
    with weights.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:12]


def _installed_version() -> str:
    try:
        major = int(version("transformers").partition(".")[0])
        installed = version("bleurt-pytorch")
    except PackageNotFoundError as error:
        raise EvalError(
            f"bleurt: {error.name} is missing; `pip install './packages/mnmt-eval[bleurt]'` installs it."
        ) from None
    if major >= 5:
        raise EvalError(
            f"bleurt: bleurt-pytorch needs transformers below 5, but {version('transformers')} is installed; "
            "`pip install './packages/mnmt-eval[bleurt]'` installs one that fits."
        )
    return installed


def _find_weights(checkpoint: Path | None) -> tuple[Path, Path]:
    if checkpoint is None:
        raise EvalError("bleurt: must have `checkpoint`, the folder of a model such as BLEURT-20.")
    weights = [path for path in (checkpoint / name for name in _WEIGHTS) if path.is_file()]
    if not weights or not (checkpoint / "config.json").is_file():
        raise EvalError(
            f"{checkpoint}: no BLEURT checkpoint, which has config.json and {' or '.join(_WEIGHTS)}."
        )
    return checkpoint.resolve(), weights[0]
