"""How much of a model two tasks share, f(p) = N_eff / N, by the share of their lexicons that is one.

Runs studies/synergy.toml at several values of `shared_lexicon`, fits the joint law to each (Fernandes et al.
2023, eq. 7) and prints the effective fractions (eqs. 8-10). Where the lexicons are one and the same the truth
is known: f(p) = 1 at every p. Started again, it goes on where it was interrupted.

    OMP_NUM_THREADS=1 python -m benchmarks.laws.synergy --out benchmarks/results/laws/synergy.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from mnmt_data.prepare import DataConfig
from mnmt_data.study import read_study
from mnmt_data.synthetic import SyntheticConfig, shared_concepts, zipf_probabilities
from mnmt_laws import LawFit, collect, effective_fractions, fit, observe

STUDY = Path(__file__).parents[2] / "studies" / "synergy.toml"
SHARE = "shared_lexicon = 0.5"
PACKAGES = ("mnmt-data", "mnmt-model", "mnmt-laws", "torch", "numpy")


@dataclass(frozen=True, kw_only=True)
class Fraction:
    """The effective fraction of one task at one weight, with its 95% interval."""

    task: str
    weight: float
    value: float
    lower: float
    upper: float


def main() -> None:
    """Train, fit, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.5, 1.0])
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results = []
    for share in arguments.shares:
        study = write_study(share, arguments.results)
        runs = train(study, study.parent, arguments.jobs)
        results.append(measure(share, read_study(study).section("data", DataConfig).synthetic, runs))
        print_fractions(results[-1])
    if arguments.out:
        software = {name: version(name) for name in PACKAGES}
        document = {"software": software, "study": STUDY.name, "results": results}
        arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def write_study(share: float, results: Path) -> Path:
    """The study at one share, in a folder of its own."""
    text = STUDY.read_text(encoding="utf-8")
    if SHARE not in text:
        raise SystemExit(f"{STUDY}: must hold the line `{SHARE}`, in whose place other shares are put.")
    name = f"synergy-{share:g}"
    text = text.replace(SHARE, f"shared_lexicon = {share}").replace('name = "synergy"', f'name = "{name}"')
    study = results / name / f"{name}.toml"
    study.parent.mkdir(parents=True, exist_ok=True)
    study.write_text(text, encoding="utf-8")
    return study


def train(study: Path, out: Path, jobs: int) -> Path:
    """Prepare the data and trains what is not trained yet; returns the folder of the runs."""
    run("mnmt_data", ["prepare", str(study), "--out", str(out)])
    run("mnmt_model", ["sweep", str(study), "--out", str(out), "--jobs", str(jobs)])
    return out / "runs"


def run(module: str, arguments: Sequence[str]) -> None:
    """One of our commands; ends this program if it fails."""
    if status := subprocess.run([sys.executable, "-m", module, *arguments], check=False).returncode:
        raise SystemExit(status)


def measure(share: float, languages: SyntheticConfig | None, runs: Path) -> dict[str, Any]:
    """Fractions and what they rest on, as plain data."""
    assert languages is not None  # the study says so
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
    """f(p) of every task at every weight below 1."""
    found = effective_fractions(joint).fractions
    for task in joint.tasks:
        for weight in np.unique(joint.fitted_weights(task)):
            own = found.sel(task=task, weight=weight)
            lower, upper = (float(own.interval.sel(bound=bound)) for bound in ("lower", "upper"))
            if weight < 1:
                yield Fraction(
                    task=task, weight=float(weight), value=float(own.value), lower=lower, upper=upper
                )


def print_fractions(result: dict[str, Any]) -> None:
    """One share as a table."""
    print(
        f"\n### {result['shared_lexicon']:.0%} of concepts shared ({result['shared_words']:.0%} of words)\n"
    )
    print("| task | p | f(p) | 95% interval | truth |")
    print("|--|--|--|--|--|")
    truth = "1" if result["truth"] else "unknown"
    for row in result["fractions"]:
        interval = f"{row['lower']:.2f} to {row['upper']:.2f}"
        print(f"| {row['task']} | {row['weight']:g} | {row['value']:.2f} | {interval} | {truth} |")
    print(flush=True)


if __name__ == "__main__":
    main()
