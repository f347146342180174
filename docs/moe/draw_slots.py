"""Draw how a group of tokens shares the experts' slots, as `route` decides it.

    python docs/moe/draw_slots.py

writes docs/moe/figures/slots.svg. Choices, slots and rows are the operators'; only the logits are made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from mnmt_moe_ext import RandomKey, expert_capacity, route

FIGURES = Path(__file__).parent / "figures"
TOKENS, EXPERTS, PADDING = 12, 4, 11
SEED = 357
"""Of logits that let every fate of a choice be seen."""
INK, GREY, EDGE = "#1d2433", "#5b6475", "#b8bfcc"
COLOURS, INKS = ("#0072b2", "#f2c14e"), ("#ffffff", INK)
RANKS = ("1st", "2nd")
KEPT, DROPPED, NOT_KEPT = "kept", "dropped", "not kept"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One of a token's two choices, and what became of it."""

    token: int
    rank: int
    expert: int
    fate: str
    slot: int
    row: int


def make_logits() -> Tensor:
    """(1, tokens, experts), of a gate that likes expert 1 too much."""
    logits = torch.randn(1, TOKENS, EXPERTS, generator=torch.Generator().manual_seed(SEED))
    return 1.2 * logits + torch.tensor([0.0, 1.2, 0.3, -0.5])


def ask_operators(capacity: int) -> tuple[list[Claim], int]:
    """Return the slot and row of every choice, and the rows of a bin."""
    logits = make_logits()
    padding = torch.arange(TOKENS)[None] == PADDING
    key = RandomKey.make(seed=1, step=0)
    options = {"capacity": capacity, "second_expert_policy": "random", "random_key": key}
    routing, layout = route(logits, padding, layout="capacity", **options)
    # What the gate would choose if it kept every second choice.
    chosen = route(logits, padding, capacity=None)[0].experts
    claims = []
    for token in range(TOKENS):
        for rank in range(2):
            at = (0, token, rank)
            expert, slot = int(chosen[at]), int(routing.slots[at])
            fate = KEPT if slot >= 0 else DROPPED if routing.experts[at] >= 0 else NOT_KEPT
            if expert >= 0:
                claims.append(
                    Claim(
                        token=token, rank=rank, expert=expert, fate=fate, slot=slot, row=int(layout.rows[at])
                    )
                )
    return claims, layout.bin_size


def cell(axes: Axes, x: float, y: float, claim: Claim | None, text: str = "") -> None:
    """Draw a cell in the colour of its claim: filled if kept, struck out if dropped, dotted if not kept."""
    face = COLOURS[claim.rank] if claim and claim.fate == KEPT else "#ffffff"
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=face, edgecolor=EDGE, linewidth=0.8))
    if claim is None:
        return
    ink = INKS[claim.rank] if claim.fate == KEPT else INK
    axes.text(x + 0.5, y + 0.52, text, ha="center", va="center", color=ink, fontsize=9.5)
    if claim.fate != KEPT:
        style = "-" if claim.fate == DROPPED else (0, (1, 1.5))
        inner = Rectangle((x + 0.08, y + 0.1), 0.84, 0.8, fill=False, edgecolor=COLOURS[claim.rank])
        inner.set(linewidth=2, linestyle=style)
        axes.add_patch(inner)
    if claim.fate == DROPPED:
        axes.plot([x + 0.12, x + 0.88], [y + 0.52, y + 0.52], color=INK, linewidth=1.1)


def draw_choices(axes: Axes, claims: list[Claim]) -> None:
    """Tokens down, experts across: each token's two choices."""
    at = {(claim.token, claim.expert): claim for claim in claims}
    for token in range(TOKENS):
        for expert in range(EXPERTS):
            claim = at.get((token, expert))
            cell(axes, expert, token, claim, RANKS[claim.rank] if claim else "")
    axes.text(EXPERTS / 2, PADDING + 0.52, "padding", ha="center", va="center", color=GREY, fontsize=9.5)
    frame(axes, "What each token chooses", [f"token {token}" for token in range(TOKENS)])


def draw_buffers(axes: Axes, claims: list[Claim], bin_size: int) -> None:
    """Slots down, experts across: which token lies in each row of the buffers."""
    at = {claim.row: claim for claim in claims if claim.fate == KEPT}
    for expert in range(EXPERTS):
        for slot in range(bin_size):
            claim = at.get(expert * bin_size + slot)
            cell(axes, expert, slot, claim, f"token {claim.token}" if claim else "")
    frame(axes, "What each expert gets", [f"slot {slot}" for slot in range(bin_size)])


def draw_key(axes: Axes) -> None:
    """Draw the legend of the cells."""
    meanings = {
        (0, KEPT): "first choice, has a slot",
        (1, KEPT): "second choice, has a slot",
        (0, DROPPED): "first choice, dropped: all slots taken",
        (1, DROPPED): "second choice, dropped",
        (1, NOT_KEPT): "second choice, not kept by the policy",
    }
    for line, ((rank, fate), meaning) in enumerate(meanings.items()):
        y = 1.35 * line
        cell(axes, 0, y, Claim(token=0, rank=rank, expert=0, fate=fate, slot=0, row=0), RANKS[rank])
        axes.text(1.3, y + 0.52, meaning, va="center", color=INK, fontsize=9.5)
    axes.set_axis_off()


def frame(axes: Axes, title: str, rows: list[str]) -> None:
    """Names of rows and experts."""
    axes.set_title(title, loc="left", fontsize=10.5, color=INK, pad=24)
    axes.set_xticks([expert + 0.5 for expert in range(EXPERTS)], [f"expert {e}" for e in range(EXPERTS)])
    axes.set_yticks([row + 0.5 for row in range(len(rows))], rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=9.5, labelcolor=GREY)
    axes.spines[:].set_visible(False)


def draw() -> Figure:
    """Draw the figure."""
    capacity = expert_capacity(num_tokens=TOKENS, num_experts=EXPERTS, capacity_factor=1)
    claims, bin_size = ask_operators(capacity)
    width, height = 8.4, 4.75
    figure = Figure(figsize=(width, height))
    unit, tall = 0.78, 0.32  # inches of a cell

    def panel(left: float, top: float, columns: float, rows: float) -> Axes:
        box = (
            left / width,
            (height - top - rows * tall) / height,
            columns * unit / width,
            rows * tall / height,
        )
        return figure.add_axes(box, xlim=(0, columns), ylim=(rows, 0))

    draw_choices(panel(0.8, 0.65, EXPERTS, TOKENS), claims)
    draw_buffers(panel(5.0, 0.65, EXPERTS, bin_size), claims, bin_size)
    draw_key(panel(4.5, 2.4, 4.9, 6.6))
    return figure


if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    with mpl.rc_context({"font.size": 10.5, "svg.hashsalt": "mnmt-moe-ext", "text.color": INK}):
        draw().savefig(FIGURES / "slots.svg", metadata={"Date": None, "Creator": None})
