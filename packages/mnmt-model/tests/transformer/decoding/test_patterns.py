"""Rows of hypotheses in any order and number, in a table of sentences × hypotheses."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model.transformer.decoding.patterns import Hypotheses

BATCH = 4
selections = st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=9), min_size=1, max_size=3)


@given(selections=selections)
def test_every_row_lies_in_its_sentence_and_comes_back(selections: list[list[int]]) -> None:
    hypotheses = Hypotheses.beams(BATCH, 1, torch.device("cpu"))
    names = sentences = torch.arange(BATCH)
    for selection in selections:
        rows = torch.tensor(selection) % len(names)
        remaining, hypotheses = hypotheses.select(rows)
        names = names[rows]
        sentences = sentences if remaining is None else sentences[remaining]
    assert sentences.tolist() == sorted(set(names.tolist()))
    labels = torch.stack([names, torch.arange(len(names))], dim=1) + 1
    table = hypotheses.table(labels)
    for sentence, cells in zip(sentences.tolist(), table.tolist(), strict=True):
        assert {name for name, _ in cells} <= {0, sentence + 1}
    assert torch.equal(hypotheses.rows(table), labels)
    assert table.size(1) == max(names.tolist().count(name) for name in names.tolist())


def test_beams_in_order_are_the_table_itself() -> None:
    everything = torch.arange(BATCH).repeat_interleave(3)
    remaining, hypotheses = Hypotheses.beams(BATCH, 1, torch.device("cpu")).select(everything)
    assert remaining is None
    x = torch.randn(3 * BATCH, 5)
    assert hypotheses.table(x).data_ptr() == x.data_ptr()
    reordered, hypotheses = hypotheses.select(torch.tensor([1, 0, 1, 3, 4, 4, 8, 8, 8, 9, 10, 11]))
    assert reordered is None
    assert hypotheses.table(x).data_ptr() == x.data_ptr()
