import pytest
import torch

from mnmt_model.errors import RunError
from mnmt_model.planning.parameters import ParameterCount, count_parameters
from mnmt_model.planning.presets import preset
from mnmt_model.transformer.build import build_model

# Fernandes et al. 2023, Table A: parameters with embedding and softmax, and without.
TABLE_A = {
    "fernandes-l2-d512": (149_953_024, 18_881_024),
    "fernandes-l3-d768": (260_322_816, 63_714_816),
    "fernandes-l6-d768": (324_035_328, 127_427_328),
    "fernandes-l9-d768": (387_747_840, 191_139_840),
    "fernandes-l9-d1024": (601_931_776, 339_787_776),
    "fernandes-l12-d1024": (715_193_344, 453_049_344),
    "fernandes-l12-d1280": (1_035_876_864, 707_869_184),
    "fernandes-l12-d1536": (1_412_528_128, 1_019_312_128),
}
# Lepikhin et al. 2020 (GShard): billions of weights in its table, and as its widths come to.
MIXTURES = {
    "gshard-e128-l12": (12.5, 13.2),
    "gshard-e128-l36": (37, 39.5),
    "gshard-e512-l12": (50, 51.9),
    "gshard-e512-l36": (150, 155.5),
    "gshard-e2048-l12": (200, 206.5),
    "gshard-e2048-l36": (600, 619.4),
}
LANGUAGE_MODELS = ("prefix-lm", "prefix-lm-toponly", "causal-lm", "causal-lm-tgtonly")


def counted(name: str) -> ParameterCount:
    selection = preset(name)
    return count_parameters(selection.config, selection.vocab_size, src_vocab_size=selection.src_vocab_size)


@pytest.mark.parametrize("name", TABLE_A)
def test_counts_equal_the_published_table(name: str) -> None:
    assert (counted(name).num_params, counted(name).size) == TABLE_A[name]
    assert preset(name).vocab_size == (128_128 if name == "fernandes-l12-d1280" else 128_000)


@pytest.mark.parametrize(("name", "millions"), [("m4-t96l", 2313), ("m4-baseline", 375)])
def test_the_dense_models_of_m4_have_their_published_sizes(name: str, millions: int) -> None:
    assert round(counted(name).num_params / 1e6) == millions


@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_of_experts_have_3_to_7_percent_more_weights_than_their_rounded_table(name: str) -> None:
    published, computed = MIXTURES[name]
    billions = counted(name).num_params / 1e9
    assert round(billions, 1) == computed
    assert 1.03 < billions / published < 1.07


@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_of_experts_are_built_with_what_their_shapes_come_to(name: str) -> None:
    selection = preset(name)
    num_experts, layers = (int(part[1:]) for part in name.split("-")[1:])
    with torch.device("meta"):
        model = build_model(selection.config, selection.vocab_size, src_vocab_size=selection.src_vocab_size)
    mixture = num_experts * (2 * 1024 * 8192 + 1024)
    attentions = 3 * layers // 2 * 4 * 1024 * (16 * 128)
    norms = (5 * layers // 2 + 2) * 1024
    position_biases = 2 * 32 * 16
    weights = layers // 2 * (mixture + 2 * 1024 * 8192) + attentions + norms + position_biases
    assert counted(name).size == weights
    built = sum(parameter.numel() for parameter in model.parameters())
    assert built == counted(name).num_params == weights + (64_000 + 32_000) * 1024


def test_the_largest_of_zhangs_multilingual_models_has_its_published_size() -> None:
    assert round(counted("zhang-big-l14-encdec").size / 1e6) == 412


@pytest.mark.parametrize("suffix", ["", "-prenorm"])
@pytest.mark.parametrize("width", ["base", "big"])
@pytest.mark.parametrize("layers", [1, 2, 6, 14, 26])
@pytest.mark.parametrize("architecture", LANGUAGE_MODELS)
def test_language_models_are_aligned_with_the_encoder_decoder(
    width: str, layers: int, architecture: str, suffix: str
) -> None:
    size = counted(f"zhang-{width}-l{layers}-encdec{suffix}").size
    for grown in ("deep", "wide"):
        name = f"zhang-{width}-l{layers}-{architecture}-{grown}{suffix}"
        layer = counted(name).size / preset(name).config.decoder_layers
        assert abs(counted(name).size - size) <= layer / 2
    assert preset(name).config.architecture == architecture


def test_a_language_model_grows_in_depth_or_width() -> None:
    encdec = preset("zhang-base-l6-encdec").config
    deep = preset("zhang-base-l6-prefix-lm-deep").config
    wide = preset("zhang-base-l6-prefix-lm-wide").config
    assert (encdec.num_encoder_layers, encdec.decoder_layers, encdec.d_ff) == (6, 6, 2048)
    assert (deep.decoder_layers, deep.d_ff) == (14, 2048)
    assert (wide.decoder_layers, wide.d_ff) == (6, 6144)


@pytest.mark.parametrize(
    "name",
    [
        "tiny",
        "zhang-base-l0-encdec",
        "zhang-base-l27-encdec",
        "zhang-base-l6-encdec-deep",
        "zhang-base-l6-causal-lm",
        "zhang-small-l6-encdec",
    ],
)
def test_an_unknown_preset_lists_the_valid_ones(name: str) -> None:
    listed = r"fernandes-l2-d512, .*, m4-baseline, zhang-\(base\|big\)-l\(1 to 26\)-encdec\[-prenorm\], "
    with pytest.raises(RunError, match=rf"no preset '{name}'; the presets are {listed}"):
        preset(name)
