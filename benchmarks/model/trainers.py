"""One training step at a time, for the training benchmarks: ours, and Hugging Face transformers' T5.

Ours computes a step as `mnmt-model train` does: batch, losses, gradients, clipping, optimiser. The peer,
`T5ForConditionalGeneration`, gets padded tables with attention masks in a plain training loop. Both have the
same initial weights and the same settings of the optimiser.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.model.training_data import TrainingData
from mnmt_data.stream import Batch, BatchReader
from mnmt_model import ModelConfig, TrainConfig, build_model
from mnmt_model.distributed import World
from mnmt_model.export.t5_layout import hugging_face_name, json_config
from mnmt_model.optim import clip_gradients, make_optimizer
from mnmt_model.training import PRECISIONS, ExpertBalance, GradientStep, make_trainable
from mnmt_model.transformer import initialise

SEED = 1
CLIP_NORM = 1.0
RATES = {"adamw": 3e-4, "adafactor": 0.01}
DROPOUT = 0.1


@dataclass(frozen=True, kw_only=True)
class Case:
    """How both are trained."""

    optimizer: Literal["adamw", "adafactor"] = "adamw"
    precision: Literal["float32", "bfloat16"] = "float32"
    dropout: float = DROPOUT
    compile: bool = False
    device: str = "cpu"

    def __str__(self) -> str:
        compiled = ", compiled" if self.compile else ""
        return f"{self.optimizer}, {self.precision}, dropout {self.dropout:g}{compiled}"

    def config(self, batch_tokens: int) -> TrainConfig:
        """Return our configuration."""
        options = asdict(self)
        del options["device"]
        rate = RATES[self.optimizer]
        return TrainConfig(batch_tokens=batch_tokens, learning_rate=rate, clip_norm=CLIP_NORM, **options)


@dataclass(frozen=True, kw_only=True)
class Step:
    """The figures of one step."""

    seconds: float
    tokens: int
    loss: float


class Trainer(Protocol):
    """One way to train."""

    def step(self, number: int) -> float:
        """Make the step `number`, from 0; return the loss in nats per target token."""
        ...

    def tokens(self, number: int) -> int:
        """Return the source and target tokens of that step."""
        ...


class OurTrainer:
    """Steps as mnmt-model's trainer makes them, on so many batches that come again, or on ever new ones."""

    def __init__(
        self, model: ModelConfig, vocab_size: int, case: Case, data: TrainingData, *, batches: int = 0
    ) -> None:
        self.config = case.config(data.batch_tokens)
        world = World(device=torch.device(case.device))
        dtype = PRECISIONS[case.precision]
        self.model = build_model(model, vocab_size, dropout=case.dropout, dtype=dtype)
        initialise(self.model, SEED)
        trainable = make_trainable(self.model, self.config, world)
        self.optimizer = make_optimizer(self.model, self.config)
        self.stream, self.batches = data.stream, batches
        reader: Any = data.cycle(batches) if batches else BatchReader(data.stream)
        experts = ExpertBalance(self.model, self.config, world)
        self.gradient_step = GradientStep(trainable, self.config, reader, world, seed=SEED, experts=experts)
        self.model.train()
        self.params = list(self.model.parameters())

    def step(self, number: int) -> float:
        """Make a step."""
        losses = self.gradient_step(number + 1)
        norm = clip_gradients(self.params, CLIP_NORM)
        if np.isfinite(float(norm)):
            self.optimizer.step()
        for parameter in self.params:
            parameter.grad = None
        return float(losses.nats) / losses.tgt_tokens

    def tokens(self, number: int) -> int:
        """Return the tokens of that step."""
        return sum(self.stream.tokens(number % self.batches if self.batches else number))


class TheirTrainer:
    """Steps of transformers' T5 in a plain training loop, with the same initial weights as ours."""

    def __init__(
        self, model: ModelConfig, vocab_size: int, case: Case, batch: Callable[[int], Batch]
    ) -> None:
        self.batch, self.case = batch, case
        self.module = their_model(model, vocab_size, case.dropout).to(case.device)
        if case.compile:
            self.module.compile(dynamic=True)
        self.optimizer = their_optimizer(self.module, case)
        self.module.train()

    def step(self, number: int) -> float:
        """Make a step."""
        torch.manual_seed(number)
        batch, device = self.batch(number), self.case.device
        src, tgt = torch.from_numpy(batch.src).to(device), torch.from_numpy(batch.tgt).to(device)
        with torch.autocast(device, torch.bfloat16, enabled=self.case.precision == "bfloat16"):
            labels = tgt.masked_fill(tgt == 0, -100)
            loss = self.module(input_ids=src, attention_mask=src != 0, labels=labels).loss
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.module.parameters(), CLIP_NORM, foreach=True)
        if np.isfinite(float(norm)):
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    def tokens(self, number: int) -> int:
        """Return the tokens of that step."""
        batch = self.batch(number)
        return int(np.count_nonzero(batch.src)) + batch.num_tokens


def their_model(config: ModelConfig, vocab_size: int, dropout: float, *, seed: int = SEED) -> Any:
    """Return transformers' T5 with the weights that ours starts from.

    Raises:
        RuntimeError: It has other weights than ours.
    """
    transformers: Any = import_module("transformers")
    ours = build_model(config, vocab_size)
    initialise(ours, seed)
    model = transformers.T5ForConditionalGeneration(
        transformers.T5Config(**json_config(config, vocab_size) | {"dropout_rate": dropout})
    )
    weights = {hugging_face_name(name): weight for name, weight in ours.state_dict().items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    copies = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    num_weights = sum(map(Tensor.numel, weights.values()))
    if unexpected or set(missing) - copies or model.num_parameters() != num_weights:
        raise RuntimeError("transformers' T5 has other weights than ours")
    return model


def their_optimizer(model: nn.Module, case: Case) -> torch.optim.Optimizer:
    """Return the optimiser of `case` with the settings of ours."""
    rate = RATES[case.optimizer]
    if case.optimizer == "adafactor":
        optimization: Any = import_module("transformers.optimization")
        adafactor: torch.optim.Optimizer = optimization.Adafactor(
            model.parameters(), lr=rate, scale_parameter=True, relative_step=False
        )
        return adafactor
    return torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)


def timed_step(trainer: Trainer, number: int) -> Step:
    """Make a step; on a GPU, wait for it.

    With one thread on a CPU the time is the processor's, which other work on the machine hardly touches.
    """
    alone = torch.get_num_threads() == 1 and not torch.cuda.is_available()
    clock = time.process_time if alone else time.perf_counter
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = clock()
    loss = trainer.step(number)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return Step(seconds=clock() - start, tokens=trainer.tokens(number), loss=loss)
