"""Runs of tokens against lists of lists."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from mnmt_model.transformer.sentences import PAD, Sentences

batches = st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=6), min_size=1, max_size=5)


def padded(rows: list[list[int]], extra: int = 0) -> Tensor:
    table = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return nn.functional.pad(table, (0, extra))


@given(rows=batches, extra=st.integers(0, 3))
def test_tokens_and_where_they_stand(rows: list[list[int]], extra: int) -> None:
    sentences = Sentences.from_padded(padded(rows, extra))
    width = max(map(len, rows)) + extra
    assert (sentences.batch, sentences.width) == (len(rows), width)
    assert sentences.num_tokens == sum(map(len, rows))
    assert sentences.tokens.tolist() == [token for row in rows for token in row]
    assert sentences.positions.tolist() == [place for row in rows for place in range(len(row))]
    assert sentences.rows.tolist() == [number for number, row in enumerate(rows) for _ in row]
    assert sentences.cells.tolist() == [
        number * width + place for number, row in enumerate(rows) for place in range(len(row))
    ]
    assert sentences.padding_mask.tolist() == [[place >= len(row) for place in range(width)] for row in rows]


@given(rows=batches, extra=st.integers(0, 3))
def test_what_precedes_each_token(rows: list[list[int]], extra: int) -> None:
    shifted = Sentences.from_padded(padded(rows, extra)).previous_tokens()
    assert shifted.tolist() == [token for row in rows for token in [PAD, *row[:-1]]]


@given(rows=batches, extra=st.integers(0, 3), features=st.integers(1, 3))
def test_padding_and_flattening(rows: list[list[int]], extra: int, features: int) -> None:
    sentences = Sentences.from_padded(padded(rows, extra))
    x = torch.randn(sentences.num_tokens, features)
    table = sentences.pad(x)
    assert table.shape == (sentences.batch, sentences.width, features)
    start = 0
    for number, row in enumerate(rows):
        assert torch.equal(table[number, : len(row)], x[start : start + len(row)])
        start += len(row)
    assert table[sentences.padding_mask].count_nonzero() == 0
    # What stands at padding is lost.
    table = torch.where(sentences.padding_mask[..., None], torch.nan, table)
    assert torch.equal(sentences.flatten(table), x)


@given(rows=batches)
def test_gradients_pass_the_table(rows: list[list[int]]) -> None:
    sentences = Sentences.from_padded(padded(rows, extra=1))
    x = torch.randn(sentences.num_tokens, 2, requires_grad=True)
    factors = torch.randn(sentences.num_tokens, 2)
    (sentences.flatten(sentences.pad(x).square()) * factors).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x * factors)


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (2, 3)])
def test_no_tokens_at_all(shape: tuple[int, int]) -> None:
    sentences = Sentences.from_padded(torch.zeros(shape, dtype=torch.int64))
    assert sentences.num_tokens == len(sentences.previous_tokens()) == len(sentences.positions) == 0
    table = sentences.pad(torch.zeros(0, 4))
    assert table.shape == (*shape, 4)
    assert sentences.flatten(table).shape == (0, 4)


def test_on_another_device() -> None:
    copy = Sentences.from_padded(padded([[1, 2], [3]])).to(torch.device("meta"))
    assert {tensor.device.type for tensor in (copy.tokens, copy.cells, copy.padding_mask)} == {"meta"}
    assert (copy.batch, copy.width, copy.num_tokens) == (2, 2, 3)
