"""Studies of proposed runs."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws import CandidateRun, LawFit, TableError, design, recommend
from mnmt_laws.answers.design.study_toml import mixture_line, round_mixture, runs_of, studies_of


@given(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=17))
def test_rounded_mixtures_sum_to_one_and_stay_near(numbers: list[float]) -> None:
    total = math.fsum(numbers)
    weights = {f"en-{index}": number / total for index, number in enumerate(numbers)}
    rounded = round_mixture(weights)
    assert math.fsum(rounded.values()) == pytest.approx(1.0, abs=1e-12)
    assert all(abs(rounded.get(name, 0.0) - weight) <= 1e-3 for name, weight in weights.items())


def test_a_line_is_what_options_and_tables_take() -> None:
    assert mixture_line({"en-de": 0.41234, "en-zh": 0.58766}) == "en-de:0.412,en-zh:0.588"


def runs_in(texts: list[str]) -> Counter[tuple[str, str]]:
    """Count the runs that a sweep would train: sizes × mixtures × seeds of every study."""
    return Counter(
        (size, str(sorted(mixture.items())))
        for sweep in (tomllib.loads(text)["sweep"] for text in texts)
        for size in sweep["fit"]["sizes"]
        for mixture in sweep["fit"]["mixtures"]
        for _ in sweep["seeds"]
    )


def test_studies_hold_the_runs_and_no_others(two_tasks: LawFit) -> None:
    even, uneven = {"en-de": 0.5, "en-zh": 0.5}, {"en-de": 0.2, "en-zh": 0.8}
    runs = [
        CandidateRun(9456, even),
        CandidateRun(21032, even),
        CandidateRun(21032, uneven),
        CandidateRun(9456, even),
    ]
    studies = studies_of(two_tasks.observations.frame, runs, notes=["why"])
    counts = runs_in([study.text for study in studies])
    assert sum(counts.values()) == sum(study.runs for study in studies) == 4
    assert counts["n9456", str(sorted(even.items()))] == 2
    assert all(study.text.startswith("# why\n") for study in studies)


def test_a_designs_runs_keep_the_study_that_they_extend(two_tasks: LawFit, tmp_path: Path) -> None:
    base = tmp_path / "study.toml"
    base.write_text(
        'name = "tiny"\n[data]\ntasks = ["en-de", "en-zh"]\n[sweep]\nseeds = [7]\n'
        "[sweep.sizes]\nn9456 = { d_model = 16 }\n[sweep.fit]\nsizes = []\n[train]\nsteps = 5\n"
    )
    runs = runs_of(design(recommend(two_tasks, size=1e6, amount=1e-9), runs=2).runs)
    assert all(set(run.mixture) <= {"en-de", "en-zh"} for run in runs)
    document = tomllib.loads(
        studies_of(two_tasks.observations.frame, [CandidateRun(9456, {"en-de": 1.0})], base=base)[0].text
    )
    assert document["name"] == "tiny"
    assert document["train"] == {"steps": 5}
    assert document["sweep"]["sizes"] == {"n9456": {"d_model": 16}}
    assert document["sweep"]["fit"] == {"sizes": ["n9456"], "mixtures": [{"en-de": 1.0}]}
    base.write_text("no study")
    with pytest.raises(TableError, match=r"study\.toml"):
        studies_of(two_tasks.observations.frame, runs, base=base)
