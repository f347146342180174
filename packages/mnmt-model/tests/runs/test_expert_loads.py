"""Counts of the experts' choices on test sets, against the gates' own outputs, and their files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor

from mnmt_data.store import Ragged, read_record, write_record
from mnmt_model.runs.expert_counts import count_choices
from mnmt_model.runs.expert_loads import BLOCKS, TaskLoads, loads_path, mixture_names, read_expert_loads
from mnmt_model.transformer.build import build_model, initialise
from mnmt_model.transformer.experts.gate import Gate
from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture, ModelConfig
from mnmt_model.transformer.sentences import Sentences
from mnmt_model.transformer.translation_model import TranslationModel

CONFIG = ModelConfig(
    encoder_layers=2, decoder_layers=4, d_model=16, num_heads=2, d_ff=24, num_experts=5, capacity_factor=0.5
)
PAIRS = 47


def make_model(architecture: Architecture) -> TranslationModel:
    layers = 2 if architecture == "encdec" else None
    model = build_model(replace(CONFIG, architecture=architecture, encoder_layers=layers), 20)
    initialise(model, seed=1)
    return model.eval()


def sentences(seed: int) -> Ragged:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, size=PAIRS)
    offsets = np.concatenate([[0], lengths.cumsum()])
    return Ragged(rng.integers(1, 20, size=offsets[-1]), offsets)


def choices_of(model: TranslationModel, src: list[int], tgt: list[int]) -> np.ndarray:
    """(layers, experts): the two largest of each gate's scores, for one pair alone."""
    counts = np.zeros((len(model.mixtures), CONFIG.num_experts), dtype=np.int64)

    logits = Gate.logits

    def count(gate: Gate, x: Tensor) -> Tensor:
        np.add.at(counts[gate.number], (x @ gate.weight.T).topk(2).indices.numpy(), 1)
        return logits(gate, x)

    with torch.no_grad(), patch.object(Gate, "logits", count):
        model(*(Sentences.from_padded(torch.tensor([ids])) for ids in (src, tgt)))
    return counts


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_choices_are_those_of_each_pair_alone(architecture: Architecture) -> None:
    model, src, tgt = make_model(architecture), sentences(1), sentences(2)
    expected = np.zeros((BLOCKS, len(model.mixtures), CONFIG.num_experts), dtype=np.int64)
    for row in range(PAIRS):
        expected[row * BLOCKS // PAIRS] += choices_of(model, src[row].tolist(), tgt[row].tolist())
    for batch_tokens in (40, 10_000):
        loads = count_choices(model, src, tgt, batch_tokens=batch_tokens)
        assert loads.tolist() == expected.tolist()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_mixture_has_a_name(architecture: Architecture) -> None:
    model = make_model(architecture)
    names = mixture_names(model.config)
    assert len(names) == len(model.mixtures)
    assert names == (
        ["encoder 2", "decoder 2", "decoder 4"] if architecture == "encdec" else ["layer 2", "layer 4"]
    )


def test_files_of_the_newest_model_are_read(tmp_path: Path) -> None:
    assert read_expert_loads(tmp_path, "test") is None
    rng = np.random.default_rng(0)
    files = {
        task: TaskLoads(
            loads=rng.integers(0, 9, size=(BLOCKS, 2, 3)), step=step, weights=weights, data="data"
        )
        for task, step, weights in [("en-de", 50, "b"), ("en-fr", 40, "a"), ("en-ja", 50, "b")]
    }
    for task, file in files.items():
        write_record(loads_path(tmp_path, "test", task), file)
        write_record(loads_path(tmp_path, "test.other", task), replace(file, step=99))
    loads = read_expert_loads(tmp_path, "test")
    assert loads is not None
    assert (loads.step, loads.tasks) == (50, ("en-de", "en-ja"))
    for place, task in enumerate(loads.tasks):
        np.testing.assert_array_equal(loads.loads[:, :, place], files[task].loads)


def test_a_damaged_file_counts_as_missing(tmp_path: Path) -> None:
    path = loads_path(tmp_path, "test", "en-de")
    write_record(path, TaskLoads(loads=np.ones((BLOCKS, 1, 2), dtype=np.int64), step=1, weights="", data=""))
    content = path.read_bytes()
    for size in range(0, len(content), 50):
        path.write_bytes(content[:size])
        assert read_record(path, TaskLoads) is None
