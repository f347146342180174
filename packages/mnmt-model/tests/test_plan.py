import json
from dataclasses import replace
from pathlib import Path

import pytest

from mnmt_data.prepared import open_prepared
from mnmt_data.study import read_study
from mnmt_model.errors import RunError
from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.parameter_count import count
from mnmt_model.planning.plan import plan_model, plan_study
from mnmt_model.planning.plan_options import PlanOptions
from mnmt_model.planning.plan_text import (
    data_size,
    duration,
    model_json,
    model_text,
    short,
    si,
    study_json,
    study_text,
)
from mnmt_model.planning.presets import preset
from mnmt_model.sweep_config import plan_runs

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
        (data_size(1536), "1.50 KiB"),
        (data_size(80 * 2**30), "80.0 GiB"),
        (data_size(7), "7 B"),
    ],
)
def test_numbers_are_short(shown: str, expected: str) -> None:
    assert shown == expected
