r"""Seconds that a whole study takes, command by command, with this source and with an earlier one.

Claim: the embedded study takes about half of the time that it took before small models had operations in
C++. Peer: our own earlier revision. Cited in docs/model/measured.md.

The earlier revision is checked out into a folder of its own. Each runs the four commands of the study, one
after the other, with empty caches: what is measured and compiled once a machine is part of the time.

    python -m benchmarks.model.study_time --before REVISION --out benchmarks/results/model/study_time.json
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measurement import Figures, Out, print_table, provenance, run, write_report
from benchmarks.studies import write_text

ROOT = Path(__file__).parents[2]
PACKAGES = ("mnmt-data", "mnmt-model", "mnmt-eval", "mnmt-laws")

SMOKE = """
name = "smoke"
[data]
tasks = ["xx-aa", "xx-bb"]
vocab.kind = "word"


[data.synthetic]
languages = ["aa", "bb"]
concepts = 20
words_per_sentence = 2
syllable_inventory = 8
train_sentences = 400
dev_sentences = 20
test_sentences = 20

[model]
num_heads = 2
head_dim = 4
d_ff = 16

[train]
steps = 6
batch_tokens = 400

[sweep]
sizes = { d8 = { d_model = 8 }, d12 = { d_model = 12 }, d16 = { d_model = 16 } }

[sweep.fit]
sizes = ["d8", "d12", "d16"]
mixtures = [{ xx-aa = 1.0 }, { xx-aa = 0.5, xx-bb = 0.5 }, { xx-bb = 1.0 }]
"""


def main(
    *,
    study: Path | None = None,
    before: str | None = None,
    jobs: int | None = None,
    tiny: bool = False,
    out: Out = None,
) -> None:
    """Print the seconds of each command.

    Args:
        study: The study's TOML file; by default studies/synthetic.toml.
        before: A git revision to compare with; by default only this source is timed.
        jobs: Processes at a time; by default as the sweep chooses.
        tiny: Time a study of seconds in its place.
        out: JSON file for the figures.
    """
    seconds: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as place:
        study = study or ROOT / "studies/synthetic.toml"
        if tiny:
            study = write_text(Path(place) / "smoke.toml", SMOKE)
        if before is not None:
            with _worktree(before, Path(place) / "source") as source:
                seconds[before] = time_commands(source, study, Path(place) / "before", jobs)
        seconds["this source"] = time_commands(ROOT, study, Path(place) / "now", jobs)
    rows = [
        {"source": name, **times, "total": round(sum(times.values()), 1)} for name, times in seconds.items()
    ]
    print_table(rows)
    figures: Figures = {"study": study.name, "seconds": rows}
    write_report(out, "seconds of a study, command by command", figures, provenance("torch", "numpy"))


def time_commands(source: Path, study: Path, results: Path, jobs: int | None) -> dict[str, float]:
    """Return the seconds of each command of a study, run from the packages in `source`."""
    path = os.pathsep.join(str(source / f"packages/{package}/src") for package in PACKAGES)
    # As on a machine that has trained nothing yet.
    caches = {"XDG_CACHE_HOME": f"{results}-cache", "TORCHINDUCTOR_CACHE_DIR": f"{results}-compiled"}
    environment = os.environ | caches | {"PYTHONPATH": path}
    few = () if jobs is None else ("--jobs", str(jobs))
    commands = {
        "prepare": ("mnmt_data", "prepare", str(study), "--out", str(results)),
        "sweep": ("mnmt_model", "sweep", str(study), "--out", str(results), *few),
        "score": ("mnmt_eval", "score", str(results / "runs")),
        "report": ("mnmt_laws", "report", str(results / "runs")),
    }
    seconds = {}
    for name, command in commands.items():
        print(f"{source.name}: {name}", flush=True)
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", *command], check=True, env=environment, stdin=subprocess.DEVNULL
        )
        seconds[name] = round(time.perf_counter() - start, 1)
    return seconds


@contextmanager
def _worktree(revision: str, folder: Path) -> Iterator[Path]:
    """Check a revision out into `folder`."""
    git = ("git", "-C", str(ROOT), "worktree")
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), revision], check=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
        subprocess.run([*git, "prune"], check=True)


if __name__ == "__main__":
    run(main, smoke={"tiny": True, "jobs": 1}, needs=("torch", "sacrebleu", "scipy"))
