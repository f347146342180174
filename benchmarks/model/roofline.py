"""The shortest time of a training step on an H100, counted without a GPU.

Claim: what bounds a step, and how far its kernels are from matrix products alone. No peer. Cited in
docs/model/measured.md.

A step (losses, gradients, clipping, AdamW) of a batch with the lengths of real text runs on tensors without
data, on the path of a GPU. Each operator of torch that is neither a view nor an allocation counts as one
kernel, which reads its inputs and writes its outputs once; gathers and scatters move the rows they touch.
The time of a kernel is the larger of FLOPs / peak and bytes / bandwidth. It is a bound and no measurement:
caches, launches and the host's work are left out. The step is the eager one, counted also with the loss
taken to be three kernels, as `compile = true` fuses it; what else a compiler fuses is not counted.

    python -m benchmarks.model.roofline --out benchmarks/results/model/roofline.json
"""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from math import prod
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the customary name
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from benchmarks.measurement import Figures, Names, Out, print_table, provenance, run, write_report
from benchmarks.model.trainers import CLIP_NORM, Case
from benchmarks.model.training_data import TrainingData, open_data
from benchmarks.model.training_speed import SIZES
from benchmarks.model.training_speed_gpu import PRESETS
from mnmt_data.stream import BatchReader
from mnmt_model import ModelConfig, build_model, preset, training_flops
from mnmt_model.distributed import World
from mnmt_model.optim import clip_gradients, make_optimizer
from mnmt_model.training import ExpertBalance, GradientStep, make_trainable
from mnmt_model.transformer.loss import TokenLosses

PEAK = 989e12
"""FLOP/s of an H100 in bfloat16, without sparsity (NVIDIA's data sheet)."""
BANDWIDTH = 3.35e12
"""Bytes a second of an H100's memory."""
Counts = NDArray[np.float64]
"""Kernels, bytes, FLOPs and seconds."""
Parts = dict[str, Counts]
LOSSES = ("eager", "fused")
META = torch.device("meta")
ALLOCATIONS = ("empty", "new_empty", "_unsafe_view", "lift_fresh", "_record_function", "profiler")
FILLS = ("zeros", "ones", "full", "new_zeros", "new_full", "zero_", "fill_", "arange", "copy_")
"""Operators, or the beginnings of their names, that do not read their first argument."""
ROWS_READ = ("embedding", "index_select", "gather", "index")
ROWS_WRITTEN = ("index_copy_", "index_add_", "index_add", "scatter_add_")
PARTS = ("products", "cross-entropy", "attention", "optimiser", "norms and element-wise")


class KernelsOfGPU(TorchFunctionMode):
    """Calls one kernel, as on a GPU, where torch would compute tensors without data by several."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return ON_GPU.get(func, func)(*args, **(kwargs or {}))


def attend(q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor, dropout_p: float, scale: float) -> Tensor:
    """Attend with the memory-efficient kernel, which also computes the gradient of the mask."""
    keys = k.size(2)
    # As in torch: the kernel needs rows of a multiple of 8.
    mask = F.pad(attn_mask, (0, -keys % 8))[..., :keys].expand(*q.shape[:3], keys)
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    attended: Tensor = kernel(q, k, v, mask, True, dropout_p, scale=scale)[0]
    return attended


def dropout(x: Tensor, *, p: float, **_: bool) -> Tensor:
    """Drop elements."""
    return torch.native_dropout(x, p, True)[0]


def norm(x: Tensor, shape: Sequence[int], *, weight: Tensor, eps: float) -> Tensor:
    """Compute the layer norm without a bias, which moves the same tensors as the root mean square's."""
    return F.layer_norm(x, shape, weight, None, eps)


ON_GPU = {F.scaled_dot_product_attention: attend, F.dropout: dropout, F.rms_norm: norm}


class StepCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the kernels of each part of a step, with their bytes, FLOPs and seconds."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.phase = ""
        self.parts: Parts = defaultdict(lambda: np.zeros(4))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # The fused optimiser has no kernel for tensors without data; it returns nothing.
        out = None if "fused_adam" in func.__name__ else func(*args, **kwargs)
        tensors = [each for each in tree_leaves((args, kwargs, out)) if isinstance(each, Tensor)]
        if _is_kernel(func) and tensors and all(each.is_meta for each in tensors):
            flops = flop_registry.get(func.overloadpacket, lambda *_, **__: 0)(*args, **kwargs, out_val=out)
            moved = bytes_of(func, args, kwargs, out)
            part = self.phase or _part(func, flops, tensors)
            self.parts[part] += (1, moved, flops, max(flops / PEAK, moved / BANDWIDTH))
        return out

    def fused_loss(self, logits: Tensor, targets: Tensor, weights: Tensor, *_: float) -> TokenLosses:
        """Count three kernels for a chunk's loss, as torch 2.13 compiles it on a CPU.

        Two read the logits, one of which writes the gradient; a third computes the tokens' losses.
        """
        moved = 3 * size(logits)
        self.parts["cross-entropy"] += (3, moved, 0, moved / BANDWIDTH)
        return TokenLosses(torch.empty_like(weights), torch.empty((), device=META), torch.empty_like(logits))


def _is_kernel(func: Any) -> bool:
    """Return whether an operator computes: it is no allocation, and does not only return a view."""
    returns = func._schema.returns
    is_view = any(each.alias_info is not None and not each.alias_info.is_write for each in returns)
    return not is_view and not func.__name__.startswith(ALLOCATIONS)


def _part(func: Any, flops: int, tensors: list[Tensor]) -> str:
    if any(frame.filename.endswith("transformer/loss.py") for frame in traceback.extract_stack()):
        return "cross-entropy"
    # Only attention has tables of four dimensions.
    if any(each.dim() >= 4 for each in tensors):
        return "attention"
    return "products" if flops else "norms and element-wise"


def bytes_of(func: Any, args: Any, kwargs: Any, out: Any) -> int:
    """Return the bytes that an operator reads and writes."""
    name = func.__name__.partition(".")[0]
    written = 0 if name.endswith("_") else size(out)
    if name in ROWS_READ:
        return size(args[1:]) + 2 * written
    if name in ROWS_WRITTEN:
        return size(args[1:]) + size(args[3])
    if "fused_adam" in name:  # parameters and two moments, which are written, and gradients, which are not
        return 7 * size(args[0])
    first = 0 if name.startswith(FILLS) or name.endswith("_like") else size(args[0])
    if name.endswith("_"):
        written = size(args[0])
    return first + size(args[1:]) + size(kwargs) + written


def size(tree: Any) -> int:
    """Return the bytes of the distinct elements of all tensors in a tree: a repeated row counts once."""
    return sum(
        each.element_size() * prod(n for n, stride in zip(each.shape, each.stride(), strict=True) if stride)
        for each in tree_leaves(tree)
        if isinstance(each, Tensor)
    )


def count_step(model: ModelConfig, vocab_size: int, data: TrainingData, *, fused_loss: bool) -> Parts:
    """Count the first step of training on `data`."""
    case = Case(precision="bfloat16")
    config, world = case.config(data.batch_tokens), World(device=META)
    with META:
        built = build_model(model, vocab_size, dropout=case.dropout, dtype=torch.bfloat16)
    trainable = make_trainable(built, config, world).train()
    experts = ExpertBalance(built, config, world)
    step = GradientStep(trainable, config, BatchReader(data.stream), world, seed=1, experts=experts)
    optimizer = make_optimizer(built, config)
    counter = StepCounter()
    foreach = patch("torch.nn.utils.clip_grad._device_has_foreach_support", return_value=True)
    fused = patch("torch.optim.optimizer._get_fused_kernels_supported_devices", return_value=["meta"])
    loss = patch("mnmt_model.transformer.loss._cross_entropy_", counter.fused_loss)
    with foreach, fused, loss if fused_loss else nullcontext(), KernelsOfGPU(), counter:
        step(1)
        counter.phase = "optimiser"
        clip_gradients(built.parameters(), CLIP_NORM)
        optimizer.step()
    return counter.parts


def main(
    *,
    presets: Names = PRESETS,
    batch_tokens: int = 65_536,
    vocab_size: int = 32_000,
    out: Out = None,
) -> None:
    """Print rows for each preset: its whole step, then the share of each part in the time.

    Args:
        presets: Shapes: published presets, or sizes of `training_speed`.
        batch_tokens: Source and target tokens of a batch.
        vocab_size: Tokens of the vocabulary.
        out: JSON file for the figures.
    """
    data = open_data(None, vocab_size=vocab_size, batch_tokens=batch_tokens)
    rows = []
    for name in presets:
        model = SIZES[name].model if name in SIZES else preset(name).config
        src, tgt = data.stream.tokens(0)
        needed = training_flops(model, vocab_size, src_tokens=src, tgt_tokens=tgt)
        for loss in LOSSES:
            parts = count_step(model, vocab_size, data, fused_loss=loss == "fused")
            rows.append({"preset": name, "loss": loss, **figures(parts, needed)})
    print_table([{name: value for name, value in row.items() if name != "parts"} for row in rows])
    names = ({"preset": row["preset"], "loss": row["loss"]} for row in rows)
    shares = ({part: row["parts"][part]["share"] for part in PARTS} for row in rows)
    print_table([{**row, **share} for row, share in zip(names, shares, strict=True)])
    report = {"batch_tokens": batch_tokens, "vocab_size": vocab_size, "rows": rows}
    write_report(out, "roofline of a step on an H100", report, provenance("mnmt-model", "torch"))


def figures(parts: Parts, needed: int) -> Figures:
    """Return the counts of a step and of its parts, and the bound on its MFU."""
    total = sum(parts.values(), np.zeros(4))
    shares = {part: {**rounded(parts[part]), "share": round(parts[part][3] / total[3], 3)} for part in PARTS}
    return {**rounded(total), "highest_mfu": round(needed / PEAK / total[3], 3), "parts": shares}


def rounded(counts: Counts) -> Figures:
    """Return counts in readable units."""
    kernels, moved, flops, seconds = counts.tolist()
    return {
        "kernels": int(kernels),
        "gigabytes": round(moved / 1e9, 2),
        "teraflops": round(flops / 1e12, 2),
        "milliseconds": round(1000 * seconds, 2),
    }


if __name__ == "__main__":
    run(main, smoke={"presets": ("d64",), "batch_tokens": 512, "vocab_size": 1000})
