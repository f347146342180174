"""Draw what flat beam search writes where, and what each hypothesis sees.

    python docs/eval/draw_flat_beam.py

writes docs/eval/figures/flat-beam.svg. Tokens and masks are those that `flat_beam_search` hands to a model;
only the model's log-probabilities are made up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from torch import Tensor

from mnmt_eval.search import LengthPenalty, MaxLength, SearchConfig, flat_beam_search

FIGURES = Path(__file__).parent / "figures"
BEAM, STEPS = 3, 5
NAMES = ("<s>", "</s>", "a", "b", "c", "d", "e")
SEED = 4
"""Of log-probabilities under which hypotheses branch and die at different steps."""
INK, OWN, ANCESTOR, WRITTEN, EDGE, GREY = "#1d2433", "#d55e00", "#0072b2", "#e8ebf0", "#b8bfcc", "#5b6475"


@dataclass
class Watched:
    """A model of random log-probabilities that keeps what it is asked."""

    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(SEED))
    tokens: list[list[int]] = field(default_factory=list)
    masks: list[Tensor] = field(default_factory=list)

    def keep(self, rows: Tensor) -> Watched:
        """Itself: there is one sentence."""
        return self

    def start_flat(self, src: Tensor, padding_mask: Tensor, *, beam: int, max_steps: int) -> Watched:
        """Itself."""
        return self

    def step_flat(
        self, state: Watched, tokens: Tensor, ancestors: Tensor, positions: Tensor
    ) -> tuple[Tensor, Watched]:
        """Keep tokens and masks; no hypothesis is likely to end."""
        self.tokens.append(tokens[0].tolist())
        unwritten = BEAM * STEPS - ancestors.size(2)
        self.masks.append(torch.nn.functional.pad(ancestors[0], (0, unwritten)))
        logits = torch.randn(1, BEAM, len(NAMES), generator=self.generator)
        logits[..., 1] -= 9
        return logits.log_softmax(-1), self


def watch() -> Watched:
    """Search one sentence."""
    model = Watched()
    config = SearchConfig(
        beam=BEAM,
        length_penalty=LengthPenalty(alpha=0.0),
        max_length=MaxLength(ratio=0, extra=STEPS),
    )
    flat_beam_search(model, torch.tensor([[2, 1]]), config)
    return model


def draw_buffer(axes: Axes, tokens: list[list[int]]) -> None:
    """Return the token that each slot was written for."""
    for slot, token in enumerate(token for step in tokens for token in step):
        axes.add_patch(Rectangle((slot, 0), 1, 1, facecolor=WRITTEN, edgecolor=EDGE, linewidth=0.8))
        axes.text(slot + 0.5, 0.53, NAMES[token], ha="center", va="center", color=INK, fontsize=9.5)
    axes.set_yticks([0.5], ["the buffer"])
    axes.set_xticks([(step + 0.5) * BEAM for step in range(STEPS)], [f"step {step}" for step in range(STEPS)])
    axes.xaxis.tick_top()


def draw_masks(axes: Axes, watched: Watched) -> None:
    """Draw each hypothesis as a row of the slots that it consists of, step by step."""
    for step, mask in enumerate(watched.masks):
        top = step * (BEAM + 0.5)
        for hypothesis, row in enumerate(mask.tolist()):
            for slot, is_ancestor in enumerate(row):
                written = slot < (step + 1) * BEAM
                own = slot == step * BEAM + hypothesis
                colour = OWN if own else ANCESTOR if is_ancestor else WRITTEN if written else "#ffffff"
                box = Rectangle((slot, top + hypothesis), 1, 1, facecolor=colour, edgecolor=EDGE)
                axes.add_patch(box)
            text = " ".join(
                NAMES[watched.tokens[slot // BEAM][slot % BEAM]] for slot, seen in enumerate(row) if seen
            )
            axes.text(STEPS * BEAM + 0.4, top + hypothesis + 0.53, text, va="center", color=INK, fontsize=9.5)
    axes.set_yticks(
        [step * (BEAM + 0.5) + BEAM / 2 for step in range(STEPS)], [f"step {step}" for step in range(STEPS)]
    )
    axes.set_xticks([])


def draw() -> Figure:
    """Draw the figure."""
    watched = watch()
    width, height, unit, tall = 8.4, 5.4, 0.4, 0.22  # inches, and of a cell
    figure = Figure(figsize=(width, height))
    rows = STEPS * (BEAM + 0.5) - 0.5

    def panel(top: float, count: float) -> Axes:
        box = (
            1.0 / width,
            1 - (top + count * tall) / height,
            STEPS * BEAM * unit / width,
            count * tall / height,
        )
        axes = figure.add_axes(box, xlim=(0, STEPS * BEAM), ylim=(count, 0))
        axes.tick_params(length=0, labelsize=9.5, labelcolor=GREY)
        axes.spines[:].set_visible(False)
        return axes

    draw_buffer(panel(0.35, 1), watched.tokens)
    masks = panel(0.9, rows)
    draw_masks(masks, watched)
    for axes in figure.axes:
        for step in range(1, STEPS):
            axes.axvline(step * BEAM, color=INK, linewidth=1.2)
    entries = {OWN: "its own slot", ANCESTOR: "its ancestors", WRITTEN: "written, but hidden from it"}
    handles = [Patch(facecolor=colour, edgecolor=EDGE, label=text) for colour, text in entries.items()]
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=9.5)
    return figure


if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    with mpl.rc_context({"font.size": 10.5, "svg.hashsalt": "mnmt-eval", "text.color": INK}):
        draw().savefig(FIGURES / "flat-beam.svg", metadata={"Date": None, "Creator": None})
