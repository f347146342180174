from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

from mnmt_laws import (
    Forecast,
    KnownLaw,
    LawFit,
    Observations,
    Perturbation,
    ResidualBootstrap,
    fit,
    forecast,
    observe,
    simulate,
)

# How long an example takes depends on what else the machine does.
settings.register_profile("ci", deadline=None, max_examples=15, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

LAWS = {
    "en-de": KnownLaw.capacity(alpha=0.62, beta=300, l_inf=0.18, c1=0.2, c2=0.5, c3=1.0),
    "en-zh": KnownLaw.capacity(alpha=0.55, beta=180, l_inf=0.25, c1=0.12, c2=0.4, c3=1.3),
}
SIZES = (9456, 21032, 37216, 83536, 148160, 262000)
WEIGHTS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
UNSEEN = 0.2


@pytest.fixture(scope="session")
def laws() -> dict[str, KnownLaw]:
    return LAWS


@pytest.fixture(scope="session")
def clean() -> Observations:
    """Noise-free losses of two tasks that obey the capacity law."""
    return observe(simulate(LAWS, sizes=SIZES, weights=WEIGHTS))


@pytest.fixture(scope="session")
def clean_forecast(clean: Observations) -> Forecast:
    """The average over forms of losses on the capacity law, at twice the largest size."""
    return forecast(clean, size=5e5, refits=20)


@pytest.fixture(scope="session")
def study_table() -> pd.DataFrame:
    """1% noise; the largest size and the weight 0.2 held out; chrF beside the loss."""
    table = simulate(LAWS, sizes=SIZES, weights=(*WEIGHTS, UNSEEN), noise=0.01, seed=3)
    first = table["mixture"].str.extract(r"en-de:([0-9.]+)")[0].astype(float)
    held_out = (table["size"] == SIZES[-1]) | (first == UNSEEN)
    table = table.assign(role=np.where(held_out, "held-out", "fit"), testset="test", step=100, seed=1)
    chrf = table.assign(metric="chrf", value=80 - 18 * table["value"])
    return pd.concat([table, chrf], ignore_index=True)


@pytest.fixture
def write_record(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a run record under `runs/` and returns its folder."""

    def write(run: str, *, evals: list[dict[str, Any]] | str = "", **changes: Any) -> Path:
        folder = tmp_path / "runs" / run
        folder.mkdir(parents=True)
        content = {
            "schema": 1, "run": run, "study": "tiny", "status": "finished", "error": None, "role": "fit",
            "architecture": "t5-encdec", "size": 1000, "encoder_size": 400, "decoder_size": 600,
            "mixture": {"en-de": 0.25, "en-zh": 0.75}, "irreducible": {"en-de": 0.5}, "seed": 7,
            "wall_seconds": 12.5,
        }  # fmt: skip
        (folder / "run.json").write_text(json.dumps(content | changes))
        text = evals if isinstance(evals, str) else "".join(json.dumps(line) + "\n" for line in evals)
        if text:
            (folder / "evals.jsonl").write_text(text)
        return folder

    return write


@pytest.fixture
def study_records(study_table: pd.DataFrame, write_record: Callable[..., Path]) -> Path:
    """The study as run records, and one failed run; returns the folder of runs."""
    folder = Path()
    for run, rows in study_table.groupby("run"):
        first = rows.iloc[0]
        items = (item.split(":") for item in first["mixture"].split(","))
        mixture = {task: float(weight) for task, weight in items}
        columns = ["step", "task", "testset", "metric", "value"]
        evals = rows[columns].to_dict("records")
        known = {task: law.parameters["l_inf"] for task, law in LAWS.items()}
        folder = write_record(
            str(run),
            evals=evals,
            size=int(first["size"]),
            encoder_size=int(0.4 * first["size"]),
            decoder_size=int(0.6 * first["size"]),
            role=first["role"],
            mixture=mixture,
            irreducible=known,
        )
    write_record("broken", status="failed", error="loss became NaN at step 12", wall_seconds=2.5)
    return folder.parent


@pytest.fixture(scope="session")
def two_tasks() -> LawFit:
    """The capacity law of two tasks, from losses with 1% noise."""
    table = simulate(LAWS, sizes=SIZES, weights=WEIGHTS, noise=0.01, seed=5)
    return fit(observe(table), law="capacity", uncertainty=ResidualBootstrap(refits=100))


@pytest.fixture(scope="session")
def exact() -> LawFit:
    """The capacity law of two tasks, from losses without noise."""
    table = simulate(LAWS, sizes=SIZES, weights=WEIGHTS)
    return fit(observe(table), law="capacity", uncertainty=Perturbation(refits=0))


@pytest.fixture(scope="session")
def three_tasks() -> LawFit:
    """The simplex law of three tasks, from losses with 1% noise."""
    laws = {
        "en-de": KnownLaw.capacity(alpha=0.62, beta=300, l_inf=0.18, c1={"en-fr": 0.3, "en-zh": 0.1}),
        "en-fr": KnownLaw.capacity(alpha=0.58, beta=240, l_inf=0.22, c1={"en-de": 0.3, "en-zh": 0.1}),
        "en-zh": KnownLaw.capacity(alpha=0.55, beta=180, l_inf=0.25, c1={"en-de": 0.15, "en-fr": 0.12}),
    }
    pairs = [
        {one: share, two: round(1 - share, 2)}
        for one, two in itertools.combinations(laws, 2)
        for share in (0.1, 0.3, 0.5, 0.7, 0.9)
    ]
    mixtures = [*({task: 1.0} for task in laws), *pairs]
    table = simulate(laws, sizes=SIZES, mixtures=mixtures, noise=0.01, seed=2)
    return fit(observe(table), law="simplex-capacity", uncertainty=ResidualBootstrap(refits=60))
