"""The draws of a gate are those of Philox4x32-10, and depend only on key and token id."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_moe_ext import RandomKey, _native
from mnmt_moe_ext.counter_rng import philox4x32, uniform

WORD = st.integers(0, 2**32 - 1)
ID = st.integers(-(2**63), 2**63 - 1)

# The known answers that the authors of Philox publish with it: counter, key, random words.
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def in_torch(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    words = philox4x32(tuple(map(torch.tensor, counter)), (torch.tensor(key[0]), torch.tensor(key[1])))
    return tuple(int(word) for word in words)


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_known_answers(counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert tuple(_native.philox4x32(counter=counter, key=key)) == expected
    assert in_torch(counter, key) == expected


@given(st.tuples(WORD, WORD, WORD, WORD), st.tuples(WORD, WORD))
def test_compiled_and_torch_agree(counter: tuple[int, ...], key: tuple[int, ...]) -> None:
    assert tuple(_native.philox4x32(counter=counter, key=key)) == in_torch(counter, key)


@given(ID, ID, ID, WORD)
def test_where_seed_step_layer_and_token_enter(token_id: int, seed: int, step: int, layer: int) -> None:
    """The key is the seed, the counter (token id, low word of the step, layer)."""
    low, high = 0xFFFFFFFF, 32
    counter = (token_id & low, (token_id >> high) & low, step & low, layer)
    words = _native.philox4x32(counter=counter, key=(seed & low, (seed >> high) & low))
    expected = ((words[0] >> 5) << 26) + (words[1] >> 6)
    draw = uniform(RandomKey.make(seed=seed, step=step, layer=layer), torch.tensor([token_id]))
    assert draw.dtype == torch.float64
    assert draw.item() == expected / 2**53


def test_draws_are_uniform() -> None:
    draws = uniform(RandomKey.make(seed=1, step=2), torch.arange(100_000))
    assert draws.min() >= 0
    assert draws.max() < 1
    counts = torch.histc(draws, bins=100, min=0, max=1)
    chi_square = ((counts - 1000) ** 2 / 1000).sum()
    assert 60 < chi_square < 150  # 99 degrees of freedom; beyond either with probability below 1e-3


@pytest.mark.parametrize("other", [{"seed": 2}, {"step": 3}, {"layer": 1}])
def test_seed_step_and_layer_matter(other: dict[str, int]) -> None:
    key = {"seed": 1, "step": 2, "layer": 0}
    token_ids = torch.arange(1000)
    draws = uniform(RandomKey.make(**key), token_ids)
    others = uniform(RandomKey.make(**{**key, **other}), token_ids)
    assert abs(torch.corrcoef(torch.stack([draws, others]))[0, 1]) < 0.15


def test_make_puts_the_key_on_the_device() -> None:
    key = RandomKey.make(seed=1, step=2, layer=3, device="meta")
    assert key.seed_and_step.is_meta
    assert key.seed_and_step.dtype == torch.int64
    assert key.layer == 3
