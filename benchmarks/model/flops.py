"""FLOPs and step times of every architecture at equal parameters (Zhang et al. 2022, Fig. 4).

Claim: what each architecture costs in training and in decoding. No peer. Cited in docs/model/measured.md.

The models have the parts of that paper: ReLU feed-forward four times as wide as the model, LayerNorm after
the residual, sinusoids, one embedding. A language model matches an encoder-decoder of L + L layers with L
layers whose feed-forward is three times as wide (wide), or with 7/3 L layers (deep). FLOPs are what torch
counts at the base width of the paper, for a pair in training and a sentence in decoding. Step times are
measured on smaller models, which take turns on the same batches.

    python -m benchmarks.model.flops --out benchmarks/results/model/flops.json
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from benchmarks.model.trainers import OurTrainer, timed_step
from benchmarks.model.training_data import TrainingData, open_data
from benchmarks.model.training_speed import ADAMW
from mnmt_model.planning import count_parameters
from mnmt_model.transformer import ARCHITECTURES, ModelConfig, build_model
from mnmt_model.transformer.decoding.incremental_model import IncrementalModel
from mnmt_model.transformer.sentences import Sentences

LENGTH = 32
"""Tokens of the source, and of the target, of the counted pair."""
VOCAB_SIZE = 32_000
WARM_UP = 1
ENCDEC = "encdec"


def architectures(d_model: int, layers: int) -> dict[str, ModelConfig]:
    """Return {name: config}, all with nearly the parameters of the encoder-decoder."""
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
    configs = {ENCDEC: encdec}
    for architecture in ARCHITECTURES:
        if architecture != ENCDEC:
            model = replace(encdec, architecture=architecture)
            configs[f"{architecture}, wide"] = replace(model, d_ff=3 * encdec.d_ff)
            configs[f"{architecture}, deep"] = replace(model, decoder_layers=round(layers * 7 / 3))
    return configs


def main(
    *,
    data: Path | None = None,
    d_model: int = 256,
    layers: int = 3,
    vocab_size: int = 8_000,
    batch_tokens: int = 4096,
    steps: int = 7,
    threads: int = 2,
    out: Out = None,
) -> None:
    """Print two tables.

    Args:
        data: Folder of prepared data for the measured steps; random tokens by default.
        d_model: Width of the measured models.
        layers: Layers of the measured encoder-decoder on each side.
        vocab_size: Tokens of the measured models' vocabulary.
        batch_tokens: Source and target tokens of a batch, on average.
        steps: Timed steps of each architecture.
        threads: Threads of torch.
        out: JSON file for the figures.
    """
    torch.set_num_threads(threads)
    pairs = open_data(data, vocab_size=vocab_size, batch_tokens=batch_tokens)
    configs = architectures(d_model, layers)
    figures: Figures = {
        "counted": {name: count_flops(config) for name, config in architectures(512, 6).items()},
        "measured": measure(configs, pairs, vocab_size, steps),
    }
    print(f"FLOPs of {LENGTH} + {LENGTH} tokens, d_model 512, 6 + 6 layers, vocabulary of {VOCAB_SIZE}\n")
    print_table([{"architecture": name, **row} for name, row in figures["counted"].items()])
    shape = f"d_model {d_model}, {layers} + {layers} layers"
    print(f"Step times, {shape}, {batch_tokens} tokens a batch, {threads} threads\n")
    print_table([{"architecture": name, **row} for name, row in figures["measured"].items()])
    write_report(
        out, "architectures at equal parameters", figures, provenance("mnmt-model", "torch", "numpy")
    )


def count_flops(config: ModelConfig) -> Figures:
    """Return the parameters and FLOPs of one architecture."""
    model = build_model(config, VOCAB_SIZE)
    src, tgt = (torch.randint(1, VOCAB_SIZE, (1, LENGTH)) for _ in range(2))
    with FlopCounterMode(display=False) as training:
        model(Sentences.from_padded(src), Sentences.from_padded(tgt)).objective.backward()
    translator = IncrementalModel(model.eval())
    with torch.inference_mode(), FlopCounterMode(display=False) as decoding:
        with FlopCounterMode(display=False) as encoding:
            state = translator.encode(src, src == 0)
        for token in tgt[0]:
            _, state = translator.step(state, token[None])
    predictions = LENGTH + (LENGTH - 1 if config.predicts_source else 0)
    softmax = 3 * 2 * predictions * VOCAB_SIZE * config.d_model
    return {
        "million parameters": round(count_parameters(config, VOCAB_SIZE).size / 1e6, 2),
        "training GFLOPs": round(training.get_total_flops() / 1e9, 2),
        "without softmax": round((training.get_total_flops() - softmax) / 1e9, 2),
        "decoding GFLOPs": round(decoding.get_total_flops() / 1e9, 2),
        "of which encoding": round(encoding.get_total_flops() / 1e9, 2),
    }


def measure(
    configs: dict[str, ModelConfig], pairs: TrainingData, vocab_size: int, steps: int
) -> dict[str, Figures]:
    """Return the step times of the architectures, which take turns."""
    trainers = {name: OurTrainer(config, vocab_size, ADAMW, pairs) for name, config in configs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in trainers}
    for number in range(WARM_UP + steps):
        for name, trainer in trainers.items():
            seconds[name].append(timed_step(trainer, number).seconds)
    return {
        name: {
            "million parameters": round(count_parameters(configs[name], vocab_size).size / 1e6, 2),
            **times(some[WARM_UP:], than=seconds[ENCDEC][WARM_UP:]),
        }
        for name, some in seconds.items()
    }


def times(seconds: Sequence[float], *, than: Sequence[float]) -> Figures:
    """Return the milliseconds of a step, and their ratio to another's."""
    return {
        "ms a step": round(1000 * median(seconds)),
        "lowest": round(1000 * min(seconds)),
        "highest": round(1000 * max(seconds)),
        "over encdec": round(median(seconds) / median(than), 2),
    }


if __name__ == "__main__":
    smoke = {"threads": 1, "d_model": 64, "layers": 1, "vocab_size": 500, "batch_tokens": 256, "steps": 1}
    run(main, smoke=smoke)
