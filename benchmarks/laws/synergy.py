r"""The share of a model that two tasks share, f(p) = N_eff / N, by the share of their common lexicon.

Claim: the effective fraction rises with what the tasks share; where the lexicons are one and the same, the
truth is
known: f(p) = 1 at every p. No peer. Cited in docs/data/synthetic.md.

It runs studies/synergy.toml at several values of `shared_lexicon`, fits the joint law to each (Fernandes et
al. 2023, eq. 7) and prints the effective fractions (eqs. 8-10). With `--results`, it goes on where it was
interrupted.

    OMP_NUM_THREADS=1 python -m benchmarks.laws.synergy --results results \
        --out benchmarks/results/laws/synergy.json
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.measurement import Figures, Numbers, Out, print_table, provenance, run, write_report
from benchmarks.studies import prepare, train_study, write_changed_study
from mnmt_data import read_study
from mnmt_data.prepare import DataConfig
from mnmt_data.synthetic import Languages, SyntheticConfig, shared_concepts, zipf_probabilities
from mnmt_laws import LawFit, collect, effective_fractions, fit, observe

STUDY = Path(__file__).parents[2] / "studies" / "synergy.toml"


@dataclass(frozen=True, kw_only=True)
class Fraction:
    """The effective fraction of one task at one weight, with its 95% interval."""

    task: str
    weight: float
    value: float
    lower: float
    upper: float


def main(
    *,
    shares: Numbers = (0.0, 0.5, 1.0),
    results: Path | None = None,
    jobs: int = 2,
    steps: int = 1600,
    sentences: int = 420_000,
    out: Out = None,
) -> None:
    """Train, fit, and print a table for each share.

    Args:
        shares: Shares of the lexicon that both tasks have in common.
        results: Folder for data and runs; a temporary one by default.
        jobs: Runs trained at a time.
        steps: Training steps of each run.
        sentences: Training pairs of each task.
        out: JSON file for the figures.
    """
    rows = []
    with TemporaryDirectory() as temporary:
        for share in shares:
            study = write_study(share, (results or Path(temporary)).absolute(), steps, sentences)
            prepare(study, study.parent)
            runs = train_study(study, study.parent, jobs=jobs)
            rows.append(measure(share, read_study(study).section("data", DataConfig).synthetic, runs))
            print_fractions(rows[-1])
    description = provenance("mnmt-data", "mnmt-model", "mnmt-laws", "torch", "numpy")
    write_report(
        out, "effective fractions by shared lexicon", {"study": STUDY.name, "results": rows}, description
    )


def write_study(share: float, results: Path, steps: int, sentences: int) -> Path:
    """Write the study at one share into a folder of its own; return its file."""
    name = f"synergy-{share:g}"
    changes = {
        'name = "synergy"': f'name = "{name}"',
        "shared_lexicon = 0.5": f"shared_lexicon = {share}",
        "\nsteps = 1600": f"\nsteps = {steps}",
        "warmup_steps = 100": f"warmup_steps = {min(100, steps // 4)}",
        "cooldown_steps = 800": f"cooldown_steps = {steps // 2}",
        "train_sentences = 420_000": f"train_sentences = {sentences}",
    }
    return write_changed_study(results / name / f"{name}.toml", STUDY, changes)


def measure(share: float, languages: Languages | None, runs: Path) -> Figures:
    """Return the fractions and the fit behind them."""
    assert isinstance(languages, SyntheticConfig)  # the study says so
    observations = observe(collect(runs).table)
    joint = fit(observations, law="joint")
    shared = shared_concepts(languages.concepts, share, seed=languages.seed)
    words = zipf_probabilities(languages.concepts, languages.zipf_exponent)[shared].sum()
    losses = observations.fit[["task", "size", "weight", "value"]].sort_values(["task", "size", "weight"])
    return {
        "shared_lexicon": share,
        "shared_words": round(float(words), 4),
        "truth": 1.0 if share == 1 else None,
        "fractions": [asdict(fraction) for fraction in fractions(joint)],
        "alpha": {task: float(joint.parameters.alpha.sel(task=task)) for task in joint.tasks},
        "l_inf": {task: float(joint.parameters.l_inf.sel(task=task)) for task in joint.tasks},
        "irreducible": languages.irreducible,
        "warnings": list(joint.warnings),
        "losses": losses.to_dict("records"),
    }


def fractions(joint: LawFit) -> Iterator[Fraction]:
    """Yield f(p) of every task at every weight below 1."""
    values = effective_fractions(joint).fractions
    for task in joint.tasks:
        for weight in np.unique(joint.fitted_weights(task)):
            fraction = values.sel(task=task, weight=weight)
            lower, upper = (float(fraction.interval.sel(bound=bound)) for bound in ("lower", "upper"))
            if weight < 1:
                yield Fraction(
                    task=task, weight=float(weight), value=float(fraction.value), lower=lower, upper=upper
                )


def print_fractions(result: Figures) -> None:
    """Print the table of one share."""
    words = f"{result['shared_words']:.0%} of words"
    print(f"\n### {result['shared_lexicon']:.0%} of concepts shared ({words})\n")
    truth = "1" if result["truth"] else "unknown"
    print_table(
        [
            {
                "task": row["task"],
                "p": f"{row['weight']:g}",
                "f(p)": f"{row['value']:.2f}",
                "95% interval": f"{row['lower']:.2f} to {row['upper']:.2f}",
                "truth": truth,
            }
            for row in result["fractions"]
        ]
    )


if __name__ == "__main__":
    run(main, smoke={"shares": (1.0,), "jobs": 1, "steps": 2, "sentences": 3000})
