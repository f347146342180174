"""Training speed on a GPU: the presets of 20M to 1B in bfloat16, against transformers' T5, both compiled.

Tokens are source and target tokens without padding; model FLOPs utilisation (MFU) is of the data sheet's
dense peak. Both peers get the same pairs in the same batches and fused AdamW; the peer's are padded tables.
Weights and text are drawn at random, with the lengths of real text.

    python -m benchmarks.model.training_speed_gpu --out benchmarks/results/model/training_speed_gpu.json

`benchmarks/on_gpu.sh` runs this with everything else that needs a GPU.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import cyclopts
import torch
from transformers import T5Config, T5ForConditionalGeneration

from benchmarks.model.training_data import TrainingData, open_data
from mnmt_model import build_model
from mnmt_model.distributed.world import World
from mnmt_model.export.t5_layout import t5_config
from mnmt_model.optim import clip_gradients, make_optimizer
from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.presets import preset
from mnmt_model.train_config import TrainConfig
from mnmt_model.training import GradientStep, make_trainable, peak_flops
from mnmt_model.transformer import initialise

PRESETS = ("fernandes-l2-d512", "fernandes-l6-d768", "fernandes-l12-d1024", "fernandes-l12-d1536")
VOCAB_SIZE = 32_000
WARM_UP = 6
CONFIG = {"optimizer": "adamw", "learning_rate": 1e-4, "precision": "bfloat16", "clip_norm": 1.0}

Step = Callable[[int], None]


def main(
    *,
    presets: tuple[str, ...] = PRESETS,
    batch_tokens: int = 65_536,
    steps: int = 20,
    compiled: bool = True,
    out: Path | None = None,
) -> None:
    """Print a row a preset and peer.

    Args:
        presets: Shapes, with a vocabulary of 32,000.
        batch_tokens: Source and target tokens of a batch.
        steps: Timed, after six that are not.
        compiled: Whether layers (ours) and the model (transformers) are compiled.
        out: JSON file for the figures.
    """
    if not torch.cuda.is_available():
        raise SystemExit("torch.cuda is not available: this benchmark needs a GPU")
    data = open_data(None, vocab_size=VOCAB_SIZE, batch_tokens=batch_tokens)
    rows = []
    for name in presets:
        for peer, prepare in (("mnmt-model", ours), ("transformers", theirs)):
            row = {"preset": name, "peer": peer, **measured(name, data, prepare, steps, compiled)}
            rows.append(row)
            print(json.dumps(row), flush=True)
    report = {
        "gpu": torch.cuda.get_device_name(),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {package: version(package) for package in ("mnmt-model", "torch", "transformers")},
        "batch_tokens": batch_tokens,
        "compiled": compiled,
        "rows": rows,
    }
    if out:
        out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def measured(
    name: str, data: TrainingData, prepare: Callable[..., Step], steps: int, compiled: bool
) -> dict[str, Any]:
    """Rates of one peer; what went wrong, if anything did."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    try:
        step = prepare(name, data, compiled)
        seconds = [timed(step, number) for number in range(WARM_UP + steps)][WARM_UP:]
    except torch.OutOfMemoryError as error:
        return {"error": str(error).partition(".")[0]}
    tokens = [data.stream.tokens(WARM_UP + number) for number in range(steps)]
    rates = [sum(each) / took for each, took in zip(tokens, seconds, strict=True)]
    flops = [
        training_flops(preset(name).config, VOCAB_SIZE, src_tokens=src, tgt_tokens=tgt) for src, tgt in tokens
    ]
    peak = peak_flops(torch.device("cuda"), torch.bfloat16)
    return {
        "tokens_per_second": round(median(rates)),
        "range": [round(min(rates)), round(max(rates))],
        "mfu": round(sum(flops) / sum(seconds) / peak, 3) if peak else None,
        "peak_memory_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
    }


def timed(step: Step, number: int) -> float:
    """Seconds of a step."""
    torch.cuda.synchronize()
    since = time.perf_counter()
    step(number)
    torch.cuda.synchronize()
    return time.perf_counter() - since


def ours(name: str, data: TrainingData, compiled: bool) -> Step:
    """As `mnmt_model` trains."""
    config = TrainConfig(batch_tokens=data.batch_tokens, dropout=0.1, compile=compiled, **CONFIG)  # type: ignore[arg-type]
    world = World(device=torch.device("cuda"))
    model = build_model(preset(name).config, VOCAB_SIZE, dropout=config.dropout, dtype=torch.bfloat16)
    initialise(model, seed=1)
    gradient_step = GradientStep(make_trainable(model, config, world), config, data.stream, world)
    optimizer = make_optimizer(model, config)
    model.train()

    def step(number: int) -> None:
        gradient_step(number)
        clip_gradients(model, config.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def theirs(name: str, data: TrainingData, compiled: bool) -> Step:
    """As a plain loop trains transformers' T5 with mixed precision."""
    config = T5Config(**t5_config(preset(name).config, VOCAB_SIZE) | {"dropout_rate": 0.1})
    module = T5ForConditionalGeneration(config).cuda().train()
    model = torch.compile(module, dynamic=True) if compiled else module
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)

    def step(number: int) -> None:
        batch = data.stream.batch(number)
        src, tgt = torch.from_numpy(batch.src).cuda(), torch.from_numpy(batch.tgt).cuda()
        labels = tgt.masked_fill(tgt == 0, -100)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=src, attention_mask=src != 0, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


if __name__ == "__main__":
    cyclopts.run(main)
