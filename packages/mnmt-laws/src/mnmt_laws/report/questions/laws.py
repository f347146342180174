"""The laws: losses over size and length, parameters, limits, and the claims of the paper."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

from mnmt_laws.answers.claims import check_claims
from mnmt_laws.answers.predictions import compare_irreducible
from mnmt_laws.figures.losses import draw_lengths, draw_losses
from mnmt_laws.fitting.law_fit import LawFit
from mnmt_laws.fitting.parameters import fit_document, parameter_frame
from mnmt_laws.fitting.uncertainty import Perturbation
from mnmt_laws.report.answer import Answer, FigureGroup, records
from mnmt_laws.report.study import Study
from mnmt_laws.report.text import TextTable, format_interval, format_number
from mnmt_laws.sentences.laws import law_sentence, limits_sentence

_SYMBOLS = {"alpha": "α", "beta": "β", "l_inf": "L∞", "c1": "c₁", "c2": "c₂", "c3": "c₃"}
_EXCESS = 1.5  # times the stated noise: scatter beyond it is reported


def answer_losses(study: Study) -> Answer:
    """Show losses over size and length, by the law of the table and, where weights recur, the joint one."""
    law = study.law
    fits = {law.law.name: law} | study.laws_by_weight
    return Answer(
        findings=(law_sentence(law),),
        figures=tuple(_figures(study)),
        tables=tuple(_parameters(fitted) for fitted in fits.values()),
        document={"fits": {name: fit_document(fitted) for name, fitted in fits.items()}},
        warnings=tuple(_warnings(law, study)),
    )


def _figures(study: Study) -> Iterator[FigureGroup]:
    law, metric = study.law, study.observations.metric
    if study.laws_by_weight:
        mixed = law if law.law.knows_mixture and not law.law.knows_length else None
        yield FigureGroup(
            "Losses and laws",
            f"The {metric} of each model over its size, one colour for each weight. Solid: the joint law, "
            "one exponent and one limit for all weights. Dotted: each weight's own law; where both coincide, "
            "the weight acts through the factor only. Hollow points were held out; dashed lines are the "
            f"{law.law.name} law at weights it was not fitted to.",
            lambda: [
                draw_losses(
                    task=task, joint=study.joint, capacity=mixed,
                    per_weighting=study.laws_by_weight.get("per-weighting"),
                )
                for task in study.tasks
            ],
        )  # fmt: skip
    if law.law.knows_length:
        yield FigureGroup(
            "Losses over training length",
            f"The {metric} of each model over its training length, and the {law.law.name} law at its size.",
            lambda: [draw_lengths(law, task=task) for task in study.tasks],
            folded=True,
        )
    elif not study.laws_by_weight:
        yield FigureGroup(
            "Losses and laws",
            f"The {metric} of each model over its size, and the {law.law.name} law.",
            lambda: [draw_losses(task=task, joint=law) for task in study.tasks],
        )


def _parameters(fitted: LawFit) -> TextTable:
    rows = (
        (
            row["task"],
            "all" if math.isnan(row["weight"]) else f"{row['weight']:g}",
            _SYMBOLS.get(row["name"], row["name"]),
            format_number(row["value"], 5),
            format_number(row["std"], 2),
        )
        for row in parameter_frame(fitted).to_dict("records")
    )
    return TextTable(
        title=f"The {fitted.law.name} law",
        note=f"{fitted.law.formula} ({fitted.law.equation}); N in parameters; {fitted.objective}.",
        header=("task", "p", "parameter", "value", "std"),
        rows=tuple(rows),
    )


def _warnings(law: LawFit, study: Study) -> Iterator[str]:
    """Yield the law's warnings, and a line if it did not converge or lies farther off than was assumed."""
    yield from law.warnings
    if not law.converged:
        yield f"the search for the {law.law.name} law did not converge."
    method = study.uncertainty
    if isinstance(method, Perturbation) and law.scatter > _EXCESS * method.share:
        yield (
            f"the values lie {law.scatter:.1%} from the {law.law.name} law, but standard deviations assume "
            f"{method.share:.1%} noise and are too small; "
            f"`Perturbation(share={law.scatter:.2g})` would fit the data."
        )


def answer_limits(study: Study) -> Answer:
    """Compare L∞ of the law with the known irreducible losses."""
    limits = compare_irreducible(study.law)
    rows = limits.to_dict("records")
    table = TextTable(
        title="Irreducible loss, known and fitted",
        note=f"L∞ of the {study.law.law.name} law, at most the known loss, in {study.law.observations.unit}.",
        header=("task", "known", "fitted", "std", "95% interval"),
        rows=tuple(
            (
                row["task"],
                *(
                    format_number(row[name], digits)
                    for name, digits in (("true", 4), ("fitted", 4), ("std", 2))
                ),
                format_interval(row["lower"], row["upper"], 4),
            )
            for row in rows
        ),
    )
    return Answer(
        findings=(limits_sentence(study.law, limits),),
        tables=(table,),
        document={"irreducible": records(limits)},
    )


def answer_claims(study: Study) -> Answer:
    """Check the claims of Fernandes et al. 2023."""
    if "per-weighting" not in study.laws_by_weight:
        return Answer(document={"claims": []})
    claims = check_claims(
        per_weighting=study.laws_by_weight["per-weighting"], joint=study.joint, effective=study.effective
    )
    verdict = {True: "holds", False: "does not hold", None: "cannot tell"}
    table = TextTable(
        title="The paper's claims on this table",
        note="Fernandes et al. 2023, sections 3.2 and 3.3.",
        header=("claim", "task", "verdict", "finding"),
        rows=tuple((claim.claim, claim.task, verdict[claim.holds], claim.finding) for claim in claims),
        prose=True,
    )
    return Answer(tables=(table,), document={"claims": [asdict(claim) for claim in claims]})
