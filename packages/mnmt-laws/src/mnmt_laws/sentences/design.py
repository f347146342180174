"""Runs worth training, in sentences."""

from __future__ import annotations

from mnmt_laws.answers.design.next_runs import Design
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.sentences.advice import cost_text, model_of

_REASONS = {
    "small stake": "Nothing is worth training before {model}: the advice's expected regret, {regret}, is "
    "less than {amount}{whose}.",
    "no run helps": "Nothing is worth training before {model}: no run would remove much of the expected "
    "regret of {regret}.",
    "one source": "There is no mixture to choose before {model}: the table has one source only.",
}


def design_sentence(design: Design, answer: Recommendation) -> str:
    """Return what the proposed runs are for, or why nothing is worth training, and if nothing checks it."""
    text = _sentence(design, answer)
    if answer.forecast.tests_mixtures:
        return text
    return f"By the laws alone, {text[0].lower()}{text[1:]} No back-test checks what mixtures cost by them."


def _sentence(design: Design, answer: Recommendation) -> str:
    regret = cost_text(answer, design.regret)
    if design.reason:
        whose = "" if answer.amount_given else ", the scatter of one run about the law"
        amount = cost_text(answer, answer.amount)
        return _REASONS[design.reason].format(
            model=model_of(answer), regret=regret, amount=amount, whose=whose
        )
    left = cost_text(answer, float(design.runs["regret"].iloc[-1]))
    return f"These runs would bring the advice's expected regret from {regret} to {left}."


def design_lines(design: Design, answer: Recommendation) -> list[str]:
    """Return the runs with their cost and what each leaves of the expected regret, a line each."""
    lines = []
    for number, row in enumerate(design.runs.to_dict("records"), start=1):
        size = f"{row['size']:,.0f} parameters, " if "size" in row else ""
        length = f"{row['tokens']:,.0f} tokens, " if "tokens" in row else ""
        left = cost_text(answer, row["regret"])
        lines.append(
            f"{number}. {size}{length}{row['mixture']}: cost {row['cost']:.3g} {design.unit}, then {left}"
        )
    return lines
