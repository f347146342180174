"""What mixtures of experts learn at a dense model's price: quality against cost, and the experts' balance.

Reads the finished runs of a study such as studies/moe-synthetic.toml, whose sizes are named after their
family (`dense-d16`, `moe8-d16`) and, where one thing was changed, after that (`moe8-d64-no-auxiliary`).
Prints a table, writes it as JSON, and draws two figures.

    mnmt-data prepare studies/moe-synthetic.toml
    mnmt-model sweep studies/moe-synthetic.toml
    python -m benchmarks.moe.learning results/moe-synthetic/runs --name moe-synthetic
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import cyclopts
import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

from mnmt_model.runs import RunRecord, read_evals, read_run

SIZE = re.compile(r"(?P<family>dense|moe\d+)-d(?P<width>\d+)(-(?P<change>[a-z-]+))?$")
COLOURS = {"dense": "#333333", "moe8": "#0072b2", "moe32": "#d55e00"}
CHANGES = {
    None: "as GShard",
    "no-auxiliary": "no auxiliary loss",
    "always-second": "second expert always kept",
    "uniform-first": "uniform routing first",
}
STYLES = dict(zip(CHANGES, ("-", ":", "--", "-."), strict=True))


@dataclass(frozen=True, kw_only=True)
class Size:
    """The runs of one size, over seeds."""

    name: str
    family: str
    width: int
    change: str | None
    num_params: int
    active_size: int
    flops_a_token: float
    seconds: float
    test_losses: tuple[float, ...]
    """Nats a token, mean over tasks, a number a seed."""
    other_losses: Mapping[str, tuple[float, ...]]
    """The same of other test sets."""
    curve: Mapping[str, Sequence[Any]]
    """Of the first seed: `steps`, `most` (load of the most loaded expert, mean over layers), `drop_rate`,
    `auxiliary`."""

    @property
    def loss(self) -> float:
        """Mean over seeds."""
        return fmean(self.test_losses)

    @property
    def deviation(self) -> float:
        """Between seeds."""
        return stdev(self.test_losses) if len(self.test_losses) > 1 else 0.0


def main(
    runs: Path, *, name: str, out: Path = Path("benchmarks/results"), figures: Path | None = None
) -> None:
    """Tell what the runs of a study came to.

    Args:
        runs: Folder of the study's run records.
        name: Of the study, and of the files that are written.
        out: Folder of the JSON.
        figures: Folder of the figures; docs/moe/figures by default.
    """
    sizes = sorted(read_sizes(runs), key=lambda size: (size.change or "", size.family, size.width))
    print_table(sizes)
    out.mkdir(parents=True, exist_ok=True)
    written = {
        "study": name,
        "machine": read_run(first_run(runs)).host,
        "sizes": [asdict(s) for s in sizes],
    }
    (out / f"{name}.json").write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    figures = figures or Path("docs/moe/figures")
    figures.mkdir(parents=True, exist_ok=True)
    mpl.rcParams.update(
        {"svg.hashsalt": name, "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    )
    save(quality_figure(sizes), figures / f"{name}-quality.svg")
    save(balance_figure(sizes), figures / f"{name}-balance.svg")


def first_run(runs: Path) -> Path:
    """Any run record."""
    return min(runs.glob("*/run.json")).parent


def read_sizes(runs: Path) -> Iterator[Size]:
    """The sizes whose runs have all finished."""
    by_size: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(runs.glob("*/run.json")):
        by_size[path.parent.name.split("_")[0]].append(path.parent)
    for name, folders in by_size.items():
        records = [read_run(folder) for folder in folders]
        if all(record.status == "finished" for record in records):
            yield read_size(name, folders, records)


def read_size(name: str, folders: Sequence[Path], records: Sequence[RunRecord]) -> Size:
    """One size, from its runs of several seeds."""
    found = SIZE.match(name)
    if found is None:
        raise SystemExit(f"{name}: a size must be named such as moe8-d64 or moe8-d64-no-auxiliary")
    losses = [test_losses(folder) for folder in folders]
    last = read_evals(folders[0])[-1]
    return Size(
        name=name,
        family=found["family"],
        width=int(found["width"]),
        change=found["change"],
        num_params=records[0].num_params,
        active_size=records[0].active_size or records[0].size,
        flops_a_token=last.flops / last.tokens,
        seconds=fmean(record.wall_seconds or 0.0 for record in records),
        test_losses=tuple(loss["test"] for loss in losses),
        other_losses={t: tuple(loss[t] for loss in losses) for t in losses[0] if t != "test"},
        curve=read_curve(folders[0]),
    )


def test_losses(folder: Path) -> dict[str, float]:
    """{test set: the last loss, mean over tasks}."""
    last: dict[str, dict[str, float]] = defaultdict(dict)
    for measured in read_evals(folder):
        if measured.metric == "loss":
            last[measured.testset][measured.task] = measured.value
    return {testset: fmean(by_task.values()) for testset, by_task in last.items()}


def read_curve(folder: Path) -> dict[str, list[Any]]:
    """Balance over the training of a run; nothing for a dense one."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    if "load" not in lines[-1]:
        return {}
    return {
        "steps": [line["step"] for line in lines],
        "most": [round(fmean(most for _, most in line["load"]), 3) for line in lines],
        "drop_rate": [round(line["drop_rate"], 4) for line in lines],
        "auxiliary": [round(line["auxiliary_loss"], 4) for line in lines],
    }


def print_table(sizes: Iterable[Size]) -> None:
    """A line a size."""
    print(
        f"{'size':<26}{'parameters':>12}{'FLOPs/token':>13}{'seconds':>9}"
        f"{'test loss':>11}{'±':>8}{'drops':>8}"
    )
    for size in sizes:
        drops = f"{fmean(size.curve['drop_rate'][-5:]):.1%}" if size.curve else "-"
        print(
            f"{size.name:<26}{size.num_params:>12,}{size.flops_a_token:>13,.0f}{size.seconds:>9.0f}"
            f"{size.loss:>11.4f}{size.deviation:>8.4f}{drops:>8}"
        )


def quality_figure(sizes: Sequence[Size]) -> Figure:
    """Test loss against training FLOPs a token, and against parameters."""
    figure, (cost, parameters) = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    for family in COLOURS:
        line = [size for size in sizes if size.family == family and size.change is None]
        draw_line(cost, line, [size.flops_a_token for size in line])
        draw_line(parameters, line, [size.num_params for size in line])
    cost.set(xscale="log", xlabel="training FLOPs a token", ylabel="test loss, nats a token")
    parameters.set(xscale="log", xlabel="parameters, embeddings and all experts included")
    for axes in (cost, parameters):
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.xaxis.set_minor_formatter(NullFormatter())
    cost.legend(frameon=False)
    return figure


def draw_line(axes: Axes, line: Sequence[Size], x: Sequence[float]) -> None:
    """One family, with the range of its seeds."""
    if not line:
        return
    family = line[0].family
    label = "dense" if family == "dense" else f"{family.removeprefix('moe')} experts"
    low = [size.loss - min(size.test_losses) for size in line]
    high = [max(size.test_losses) - size.loss for size in line]
    axes.errorbar(
        x,
        [size.loss for size in line],
        yerr=[low, high],
        marker="o",
        capsize=3,
        color=COLOURS[family],
        label=label,
    )


def balance_figure(sizes: Sequence[Size]) -> Figure:
    """Load and drops over the training of the size that was changed, and of its changes."""
    changed = next(size for size in sizes if size.change is not None)
    shown = [size for size in sizes if (size.family, size.width) == (changed.family, changed.width)]
    figure, (load, drops) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for size in shown:
        style = {
            "color": COLOURS[size.family],
            "linestyle": STYLES[size.change],
            "label": CHANGES[size.change],
        }
        load.plot(size.curve["steps"], size.curve["most"], **style)
        drops.plot(size.curve["steps"], [100 * rate for rate in size.curve["drop_rate"]], **style)
    load.axhline(1, color="#999999", linewidth=0.8)
    load.set(xlabel="step", ylabel="load of the most loaded expert, fair shares", ylim=(0, None))
    drops.set(xlabel="step", ylabel="choices dropped, %", ylim=(0, None))
    load.legend(frameon=False)
    return figure


def save(figure: Figure, path: Path) -> None:
    """As SVG without a date, so that the same runs make the same file."""
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(f"drawn: {path}")


if __name__ == "__main__":
    cyclopts.run(main)
