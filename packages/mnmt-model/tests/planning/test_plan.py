import json
from dataclasses import replace
from typing import Any

import pytest

from mnmt_model.errors import RunError
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.planning.plan import ModelPlan, plan_model
from mnmt_model.planning.plan_text import model_json, model_text
from mnmt_model.planning.presets import preset
from mnmt_model.planning.workload import PlanConfig

SMALL = "fernandes-l2-d512"


def test_a_model_is_planned_with_its_vocabulary() -> None:
    planned = plan_model(SMALL, preset(SMALL), PlanConfig())
    assert planned.count == count_parameters(preset(SMALL).config, 128_000)
    assert planned.count.num_params == 149_953_024
    smaller = plan_model(SMALL, preset(SMALL), PlanConfig(vocab_size=1000))
    assert smaller.count == count_parameters(preset(SMALL).config, 1000)


def test_the_text_names_parts_and_totals() -> None:
    text = model_text(plan_model(SMALL, preset(SMALL), PlanConfig(devices=8, parallel="fsdp")))
    for expected in (
        "fernandes-l2-d512: Fernandes et al. 2023, Table A\n",
        "  encdec, 2 + 2 layers, d_model 512, 8 heads of 64, d_ff 2,048\n",
        "  18,881,024  18.9M\n",
        "  149,953,024   150M\n",
        "8 GPUs (fsdp)",
    ):
        assert expected in text
    assert "biases  " in text
    assert "communication" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_parts_that_a_model_lacks_are_left_out() -> None:
    text = model_text(plan_model("t", preset("zhang-base-l1-causal-lm-deep"), PlanConfig()))
    assert "  causal-lm, 2 layers, " in text
    assert "embeddings and softmax" in text
    for absent in ("encoder", "cross-attention", "position biases", "communication"):
        assert absent not in text


def test_json_holds_every_number() -> None:
    planned = plan_model(SMALL, preset(SMALL), PlanConfig(src_len=20, tgt_len=40))
    printed = json.loads(json.dumps(model_json(planned)))
    assert (printed["size"], printed["num_params"]) == (18_881_024, 149_953_024)
    assert sum(printed["parameters"]["encoder"].values()) == printed["encoder_size"]
    flops = printed["flops"]
    assert flops["training_token"] * 60 == pytest.approx(flops["training_pair"]["total"])
    parts = dict(printed["memory"])
    assert parts.pop("total") == sum(parts.values())


MIXTURE = "gshard-e128-l12"
OF_MIXTURE = PlanConfig(devices=256, expert_parallel=128, batch_tokens=256 * 60 * 100, precision="bfloat16")


def plan_mixture(options: PlanConfig = OF_MIXTURE) -> ModelPlan:
    return plan_model(MIXTURE, preset(MIXTURE), options)


def test_the_text_of_a_mixture_of_experts_says_where_experts_lie_and_what_is_exchanged() -> None:
    text = model_text(plan_mixture())
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for expected in (
        "128 experts in every other layer, two a token, slots for 2 times a fair share",
        "experts in training, a device",
        "experts of each mixture 1",
        "parameters, of all 451,445,760 (451M) of 13.2B",
        "slots of an expert for 3,000 tokens 48",
        "filled, if tokens spread evenly 97.7%",
        "sent to other devices a step 286 MiB",
    ):
        assert expected in lines
    assert any(line.startswith("N active a token ") for line in lines)
    assert "time of a step" not in text


def test_a_dense_model_has_no_line_of_experts() -> None:
    text = model_text(plan_model("m4-t96l", preset("m4-t96l"), PlanConfig(devices=2)))
    assert not [word for word in ("expert", "active", "gate", "step", "slots") if word in text]


def test_rates_give_the_time_of_a_step() -> None:
    rates = replace(OF_MIXTURE, flops_per_second=1e16, exchange_bytes_per_second=1e10)
    planned = plan_mixture(rates)
    assert planned.step.flops == planned.training.total * 256 * 100
    step = model_json(planned)["step"]
    assert step["compute_seconds"] == step["flops"] / 1e16
    assert step["exchange_seconds"] == step["exchange_bytes"] / 1e10 > 0
    assert step["sequential_seconds"] == step["compute_seconds"] + step["exchange_seconds"]
    assert step["overlapped_seconds"] == max(step["compute_seconds"], step["exchange_seconds"])
    text = model_text(planned)
    for row in ("computing", "exchanging", "one after the other", "both at once"):
        assert f"\n  {row}" in text
    computing = model_text(plan_mixture(replace(rates, exchange_bytes_per_second=None)))
    assert "\n  computing" in computing
    assert "\n  both at once" not in computing


def test_the_time_of_a_dense_step_is_that_of_computing() -> None:
    text = model_text(plan_model(SMALL, preset(SMALL), PlanConfig(flops_per_second=1e12)))
    lines = text[text.index("time of a step") :].splitlines()
    assert [line.split()[0] for line in lines] == ["time", "computing"]


def test_json_tells_what_a_device_and_a_token_have_of_the_experts() -> None:
    printed = json.loads(json.dumps(model_json(plan_mixture())))
    mixtures, matrices = 6, 2 * 1024 * 8192
    assert printed["size"] - printed["active_size"] == mixtures * 126 * matrices
    assert printed["parameters"]["decoder"]["experts"] == mixtures // 2 * 128 * matrices
    assert printed["memory"]["parameters"] == 4 * (printed["num_params"] - mixtures * 127 * matrices)
    assert printed["slots"] == [{"tokens": 3000, "capacity": 48, "filled": 6000 / (128 * 48)}]
    assert printed["step"]["exchange_bytes"] == mixtures * 4 * 128 * 48 * 1024 * 2 * 127 // 128
    assert printed["step"]["compute_seconds"] is None


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (SMALL, {"expert_parallel": 2}, "`expert_parallel` must be 1 for a dense model, but is 2"),
        (
            MIXTURE,
            {"expert_parallel": 96, "devices": 96},
            r"`num_experts` must be a multiple of `expert_parallel` \(96\), but is 128",
        ),
        (
            MIXTURE,
            {"expert_parallel": 128, "devices": 192},
            r"`devices` must be a multiple of `expert_parallel` \(128\), but is 192",
        ),
        (MIXTURE, {"expert_parallel": 0}, "`expert_parallel` must be at least 1, but is 0"),
        (MIXTURE, {"flops_per_second": 0.0}, "`flops_per_second` must be above 0, but is 0"),
        (
            MIXTURE,
            {"exchange_bytes_per_second": -1.0},
            "`exchange_bytes_per_second` must be above 0, but is -1",
        ),
    ],
)
def test_a_plan_of_experts_that_is_refused_says_why(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        plan_model(name, preset(name), PlanConfig(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (PlanConfig(batch_tokens=0), "`batch_tokens` must be at least 1, but is 0"),
        (PlanConfig(dropout=1.0), r"`dropout` must be in \[0, 1\), but is 1.0"),
        (PlanConfig(devices=0), "`devices` must be at least 1, but is 0"),
        (PlanConfig(tgt_len=0), "`tgt_len` must be at least 1, but is 0"),
        (PlanConfig(vocab_size=0), "`vocab_size` must be at least 1, but is 0"),
    ],
)
def test_an_option_that_is_refused_says_why(options: PlanConfig, message: str) -> None:
    with pytest.raises(RunError, match=message):
        plan_model(SMALL, preset(SMALL), options)
