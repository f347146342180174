"""The run table that comes with the package."""

from __future__ import annotations

from mnmt_laws import observe
from mnmt_laws.tables.table import example_table


def test_the_example_is_a_study_of_two_tasks_with_everything_a_law_needs() -> None:
    table = example_table()
    assert table.source == "example"
    assert table.warnings == ()
    assert sorted(table.frame["metric"].unique()) == ["bleu", "chrf", "loss"]
    observations = observe(table)
    assert len(observations.tasks) == 2
    assert observations.fit["size"].nunique() >= 3
    assert not observations.held_out.empty
    columns = ["encoder_size", "decoder_size", "tokens", "flops", "step", "seed", "irreducible"]
    assert observations.frame[columns].notna().all(axis=None)
    assert observations.frame[["run", "architecture", "mixture"]].ne("").all(axis=None)
