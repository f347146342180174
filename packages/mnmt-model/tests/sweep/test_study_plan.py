import json
from dataclasses import replace
from pathlib import Path

import pytest

from mnmt_data.store import open_prepared
from mnmt_data.study import StudyFile, read_study
from mnmt_model.errors import RunError
from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.planning.workload import PlanConfig
from mnmt_model.sweep.schedule import Machines
from mnmt_model.sweep.study_plan import plan_study, study_json
from mnmt_model.sweep.study_plan_text import study_text
from mnmt_model.sweep.sweep_config import run_configs


def test_a_study_is_planned_run_by_run(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    planned = plan_study(study, data, PlanConfig())
    prepared = open_prepared(data)
    assert [run.name for run in planned.runs] == [run.name for run in run_configs(study, data)]
    for cost, run in zip(planned.runs, run_configs(study, data), strict=True):
        assert cost.size == count_parameters(run.model, prepared.vocab.size).size
        assert cost.tokens == run.train.steps * run.train.batch_tokens
        assert cost.seconds is None
    assert planned.flops == sum(run.flops for run in planned.runs)


def test_a_runs_flops_are_of_its_mixtures_mean_lengths(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    run, cost = run_configs(study, data)[0], plan_study(study, data, PlanConfig()).runs[0]
    shard = open_prepared(data).shard("train", "xx-aa")
    share = shard.info.src_tokens / (shard.info.src_tokens + shard.info.tgt_tokens)
    src_tokens = round(cost.tokens * share)
    tokens = {"src_tokens": src_tokens, "tgt_tokens": cost.tokens - src_tokens}
    assert cost.flops == training_flops(run.model, open_prepared(data).vocab.size, **tokens)


def test_a_rate_gives_times(study_file: Path, results: Path) -> None:
    planned = plan_study(read_study(study_file), results / "data", PlanConfig(flops_per_second=1e6))
    assert planned.seconds == pytest.approx(planned.flops / 1e6)
    assert all(run.seconds == pytest.approx(run.flops / 1e6) for run in planned.runs)
    with pytest.raises(RunError, match="`flops_per_second` must be above 0, but is 0"):
        plan_study(read_study(study_file), results / "data", PlanConfig(flops_per_second=0))


def test_options_replace_what_the_study_says(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    plain, doubled = (plan_study(study, data, PlanConfig(batch_tokens=tokens)) for tokens in (None, 600))
    assert doubled.tokens == 2 * plain.tokens


def test_the_table_of_a_study_has_a_line_a_run_and_one_for_all(study_file: Path, results: Path) -> None:
    planned = plan_study(read_study(study_file), results / "data", PlanConfig(flops_per_second=1e6))
    lines = study_text(planned).splitlines()
    rows = lines[2 : 2 + len(planned.runs) + 2]
    heads = "run role N parameters steps tokens epochs xx-aa epochs xx-bb FLOPs time memory"
    assert rows[0].split() == heads.split()
    assert [row.split()[0] for row in rows[1:-1]] == [run.name for run in planned.runs]
    assert rows[-1].startswith("5 runs")
    assert "time" not in study_text(
        replace(planned, runs=tuple(replace(r, seconds=None) for r in planned.runs))
    )
    assert json.loads(json.dumps(study_json(planned)))["runs"][0]["memory"]["total"] > 0


def with_experts(study_file: Path, tmp_path: Path, *more: str) -> StudyFile:
    """The tiny study, whose larger size has experts that two devices hold together."""
    keys = ("d_model = 24", "num_experts = 4", "experts_every = 1", "expert_parallel = 2", *more)
    text = study_file.read_text(encoding="utf-8").replace("d_model = 24", "\n".join(keys))
    path = tmp_path / "experts.toml"
    path.write_text(text, encoding="utf-8")
    return read_study(path)


def test_a_study_has_sizes_with_experts_beside_dense_ones(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    study = with_experts(study_file, tmp_path)
    planned = plan_study(study, results / "data", PlanConfig(devices=2, flops_per_second=1e6))
    runs = {run.name.split("_")[0]: run for run in planned.runs}
    dense, mixture = runs["d16"], runs["d24"]
    assert dense.active_size == dense.size
    assert mixture.size - mixture.active_size == 2 * (4 - 2) * 2 * 24 * 32
    gradients = 4 * dense.num_params * dense.steps
    assert dense.exchange_bytes == gradients
    experts = 2 * 4 * 2 * 24 * 32
    assert mixture.exchange_bytes > 4 * (mixture.num_params - experts) * mixture.steps
    assert dense.exchange_seconds is mixture.exchange_seconds is None
    assert planned.exchange_bytes == sum(run.exchange_bytes for run in planned.runs)
    text = study_text(planned)
    assert text.splitlines()[2].split()[:5] == ["run", "role", "N", "active", "parameters"]
    assert f"{mixture.active_size:,}" in text
    assert "time leaves out what devices exchange" in text


def test_the_time_of_a_study_has_what_devices_exchange(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    options = PlanConfig(devices=2, flops_per_second=1e6, exchange_bytes_per_second=1e3)
    planned = plan_study(with_experts(study_file, tmp_path), results / "data", options)
    for run in planned.runs:
        assert run.seconds == pytest.approx(run.executed_flops / 1e6 + run.exchange_bytes / 1e3)
    text = study_text(planned)
    assert "leaves out" not in text
    assert "times are upper bounds at these rates: devices do nothing while they exchange" in text
    assert not any(run.assumes_even_choices for run in planned.runs)


def test_the_time_of_a_study_is_an_estimate_where_tokens_travel(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    options = PlanConfig(devices=2, flops_per_second=1e6, exchange_bytes_per_second=1e3)
    study = with_experts(study_file, tmp_path, "capacity_factor = 0.0")
    planned = plan_study(study, results / "data", options)
    estimates = {
        run["name"].split("_")[0]: run["assumes_even_choices"] for run in study_json(planned)["runs"]
    }
    assert estimates == {"d16": False, "d24": True}
    text = study_text(planned)
    assert "times are estimates at these rates: devices do nothing while they exchange, and choices" in text


def test_a_study_names_the_batch_that_fills_slots(study_file: Path, results: Path, tmp_path: Path) -> None:
    study = with_experts(study_file, tmp_path)
    planned = plan_study(study, results / "data", PlanConfig(devices=2, batch_tokens=20))
    poor = [run for run in planned.runs if run.filling]
    assert {run.name.split("_")[0] for run in poor} == {"d24"}
    filling = poor[0].filling
    assert filling is not None
    assert all(run.executed_flops > run.flops for run in poor)
    assert f"`batch_tokens` {filling.batch_tokens} and `accumulation` {filling.accumulation}" in study_text(
        planned
    )
    options = PlanConfig(devices=2, batch_tokens=filling.batch_tokens, accumulation=filling.accumulation)
    again = {run.name: run for run in plan_study(study, results / "data", options).runs}
    assert again[poor[0].name].filled >= 0.95


def test_a_run_whose_experts_do_not_come_out_even_is_named(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    study = with_experts(study_file, tmp_path)
    with pytest.raises(
        RunError,
        match=r"d24_.*: Processes, one a device, must be a multiple of `expert_parallel` \(2\)",
    ):
        plan_study(study, results / "data", PlanConfig())


def test_runs_whose_choices_outnumber_slots_are_warned_of(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    path = with_experts(study_file, tmp_path).path
    path.write_text(path.read_text(encoding="utf-8").replace("_parallel = 2", "_parallel = 1"), "utf-8")
    assert "warning" not in study_text(plan_study(read_study(path), results / "data", PlanConfig()))
    text = path.read_text(encoding="utf-8").replace("num_experts", "experts_per_token = 4\nnum_experts")
    path.write_text(text, encoding="utf-8")
    (line,) = (
        line
        for line in study_text(plan_study(read_study(path), results / "data", PlanConfig())).splitlines()
        if line.startswith("warning")
    )
    assert line.startswith("warning: d24_xx-aa-1_seed1 and 2 others: 50% of the tokens' choices")


def test_epochs_of_every_task_are_counted_and_warned_of(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    plain, large = (plan_study(study, data, PlanConfig(batch_tokens=tokens)) for tokens in (None, 30_000))
    counts = open_prepared(data).train_counts
    for run in plain.runs:
        assert set(run.epochs) == {task for task, weight in run.mixture.items() if weight}
        tokens = {task: each.src_tokens + each.tgt_tokens for task, each in counts.items()}
        read = sum(epochs * tokens[task] for task, epochs in run.epochs.items())
        assert read == pytest.approx(run.tokens, rel=0.05)
    assert "warning" not in study_text(plain)
    (warned,) = (line for line in study_text(large).splitlines() if "xx-aa is read more than 4 times" in line)
    often = max(large.runs, key=lambda run: run.epochs.get("xx-aa", 0))
    assert f"up to {often.epochs['xx-aa']:.1f} times, by {often.name} and" in warned


def test_a_measurement_gives_every_run_a_time(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    planned = plan_study(study, data, PlanConfig(), Machines(jobs=2), measure=True)
    assert planned.measured_models == 2
    times = [run.seconds for run in planned.runs]
    assert all(time is not None and time > 0 for time in times)
    assert planned.wall_seconds is not None
    assert planned.seconds is not None
    assert planned.seconds / 2 <= planned.wall_seconds <= planned.seconds
    assert "the whole study: about" in study_text(planned)
    assert study_json(planned)["wall_seconds"] == planned.wall_seconds


def test_what_does_not_fit_into_a_device_is_named(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    sizes = sorted({run.memory.total for run in plan_study(study, data, PlanConfig()).runs})
    between = (sizes[0] + sizes[-1]) / 2 / 2**30
    tight, wide = (plan_study(study, data, PlanConfig(device_memory=gib)) for gib in (between, 1.0))
    assert {run.name for run in tight.runs if not tight.fits(run)} == {
        run.name for run in tight.runs if run.name.startswith("d24")
    }
    assert "does not fit into" in study_text(tight)
    assert "every run fits into 1 GiB a device" in study_text(wide)
    assert study_json(plan_study(study, data, PlanConfig()))["runs"][0]["fits"] is None


def test_a_branch_takes_its_own_steps_and_waits_for_its_trunk(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    path = tmp_path / "horizons.toml"
    text = study_file.read_text(encoding="utf-8")
    path.write_text(text.replace("steps = 12", "horizons = [8, 12]\ncooldown_steps = 3"), encoding="utf-8")
    planned = plan_study(
        read_study(path), results / "data", PlanConfig(flops_per_second=1e6), Machines(jobs=99)
    )
    runs = {run.name: run for run in planned.runs}
    branches = [run for run in planned.runs if run.trunk]
    assert len(branches) == len(runs) / 2
    for branch in branches:
        trunk = runs[branch.trunk or ""]
        assert (branch.steps, branch.trunk_step) == (2, 6)
        # The epochs of its text are those of all its 8 steps, most of which the trunk takes.
        assert sum(branch.epochs.values()) == pytest.approx(sum(trunk.epochs.values()) * 8 / 12)
    assert planned.wall_seconds == pytest.approx(max(run.seconds or 0 for run in planned.runs))
