"""Studies that benchmarks run from start to end: preparing their data and training their runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mnmt_data import prepare_study, read_study
from mnmt_model import run_configs, train, train_runs


def write_changed_study(path: Path, study: Path, changes: Mapping[str, str]) -> Path:
    """Write a copy of a study with some of its text replaced; return its path.

    Raises:
        SystemExit: If the study does not hold a text that is to be replaced.
    """
    text = study.read_text(encoding="utf-8")
    for old, new in changes.items():
        if old not in text:
            raise SystemExit(f"{study}: must hold the line `{old.strip()}`, which this benchmark replaces.")
        text = text.replace(old, new)
    return write_text(path, text)


def write_text(path: Path, text: str) -> Path:
    """Write a study, or anything else, in a folder that is made if needed; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def prepare(study: Path, out: Path) -> Path:
    """Prepare the data of a study in `out`/data, unless they are there; return that folder."""
    prepare_study(read_study(study), out)
    return out / "data"


def train_study(study: Path, out: Path, *, jobs: int = 1) -> Path:
    """Train the runs of a study on the data in `out`/data, and continue what was interrupted.

    Args:
        study: The study's TOML file.
        out: Folder of the study's results.
        jobs: Processes at a time; with one, the runs are trained in this process.

    Returns:
        The folder of the runs.
    """
    configs, runs = run_configs(read_study(study), out / "data"), out / "runs"
    if jobs == 1:
        for config in configs:
            train(config, runs / config.name)
        return runs
    outcomes = train_runs(configs, runs, jobs=jobs)
    if failed := [outcome.error for outcome in outcomes if outcome.status == "failed"]:
        raise SystemExit(failed[0])
    return runs
