"""A study of several training lengths through all commands: trunks, branches, and a law of length."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.slow
HORIZONS = (20, 60)


@pytest.fixture(scope="module")
def results(prepared, tmp_path_factory, command) -> Path:
    """The study's results: runs that are swept, and their table."""
    folder = tmp_path_factory.mktemp("horizons")
    text = (prepared / "tiny.toml").read_text(encoding="utf-8")
    schedule = f"horizons = {list(HORIZONS)}\ncooldown_steps = 30\neval_every = 10"
    text = re.sub(r"(?m)^steps = 60$", schedule, text)
    text = text.replace(", { xx-aa = 0.7, xx-bb = 0.3 }", "")
    (folder / "tiny.toml").write_text(text, encoding="utf-8")
    (folder / "results" / "tiny").mkdir(parents=True)
    (folder / "results" / "tiny" / "data").symlink_to(prepared / "results" / "tiny" / "data")
    for line in (
        "mnmt-model sweep tiny.toml",
        "mnmt-laws collect results/tiny/runs --out runs.csv",
        "mnmt-laws fit runs.csv --law share-tied --testset test --refits 0 --json",
    ):
        done = command(folder, *line.split())
        assert done.returncode == 0, done.stderr
        (folder / f"{line.split()[1]}.out").write_text(done.stdout, encoding="utf-8")
    return folder


def test_every_length_has_an_annealed_loss_of_every_model(results: Path) -> None:
    table = pd.read_csv(results / "runs.csv")
    annealed = table[table["annealed"].eq(1) & table["testset"].eq("test") & table["task"].eq("xx-aa")]
    lengths = annealed.groupby(["size", "mixture"])["step"].agg(sorted)
    assert lengths.tolist() == [list(HORIZONS)] * 10


def test_learning_curves_are_there_too(results: Path) -> None:
    table = pd.read_csv(results / "runs.csv")
    trunk = table[
        table["run"].eq("d8_xx-aa-1_seed1") & table["testset"].eq("dev") & table["task"].eq("xx-aa")
    ]
    assert trunk["step"].tolist() == [10, 20, 30, 40, 50, 60]
    assert trunk["annealed"].tolist() == [0, 0, 0, 0, 0, 1]


def test_a_law_of_length_is_fitted(results: Path) -> None:
    fitted = json.loads((results / "fit.out").read_text(encoding="utf-8"))
    assert fitted["law"] == "share-tied"
    assert fitted["converged"]
