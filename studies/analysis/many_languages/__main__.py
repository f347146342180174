"""Compare models of twelve languages with models of one, and write docs/studies/many-languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from benchmarks.measurement import Figures, run
from mnmt_laws.figures.style import Chart
from studies.analysis.many_languages.depth import depths
from studies.analysis.many_languages.figures import KINDS, draw_experts, draw_gains, draw_longer
from studies.analysis.many_languages.models import BILINGUAL, FOLDER, OWN, UPDATED, gains, longest, read_runs
from studies.analysis.many_languages.questions import by_length, contrasts, gains_by_text
from studies.analysis.many_languages.vocabularies import DENSE, carry, in_bits, vocabularies
from studies.page import write_page


def main(*, folder: Path = FOLDER, out: Path = FOLDER) -> None:
    """Print and write what the tables say.

    Args:
        folder: Where the tables are.
        out: Folder for results.json and the figures.
    """
    rows, longer = read_runs(folder / "runs.csv"), read_runs(folder / "longer.csv")
    batches = read_runs(folder / "small-batches.csv").assign(name=UPDATED)
    lengths = list(by_length(rows, longer, batches))
    results, charts = at_equal_cost(rows, longer, batches)
    results = {"by_length": lengths, **results}
    depth, dev = (read_runs(folder / "depth.csv", testset) for testset in ("test", "dev"))
    results["vocabularies"] = own_vocabularies(folder, rows, longer, depth)
    results["depth"] = depths(depth, dev)
    charts["longer"] = draw_longer(lengths)
    shares = pd.read_csv(folder / "experts.csv")
    known = ["model", "layer", "told", "told_lower", "told_upper", "least_load", "most_load"]
    results["specialisation"] = shares.drop_duplicates(["model", "layer"])[known]
    charts["experts"] = draw_experts(shares[shares["model"].eq("moe16, T = 1")])
    write_page(out, results, charts)


def at_equal_cost(
    rows: pd.DataFrame, longer: pd.DataFrame, batches: pd.DataFrame
) -> tuple[Figures, dict[str, Chart]]:
    """Return the gains of every language over its own model, contrasts of models, and the figure."""
    models, alone = longest(longer), rows[rows["name"].eq(BILINGUAL)]
    better = gains(pd.concat([models, batches.assign(share=batches["task"].map(_shares(rows)))]), alone)
    panels = {
        words.format(heat): better[better["name"].isin([*(f"{kind}, T = {heat}" for kind in KINDS), UPDATED])]
        for heat, words in ((1, "read in proportion to the text (T = {})"), (5, "read nearly alike (T = {})"))
    }
    results = {
        "gains": better, "gains_by_text": gains_by_text(better),
        "contrasts": [*contrasts(rows), *contrasts(pd.concat([models, batches]))],
    }  # fmt: skip
    return results, {"gains": draw_gains(panels)}


def own_vocabularies(
    folder: Path, rows: pd.DataFrame, longer: pd.DataFrame, depth: pd.DataFrame
) -> Iterator[Figures]:
    """Return what vocabularies of one language change, by tables of text that was fetched later."""
    later, separate = (read_runs(folder / f"{name}.csv") for name in ("bilingual", "own-vocabulary"))
    other = carry(longest(longer[longer["temperature"].eq(1)]), rows[rows["name"].eq(BILINGUAL)], later)
    dense = longest(depth[depth["name"].eq(DENSE)])
    models = pd.concat([later, separate.assign(name=OWN), dense, other])
    return vocabularies(in_bits(models, pd.read_csv(folder / "tokens.csv")))


def _shares(rows: pd.DataFrame) -> pd.Series:
    return rows.drop_duplicates("task").set_index("task")["share"]


if __name__ == "__main__":
    run(main, smoke={"out": Path(gettempdir()) / "mnmt-many-languages"})
