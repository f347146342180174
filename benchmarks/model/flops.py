"""FLOPs and measured step times of every architecture at equal parameters (Zhang et al. 2022).

The parts are that paper's: ReLU feed-forward four times as wide as the model, LayerNorm after the residual,
sinusoids, one embedding. A language model matches an encoder-decoder of L + L layers with L layers whose
feed-forward is three times as wide (wide), or with 7/3 L layers (deep). FLOPs are counted for its base width,
in training by pair and in decoding by sentence; step times are measured on smaller models, each architecture
in turn, on the same batches.

    pip install mnmt-model transformers
    python -m benchmarks.model.flops --out benchmarks/results/model/flops.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import cyclopts
import torch

from benchmarks.model.training_data import open_data
from benchmarks.model.training_speed import ADAMW, Ours, Size, described, timed
from mnmt_model.planning.flops import decoding_flops, pair_flops
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.transformer import ARCHITECTURES, ModelConfig

LENGTH = 32
"""Tokens of the source, and of the target, of the counted pair."""
VOCAB_SIZE = 32_000
MEASURED_VOCAB_SIZE = 8_000
WARM_UP = 1
ENCDEC = "encdec"


def architectures(d_model: int, layers: int) -> dict[str, ModelConfig]:
    """{name: config}, all of nearly the parameters of an encoder-decoder of so many layers on each side."""
    encdec = ModelConfig(
        decoder_layers=layers,
        d_model=d_model,
        num_heads=d_model // 64,
        d_ff=4 * d_model,
        feed_forward="relu",
        norm="layer",
        norm_order="post",
        positions="sinusoidal",
        embeddings="tied",
        biases=True,
        scaled_attention=True,
    )
    found = {ENCDEC: encdec}
    for architecture in ARCHITECTURES:
        if architecture != ENCDEC:
            one = replace(encdec, architecture=architecture)
            found[f"{architecture}, wide"] = replace(one, d_ff=3 * encdec.d_ff)
            found[f"{architecture}, deep"] = replace(one, decoder_layers=round(layers * 7 / 3))
    return found


def main(
    data: Path | None = None,
    batch_tokens: int = 4096,
    steps: int = 7,
    threads: int = 2,
    out: Path | None = None,
) -> None:
    """Print two tables.

    Args:
        data: Folder of prepared data for the measured steps; drawn ones by default.
        batch_tokens: Source and target tokens of a batch, on average.
        steps: Timed of each architecture.
        threads: Of torch.
        out: File for the figures.
    """
    torch.set_num_threads(threads)
    report: dict[str, Any] = {
        "counted": {name: counted(config) for name, config in architectures(512, 6).items()},
        "measured": measured(data, batch_tokens, steps),
    }
    print(f"FLOPs of {LENGTH} + {LENGTH} tokens, d_model 512, 6 + 6 layers, vocabulary of {VOCAB_SIZE}\n")
    print_table(report["counted"])
    print(f"\nStep times, d_model 256, 3 + 3 layers, {batch_tokens} tokens a batch, {threads} threads\n")
    print_table(report["measured"])
    if out:
        report = {"what": "architectures at equal parameters", **report}
        out.write_text(json.dumps(report | described(), indent=1) + "\n", encoding="utf-8")


def counted(config: ModelConfig) -> dict[str, float]:
    """Parameters and FLOPs of one architecture."""
    training = pair_flops(config, VOCAB_SIZE, src_len=LENGTH, tgt_len=LENGTH)
    decoding = decoding_flops(config, VOCAB_SIZE, src_len=LENGTH, tgt_len=LENGTH)
    return {
        "million parameters": round(count_parameters(config, VOCAB_SIZE).size / 1e6, 2),
        "training GFLOPs": round(training.total / 1e9, 2),
        "without softmax": round((training.total - training.softmax) / 1e9, 2),
        "decoding GFLOPs": round(decoding.total / 1e9, 2),
        "of which encoding": round(decoding.encoding.total / 1e9, 2),
    }


def measured(data: Path | None, batch_tokens: int, steps: int) -> dict[str, dict[str, float]]:
    """Step times of the architectures, which take turns."""
    pairs = open_data(data, vocab_size=MEASURED_VOCAB_SIZE, batch_tokens=batch_tokens)
    configs = architectures(256, 3)
    ways = {name: Ours(sized(config), ADAMW, pairs) for name, config in configs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(WARM_UP + steps):
        for name, way in ways.items():
            seconds[name].append(timed(way, number).seconds)
    return {
        name: {
            "million parameters": round(count_parameters(configs[name], MEASURED_VOCAB_SIZE).size / 1e6, 2),
            **times(some[WARM_UP:], than=seconds[ENCDEC][WARM_UP:]),
        }
        for name, some in seconds.items()
    }


def sized(config: ModelConfig) -> Size:
    """The model to measure; its cases and steps are this program's."""
    return Size(model=config, vocab_size=MEASURED_VOCAB_SIZE, cases=(), steps=0, random_steps=0)


def times(seconds: Sequence[float], *, than: Sequence[float]) -> dict[str, float]:
    """Milliseconds of a step, and over another's."""
    return {
        "ms a step": round(1000 * median(seconds)),
        "lowest": round(1000 * min(seconds)),
        "highest": round(1000 * max(seconds)),
        "over encdec": round(median(seconds) / median(than), 2),
    }


def print_table(rows: Mapping[str, Mapping[str, float]]) -> None:
    """One row an architecture."""
    columns = list(rows[ENCDEC])
    print(f"| architecture | {' | '.join(columns)} |")
    print("|--" * (len(columns) + 1) + "|")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(map(str, row.values()))} |")


if __name__ == "__main__":
    cyclopts.run(main)
