import json
from pathlib import Path

import pytest

from mnmt_data.store import open_prepared
from mnmt_data.study import StudyFile, read_study
from mnmt_model.errors import RunError
from mnmt_model.planning.flops import training_flops
from mnmt_model.planning.parameters import count_parameters
from mnmt_model.sweep.study_plan import plan_study, study_json
from mnmt_model.sweep.study_plan_text import study_text
from mnmt_model.sweep.study_runs import run_configs


def test_a_study_is_planned_run_by_run(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    planned = plan_study(study, data)
    prepared = open_prepared(data)
    assert [run.name for run in planned.runs] == [run.name for run in run_configs(study, data)]
    for cost, run in zip(planned.runs, run_configs(study, data), strict=True):
        assert cost.size == count_parameters(run.model, prepared.vocab.size).size
        assert cost.tokens == run.train.steps * run.train.batch_tokens
        assert cost.seconds is cost.activation_bytes is None
        assert cost.memory == 8 * cost.num_params
    assert planned.flops == sum(run.flops for run in planned.runs)
    text = study_text(planned)
    assert "time" not in text
    assert "least memory" in text
    with pytest.raises(RunError, match="`jobs` must be at least 1, but is 0"):
        plan_study(study, data, jobs=0)


def test_a_runs_flops_are_of_its_mixtures_mean_lengths(study_file: Path, results: Path) -> None:
    study, data = read_study(study_file), results / "data"
    run, cost = run_configs(study, data)[0], plan_study(study, data).runs[0]
    shard = open_prepared(data).shard("train", "xx-aa")
    share = shard.info.src_tokens / (shard.info.src_tokens + shard.info.tgt_tokens)
    src_tokens = round(cost.tokens * share)
    tokens = {"src_tokens": src_tokens, "tgt_tokens": cost.tokens - src_tokens}
    assert cost.flops == training_flops(run.model, open_prepared(data).vocab.size, **tokens)


def test_a_measurement_gives_every_run_a_time_and_memory(study_file: Path, results: Path) -> None:
    planned = plan_study(read_study(study_file), results / "data", jobs=2, measure=True)
    assert planned.measured_models == 2
    for run in planned.runs:
        assert run.seconds is not None
        assert run.seconds > 0
        assert run.activation_bytes is not None
        assert run.memory > run.state_bytes
    assert planned.wall_seconds is not None
    assert planned.seconds is not None
    assert planned.seconds / 2 <= planned.wall_seconds <= planned.seconds
    assert json.loads(json.dumps(study_json(planned)))["wall_seconds"] == planned.wall_seconds
    lines = study_text(planned).splitlines()
    rows = lines[2 : 2 + len(planned.runs) + 2]
    heads = "run role N parameters steps tokens epochs xx-aa epochs xx-bb FLOPs time memory"
    assert rows[0].split() == heads.split()
    assert [row.split()[0] for row in rows[1:-1]] == [run.name for run in planned.runs]
    assert rows[-1].startswith("5 runs")
    assert any(line.startswith("the whole study: about") for line in lines)
    assert lines[-1].endswith("from steps of 2 of its models")


def with_experts(study_file: Path, tmp_path: Path, *more: str) -> StudyFile:
    """The tiny study, whose larger size has experts."""
    keys = ("d_model = 24", "num_experts = 4", "experts_every = 1", *more)
    text = study_file.read_text(encoding="utf-8").replace("d_model = 24", "\n".join(keys))
    path = tmp_path / "experts.toml"
    path.write_text(text, encoding="utf-8")
    return read_study(path)


def test_a_study_has_sizes_with_experts_beside_dense_ones(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    planned = plan_study(with_experts(study_file, tmp_path), results / "data")
    runs = {run.name.split("_")[0]: run for run in planned.runs}
    dense, mixture = runs["d16"], runs["d24"]
    assert dense.active_size == dense.size
    assert mixture.size - mixture.active_size == 2 * (4 - 2) * 2 * 24 * 32
    text = study_text(planned)
    assert text.splitlines()[2].split()[:5] == ["run", "role", "N", "active", "parameters"]
    assert f"{mixture.active_size:,}" in text
    assert "warning" not in text


def test_runs_whose_choices_outnumber_slots_are_warned_of(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    study = with_experts(study_file, tmp_path, "experts_per_token = 4")
    lines = study_text(plan_study(study, results / "data")).splitlines()
    (line,) = (line for line in lines if line.startswith("warning"))
    assert line.startswith("warning: d24_xx-aa-1_seed1 and 2 others: 50% of the tokens' choices")


def test_epochs_of_every_task_are_counted_and_warned_of(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    data, path = results / "data", tmp_path / "large.toml"
    text = study_file.read_text(encoding="utf-8")
    path.write_text(text.replace("batch_tokens = 300", "batch_tokens = 30_000"), encoding="utf-8")
    plain, large = (plan_study(read_study(file), data) for file in (study_file, path))
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


def test_a_branch_takes_its_own_steps_and_waits_for_its_trunk(
    study_file: Path, results: Path, tmp_path: Path
) -> None:
    path = tmp_path / "horizons.toml"
    text = study_file.read_text(encoding="utf-8")
    path.write_text(text.replace("steps = 12", "horizons = [8, 12]\ncooldown_steps = 3"), encoding="utf-8")
    planned = plan_study(read_study(path), results / "data", jobs=99, measure=True)
    runs = {run.name: run for run in planned.runs}
    branches = [run for run in planned.runs if run.trunk]
    assert len(branches) == len(runs) / 2
    for branch in branches:
        trunk = runs[branch.trunk or ""]
        assert (branch.steps, branch.trunk_step) == (2, 6)
        # The epochs of its text are those of all its 8 steps, most of which the trunk takes.
        assert sum(branch.epochs.values()) == pytest.approx(sum(trunk.epochs.values()) * 8 / 12)
    assert planned.wall_seconds == pytest.approx(max(run.seconds or 0 for run in planned.runs))
