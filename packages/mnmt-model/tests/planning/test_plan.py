import json

import pytest

from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.plan import model_json, model_text
from mnmt_model.planning.presets import preset

SMALL, MIXTURE = "fernandes-l2-d512", "gshard-e128-l12"


def test_the_text_names_parts_and_totals() -> None:
    text = model_text(SMALL, preset(SMALL))
    for expected in (
        "fernandes-l2-d512: Fernandes et al. 2023, Table A\n",
        "  encdec, 2 + 2 layers, d_model 512, 8 heads of 64, d_ff 2,048\n",
        "  18,881,024  18.9M\n",
        "  149,953,024   150M\n",
        " 2.23 GiB\n",
    ):
        assert expected in text
    assert "biases  " in text
    assert not [word for word in ("expert", "active", "gates") if word in text]
    assert all(line == line.rstrip() for line in text.splitlines())


def test_parts_that_a_model_lacks_are_left_out() -> None:
    text = model_text("t", preset("zhang-base-l1-causal-lm-deep"))
    assert "  causal-lm, 2 layers, " in text
    assert "embeddings and softmax" in text
    for absent in ("encoder", "cross-attention", "position biases"):
        assert absent not in text


def test_a_mixture_of_experts_has_a_line_of_its_own_and_active_parameters() -> None:
    text = model_text(MIXTURE, preset(MIXTURE))
    assert "  128 experts in every other layer, 2 a token, slots for 2 times a fair share\n" in text
    assert "\n  N active a token " in text


@pytest.mark.parametrize("name", [SMALL, MIXTURE, "zhang-base-l6-causal-lm-deep"])
def test_json_holds_every_number(name: str) -> None:
    model = preset(name)
    printed = json.loads(json.dumps(model_json(name, model)))
    assert sum(printed["parameters"]["decoder"].values()) == printed["decoder_size"]
    flops, tokens = printed["flops"], {"src_tokens": 30, "tgt_tokens": 20}
    unpredicted = 6 * model.vocab_size * model.config.d_model if model.config.predicts_source else 0
    whole = training_flops(model.config, model.vocab_size, **tokens)
    assert 30 * flops["source_token"] + 20 * flops["target_token"] == whole + unpredicted
    assert printed["state_bytes"]["adamw"] == 16 * printed["num_params"]
