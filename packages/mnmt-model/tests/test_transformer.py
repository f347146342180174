import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model import EncoderDecoder, Shape
from mnmt_model.decoding import IncrementalModel
from mnmt_model.initialise import initialise
from mnmt_model.loss import pair_losses, shift_right, total_loss

SHAPE = Shape(encoder_layers=1, decoder_layers=2, d_model=16, num_heads=2, head_dim=8, d_ff=32)
VOCAB_SIZE = 20


def model() -> EncoderDecoder:
    built = EncoderDecoder(SHAPE, VOCAB_SIZE)
    initialise(built, seed=1)
    return built.eval()


MODEL = model()
token_lists = st.lists(st.integers(2, VOCAB_SIZE - 1), min_size=1, max_size=12)


@given(src=token_lists, tgt=token_lists, padding=st.integers(1, 5))
def test_padding_changes_no_loss(src: list[int], tgt: list[int], padding: int) -> None:
    bare = pair_losses(MODEL, torch.tensor([src]), torch.tensor([tgt]))
    padded = pair_losses(MODEL, torch.tensor([src + [0] * padding]), torch.tensor([tgt + [0] * padding]))
    torch.testing.assert_close(bare, padded, rtol=1e-5, atol=1e-5)


@given(pairs=st.lists(st.tuples(token_lists, token_lists), min_size=2, max_size=4))
def test_batch_mates_change_no_loss(pairs: list[tuple[list[int], list[int]]]) -> None:
    src, tgt = (
        torch.nn.utils.rnn.pad_sequence([torch.tensor(pair[side]) for pair in pairs], batch_first=True)
        for side in (0, 1)
    )
    together = pair_losses(MODEL, src, tgt)
    alone = torch.cat([pair_losses(MODEL, torch.tensor([s]), torch.tensor([t])) for s, t in pairs])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(together.sum(), total_loss(MODEL, src, tgt), rtol=1e-5, atol=1e-4)


@given(tgt=token_lists, position=st.integers(0, 11), token=st.integers(2, VOCAB_SIZE - 1))
def test_a_later_token_changes_no_earlier_logit(tgt: list[int], position: int, token: int) -> None:
    position %= len(tgt)
    changed = [*tgt[:position], token, *tgt[position + 1 :]]
    src = torch.tensor([[3, 4, 1]])
    before, after = MODEL(src, torch.tensor([tgt])), MODEL(src, torch.tensor([changed]))
    torch.testing.assert_close(before[:, :position], after[:, :position])


def test_one_token_at_a_time_equals_all_at_once() -> None:
    src = torch.tensor([[5, 6, 7, 1], [8, 1, 0, 0]])
    tgt = torch.randint(2, VOCAB_SIZE, (2, 40), generator=torch.Generator().manual_seed(0))
    tgt_in = shift_right(tgt)
    expected = MODEL(src, tgt_in).log_softmax(-1)
    incremental = IncrementalModel(MODEL)
    state = incremental.encode(src, src == 0)
    for position in range(tgt.size(1)):
        log_probs, state = incremental.step(state, tgt_in[:, position])
        torch.testing.assert_close(log_probs, expected[:, position], rtol=1e-4, atol=1e-4)


def test_selected_rows_go_on_as_they_would_have() -> None:
    incremental = IncrementalModel(MODEL)
    src = torch.tensor([[5, 6, 1], [8, 1, 0]])
    start = torch.zeros(2, dtype=torch.int64)
    _, state = incremental.step(incremental.encode(src, src == 0), start)
    rows = torch.tensor([1, 0, 1])
    tokens = torch.tensor([4, 9])
    expected, _ = incremental.step(state, tokens)
    selected, _ = incremental.step(state.select(rows), tokens[rows])
    torch.testing.assert_close(selected, expected[rows])
