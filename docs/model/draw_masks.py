"""Draw which tokens see which in each architecture, by disturbing a model of one layer.

    python docs/model/draw_masks.py

writes docs/model/figures/mask-ARCHITECTURE.svg. Two things are disturbed, one at a time: the embedding of
each input token, and its state in the top layer. A state that the first changes sees that token, or a state
made of it. A state that the second changes sees the top layer's state. What a state predicts is found in the
same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints
from unittest import mock

import matplotlib as mpl
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from torch import Tensor, nn

from mnmt_model import EncoderDecoder, LanguageModel, ModelConfig, build_model

FIGURES = Path(__file__).parent / "figures"
SRC, TGT = [1, 2, 3, 4], [5, 6, 7, 8]
INPUTS = [*SRC, 0, *TGT[:-1]]
NAMES = {0: "<s>"} | {token: f"$x_{token}$" for token in SRC} | {token: f"$y_{token - 4}$" for token in TGT}
INK, TOP, EMPTY, EDGE = "#1d2433", "#0072b2", "#ffffff", "#b8bfcc"
SOURCES = len(SRC)
ARCHITECTURES = get_args(get_type_hints(ModelConfig)["architecture"])
Disturbance = Callable[[int, Tensor], Tensor]
Model = EncoderDecoder | LanguageModel


def build(architecture: str) -> Model:
    """Return a model of one layer a stack with random weights."""
    torch.manual_seed(0)
    config = ModelConfig(architecture=architecture, d_model=16, num_heads=2, d_ff=32)  # type: ignore[arg-type]
    model = build_model(config, 9).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    assert isinstance(model, Model)
    return model


@contextmanager
def top_states(model: Model, disturb: Disturbance) -> Iterator[list[Tensor]]:
    """Yield the disturbed outputs of the last layers, one for each token of `INPUTS`."""
    rows: list[Tensor] = []

    def hook(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        disturbed = torch.stack([disturb(len(rows) + number, row) for number, row in enumerate(output)])
        rows.extend(disturbed)
        return disturbed

    stacks = [model.encoder, model.decoder] if isinstance(model, EncoderDecoder) else [model.stack]
    handles = [stack.layers[-1].register_forward_hook(hook) for stack in stacks]
    yield rows
    for handle in handles:
        handle.remove()


@torch.no_grad()
def run(model: Model, disturb: Disturbance = lambda _, row: row) -> tuple[Tensor, Tensor, list[int]]:
    """Return the top states of all inputs, the states that predict, and the tokens that they predict."""
    predict, predictions = model.predict, []

    def record(*sides: Any) -> Any:
        predictions.append(predict(*sides))
        return predictions[-1]

    with mock.patch.object(model, "predict", record), top_states(model, disturb) as rows:
        model.logits(torch.tensor([SRC]), torch.tensor([TGT]))
    return torch.stack(rows), predictions[0].states, predictions[0].tokens.tolist()


def _shifted(key: int, number: int, row: Tensor) -> Tensor:
    return row + (number == key)


def differs(a: Tensor, b: Tensor) -> list[bool]:
    """Return which rows of two tables differ."""
    return ((a - b).abs().amax(1) > 1e-5).tolist()


@torch.no_grad()
def probe(model: Model) -> tuple[list[list[str]], list[str]]:
    """Return the colour of each cell (query, key), and what each state predicts, if anything."""
    states, predicting, tokens = run(model)
    colours = [[EMPTY] * len(INPUTS) for _ in INPUTS]
    predicts = [""] * len(INPUTS)
    for key, token in enumerate(INPUTS):
        model.embedding.weight[token] += 1
        input_changes = differs(run(model)[0], states)
        model.embedding.weight[token] -= 1
        after, changed, _ = run(model, partial(_shifted, key))
        top_changes = differs(after, states)
        for query in range(len(INPUTS)):
            if input_changes[query]:
                colours[query][key] = TOP if query != key and top_changes[query] else INK
        changed_tokens = [
            token for token, changes in zip(tokens, differs(changed, predicting), strict=True) if changes
        ]
        # A source's top state may change what targets see, but predicts no token of the target.
        predicted = [token for token in changed_tokens if key >= SOURCES or token in SRC]
        predicts[key] = NAMES[predicted[0]] if predicted else ""
    return colours, predicts


def draw(architecture: str) -> Figure:
    """Return the figure of one architecture."""
    colours, predicts = probe(build(architecture))
    size = len(INPUTS)
    figure = Figure(figsize=(4.6, 4.3), layout="constrained")
    axes = figure.add_subplot(aspect="equal", xlim=(0, size), ylim=(size, 0))
    for query, row in enumerate(colours):
        for key, colour in enumerate(row):
            axes.add_patch(
                Rectangle((key, query), 1, 1, facecolor=colour, edgecolor="#b8bfcc", linewidth=0.8)
            )
        if predicts[query]:
            axes.text(size + 0.2, query + 0.5, f"predicts {predicts[query]}", va="center", color="#5b6475")
    axes.axhline(SOURCES, color=INK, linewidth=1.6)
    axes.axvline(SOURCES, color=INK, linewidth=1.6)
    names = [NAMES[token] for token in INPUTS]
    places = [number + 0.5 for number in range(size)]
    axes.set_xticks(places, names)
    axes.set_yticks(places, names)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set(xlabel="is seen", ylabel="sees")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    entries = [Patch(facecolor=INK, label="in the same layer")]
    if any(TOP in row for row in colours):
        entries.append(Patch(facecolor=TOP, label="the top layer's state"))
    figure.legend(handles=entries, loc="outside lower center", ncols=2, frameon=False, fontsize=9.5)
    return figure


if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    with mpl.rc_context({"font.size": 10.5, "svg.hashsalt": "mnmt-model", "text.color": INK}):
        for name in ARCHITECTURES:
            draw(name).savefig(FIGURES / f"mask-{name}.svg", metadata={"Date": None, "Creator": None})
