import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mnmt_data.store import open_prepared
from mnmt_data.study import StudyFile, read_study
from mnmt_model.errors import RunError
from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.parameters import count
from mnmt_model.planning.plan import ModelPlan, plan_model, plan_study
from mnmt_model.planning.plan_options import PlanOptions
from mnmt_model.planning.plan_text import model_json, model_text, study_json, study_text
from mnmt_model.planning.presets import preset
from mnmt_model.planning.quantities import data_size, duration, short, si, step_duration
from mnmt_model.sweep.sweep_config import plan_runs

SMALL = "fernandes-l2-d512"


def test_a_model_is_planned_with_its_vocabulary() -> None:
    planned = plan_model(SMALL, preset(SMALL), PlanOptions())
    assert planned.count == count(preset(SMALL).config, 128_000)
    assert planned.built == planned.count.num_params == 149_953_024
    smaller = plan_model(SMALL, preset(SMALL), PlanOptions(vocab_size=1000))
    assert smaller.count == count(preset(SMALL).config, 1000)


def test_the_text_names_parts_totals_and_what_was_built() -> None:
    text = model_text(plan_model(SMALL, preset(SMALL), PlanOptions(devices=8, parallel="fsdp")))
    for expected in (
        "fernandes-l2-d512: Fernandes et al. 2023, Table A\n",
        "  encdec, 2 + 2 layers, d_model 512, 8 heads of 64, d_ff 2,048\n",
        "  18,881,024  18.9M\n",
        "  149,953,024   150M\n",
        "  built on the meta device: 149,953,024 parameters agree\n",
        "8 GPUs (fsdp)",
    ):
        assert expected in text
    assert "biases  " in text
    assert "communication" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_parts_that_a_model_lacks_are_left_out() -> None:
    text = model_text(plan_model("t", preset("zhang-base-l1-causal-lm-deep"), PlanOptions()))
    assert "  causal-lm, 2 layers, " in text
    assert "embeddings and softmax" in text
    for absent in ("encoder", "cross-attention", "position biases", "communication"):
        assert absent not in text


def test_json_holds_every_number() -> None:
    planned = plan_model(SMALL, preset(SMALL), PlanOptions(src_len=20, tgt_len=40))
    printed = json.loads(json.dumps(model_json(planned)))
    assert (printed["size"], printed["num_params"]) == (18_881_024, 149_953_024)
    assert sum(printed["parameters"]["encoder"].values()) == printed["encoder_size"]
    flops = printed["flops"]
    assert flops["training_token"] * 60 == pytest.approx(flops["training_pair"]["total"])
    parts = dict(printed["memory"])
    assert parts.pop("total") == sum(parts.values())


MIXTURE = "gshard-e128-l12"
OF_MIXTURE = PlanOptions(devices=256, expert_parallel=128, batch_tokens=256 * 60 * 100, precision="bfloat16")


def plan_mixture(options: PlanOptions = OF_MIXTURE) -> ModelPlan:
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
    text = model_text(plan_model("m4-t96l", preset("m4-t96l"), PlanOptions(devices=2)))
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
    text = model_text(plan_model(SMALL, preset(SMALL), PlanOptions(flops_per_second=1e12)))
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
        plan_model(name, preset(name), PlanOptions(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (PlanOptions(batch_tokens=0), "`batch_tokens` must be at least 1, but is 0"),
        (PlanOptions(dropout=1.0), r"`dropout` must be in \[0, 1\), but is 1.0"),
        (PlanOptions(devices=0), "`devices` must be at least 1, but is 0"),
        (PlanOptions(tgt_len=0), "`tgt_len` must be at least 1, but is 0"),
        (PlanOptions(vocab_size=0), "`vocab_size` must be at least 1, but is 0"),
    ],
)
def test_an_option_that_is_refused_says_why(options: PlanOptions, message: str) -> None:
    with pytest.raises(RunError, match=message):
        plan_model(SMALL, preset(SMALL), options)


def test_a_study_is_planned_run_by_run(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    planned = plan_study(study, data, PlanOptions())
    prepared = open_prepared(data)
    assert [run.name for run in planned.runs] == [run.name for run in plan_runs(study, data)]
    for cost, run in zip(planned.runs, plan_runs(study, data), strict=True):
        assert cost.size == count(run.model, prepared.vocab.size).size
        assert cost.built == cost.num_params
        assert cost.tokens == run.train.steps * run.train.batch_tokens
        assert cost.seconds is None
    assert planned.flops == sum(run.flops for run in planned.runs)


def test_a_runs_flops_are_of_its_mixtures_mean_lengths(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    run, cost = plan_runs(study, data)[0], plan_study(study, data, PlanOptions()).runs[0]
    shard = open_prepared(data).shard("train", "xx-aa")
    share = shard.info.src_tokens / (shard.info.src_tokens + shard.info.tgt_tokens)
    src_tokens = round(cost.tokens * share)
    tokens = {"src_tokens": src_tokens, "tgt_tokens": cost.tokens - src_tokens}
    assert cost.flops == training_flops(run.model, open_prepared(data).vocab.size, **tokens)


def test_a_rate_gives_times(study_file: Path, results: Path) -> None:
    planned = plan_study(read_study(study_file), results / "data", PlanOptions(flops_per_second=1e6))
    assert planned.seconds == pytest.approx(planned.flops / 1e6)
    assert all(run.seconds == pytest.approx(run.flops / 1e6) for run in planned.runs)
    with pytest.raises(RunError, match="`flops_per_second` must be above 0, but is 0"):
        plan_study(read_study(study_file), results / "data", PlanOptions(flops_per_second=0))


def test_options_replace_what_the_study_says(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    plain, doubled = (plan_study(study, data, PlanOptions(batch_tokens=tokens)) for tokens in (None, 600))
    assert doubled.tokens == 2 * plain.tokens


def test_the_table_of_a_study_has_a_line_a_run_and_one_for_all(study_file: Path, results: Path) -> None:
    planned = plan_study(read_study(study_file), results / "data", PlanOptions(flops_per_second=1e6))
    lines = study_text(planned).splitlines()
    rows = lines[2 : 2 + len(planned.runs) + 2]
    assert rows[0].split() == ["run", "role", "N", "parameters", "steps", "tokens", "FLOPs", "time", "memory"]
    assert [row.split()[0] for row in rows[1:-1]] == [run.name for run in planned.runs]
    assert rows[-1].startswith("5 runs")
    assert "time" not in study_text(
        replace(planned, runs=tuple(replace(r, seconds=None) for r in planned.runs))
    )
    assert json.loads(json.dumps(study_json(planned)))["runs"][0]["memory"]["total"] > 0


def with_experts(study_file: Path, tmp_path: Path) -> StudyFile:
    """The tiny study, whose larger size has experts that two devices hold together."""
    text = study_file.read_text(encoding="utf-8").replace(
        "d_model = 24", "d_model = 24\nnum_experts = 4\nexperts_every = 1\nexpert_parallel = 2"
    )
    path = tmp_path / "experts.toml"
    path.write_text(text, encoding="utf-8")
    return read_study(path)


def test_a_study_has_sizes_with_experts_beside_dense_ones(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    study = with_experts(study_file, tmp_path)
    planned = plan_study(study, results / "data", PlanOptions(devices=2, flops_per_second=1e6))
    runs = {run.name.split("_")[0]: run for run in planned.runs}
    dense, mixture = runs["d16"], runs["d24"]
    assert dense.active_size == dense.size
    assert mixture.size - mixture.active_size == 2 * (4 - 2) * 2 * 24 * 32
    assert (dense.exchange_bytes, dense.exchange_seconds) == (0, 0)
    assert mixture.exchange_bytes > 0
    assert mixture.exchange_seconds is None
    assert planned.exchange_bytes == sum(run.exchange_bytes for run in planned.runs)
    text = study_text(planned)
    assert text.splitlines()[2].split()[:5] == ["run", "role", "N", "active", "parameters"]
    assert f"{mixture.active_size:,}" in text
    assert "time leaves out what devices exchange" in text


def test_the_time_of_a_study_has_what_devices_exchange(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    options = PlanOptions(devices=2, flops_per_second=1e6, exchange_bytes_per_second=1e3)
    planned = plan_study(with_experts(study_file, tmp_path), results / "data", options)
    for run in planned.runs:
        assert run.seconds == pytest.approx(run.flops / 1e6 + run.exchange_bytes / 1e3)
    assert "leaves out" not in study_text(planned)


def test_a_run_whose_experts_do_not_come_out_even_is_named(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    study = with_experts(study_file, tmp_path)
    with pytest.raises(
        RunError, match=r"d24_.*: `devices` must be a multiple of `expert_parallel` \(2\), but is 1"
    ):
        plan_study(study, results / "data", PlanOptions())


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (short(1_019_312_128), "1.02B"),
        (short(18_881_024), "18.9M"),
        (short(999), "999"),
        (si(6.12e9), "6.12 G"),
        (si(1.234e21), "1.23 Z"),
        (duration(0.2), "< 1 s"),
        (duration(45), "45.0 s"),
        (duration(12 * 60), "12.0 min"),
        (duration(3.5 * 3600), "3.50 h"),
        (duration(21 * 86_400), "21.0 days"),
        (step_duration(1.2), "1.20 s"),
        (step_duration(0.045), "45.0 ms"),
        (step_duration(3e-4), "300 µs"),
        (step_duration(200), "3.33 min"),
        (data_size(1536), "1.50 KiB"),
        (data_size(80 * 2**30), "80.0 GiB"),
        (data_size(7), "7 B"),
    ],
)
def test_numbers_are_short(shown: str, expected: str) -> None:
    assert shown == expected
