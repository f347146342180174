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
        " 149,953,024   150M\n",
        " 2.23 GiB\n",
    ):
        assert expected in text
    assert "expert" not in text
    assert "  N active a token " in model_text(MIXTURE, preset(MIXTURE))


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
