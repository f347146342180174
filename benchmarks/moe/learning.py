r"""Mixtures of experts against dense models: quality against cost, and the balance of the experts.

Claim: at equal training FLOPs a token, mixtures of experts reach lower losses. Peer: our dense models. Cited
in docs/moe/measured.md, which shows its figures.

It reads the finished runs of a study such as studies/moe-synthetic.toml. The sizes are named after their
family (`dense-d16`, `moe8-d16`) and, if one thing was changed, after that (`moe8-d64-no-auxiliary`). Without
`--runs`, the study is prepared and trained first.

    python -m benchmarks.moe.learning --runs results/moe-synthetic/runs --name moe-synthetic \
        --out benchmarks/results/moe/moe-synthetic.json --figures docs/moe/figures
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter
from scipy.cluster.hierarchy import leaves_list, linkage

from benchmarks.measurement import Figures, Out, print_table, run, write_report
from benchmarks.studies import prepare, train_study, write_text
from mnmt_model.runs import RunRecord, read_evals, read_run

SIZE = re.compile(r"(?P<family>dense|moe\d+)-d(?P<width>\d+)(-(?P<change>[a-z-]+))?$")
COLOURS = {"dense": "#333333", "moe8": "#0072b2", "moe16": "#009e73", "moe32": "#d55e00"}
SMALL_STUDY = """
name = "moe-small"
[data]
tasks = ["xx-aa"]
[data.vocab]
kind = "word"
size = 96
[data.synthetic]
languages = ["aa"]
train_sentences = 2000
dev_sentences = 100
test_sentences = 100
[model]
encoder_layers = 2
decoder_layers = 2
num_heads = 2
feed_forward = "relu"
[train]
steps = 2
batch_tokens = 256
log_every = 1
[sweep.sizes]
dense-d16 = { d_model = 16, d_ff = 96 }
moe8-d16 = { d_model = 16, d_ff = 64, num_experts = 8 }
moe8-d16-no-auxiliary = { d_model = 16, d_ff = 64, num_experts = 8, auxiliary_loss = 0.0 }
[sweep.fit]
sizes = ["dense-d16", "moe8-d16", "moe8-d16-no-auxiliary"]
mixtures = [{ xx-aa = 1.0 }]
"""


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
    """Nats a token, the mean over tasks, for each seed."""
    other_losses: Mapping[str, tuple[float, ...]]
    """The same for other test sets."""
    task_losses: Mapping[str, tuple[float, ...]]
    """The test loss of each task, for each seed."""
    specialisation: tuple[tuple[float, ...], ...]
    """How much the experts of each mixture tell about the task, from 0 to 1, for each seed: the mean of the
    last five lines of metrics.jsonl; none for a dense model."""
    loads: Mapping[str, Sequence[Sequence[float]]]
    """The share of each expert in the choices of each task, for each mixture: the first seed, over the last
    five lines of metrics.jsonl. Nothing for a dense model."""
    curve: Mapping[str, Sequence[Any]]
    """Balance of the first seed: `steps`, `most` (load of the most loaded expert, mean over layers),
    `drop_rate`, `auxiliary`."""

    @property
    def loss(self) -> float:
        """Mean loss over seeds."""
        return fmean(self.test_losses)

    @property
    def deviation(self) -> float:
        """Standard deviation over seeds."""
        return stdev(self.test_losses) if len(self.test_losses) > 1 else 0.0


def main(
    *,
    runs: Path | None = None,
    study: Path = Path("studies/moe-synthetic.toml"),
    name: str = "moe-synthetic",
    jobs: int = 2,
    small: bool = False,
    figures: Path | None = None,
    out: Out = None,
) -> None:
    """Print a table; write it as JSON, and draw figures, if asked.

    Args:
        runs: Folder of the study's run records; by default the study is trained.
        study: Study to train.
        name: Name of the study, and of the figures.
        jobs: Runs trained at a time.
        small: Whether to train a tiny study instead.
        figures: Folder of the figures; none are drawn by default.
        out: JSON file for the figures.
    """
    with TemporaryDirectory() as temporary:
        if runs is None:
            results = Path(temporary) if small else Path("results") / name
            study = write_text(results / "small.toml", SMALL_STUDY) if small else study
            prepare(study, results)
            runs = train_study(study, results, jobs=jobs)
        sizes = sorted(read_sizes(runs), key=lambda size: (size.change or "", size.family, size.width))
        description = provenance_of(runs)
    print_table([table_row(size) for size in sizes])
    report = {"study": name, "sizes": [asdict(size) for size in sizes]}
    write_report(out, "mixtures of experts against dense models", report, description)
    if figures is not None:
        draw(sizes, name, figures)


def draw(sizes: Sequence[Size], name: str, folder: Path) -> None:
    """Draw the figures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.rcParams.update(
        {"svg.hashsalt": name, "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    )
    save(quality_figure(sizes), folder / f"{name}-quality.svg")
    if len(loads := next(size.loads for size in sizes if size.loads)) > 2:
        save(loads_figure(loads), folder / f"{name}-experts.svg")


def provenance_of(runs: Path) -> Figures:
    """Return what the finished runs were trained with: machines, the last day, and versions of packages.

    `provenance` would tell of the machine and the packages that read them.
    """
    records = [read_run(path.parent) for path in sorted(runs.glob("*/run.json"))]
    ended = [record for record in records if record.finished is not None]
    packages = sorted({name for record in ended for name in record.versions})
    return {
        "machine": ", ".join(sorted({record.host for record in ended})),
        "date": max((str(record.finished) for record in ended), default="")[:10],
        "versions": {
            name: ", ".join(sorted({record.versions.get(name, "none") for record in ended}))
            for name in packages
        },
    }


def read_sizes(runs: Path) -> Iterator[Size]:
    """Yield the sizes whose runs have all finished."""
    by_size: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(runs.glob("*/run.json")):
        by_size[path.parent.name.split("_")[0]].append(path.parent)
    for name, folders in by_size.items():
        records = [read_run(folder) for folder in folders]
        if all(record.status == "finished" for record in records):
            yield read_size(name, folders, records)


def read_size(name: str, folders: Sequence[Path], records: Sequence[RunRecord]) -> Size:
    """Return one size, from its runs of several seeds."""
    match = SIZE.match(name)
    if match is None:
        raise SystemExit(f"{name}: a size must be named such as moe8-d64 or moe8-d64-no-auxiliary")
    by_task = [test_losses(folder) for folder in folders]
    losses = [{testset: fmean(tasks.values()) for testset, tasks in loss.items()} for loss in by_task]
    last = read_evals(folders[0])[-1]
    return Size(
        name=name,
        family=match["family"],
        width=int(match["width"]),
        change=match["change"],
        num_params=records[0].num_params,
        active_size=records[0].active_size or records[0].size,
        flops_a_token=last.flops / last.tokens,
        seconds=fmean(record.wall_seconds or 0.0 for record in records),
        test_losses=tuple(loss["test"] for loss in losses),
        other_losses={t: tuple(loss[t] for loss in losses) for t in losses[0] if t != "test"},
        task_losses={task: tuple(loss["test"][task] for loss in by_task) for task in by_task[0]["test"]},
        specialisation=tuple(map(read_specialisation, folders)),
        loads=read_loads(folders[0]),
        curve=read_curve(folders[0]),
    )


def test_losses(folder: Path) -> dict[str, dict[str, float]]:
    """Return {test set: {task: the last loss}}."""
    last: dict[str, dict[str, float]] = defaultdict(dict)
    for line in read_evals(folder):
        if line.metric == "loss":
            last[line.testset][line.task] = line.value
    return last


def read_specialisation(folder: Path) -> tuple[float, ...]:
    """Return the specialisation of each mixture at the end of training; nothing for a dense model."""
    last = [line["specialisation"] for line in read_metrics(folder)[-5:] if "specialisation" in line]
    return tuple(round(fmean(values), 4) for values in zip(*last, strict=True))


def read_loads(folder: Path) -> dict[str, list[list[float]]]:
    """Return {task: the share of each expert in its choices, for each mixture} at the end of training."""
    lines = [line["expert_loads"] for line in read_metrics(folder)[-5:] if "expert_loads" in line]
    if not lines:
        return {}
    counts = {task: np.sum([line[task] for line in lines], axis=0) for task in lines[0]}
    return {task: (each / each.sum(axis=1, keepdims=True)).round(3).tolist() for task, each in counts.items()}


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's metrics."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def read_curve(folder: Path) -> dict[str, list[Any]]:
    """Return the balance over the training of a run; nothing for a dense one."""
    lines = read_metrics(folder)
    if "load" not in lines[-1]:
        return {}
    return {
        "steps": [line["step"] for line in lines],
        "most": [round(fmean(most for _, most in line["load"]), 3) for line in lines],
        "drop_rate": [round(line["drop_rate"], 4) for line in lines],
        "auxiliary": [round(line["auxiliary_loss"], 4) for line in lines],
    }


def table_row(size: Size) -> Figures:
    """Return a size's row of the table."""
    return {
        "size": size.name,
        "parameters": f"{size.num_params:,}",
        "FLOPs/token": f"{size.flops_a_token:,.0f}",
        "seconds": round(size.seconds),
        "test loss": f"{size.loss:.4f}",
        "±": f"{size.deviation:.4f}",
        "drops": f"{fmean(size.curve['drop_rate'][-5:]):.1%}" if size.curve else "-",
    }


def quality_figure(sizes: Sequence[Size]) -> Figure:
    """Draw test loss against training FLOPs a token, and against parameters."""
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
    """Draw one family, with the range of its seeds."""
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


def loads_figure(loads: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Draw the shares of the last mixture's experts, tasks of like experts side by side."""
    tasks = list(loads)
    shares = np.array([loads[task][-1] for task in tasks])
    rows = leaves_list(linkage(shares, method="average", optimal_ordering=True))
    experts = np.argsort(shares[rows].argmax(axis=0), kind="stable")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    image = axes.imshow(100 * shares[rows][:, experts], cmap="viridis", vmin=0, aspect="auto")
    axes.set_yticks(range(len(tasks)), [tasks[row] for row in rows])
    axes.set_xticks(range(len(experts)), [str(expert) for expert in experts])
    axes.set(xlabel="expert of the last mixture")
    figure.colorbar(image, label="share of the task's choices, %")
    return figure


def save(figure: Figure, path: Path) -> None:
    """Save a figure as SVG without a date, so that the same runs make the same file."""
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(f"drawn: {path}")


if __name__ == "__main__":
    run(main, smoke={"small": True, "jobs": 1})
