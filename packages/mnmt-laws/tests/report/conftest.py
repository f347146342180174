from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import KnownLaw, LawFit, Perturbation, ResidualBootstrap, fit, read_table, recommend, simulate
from mnmt_laws.fitting.uncertainty import Uncertainty
from mnmt_laws.report.analysis import Analysis, analyse
from mnmt_laws.report.page import render_page
from mnmt_laws.report.study import Study
from mnmt_laws.tables.source import RunSource

AA = KnownLaw.capacity(alpha=0.62, beta=300, l_inf=0.18, c1=0.2, c2=0.5, c3=1.0)
BB = KnownLaw.capacity(alpha=0.55, beta=180, l_inf=0.25, c1=0.12, c2=0.4, c3=1.3)
SIZES = (1e4, 2e4, 4e4, 8e4, 1.6e5)
FEW = Perturbation(refits=10)


@dataclass(frozen=True)
class Page:
    """The text of a page, read back."""

    text: str

    @property
    def headings(self) -> list[str]:
        return re.findall(r"<h2[^>]*>([^<]+)</h2>", self.text)

    def cells(self, anchor: str) -> list[list[str]]:
        """The rows of the table under a heading."""
        table = self.text[self.text.index(f'id="table-{anchor}"') :].partition("</table>")[0]
        return [
            [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", row)]
            for row in re.findall(r"<tr><td>.*?</tr>", table)
        ]


def analyse_table(
    table: pd.DataFrame,
    *,
    metric: str | None = None,
    uncertainty: Uncertainty = FEW,
) -> Analysis:
    return analyse(
        RunSource(table=read_table(table)),
        metric=metric,
        testset=None,
        architecture=None,
        objective="log-ols",
        prior="none",
        uncertainty=uncertainty,
    )


@pytest.fixture(scope="session", name="analyse_table")
def analyse_table_fixture() -> Callable[..., Analysis]:
    """A function that analyses a table, with ten refits unless it is given another uncertainty."""
    return analyse_table


@pytest.fixture(scope="session")
def small_table() -> pd.DataFrame:
    """Two tasks on two test sets, with loss and chrF; the largest size is held out."""
    laws = {"aa": AA, "bb": BB}
    table = simulate(laws, sizes=SIZES, weights=(0.0, 0.1, 0.3, 0.7, 1.0), noise=0.005, seed=1)
    role = np.where(table["size"] == SIZES[-1], "held-out", "fit")
    table = table.assign(role=role, testset="test")
    news = table.assign(testset="news", value=1.2 * table["value"])
    chrf = table.assign(metric="chrf", value=80 - 18 * table["value"])
    return pd.concat([table, news, chrf], ignore_index=True)


@pytest.fixture(scope="session")
def losses(small_table: pd.DataFrame) -> pd.DataFrame:
    """The losses of the small table on one test set."""
    return small_table[small_table["metric"].eq("loss") & small_table["testset"].eq("test")]


@pytest.fixture(scope="session")
def one_task(losses: pd.DataFrame) -> pd.DataFrame:
    """The losses of one task."""
    return losses[losses["task"].eq("aa")]


@pytest.fixture(scope="session")
def three_table() -> pd.DataFrame:
    """Three tasks in pairs, and one mixture of all."""
    gains = {"aa": {"bb": 0.3, "cc": 0.5}, "bb": {"aa": 0.2, "cc": 0.2}, "cc": {"aa": 0.5, "bb": 0.1}}
    laws = {
        task: KnownLaw.capacity(alpha=0.62, beta=300, l_inf=0.18, c1=gain) for task, gain in gains.items()
    }
    pairs = [("aa", "bb"), ("aa", "cc"), ("bb", "cc")]
    mixtures = [{task: 1.0} for task in laws]
    mixtures += [{one: p, two: 1 - p} for one, two in pairs for p in (0.25, 0.5, 0.75)]
    mixtures.append({"aa": 0.25, "bb": 0.25, "cc": 0.5})
    return simulate(laws, sizes=SIZES[:4], mixtures=mixtures, noise=0.003)


@pytest.fixture(scope="session")
def loss_analysis(small_table: pd.DataFrame) -> Analysis:
    return analyse_table(small_table)


@pytest.fixture(scope="session")
def chrf_analysis(small_table: pd.DataFrame) -> Analysis:
    return analyse_table(small_table, metric="chrf")


def by_law(law: LawFit) -> Analysis:
    """The study of one law that is fitted already, with its advice and no other answers."""
    source = RunSource(table=read_table(law.observations.frame.drop(columns="row")))
    advice = recommend(law)
    study = Study(
        source=source, observations=law.observations, objective="log-ols", uncertainty=FEW,
        recommendation=advice,
    )  # fmt: skip
    study.__dict__["law"] = law
    return Analysis(study=study, answers={})


@pytest.fixture(scope="session", name="by_law")
def by_law_fixture() -> Callable[[LawFit], Analysis]:
    """A function that makes the study of one law."""
    return by_law


@pytest.fixture(scope="session")
def three_analysis(three_table: pd.DataFrame) -> Analysis:
    """Three tasks by a law of whole mixtures, without the answers that take long."""
    law = fit(three_table, law="simplex-capacity", uncertainty=ResidualBootstrap(refits=10))
    return by_law(law)


@pytest.fixture(scope="session")
def length_analysis() -> Analysis:
    """Two tasks trained for three lengths, read by a law that knows the length."""
    rows = [
        {
            "size": size,
            "tokens": tokens,
            "task": task,
            "weight": weight,
            "metric": "loss",
            "run": f"{size} {tokens} {p}",
        }
        for size in SIZES
        for tokens in (1e6, 4e6, 1.6e7)
        for p in (0.2, 0.5, 0.8)
        for task, weight in (("aa", p), ("bb", 1 - p))
    ]
    table = pd.DataFrame(rows)
    terms = (
        40 * (table["weight"] ** 0.7 * table["size"]) ** -0.45
        + 90 * (table["weight"] * table["tokens"]) ** -0.4
    )
    noise = np.random.default_rng(0).normal(0, 0.003, len(table))
    table["value"] = (0.4 + terms) * np.exp(noise)
    return by_law(fit(table, law="length", uncertainty=ResidualBootstrap(refits=20)))


@pytest.fixture(scope="session")
def page(loss_analysis: Analysis) -> Page:
    """The page of the small table's loss."""
    return Page(render_page(loss_analysis))
