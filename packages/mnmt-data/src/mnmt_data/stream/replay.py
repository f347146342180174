"""The batches that a run read, computed again: its draws up to any step, and the pairs of any batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from mnmt_data.errors import DataError
from mnmt_data.store.prepared import PreparedData, open_prepared
from mnmt_data.stream import mixing
from mnmt_data.stream.batch_stream import BatchStream
from mnmt_data.stream.mixing import MixingConfig
from mnmt_data.stream.mixture import Mixture
from mnmt_data.study import structure

RUN = "run.json"


@dataclass(frozen=True, kw_only=True)
class RecordedStream:
    """The settings that decide a run's stream."""

    data: Path
    """Folder of prepared data."""

    mixture: Mixture
    mixing: MixingConfig
    batch_tokens: int
    seed: int
    steps: int | None = None
    """Training steps of the run."""

    def check_step(self, step: int) -> None:
        """Refuse a step that the run has not.

        Raises:
            DataError: If it is at or beyond the run's end.
        """
        if self.steps is not None and step >= self.steps:
            last = f"the last of the run's {self.steps:,} steps is {self.steps - 1}"
            raise DataError(f"--step must be in the run: {last}, counted from 0, but it is {step}.")


def read_recorded_stream(run: Path) -> RecordedStream:
    """Read what decides the stream of a run from its record (docs/run-record.md).

    Raises:
        DataError: If there is no run record, or it does not say.
    """
    path = run / RUN
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        train = record["config"]["train"]
        return RecordedStream(
            data=run / record["data"],
            mixture=Mixture(record["mixture"]),
            mixing=structure(train.get("mixing", {}), MixingConfig, where="mixing"),
            batch_tokens=int(train["batch_tokens"]),
            seed=int(record["seed"]),
            steps=train.get("steps"),
        )
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{path}: no such run record; name the folder of a run.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: does not say what the run read ({error!r}).") from None


def open_recorded_stream(recorded: RecordedStream) -> tuple[BatchStream, PreparedData]:
    """Open the stream of a run; return it with the data that it reads."""
    data = open_prepared(recorded.data)
    stream = mixing.open_stream(
        data, recorded.mixture, recorded.mixing, batch_tokens=recorded.batch_tokens, seed=recorded.seed
    )
    return stream, data


def audit(stream: BatchStream, step: int) -> dict[str, Any]:
    """Compare the weights of the tasks with their shares in the batches before `step`.

    Returns:
        {task: weight, pairs drawn, share of all draws, epochs, deviation}: the weight is the average over the
        draws, the deviation how far the share is from it in standard deviations of independent draws.
    """
    counts, sampler = stream.counts(step), stream.sampler
    total, weights = max(1, sum(counts.values())), sampler.average_weights(max(step, 1))
    return {
        task: {
            "weight": weights[task][0],
            "pairs": count,
            "share": count / total,
            "epochs": count / sampler.infos[task].pairs if task in sampler.infos else 0.0,
            "deviation": _deviation(count, total, *weights[task]) if step else 0.0,
        }
        for task, count in counts.items()
    }


def describe_batch(stream: BatchStream, data: PreparedData, step: int, *, samples: int) -> dict[str, Any]:
    """Return size and padding of a batch, and the first of its pairs as text."""
    batch = stream.batch(step)
    locations = stream.locations(step)[:samples]
    return {
        "step": step,
        "pairs": len(batch.src),
        "tgt_tokens": batch.num_tokens,
        "padding": batch.padding,
        "samples": [
            {"task": task, "row": row, "src": data.vocab.decode(src), "tgt": data.vocab.decode(tgt)}
            for (task, row), src, tgt in zip(locations, batch.src, batch.tgt, strict=False)
        ],
    }


def _deviation(count: int, total: int, weight: float, variance: float) -> float:
    return (count - total * weight) / sqrt(total * variance) if variance else 0.0
