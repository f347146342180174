"""A comparison of laws in words."""

from __future__ import annotations

import pandas as pd

from mnmt_laws.answers.comparison.verdict import Verdict, leaders
from mnmt_laws.forecasts.rivals import RIVALS, label_of, story_of

_MOST_NAMED = 3  # rivals of a sentence
_NOTEWORTHY = 0.05  # share of the average
_MOST_GAPS = 3  # in a sentence


def shares_sentence(forms: pd.DataFrame) -> str:
    """Return the laws and rulers that predicted best what was left out, with their shares of the average."""
    parts = [
        f"{row['law']} {row['share']:.0%}" for row in forms.to_dict("records") if row["share"] >= _NOTEWORTHY
    ]
    return f"By what was left out, predictions rest on {', '.join(parts)}." if parts else ""


def preference_sentence(verdict: Verdict) -> str:
    """Return the sentence on the law that the table prefers, or that the comparison is undecided."""
    first = leaders(verdict.ranking)
    if first.empty:
        return "No law can be compared by BIC; the errors on what was left out decide."
    first = first.iloc[: 1 + _MOST_NAMED]
    labels = [label_of(str(law)) for law in first.index]
    above = zip(labels[1:], first.iloc[1:] - first.iloc[0], strict=True)
    gaps = ", ".join(f"{label} +{gap:.1f}" for label, gap in list(above)[:_MOST_GAPS])
    gaps += ", …" if len(first) > 1 + _MOST_GAPS else ""
    if len(first) == 1:
        return f"The table admits “{labels[0]}” and no rival to it."
    if not verdict.best:
        return f"Undecided: “{labels[0]}” has the lowest BIC ({gaps}), but this does not settle it."
    if verdict.best == "per-weighting":
        return (
            "No single parameter carries the mixture: “all vary” is preferred in spite of its "
            f"parameters (BIC: {gaps})."
        )
    if verdict.best in RIVALS or story_of(verdict.best) in RIVALS.values():
        return f"The mixture acts through one parameter, “{labels[0]}”: it has the lowest BIC ({gaps})."
    return f"The table prefers {labels[0]}: it has the lowest BIC ({gaps})."
