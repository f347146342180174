import torch
from hypothesis import given
from hypothesis import strategies as st

from mnmt_model import EncoderDecoder, Shape, count

shapes = st.builds(
    Shape,
    encoder_layers=st.integers(1, 3),
    decoder_layers=st.integers(1, 3),
    d_model=st.integers(1, 40),
    num_heads=st.integers(1, 4),
    head_dim=st.integers(1, 9),
    d_ff=st.integers(1, 50),
)


def num_weights(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@given(shape=shapes, vocab_size=st.integers(1, 100))
def test_counts_equal_those_of_the_built_model(shape: Shape, vocab_size: int) -> None:
    with torch.device("meta"):
        model = EncoderDecoder(shape, vocab_size)
    counted = count(shape, vocab_size)
    assert counted.encoder_size == num_weights(model.encoder)
    assert counted.decoder_size == num_weights(model.decoder)
    assert counted.num_params == num_weights(model)


def test_training_flops_count_six_a_weight_and_token() -> None:
    counted = count(Shape(), 100)
    source_only = counted.training_flops(src_tokens=10, tgt_tokens=0)
    target_only = counted.training_flops(src_tokens=0, tgt_tokens=7)
    assert source_only == 60 * counted.encoder_size
    assert target_only == 42 * (counted.decoder_size + counted.softmax)
