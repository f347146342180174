"""Which short runs rank learning rates as full ones do, and whether the best rate moves with the width.

Trains models of three widths on two made languages at a grid of peak learning rates: for the full length with
its cool-down, for a half and a quarter of it with their own, and at a constant rate, measured on the way. The
figures say how often each kind of short run finds the full run's best rate, what its choice costs there, and
what the smallest width's best rate costs the larger ones, as it is or in proportion to 1 / width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.measurement import Counts, Figures, Names, Out, print_table, provenance, run, write_report
from benchmarks.studies import prepare, write_study
from mnmt_data import read_study
from mnmt_model import RunConfig, read_evals, run_configs, train

RESULTS = Path(__file__).parents[1] / "results/model/rates.json"
GRIDS = {"adafactor": 0.0125, "adamw": 0.004}
"""{optimiser: the lowest rate; each of the others is twice the one before}."""

KINDS = {
    "full": (1, 2, 1),
    "full, seed 2": (1, 2, 2),
    "half": (2, 4, 1),
    "quarter": (4, 8, 1),
    "constant": (2, 0, 1),
}
"""{kind of runs: (steps and cool-down, as parts of the full length, and seed)}; no cool-down is 0."""

DATA = """
zipf_exponent = 1.4
synonym_rate = 0.25
train_sentences = 300_000
dev_sentences = 3000
test_sentences = 100
"""
TRAIN = """
batch_tokens = 1408
steps = 200
warmup_steps = 50
checkpoint_every = 100_000
"""


def main(
    *,
    widths: Counts = (12, 24, 48),
    optimizers: Names = ("adafactor", "adamw"),
    ranked: Names = ("adafactor",),
    rates: int = 6,
    steps: int = 800,
    folder: Path = Path("results/benchmark-rates"),
    out: Out = RESULTS,
) -> None:
    """Measure.

    Args:
        widths: Values of `d_model`.
        optimizers: Optimisers.
        ranked: Optimisers whose short runs are compared with the full ones.
        rates: Number of rates.
        steps: Length of the full runs.
        folder: Folder of the data and runs; what is there is not trained again.
        out: A JSON file for the figures.
    """
    data = prepare(_study(folder, widths), folder)
    base = {config.model.d_model: config for config in run_configs(read_study(folder / "rates.toml"), data)}
    rows = [
        _row(config, kind, folder)
        for optimizer in optimizers
        for width in widths
        for kind, config in _runs(base[width], optimizer, rates, steps)
        if kind.startswith("full") or optimizer in ranked
    ]
    figures: Figures = {
        "rungs": [
            _rung(rows, kind, optimizer) for optimizer in optimizers for kind in _kinds(rows, optimizer)
        ],
        "transfer": [_transfer(rows, optimizer, widths) for optimizer in optimizers],
    }
    print_table(figures["rungs"])
    print_table(figures["transfer"])
    write_report(out, __doc__.splitlines()[0], figures | {"runs": rows}, provenance("torch", "mnmt-model"))


def _study(folder: Path, widths: Sequence[int]) -> Path:
    layers = "encoder_layers = 1\ndecoder_layers = 1"
    return write_study(folder / "rates.toml", widths=widths, data=DATA, train=TRAIN, model=layers)


def _runs(base: RunConfig, optimizer: str, rates: int, steps: int) -> Iterator[tuple[str, RunConfig]]:
    """Yield each run of a width, and its kind."""
    for number in range(rates):
        rate = GRIDS[optimizer] * 2**number
        for kind, (part, cooldown, seed) in KINDS.items():
            length = steps // part
            train_config = replace(
                base.train,
                optimizer=optimizer,  # type: ignore[arg-type]
                learning_rate=rate,
                steps=length,
                warmup_steps=min(base.train.warmup_steps, length // 4),
                cooldown_steps=steps // cooldown if cooldown else 0,
                eval_every=steps // 4 if kind == "constant" else 0,
            )
            name = f"{optimizer}_d{base.model.d_model}_{kind.replace(', ', '-').replace(' ', '')}_{rate:g}"
            yield kind, replace(base, name=name, train=train_config, seed=seed)


def _row(config: RunConfig, kind: str, folder: Path) -> dict[str, Any]:
    """Train a run, and return its dev losses."""
    place = folder / "runs" / config.name
    train(config, place)
    evals = [e for e in read_evals(place) if e.testset == "dev"]
    losses = {
        step: fmean(e.value for e in evals if e.step == step) for step in sorted({e.step for e in evals})
    }
    return {
        "optimizer": config.train.optimizer,
        "width": config.model.d_model,
        "kind": kind,
        "rate": config.train.learning_rate,
        "losses": losses,
    }


def _kinds(rows: Sequence[Mapping[str, Any]], optimizer: str) -> list[str]:
    """Return the kinds of short runs, those at a constant rate by their length."""
    names = dict.fromkeys(name for row in rows if row["optimizer"] == optimizer for name in _values(row))
    return [name for name in names if name != "full"]


def _values(row: Mapping[str, Any]) -> dict[str, float]:
    """Return {kind: loss} of a run; one at a constant rate has several lengths."""
    if row["kind"] != "constant":
        return {row["kind"]: list(row["losses"].values())[-1]}
    return {f"constant, {step} steps": loss for step, loss in row["losses"].items()}


def _curve(rows: Sequence[Mapping[str, Any]], optimizer: str, width: int, kind: str) -> dict[float, float]:
    """Return {rate: loss} of one kind of runs of a width."""
    same_width = [row for row in rows if (row["optimizer"], row["width"]) == (optimizer, width)]
    return {row["rate"]: _values(row)[kind] for row in same_width if kind in _values(row)}


def _rung(rows: Sequence[Mapping[str, Any]], kind: str, optimizer: str) -> dict[str, Any]:
    """Compare a kind of short run with the full runs, over all widths."""
    costs, orders = [], []
    for width in dict.fromkeys(row["width"] for row in rows):
        full, short = (_curve(rows, optimizer, width, name) for name in ("full", kind))
        choice = min(short, key=lambda rate: short[rate])
        costs.append(full[choice] - min(full.values()))
        orders.append(_agreement(full, short))
    return {
        "optimizer": optimizer,
        "ranked by": kind,
        "best found": f"{sum(cost == 0 for cost in costs)} of {len(costs)}",
        "mean cost (nats)": round(fmean(costs), 4),
        "most": round(max(costs), 4),
        "pairs ordered alike": round(fmean(orders), 3),
    }


def _agreement(full: Mapping[float, float], short: Mapping[float, float]) -> float:
    """Return the share of pairs of rates that both put in the same order."""
    pairs = [(a, b) for a in full for b in full if a < b]
    return fmean((full[a] < full[b]) == (short[a] < short[b]) for a, b in pairs) if pairs else 1.0


def _transfer(rows: Sequence[Mapping[str, Any]], optimizer: str, widths: Sequence[int]) -> dict[str, Any]:
    """Say what the smallest width's best rate costs at the larger ones, beside the noise of a seed."""
    curves = {width: _curve(rows, optimizer, width, "full") for width in widths}
    second = {width: _curve(rows, optimizer, width, "full, seed 2") for width in widths}
    best = {width: min(curve, key=lambda rate: curve[rate]) for width, curve in curves.items()}
    small = min(widths)
    row: dict[str, Any] = {"optimizer": optimizer}
    for width in widths:
        curve, lowest = curves[width], min(curves[width].values())
        row[f"d{width} best"] = f"{best[width]:g}"
        row[f"d{width} noise"] = round(abs(second[width][best[width]] - lowest), 4)
        if width > small:
            scaled = _nearest(curve, best[small] * small / width)
            row[f"d{width} same rate costs"] = round(curve[best[small]] - lowest, 4)
            row[f"d{width} 1/width costs"] = round(curve[scaled] - lowest, 4)
    return row


def _nearest(curve: Mapping[float, float], rate: float) -> float:
    return min(curve, key=lambda other: abs(other / rate - 1) if other > rate else rate / other - 1)


if __name__ == "__main__":
    run(
        main,
        smoke={
            "widths": (8, 12),
            "optimizers": ("adamw",),
            "rates": 2,
            "steps": 8,
            "folder": Path("results/benchmark-rates-smoke"),
            "out": None,
        },
    )
