"""Training speed against Hugging Face transformers' T5: equal shape, weights, pairs and optimiser.

Ours is timed as `mnmt-model train` computes a step: batch, losses, gradients, clipping, optimiser. The peer,
`T5ForConditionalGeneration`, gets padded tables with attention masks, and is timed on our own batches, of
sentences of alike lengths, and on batches of as many of the same pairs in random order, as a DataLoader makes
them. The ways take turns, a step each, so that what else the machine does falls on all of them. Printed are
source and target tokens a second, without padding: median and range over the steps, and ours over each of the
peer's. Losses are a check: the first are the same without dropout, and after equally many steps on the same
batches they are close.

    pip install mnmt-model transformers
    mnmt-data prepare studies/libreoffice-en-de-zh.toml
    python -m benchmarks.model.training_speed --data results/libreoffice-en-de-zh/data \
        --out benchmarks/results/model/training_speed.json

Without `--data`, lengths are drawn from a log-normal that resembles that text's, and tokens at random.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, Literal, Protocol

import cyclopts
import numpy as np
import torch
from torch import Tensor, nn
from transformers import T5Config, T5ForConditionalGeneration
from transformers.optimization import Adafactor

from benchmarks.model.training_data import TrainingData, open_data
from mnmt_data.stream import Batch
from mnmt_model.distributed.world import World
from mnmt_model.export.t5_layout import hugging_face_name, t5_config
from mnmt_model.optim import clip_gradients, make_optimizer
from mnmt_model.train_config import TrainConfig
from mnmt_model.training import PRECISIONS, GradientStep, make_trainable
from mnmt_model.transformer import ModelConfig, build_model, initialise

SEED = 1
TOLERANCE = 1e-5
WARM_UP = 1
WARM_UP_COMPILED = 8
CLIP_NORM = 1.0
RATES = {"adamw": 3e-4, "adafactor": 0.01}


@dataclass(frozen=True, kw_only=True)
class Case:
    """How both are trained."""

    optimizer: Literal["adamw", "adafactor"] = "adamw"
    precision: Literal["float32", "bfloat16"] = "float32"
    dropout: float = 0.1
    compile: bool = False

    def __str__(self) -> str:
        compiled = ", compiled" if self.compile else ""
        return f"{self.optimizer}, {self.precision}, dropout {self.dropout:g}{compiled}"

    def config(self, batch_tokens: int) -> TrainConfig:
        """Ours."""
        return TrainConfig(
            batch_tokens=batch_tokens,
            learning_rate=RATES[self.optimizer],
            clip_norm=CLIP_NORM,
            **asdict(self),
        )


ADAMW, BFLOAT16, ADAFACTOR, NO_DROPOUT = CASES = (
    Case(),
    Case(precision="bfloat16"),
    Case(optimizer="adafactor"),
    Case(dropout=0.0),
)


@dataclass(frozen=True, kw_only=True)
class Size:
    """A T5 1.1."""

    model: ModelConfig
    vocab_size: int
    cases: tuple[Case, ...]
    steps: int
    """Timed steps of each way in each case."""
    random_steps: int
    """Of the peer on random batches, whose padding makes them long; in the first case alone."""


def t5(d_model: int, layers: int) -> ModelConfig:
    """The shape of Fernandes et al. 2023, Table A: heads of 64, d_ff of 4 d_model."""
    return ModelConfig(
        encoder_layers=layers,
        decoder_layers=layers,
        d_model=d_model,
        num_heads=d_model // 64,
        d_ff=4 * d_model,
    )


SIZES = {
    "d256": Size(model=t5(256, 2), vocab_size=8_000, cases=CASES, steps=9, random_steps=3),
    "d512": Size(model=t5(512, 2), vocab_size=16_000, cases=CASES, steps=5, random_steps=2),
    "d768": Size(model=t5(768, 3), vocab_size=32_000, cases=(ADAMW, BFLOAT16), steps=3, random_steps=0),
}


class Way(Protocol):
    """One way to train."""

    def step(self, number: int) -> float:
        """Make the step `number`, from 0; the loss in nats per target token."""
        ...

    def tokens(self, number: int) -> int:
        """Source and target tokens of that step."""
        ...


class Ours:
    """As `Trainer` makes a step."""

    def __init__(self, size: Size, case: Case, data: TrainingData) -> None:
        self.config = case.config(data.batch_tokens)
        dtype = PRECISIONS[case.precision]
        self.model = build_model(size.model, size.vocab_size, dropout=case.dropout, dtype=dtype)
        initialise(self.model, SEED)
        trainable = make_trainable(self.model, self.config, World())
        self.optimizer = make_optimizer(self.model, self.config)
        self.stream = data.stream
        self.gradient_step = GradientStep(trainable, self.config, data.stream, World())
        self.model.train()

    def step(self, number: int) -> float:
        """Make a step."""
        torch.manual_seed(number)
        losses = self.gradient_step(number)
        norm = clip_gradients(self.model, CLIP_NORM)
        if np.isfinite(float(norm)):
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(losses.nats) / losses.tgt_tokens

    def tokens(self, number: int) -> int:
        """Of that step."""
        return sum(self.stream.tokens(number))


class Theirs:
    """transformers' T5 in a plain training loop, with the same first weights as ours."""

    def __init__(self, size: Size, case: Case, batch: Callable[[int], Batch]) -> None:
        self.batch, self.case = batch, case
        self.module = their_model(size, case.dropout)
        if case.compile:
            self.module.compile(dynamic=True)
        self.optimizer = their_optimizer(self.module, case)
        self.module.train()

    def step(self, number: int) -> float:
        """Make a step."""
        torch.manual_seed(number)
        batch = self.batch(number)
        src, tgt = torch.from_numpy(batch.src), torch.from_numpy(batch.tgt)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.case.precision == "bfloat16"):
            labels = tgt.masked_fill(tgt == 0, -100)
            loss = self.module(input_ids=src, attention_mask=src != 0, labels=labels).loss
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.module.parameters(), CLIP_NORM, foreach=True)
        if np.isfinite(float(norm)):
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    def tokens(self, number: int) -> int:
        """Of that step."""
        batch = self.batch(number)
        return int(np.count_nonzero(batch.src)) + batch.num_tokens


def their_model(size: Size, dropout: float) -> T5ForConditionalGeneration:
    """Their model with the weights that ours starts from."""
    ours = build_model(size.model, size.vocab_size)
    initialise(ours, SEED)
    config = T5Config(  # type: ignore[no-untyped-call]
        **t5_config(size.model, size.vocab_size) | {"dropout_rate": dropout}
    )
    model = T5ForConditionalGeneration(config)
    weights = {hugging_face_name(name): weight for name, weight in ours.state_dict().items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    copies = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    if (
        unexpected
        or set(missing) - copies
        or model.num_parameters() != sum(map(Tensor.numel, weights.values()))
    ):
        raise RuntimeError("transformers' T5 has other weights than ours")
    return model


def their_optimizer(model: nn.Module, case: Case) -> torch.optim.Optimizer:
    """The optimiser of `case` with the settings of ours."""
    rate = RATES[case.optimizer]
    if case.optimizer == "adafactor":
        return Adafactor(  # type: ignore[no-untyped-call]
            model.parameters(), lr=rate, scale_parameter=True, relative_step=False
        )
    return torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)


OURS, SAME, RANDOM = "ours", "transformers, same batches", "transformers, random batches"


def make_ways(size: Size, case: Case, data: TrainingData) -> dict[str, Way]:
    """Ours, and the peer on our batches and, in the first case, on random ones."""
    ways: dict[str, Way] = {OURS: Ours(size, case, data), SAME: Theirs(size, case, data.stream.batch)}
    if case == ADAMW and size.random_steps:
        ways[RANDOM] = Theirs(size, case, data.random_batch)
    return ways


def main(
    data: Path | None = None,
    sizes: tuple[str, ...] = tuple(SIZES),
    batch_tokens: int = 4096,
    steps: int | None = None,
    compiled: bool = False,
    threads: int = 2,
    out: Path | None = None,
) -> None:
    """Print a table for each size.

    Args:
        data: Folder of prepared data; drawn ones by default.
        sizes: Of the models.
        batch_tokens: Source and target tokens of a batch, on average.
        steps: Timed of each way in each case; by default more for smaller models.
        compiled: Also with layers (ours) or the model (transformers) compiled, the first steps not counted.
        threads: Of torch.
        out: File for the figures.
    """
    torch.set_num_threads(threads)
    pairs = open_data(
        data, vocab_size=min(size.vocab_size for size in SIZES.values()), batch_tokens=batch_tokens
    )
    report: dict[str, Any] = {
        "what": f"training steps of {batch_tokens} tokens, {threads} threads",
        "data": {"text": pairs.what, "padding": padding(pairs)},
        "sizes": {},
    }
    print(f"{report['what']}; {report['data']}")
    for name in sizes:
        size = SIZES[name]
        cases = size.cases + ((Case(compile=True),) if compiled else ())
        report["sizes"][name] = found = {
            "model": {**asdict(size.model), "vocab_size": size.vocab_size, "parameters": parameters(size)},
            "first_losses_without_dropout": first_losses(size, pairs),
            "cases": {},
        }
        print_head(name, found)
        for case in cases:
            found["cases"][str(case)] = rows = compared(size, case, pairs, steps or size.steps)
            print_rows(case, rows)
    if out:
        out.write_text(json.dumps(report | described(), indent=1) + "\n", encoding="utf-8")


def padding(data: TrainingData) -> dict[str, float]:
    """Share of the tables that is padding, over the first batches."""
    kinds = {"same batches": data.stream.batch, "random batches": data.random_batch}
    return {
        name: round(float(np.mean([batch(number).padding for number in range(10)])), 3)
        for name, batch in kinds.items()
    }


def parameters(size: Size) -> int:
    """All of them."""
    with torch.device("meta"):
        return sum(map(Tensor.numel, build_model(size.model, size.vocab_size).parameters()))


def first_losses(size: Size, data: TrainingData) -> dict[str, float]:
    """Nats per target token of the first batch, before any step; they must agree to 1e-5."""
    ways: dict[str, Way] = {
        OURS: Ours(size, NO_DROPOUT, data),
        SAME: Theirs(size, NO_DROPOUT, data.stream.batch),
    }
    losses = {name: way.step(0) for name, way in ways.items()}
    if abs(losses[OURS] / losses[SAME] - 1) > TOLERANCE:
        raise RuntimeError(f"ours and transformers' T5 differ: {losses}")
    return losses


def compared(size: Size, case: Case, data: TrainingData, steps: int) -> dict[str, dict[str, float]]:
    """Rates and losses of the ways, which take turns."""
    ways = make_ways(size, case, data)
    warm_up = WARM_UP_COMPILED if case.compile else WARM_UP
    done: dict[str, list[Done]] = {name: [] for name in ways}
    for number in range(warm_up + steps):
        for name, way in ways.items():
            if name != RANDOM or number >= warm_up + steps - size.random_steps - 1:
                done[name].append(timed(way, number))
    rows = {name: summary(some, warm_up) for name, some in done.items()}
    ours = rows[OURS]["tokens_per_second"]
    return {
        name: {**row, "ours_over_it": round(ours / row["tokens_per_second"], 2)} for name, row in rows.items()
    }


@dataclass(frozen=True, kw_only=True)
class Done:
    """One step."""

    seconds: float
    tokens: int
    loss: float


def timed(way: Way, number: int) -> Done:
    """Make a step."""
    start = time.perf_counter()
    loss = way.step(number)
    return Done(seconds=time.perf_counter() - start, tokens=way.tokens(number), loss=loss)


def summary(done: Sequence[Done], warm_up: int) -> dict[str, float]:
    """What is told of one way, whose first steps do not count."""
    steps = done[warm_up:]
    rates = [step.tokens / step.seconds for step in steps]
    return {
        "tokens_per_second": round(median(rates)),
        "lowest": round(min(rates)),
        "highest": round(max(rates)),
        "warm_up_seconds": round(sum(step.seconds for step in done[:warm_up]), 1),
        "last_loss": round(steps[-1].loss, 4),
    }


def print_head(name: str, found: Mapping[str, Any]) -> None:
    """What the size is."""
    model, losses = found["model"], found["first_losses_without_dropout"]
    layers = f"{model['encoder_layers']}+{model['decoder_layers']} layers"
    print(f"\n### {name}: {layers}, {model['vocab_size']} tokens, {model['parameters']:,} parameters\n")
    print(f"First losses: {losses[OURS]:.6f} ours, {losses[SAME]:.6f} transformers.\n")
    print("| case | way | tokens/s | lowest | highest | ours over it | last loss |\n|--|--|--|--|--|--|--|")


def print_rows(case: Case, rows: Mapping[str, Mapping[str, float]]) -> None:
    """Table rows of a case."""
    for name, row in rows.items():
        figures = (
            row[key] for key in ("tokens_per_second", "lowest", "highest", "ours_over_it", "last_loss")
        )
        print(f"| {case} | {name} | {' | '.join(map(str, figures))} |", flush=True)


def described() -> dict[str, Any]:
    """What the figures were measured with."""
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}",
        "date": datetime.now(tz=UTC).date().isoformat(),
        "versions": {name: version(name) for name in ("mnmt-model", "torch", "transformers", "numpy")},
    }


if __name__ == "__main__":
    cyclopts.run(main)
