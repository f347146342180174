import json
from dataclasses import replace
from typing import Any

import pytest

from mnmt_model.errors import RunError
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.planning.plan import ModelPlan, plan_model
from mnmt_model.planning.plan_text import model_json, model_text
from mnmt_model.planning.presets import PRESETS, preset
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
        "128 experts in every other layer, 2 a token, slots for 2 times a fair share",
        "experts in training, a device",
        "experts of each mixture 1",
        "parameters, of all 451,445,760 (451M) of 13.2B",
        "slots of all experts for 3,000 tokens 6,144",
        "filled at most 97.7%",
        "sent by a device in a step messages of",
        "tokens to experts and back 286 MiB 3,048 96.0 KiB",
        "gradients 2.60 GiB 864 3.09 MiB",
        "experts' gradients 384 MiB 32 12.0 MiB",
    ):
        assert expected in lines
    assert any(line.startswith("N active a token ") for line in lines)
    assert "time of a step" not in text


def test_a_dense_model_has_no_line_of_experts() -> None:
    text = model_text(plan_model("m4-t96l", preset("m4-t96l"), PlanConfig(devices=2)))
    assert not [word for word in ("expert", "active", "gate", "slots", "FLOPs of a step") if word in text]
    assert "\nsent by a device in a step " in text


def test_rates_give_the_time_of_a_step() -> None:
    rates = replace(OF_MIXTURE, flops_per_second=1e16, exchange_bytes_per_second=1e10)
    planned = plan_mixture(rates)
    assert planned.step.flops == planned.training.total * 256 * 100
    step = model_json(planned)["step"]
    assert step["compute_seconds"] == step["executed_flops"] / 1e16 > step["flops"] / 1e16
    sent = sum(traffic["size"] for traffic in step["traffic"].values())
    assert step["exchange_seconds"] == pytest.approx(sent / 1e10)
    assert step["most_seconds"] == step["compute_seconds"] + step["exchange_seconds"]
    tokens = step["traffic"]["tokens"]["size"] / 1e10
    assert step["least_seconds"] == max(step["compute_seconds"] + tokens, step["exchange_seconds"])
    text = model_text(planned)
    for row in ("computing", "sending tokens", "sending gradients", "upper bound", "lower bound"):
        assert f"\n  {row}" in text
    computing = model_text(plan_mixture(replace(rates, exchange_bytes_per_second=None)))
    assert "\n  computing" in computing
    assert "bound" not in computing


FLAGSHIP = "gshard-e2048-l36"
OF_FLAGSHIP = PlanConfig(
    devices=2048,
    expert_parallel=2048,
    precision="bfloat16",
    batch_tokens=4_000_000,
    exchange_chunks=2,
)


def test_the_largest_model_executes_2_3_times_its_useful_flops_where_slots_travel() -> None:
    """By hand: of 33 pairs a device has 990 tokens a side, and an expert of 2,048 four slots for them."""
    planned = plan_model(FLAGSHIP, preset(FLAGSHIP), OF_FLAGSHIP)
    d, d_ff, d_attention, side, pairs = 1024, 8192, 16 * 128, 30, 33
    attention, dense, expert = 4 * d * d_attention, 2 * d * d_ff, 2 * d * d_ff
    # 18 layers a side, 9 of them mixtures; the decoder has two attentions a layer.
    weights = 3 * 18 * attention + 2 * 9 * dense + 2 * 9 * d * 2048 + 32_000 * d
    outside = pairs * side * (2 * weights + 4 * 3 * 18 * d_attention * side)
    filled, slots = 2 * 990, 2048 * 4
    assert planned.step.flops == 3 * 2048 * (outside + 2 * 9 * filled * 2 * expert)
    assert planned.step.executed_flops == 3 * 2048 * (outside + 2 * 9 * slots * 2 * expert)
    assert planned.step.executed_over_useful == pytest.approx(2.3, abs=0.05)


def test_the_largest_model_executes_no_empty_slots_where_tokens_travel() -> None:
    planned = plan_model(FLAGSHIP, preset(FLAGSHIP), replace(OF_FLAGSHIP, exchange_chunks=1))
    assert planned.step.executed_flops == planned.step.flops
    assert [use.rows_per_token for use in planned.slots] == [pytest.approx(2)] * 2
    # There and back, forward and backward, with two numbers of each choice beside a row, there and back.
    rows = 18 * 2 * 990 * (4 * 1024 * 2 + 2 * 4 * 4) * 2047 // 2048
    assert planned.step.traffic.tokens.size == pytest.approx(rows + 18 * 16 * 2047, rel=1e-6)
    lines = [" ".join(line.split()) for line in model_text(planned).splitlines()]
    assert "rows that travel for a token, if choices are even 2.00" in lines
    assert "computed at most 1,980" in lines
    assert planned.filling is None


RATES = {"flops_per_second": 1e17, "exchange_bytes_per_second": 2e10}


@pytest.mark.parametrize(("chunks", "even"), [(1, True), (2, False)])
def test_times_are_estimates_where_tokens_travel_and_bounds_where_slots_do(chunks: int, even: bool) -> None:
    planned = plan_model(FLAGSHIP, preset(FLAGSHIP), replace(OF_FLAGSHIP, exchange_chunks=chunks, **RATES))
    assert model_json(planned)["step"]["assumes_even_choices"] == even
    text = model_text(planned)
    assert ("\n  tokens to experts and back: a mean, if choices are even\n" in text) == even
    for bound, name in (("upper bound", "one after the other"), ("lower bound", "all at once that can be")):
        assert f"\n  {'estimate' if even else bound}: {name} " in text
    assert ("bound" in text) != even


def test_rows_of_experts_that_choose_are_known() -> None:
    """Each takes as many tokens as any other, so the times are bounds though tokens travel."""
    encoder = {"architecture": "encdec", "expert_choice": True, "encoder_layers": 2, "decoder_layers": 1}
    model = replace(preset(MIXTURE), config=replace(preset(MIXTURE).config, **encoder))
    planned = plan_model(MIXTURE, model, replace(OF_MIXTURE, **RATES))
    assert [use.expert_choice for use in planned.slots] == [True]
    text = model_text(planned)
    assert "    rows that travel for a token  " in text
    assert "if choices are even" not in text
    assert "  upper bound: " in text


def test_a_suggestion_is_planned_with_the_options_that_it_names() -> None:
    planned = plan_model(FLAGSHIP, preset(FLAGSHIP), OF_FLAGSHIP)
    assert planned.filling is not None
    suggested = replace(
        OF_FLAGSHIP,
        batch_tokens=planned.filling.train.batch_tokens,
        accumulation=planned.filling.train.accumulation,
    )
    again = plan_model(FLAGSHIP, preset(FLAGSHIP), suggested)
    assert again == planned.filling
    assert all(use.filled >= 0.95 for use in again.slots)
    assert again.step.executed_over_useful < 1.05
    assert again.memory.total > planned.memory.total
    assert model_json(planned)["filling"]["memory"] == again.memory.total
    text = model_text(planned)
    assert f"--batch-tokens              4,000,000  {suggested.batch_tokens:,}" in text
    assert "to fill" not in model_text(again)


def test_slots_that_outnumber_choices_are_named() -> None:
    roomy = replace(preset(MIXTURE), config=replace(preset(MIXTURE).config, capacity_factor=4.0))
    text = model_text(plan_model(MIXTURE, roomy, replace(OF_MIXTURE, exchange_chunks=2)))
    assert "no batch does: `capacity_factor` (4) is above `experts_per_token` (2)" in text


@pytest.mark.parametrize("name", [*PRESETS, "zhang-big-l14-prefix-lm-toponly-deep-prenorm"])
def test_lines_have_at_most_100_columns(name: str) -> None:
    rates = {"flops_per_second": 1e17, "exchange_bytes_per_second": 2e10, "exchange_latency_seconds": 1e-6}
    experts = preset(name).config.num_experts
    options = PlanConfig(
        devices=4096,
        expert_parallel=experts or 1,
        parallel="fsdp",
        activation_checkpointing=True,
        batch_tokens=8_000_000,
        accumulation=2,
        **rates,
    )
    assert max(map(len, model_text(plan_model(name, preset(name), options)).splitlines())) <= 100


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
    slots = {"tokens": 3000, "mixtures": 3, "slots": 128 * 48, "filled_slots": 6000}
    computed = {
        "executed_slots": 128 * 48,
        "rows_per_token": None,
        "expert_choice": False,
        "filled": 6000 / (128 * 48),
    }
    assert printed["slots"] == [slots | computed] * 2
    assert printed["step"]["traffic"]["tokens"]["size"] == mixtures * 4 * 128 * 48 * 1024 * 2 * 127 // 128
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
            r"Processes, one a device, must be a multiple of `expert_parallel` \(128\), but are 192",
        ),
        (MIXTURE, {"expert_parallel": 0}, "`expert_parallel` must be at least 1, but is 0"),
        (MIXTURE, {"flops_per_second": 0.0}, "`flops_per_second` must be above 0, but is 0"),
        (
            MIXTURE,
            {"exchange_bytes_per_second": -1.0},
            "`exchange_bytes_per_second` must be above 0, but is -1",
        ),
        (
            MIXTURE,
            {"exchange_latency_seconds": -1.0, "exchange_bytes_per_second": 1.0},
            "`exchange_latency_seconds` must be finite and at least 0, but is -1",
        ),
        (
            MIXTURE,
            {"exchange_latency_seconds": 1e-6},
            "`exchange_latency_seconds` needs `exchange_bytes_per_second`",
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
