from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mnmt_data.store import Ragged
from mnmt_data.store.segments import write_segment
from mnmt_data.store.shards import Shard, segment_path
from mnmt_eval.runs import open_run
from mnmt_eval.runs.trained_run import LONG_SOURCE, drawn_weights, longest_source
from mnmt_eval.translate.translator import LEAST_MAX_SOURCE

RNG = np.random.default_rng(1)


def write_shard(folder: Path, src: np.ndarray, tgt: np.ndarray) -> Shard:
    """A shard of pairs of these lengths, `</s>` included."""
    folder.mkdir(parents=True)
    rows = [[np.array([7] * (length - 1) + [1]) for length in side] for side in (src, tgt)]
    write_segment(segment_path(folder, 0), *(Ragged.from_rows(side) for side in rows))
    return Shard.open(folder)


def data_of(folder: Path, lengths: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Any:
    """Prepared data with nothing but training pairs of these lengths."""
    shards = {task: write_shard(folder / task, src, tgt) for task, (src, tgt) in lengths.items()}
    return SimpleNamespace(
        tasks=tuple(shards),
        max_length=500,
        train_counts={task: shard.info for task, shard in shards.items()},
        shard=lambda split, task: shards[task],
    )


def lengths(count: int, mean: float) -> np.ndarray:
    return 1 + RNG.poisson(mean, size=count)


@pytest.mark.parametrize("weights", [{"xx-yy": 0.5, "yy-xx": 0.5}, {"xx-yy": 0.99, "yy-xx": 0.01}])
def test_the_limit_is_a_quantile_of_the_mixture_that_was_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights: dict[str, float]
) -> None:
    monkeypatch.setattr("mnmt_eval.runs.trained_run.LENGTH_BLOCKS", 10_000)
    short, long, unused = lengths(3000, 10), lengths(1000, 50), lengths(100, 300)
    data = data_of(tmp_path, {"xx-yy": (short, short), "yy-xx": (long, long), "xx-zz": (unused, unused)})
    both = np.concatenate([short, long])
    shares = np.repeat([weights["xx-yy"] / len(short), weights["yy-xx"] / len(long)], [len(short), len(long)])
    limit = longest_source(data, {**weights, "xx-zz": 0.0, "gone-zz": 1.0})
    assert limit == np.quantile(both, LONG_SOURCE, weights=shares, method="inverted_cdf")


def test_a_model_that_was_not_trained_here_has_the_limit_of_the_data(tmp_path: Path) -> None:
    one = np.array([2])
    data = data_of(tmp_path, {"xx-yy": (one, one)})
    assert longest_source(data, {}) == longest_source(data, {"aa-bb": 1.0}) == data.max_length
    assert longest_source(data, {"xx-yy": 1.0}) == LEAST_MAX_SOURCE


def test_weights_are_averaged_over_the_steps_of_each(tiny_run: Path) -> None:
    record = open_run(tiny_run).loaded.record
    assert drawn_weights(record, 40) == {"xx-aa": 20, "xx-bb": 20}
    phases = [{"step": 10, "weights": {"xx-aa": 1.0}}, {"step": 50, "weights": {"xx-bb": 1.0}}]
    train = {**record.config["train"], "mixing": {"phases": phases}}
    changed = replace(record, config={**record.config, "train": train})
    assert drawn_weights(changed, 40) == {"xx-aa": 35, "xx-bb": 5}
    assert drawn_weights(changed, 0) == record.mixture
