"""Advice in sentences: the mixture, the range that costs little, and what is at stake."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mnmt_laws.answers.decision import AdviceTest, Rival
from mnmt_laws.answers.recommendation import Recommendation
from mnmt_laws.figures.style import format_size
from mnmt_laws.sentences.words import join

_MOST_NAMED = 3  # sources of a sentence
_AIMS = {
    "worst": "For the least worst loss",
    "relative": "For the least loss over that of each task alone",
    "targets": "For the targets",
}


def advice_sentences(answer: Recommendation) -> list[str]:
    """Return the advice: what to train, the stake, and the range of weights that costs little."""
    return [_start(answer), stake_sentence(answer), _range(answer)]


def _start(answer: Recommendation) -> str:
    aim = _AIMS.get(answer.want.aim) or _importance(answer.want.importance)
    train = "train" if aim else "Train"
    start = f"{aim}, {train}" if aim else train
    return f"{start} {model_of(answer)} on {mixture_of(answer.weights)}."


def _importance(numbers: Mapping[str, float]) -> str:
    """Return how often each task's loss counts, in multiples of the least; nothing where all count alike."""
    least = min(numbers.values())
    counts = {task: f"{number / least:.3g}" for task, number in numbers.items()}
    if set(counts.values()) == {"1"}:
        return ""
    if len(counts) > _MOST_NAMED:
        return "For the mean loss by importance"
    return f"Where losses count {join([f'{count} ({task})' for task, count in counts.items()])}"


def model_of(answer: Recommendation) -> str:
    """Return the model in words: `a model of 334K parameters and 1.64M tokens`."""
    parts = [] if answer.size is None else [f"{format_size(answer.size)} parameters"]
    parts += [] if answer.tokens is None else [f"{format_size(answer.tokens)} tokens"]
    return f"a model of {' and '.join(parts)}" if parts else "the model"


def mixture_of(weights: dict[str, float]) -> str:
    """Return a mixture in words: `34% en-de and 66% en-zh`; of many sources the largest weights first."""
    if len(weights) == 1:
        return next(iter(weights))
    largest = sorted(weights.items(), key=lambda item: -item[1])
    shares = list(weights.items()) if len(weights) <= _MOST_NAMED else largest
    named = [f"{weight:.0%} {source}" for source, weight in shares[:_MOST_NAMED]]
    rest = len(shares) - _MOST_NAMED
    named += (
        [f"{1 - sum(weight for _, weight in shares[:_MOST_NAMED]):.0%} {rest} others"] if rest > 0 else []
    )
    return ", ".join(named[:-1]) + f" and {named[-1]}"


def _range(answer: Recommendation) -> str:
    """Return the range of the first named weight that costs little."""
    if len(answer.weights) == 1:
        return ""
    few = len(answer.weights) <= _MOST_NAMED
    source = next(iter(answer.weights)) if few else max(answer.weights, key=lambda name: answer.weights[name])
    low, high = answer.ranges[source]
    whose = "" if answer.amount_given else ", the scatter of one run about the law"
    return (
        f"Any weight of {source} from {low:.0%} to {high:.0%} is expected to cost at most "
        f"{cost_text(answer, answer.amount)} more{whose}."
    )


def stake_sentence(answer: Recommendation) -> str:
    """Return what is at stake against the rules that need no runs; nothing where there is one source."""
    if len(answer.weights) == 1:
        return ""
    if answer.rule:
        by = "" if answer.forecast.tests_mixtures else " by the laws, which no back-test checks"
        return f"These are {answer.rule}; no other mixture is expected to do better{by}."
    free = [rival for rival in answer.rivals if rival.free and rival.allowed]
    if not free:
        return ""
    rival = min(free, key=lambda each: each.loss)
    return f"{_capital(rival.name)} would be expected to cost {rival_text(answer, rival)}."


def rival_text(answer: Recommendation, rival: Rival) -> str:
    """Return what a mixture costs more than the advice, and the chance that it is worse."""
    if rival.interval[0] == rival.interval[1]:  # of one draw
        return f"{cost_text(answer, rival.loss)} more"
    low, high = (cost_text(answer, end, unit=False) for end in rival.interval)
    likely = f"{chance_text(rival.chance)} likely to be worse"
    outside = "" if rival.allowed else " (outside the limits)"
    return f"{cost_text(answer, rival.loss)} more ({low} to {high}); {likely}{outside}"


def chance_text(chance: float) -> str:
    """Return a probability; draws do not tell the last percent at either end."""
    return "over 99%" if chance > 0.99 else "under 1%" if chance < 0.01 else f"{chance:.0%}"


def cost_text(answer: Recommendation, cost: float, *, unit: bool = True) -> str:
    """Return a cost to a thousandth of the metric's unit, or of the aim `relative` to .1% of the loss."""
    if not math.isfinite(cost):
        return "unknown"
    if answer.want.aim == "relative":
        return f"{_rounded(100 * cost, 1)}%"
    name = answer.forecast.observations.unit.split(" per ")[0]
    return f"{_rounded(cost, 3)} {name}" if unit else _rounded(cost, 3)


def _rounded(number: float, places: int) -> str:
    """Return a number to some decimal places; one that they do not show, to one more."""
    step = 10.0**-places
    if abs(number) < 0.05 * step:
        return "0"
    return f"{number:.{places + (abs(number) < 0.5 * step)}f}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def prediction_sentence(answer: Recommendation) -> str:
    """Return what a model of a single task is expected to reach."""
    (task, predicted), *_ = answer.predicted.items()
    low, high = answer.intervals[task]
    metric = answer.forecast.observations.metric
    start = _capital(model_of(answer))
    return f"{start} is expected to reach {metric} {predicted:.4g} on {task} ({low:.4g} to {high:.4g})."


def average_sentence(answer: Recommendation) -> str:
    """Return the laws that the advice averages, with their shares."""
    members = answer.forecast.members
    shares = [f"{member.form.name} {member.share:.0%}" for member in members]
    if len(shares) == 1:
        return f"The advice rests on the {members[0].form.name} law."
    return f"The advice averages {len(shares)} laws by what they predicted best: {join(shares)}."


def regret_sentence(answer: Recommendation) -> str:
    """Return the expected regret of the advice, and the scatter of one run or the amount that was given."""
    name = "The amount given is" if answer.amount_given else "One run scatters by"
    return (
        f"The advice is expected to cost {cost_text(answer, answer.regret)} more than the best mixture, "
        f"which nobody knows. {name} {cost_text(answer, answer.amount)}."
    )


def tested_sentence(answer: Recommendation, test: AdviceTest) -> str:
    """Return what advice from smaller models would have cost among the mixtures of the largest size."""
    return (
        f"Advised from smaller models, {mixture_of(test.weights)} of the {test.count} mixtures trained at "
        f"{format_size(test.size)} parameters: {cost_text(answer, test.stated)} expected above the best of "
        f"them, {cost_text(answer, test.realised)} measured. Equal weights: {cost_text(answer, test.equal)}."
    )
