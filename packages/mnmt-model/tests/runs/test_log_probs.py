import dataclasses
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from mnmt_data.store import VOCABULARY, ScoreFile, checksum, open_prepared
from mnmt_data.store.description import PreparedDescription
from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, load_run, run_configs, train
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.runs.log_probs import write_log_probs
from mnmt_model.runs.losses import pair_nats
from mnmt_model.runs.run_record import read_evals, read_run
from mnmt_model.training.watcher import Watcher

TASK = "xx-aa"
DEV_PAIRS = 20


@pytest.fixture(scope="module")
def plan(study_file: Path, results: Path) -> RunConfig:
    return run_configs(read_study(study_file), results / "data")[0]


@pytest.fixture(scope="module")
def base(plan: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run."""
    folder = tmp_path_factory.mktemp("runs") / "base"
    train(plan, folder)
    return folder


def nats(path: Path) -> np.ndarray:
    return pq.read_table(path).column("nats").to_numpy()


def other_vocabulary(data: Path, folder: Path) -> Path:
    """A copy of prepared data that were made with a vocabulary as large, but with two tags exchanged."""
    shutil.copytree(data, folder)
    vocabulary = folder / VOCABULARY
    one, other, neither = b"<2aa>", b"<2bb>", b"<2zz>"
    content = vocabulary.read_bytes()
    vocabulary.write_bytes(content.replace(one, neither).replace(other, one).replace(neither, other))
    description = PreparedDescription.read(folder)
    file = dataclasses.replace(description.files[VOCABULARY], sha256=checksum(vocabulary))
    files = {**description.files, VOCABULARY: file}
    dataclasses.replace(description, files=files).write(folder)
    return folder


def tuned_from(plan: RunConfig, initial: Path, **changes) -> RunConfig:
    return dataclasses.replace(
        plan, train=dataclasses.replace(plan.train, initial=str(initial), steps=6, **changes)
    )


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def kill_at(at: int):
    def on_pairs(done: int, total: int = 0) -> None:
        if done == at:
            raise Killed

    return on_pairs


class KillAt(Watcher):
    def __init__(self, at: int) -> None:
        self.at = at

    def step(self, step: int) -> None:
        if step == self.at:
            raise Killed


@pytest.mark.parametrize("batch_tokens", [20, 4096])
def test_scores_are_those_of_one_pair_at_a_time(
    base: Path, results: Path, tmp_path: Path, batch_tokens: int
) -> None:
    out = tmp_path / "scores" / "dev.parquet"
    write_log_probs(base, split="dev", task=TASK, out=out, batch_tokens=batch_tokens, part_pairs=7)
    model = load_run(base).model.translation_model
    src, tgt = open_prepared(results / "data").shard("dev", TASK).gather(np.arange(DEV_PAIRS))
    alone = []
    for row in np.arange(DEV_PAIRS)[:, None]:
        with torch.inference_mode():
            pair = (torch.from_numpy(side.padded(row)) for side in (src, tgt))
            alone.append(float(pair_nats(model, *pair)))
    np.testing.assert_allclose(nats(out), alone, rtol=1e-5)
    assert pq.read_table(out).column("tokens").to_pylist() == tgt.lengths.tolist()


def test_the_scores_add_up_to_the_dev_loss(base: Path, tmp_path: Path) -> None:
    write_log_probs(base, split="dev", task=TASK, out=tmp_path / "s.parquet")
    table = pq.read_table(tmp_path / "s.parquet")
    total, tokens = (sum(table.column(name).to_pylist()) for name in ("nats", "tokens"))
    (loss,) = [e.value for e in read_evals(base) if (e.task, e.testset) == (TASK, "dev")]
    assert total / tokens == pytest.approx(loss, rel=1e-5)


def test_killed_and_gone_on_equals_never_stopped(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log_probs(base, split="dev", task=TASK, out=tmp_path / "whole.parquet", part_pairs=7)
    out = tmp_path / "killed.parquet"
    with pytest.raises(Killed):
        write_log_probs(base, split="dev", task=TASK, out=out, part_pairs=7, on_pairs=kill_at(14))
    assert not out.exists()
    scored = []
    lengths = "mnmt_model.runs.log_probs.batch_by_tokens"
    cut = sys.modules["mnmt_model.runs.log_probs"].batch_by_tokens
    monkeypatch.setattr(
        lengths, lambda src, tgt, **budget: scored.append(len(src)) or cut(src, tgt, **budget)
    )
    write_log_probs(base, split="dev", task=TASK, out=out, part_pairs=7)
    assert scored == [6]
    assert nats(out).tolist() == nats(tmp_path / "whole.parquet").tolist()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["killed.parquet", "whole.parquet"]


def test_a_run_of_the_same_name_is_another(plan: RunConfig, base: Path, tmp_path: Path) -> None:
    longer = dataclasses.replace(plan.train, learning_rate=0.02)
    train(dataclasses.replace(plan, train=longer), tmp_path / "run")
    out = tmp_path / "s.parquet"
    write_log_probs(base, split="dev", task=TASK, out=out)
    theirs = nats(out)
    write_log_probs(tmp_path / "run", split="dev", task=TASK, out=out)
    assert not np.allclose(nats(out), theirs, rtol=1e-3)


def test_what_is_current_is_left_alone_until_the_run_goes_on(plan: RunConfig, tmp_path: Path) -> None:
    run, out, calls = tmp_path / "run", tmp_path / "s.parquet", []

    def score() -> int:
        write_log_probs(run, split="dev", task=TASK, out=out, on_pairs=lambda done, total: calls.append(done))
        return len(calls)

    with pytest.raises(Killed):
        train(plan, run, watchers=[KillAt(5)])
    assert [score(), score()] == [1, 1]
    train(plan, run)
    assert score() == 2
    assert ScoreFile.open(out).info.step == 12


def test_data_with_another_vocabulary_are_not_scored(base: Path, results: Path, tmp_path: Path) -> None:
    data = other_vocabulary(results / "data", tmp_path / "data")
    with pytest.raises(
        RunError, match=r"another vocabulary than that of .*; prepare the data with `path"
    ) as e:
        write_log_probs(base, data, split="dev", task=TASK, out=tmp_path / "s.parquet")
    assert "\n" not in str(e.value)


def test_a_run_is_known_by_its_vocabulary_though_its_own_data_be_gone(
    plan: RunConfig, results: Path, tmp_path: Path
) -> None:
    shutil.copytree(results / "data", tmp_path / "data")
    train(dataclasses.replace(plan, data=tmp_path / "data"), tmp_path / "run")
    shutil.rmtree(tmp_path / "data")
    write_log_probs(tmp_path / "run", results / "data", split="dev", task=TASK, out=tmp_path / "s.parquet")
    data = other_vocabulary(results / "data", tmp_path / "other")
    with pytest.raises(RunError, match="prepare the data as they were then"):
        write_log_probs(tmp_path / "run", data, split="dev", task=TASK, out=tmp_path / "t.parquet")


def test_the_command_writes_log_probabilities_and_says_where(command: Callable[..., Any], base: Path) -> None:
    result = command("log-probs", base, "--task", TASK)
    path = base / "scores" / f"train.{TASK}.parquet"
    assert (result.status, result.stdout) == (0, f"written: {path}\n")
    assert result.stderr.endswith(f"pair {len(nats(path)):,} of {len(nats(path)):,}\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task", "xx-cc"], "`task` must be one of xx-aa, xx-bb, but is 'xx-cc'"),
        (["--task", TASK, "--data", "nowhere"], "nowhere/prepared.json: no prepared data here"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    command: Callable[..., Any], base: Path, options: list[str], message: str
) -> None:
    result = command("log-probs", base, *options)
    assert result.status == 2
    assert result.stderr.startswith("mnmt-model: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_tuning_starts_from_the_weights_of_the_run(
    plan: RunConfig, base: Path, tmp_path: Path, from_checkpoint: bool
) -> None:
    initial = find_checkpoints(base / "checkpoints")[-1] if from_checkpoint else base
    # AdamW moves a weight by about the rate, whatever the gradient.
    still = tuned_from(plan, initial, optimizer="adamw", learning_rate=1e-12)
    train(still, tmp_path / "run")
    ours, theirs = (
        load_file(find_checkpoints(folder / "checkpoints")[-1] / "model.safetensors")
        for folder in (tmp_path / "run", base)
    )
    for name, weight in theirs.items():
        torch.testing.assert_close(ours[name], weight)
    record = read_run(tmp_path / "run")
    assert record.config["train"]["initial"] == str(initial)
    assert [(e.step, e.testset) for e in read_evals(tmp_path / "run") if e.task == TASK] == [
        (6, "dev"),
        (6, "test"),
    ]


def test_a_study_names_the_run_to_start_from(study_file: Path, results: Path, tmp_path: Path) -> None:
    text = study_file.read_text().replace("[train]", '[train]\ninitial = "results/x/runs/RUN"')
    (tmp_path / "tuning.toml").write_text(text)
    plans = run_configs(read_study(tmp_path / "tuning.toml"), results / "data")
    assert {plan.train.initial for plan in plans} == {"results/x/runs/RUN"}


def test_another_shape_is_refused_with_the_one_needed(plan: RunConfig, base: Path, tmp_path: Path) -> None:
    wider = dataclasses.replace(plan.model, d_ff=48)
    with pytest.raises(RunError, match=r"another `d_ff` than 48; .* needs d_ff = 32$"):
        train(dataclasses.replace(tuned_from(plan, base), model=wider), tmp_path / "run")
    assert "another `d_ff`" in read_run(tmp_path / "run").error


def test_scores_are_given_by_token_and_by_byte_of_text(base: Path, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "dev.parquet"
    write_log_probs(base, split="dev", task=TASK, out=out)
    table = pq.read_table(out)
    _, lines = open_prepared(results / "data").text("dev", TASK)
    tokens, nats = table["tokens"].to_numpy(), table["nats"].to_numpy()
    sizes = np.array([len(line.encode()) for line in lines])
    np.testing.assert_array_equal(table["bytes"].to_numpy(), sizes)
    np.testing.assert_allclose(table["nats_per_byte"].to_numpy(), nats / sizes, rtol=1e-6)
    np.testing.assert_allclose(table["nats_per_token"].to_numpy(), nats / tokens, rtol=1e-6)
