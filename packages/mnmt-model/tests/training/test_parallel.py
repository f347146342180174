"""Training by several gloo processes is training by one, also where they hold the experts together."""

import dataclasses
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from exchange_runs import train_without_slots
from parallel_runs import changed, curve, losses, train_with
from ranks import run_ranks
from torch import Tensor

from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, load_run, run_configs, train
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.distributed.world import World
from mnmt_model.runs.run_record import read_evals, read_run
from mnmt_model.training.initial_model import random_model
from mnmt_model.training.parallel import make_trainable
from mnmt_model.transformer import translation_model
from mnmt_model.transformer.sentences import Sentences

EXACT = {"rel": 2e-5}
SLOW = pytest.mark.slow
PARTS = 4
"""Groups of tokens that compete for the slots of experts: processes times accumulation."""


@pytest.fixture(scope="module")
def run(study_file: Path, results: Path) -> RunConfig:
    """Without dropout, whose masks processes draw for themselves."""
    run = run_configs(read_study(study_file), results / "data")[1]
    return changed(run, dropout=0.0, clip_norm=0.5, label_smoothing=0.1, z_loss=1e-4, log_every=2)


@pytest.fixture(scope="module")
def alone(run: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    train(run, folder)
    return folder


@pytest.mark.parametrize(
    ("size", "parallel"),
    [pytest.param(2, "ddp", marks=SLOW), (2, "fsdp"), pytest.param(4, "fsdp", marks=SLOW)],
)
def test_losses_are_those_of_one_process(
    run: RunConfig, alone: Path, tmp_path: Path, size: int, parallel: str
) -> None:
    many = changed(run, parallel=parallel, accumulation=2)
    statuses = train_with(size, many, tmp_path / "run")
    assert statuses == [0] * size, [path.read_text()[-2000:] for path in sorted(tmp_path.glob("rank*.log"))]
    assert curve(tmp_path / "run") == pytest.approx(curve(alone), **EXACT)
    assert losses(tmp_path / "run") == pytest.approx(losses(alone), **EXACT)
    assert read_run(tmp_path / "run").status == "finished"


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adafactor", "adamw"])
def test_sharded_checkpoints_go_on_at_another_number_of_processes(
    run: RunConfig, tmp_path: Path, optimizer: str
) -> None:
    sharded = changed(run, parallel="fsdp", optimizer=optimizer, learning_rate=0.01)
    train(sharded, tmp_path / "alone")
    assert 0 not in train_with(2, sharded, tmp_path / "run", stop_at=6)
    (checkpoint,) = (tmp_path / "run" / "checkpoints").iterdir()
    assert len(list(checkpoint.glob("model-*-of-00002.safetensors"))) == 2
    train(sharded, tmp_path / "run")
    assert curve(tmp_path / "run") == pytest.approx(curve(tmp_path / "alone"), **EXACT)
    ours, theirs = (load_run(tmp_path / run).model.translation_model.state_dict() for run in ("run", "alone"))
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "parallel"), [(4, "ddp"), (2, "fsdp")])
def test_killed_and_resumed_equals_never_stopped(
    run: RunConfig, tmp_path: Path, size: int, parallel: str
) -> None:
    dropped = changed(run, parallel=parallel, dropout=0.1)
    train_with(size, dropped, tmp_path / "whole")
    train_with(size, dropped, tmp_path / "killed", stop_at=6)
    train_with(size, dropped, tmp_path / "killed")
    assert curve(tmp_path / "killed") == curve(tmp_path / "whole")
    assert read_evals(tmp_path / "killed") == read_evals(tmp_path / "whole")


def test_batches_too_small_for_the_parts_are_refused(run: RunConfig, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"`batch_tokens` \(300\) makes batches of \d+ pairs, too few for 1 "):
        train(changed(run, accumulation=200), tmp_path / "run")


@pytest.fixture(scope="module")
def routed(run: RunConfig) -> RunConfig:
    """With experts, of one process."""
    model = dataclasses.replace(run.model, decoder_layers=2, num_experts=4, capacity_factor=1.0)
    return changed(dataclasses.replace(run, model=model), accumulation=PARTS, uniform_routing_steps=3)


@pytest.fixture(scope="module")
def routed_alone(routed: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run with experts of one process."""
    folder = tmp_path_factory.mktemp("routed") / "run"
    train(routed, folder)
    return folder


def routing(folder: Path) -> list[Any]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    keys = ("load", "drop_rate", "drop_rates", "expert_loads", "specialisation")
    return [[line[key] for key in keys] for line in lines]


def test_one_process_routes_and_drops(routed_alone: Path) -> None:
    lines = [json.loads(line) for line in (routed_alone / "metrics.jsonl").read_text().splitlines()]
    assert [len(line["load"]) for line in lines] == [2] * len(lines)
    # Uniform steps first: in perfect balance, but for what does not divide.
    assert lines[0]["auxiliary_loss"] == pytest.approx(1, abs=0.02)
    assert all(least > 0.9 and most < 1.1 for least, most in lines[0]["load"])
    assert lines[-1]["auxiliary_loss"] > 1.0
    assert 0 < lines[-1]["drop_rate"] < 0.9
    assert set(lines[-1]["drop_rates"]) <= {"xx-aa", "xx-bb"}
    for line in lines:
        loads = np.sum([*line["expert_loads"].values()], axis=0)
        fair = loads / loads.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(np.stack([fair.min(axis=1), fair.max(axis=1)], axis=1), line["load"])


@pytest.mark.parametrize(
    ("size", "settings"),
    [
        (2, {"expert_parallel": 2}),
        pytest.param(4, {"expert_parallel": 2, "parallel": "fsdp", "exchange_chunks": 2}, marks=SLOW),
        pytest.param(4, {"expert_parallel": 4}, marks=SLOW),
    ],
    ids=["2 hold them together", "2 times 2 and fsdp", "4 hold them together"],
)
def test_losses_and_routing_are_those_of_one_process(
    routed: RunConfig, routed_alone: Path, tmp_path: Path, size: int, settings: dict[str, Any]
) -> None:
    many = changed(routed, accumulation=PARTS // size, **settings)
    statuses = train_with(size, many, tmp_path / "run")
    assert statuses == [0] * size, [path.read_text()[-2000:] for path in sorted(tmp_path.glob("rank*.log"))]
    assert curve(tmp_path / "run") == pytest.approx(curve(routed_alone), **EXACT)
    assert routing(tmp_path / "run") == routing(routed_alone)
    assert losses(tmp_path / "run") == pytest.approx(losses(routed_alone), **EXACT)
    ours, theirs = (
        load_run(run).model.translation_model.state_dict() for run in (tmp_path / "run", routed_alone)
    )
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"experts_per_token": 1, "renormalise": "never"},
        {"experts_per_token": 4, "num_experts": 8, "capacity_factor": 3.0},
        {"group_size": 48},
    ],
    ids=["one expert a token", "four experts a token", "groups"],
)
def test_other_routing_is_trained_as_by_one_process(
    routed: RunConfig, tmp_path: Path, options: dict[str, Any]
) -> None:
    run = dataclasses.replace(routed, model=dataclasses.replace(routed.model, **options))
    train(run, tmp_path / "alone")
    assert train_with(2, changed(run, accumulation=PARTS // 2, expert_parallel=2), tmp_path / "run") == [0, 0]
    assert curve(tmp_path / "run") == pytest.approx(curve(tmp_path / "alone"), **EXACT)
    assert routing(tmp_path / "run") == routing(tmp_path / "alone")
    assert 0 < routing(tmp_path / "run")[-1][1] < 0.9


@pytest.fixture(scope="module")
def dropless(routed: RunConfig) -> RunConfig:
    """With experts of all kinds and no limit of slots."""
    options = {"capacity_factor": 0.0, "expert_feed_forward": "gated-silu", "shared_experts": 1}
    return dataclasses.replace(routed, model=dataclasses.replace(routed.model, **options))


@pytest.fixture(scope="module")
def dropless_alone(dropless: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run without a limit of one process."""
    folder = tmp_path_factory.mktemp("dropless") / "run"
    train(dropless, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "settings"),
    [(2, {"parallel": "ddp"}), (4, {"parallel": "fsdp", "exchange_chunks": 2})],
    ids=["2 hold them together", "2 times 2 and fsdp, in chunks"],
)
def test_dropless_losses_are_those_of_one_process(
    dropless: RunConfig, dropless_alone: Path, tmp_path: Path, size: int, settings: dict[str, Any]
) -> None:
    """Processes exchange as many rows as there are, which differ from expert to expert and step to step."""
    many = changed(dropless, accumulation=PARTS // size, expert_parallel=2, **settings)
    statuses = train_with(size, many, tmp_path / "run")
    assert statuses == [0] * size, [path.read_text()[-2000:] for path in sorted(tmp_path.glob("rank*.log"))]
    assert curve(tmp_path / "run") == pytest.approx(curve(dropless_alone), **EXACT)
    assert routing(tmp_path / "run") == routing(dropless_alone)


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_tokens_travel_where_most_slots_are_empty(routed: RunConfig, tmp_path: Path, parallel: str) -> None:
    roomy = dataclasses.replace(routed, model=dataclasses.replace(routed.model, capacity_factor=6.0))
    train(roomy, tmp_path / "alone")
    two = changed(roomy, accumulation=PARTS // 2, expert_parallel=2, parallel=parallel)
    assert run_ranks(2, train_without_slots, two, tmp_path / "run", logs=tmp_path) == [0, 0]
    assert curve(tmp_path / "run") == pytest.approx(curve(tmp_path / "alone"), **EXACT)
    assert losses(tmp_path / "run") == pytest.approx(losses(tmp_path / "alone"), **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adafactor", "adamw"])
def test_a_checkpoint_of_two_goes_on_alone(routed: RunConfig, tmp_path: Path, optimizer: str) -> None:
    some = changed(routed, optimizer=optimizer, learning_rate=0.01)
    train(some, tmp_path / "alone")
    two = changed(some, accumulation=PARTS // 2, expert_parallel=2)
    assert 0 not in train_with(2, two, tmp_path / "run", stop_at=6)
    assert "RunError: process 1 lost another of the 2 (" in (tmp_path / "rank1.log").read_text()
    (checkpoint,) = find_checkpoints(tmp_path / "run" / "checkpoints")
    assert len(list(checkpoint.glob("model-*-of-00002.safetensors"))) == 2
    train(some, tmp_path / "run")
    assert curve(tmp_path / "run") == pytest.approx(curve(tmp_path / "alone"), **EXACT)
    assert routing(tmp_path / "run") == routing(tmp_path / "alone")


@pytest.mark.parametrize(
    ("experts", "together", "message"),
    [
        (4, 2, r"Processes, one a device, must be a multiple of `expert_parallel` \(2\), but are 1. Start "),
        (0, 2, r"`expert_parallel` must be 1 for a dense model, but is 2\."),
        (4, 3, r"`num_experts` must be a multiple of `expert_parallel` \(3\), but is 4\."),
    ],
)
def test_what_cannot_be_divided_is_refused(
    routed: RunConfig, tmp_path: Path, experts: int, together: int, message: str
) -> None:
    dense = dataclasses.replace(routed, model=dataclasses.replace(routed.model, num_experts=experts))
    with pytest.raises(RunError, match=message):
        train(changed(dense, expert_parallel=together), tmp_path / "run")


@pytest.mark.filterwarnings("default")  # the compiler's own warnings are not ours to mend
@pytest.mark.parametrize("compile", [False, True])
def test_the_loss_is_compiled_if_layers_are(run: RunConfig, compile: bool) -> None:
    model = random_model(run, 8, World())
    make_trainable(model, changed(run, compile=compile).train, World())
    asked: list[bool] = []

    def loss(states: Tensor, *_: Tensor, compiled: bool, **__: float) -> tuple[Tensor, Tensor]:
        asked.append(compiled)
        return states.sum(), states[:, 0].detach()

    pairs = Sentences.from_padded(torch.ones(1, 2, dtype=torch.int64))
    with patch.object(translation_model, "softmax_loss", loss):
        model.forward(pairs, pairs)  # not through the compiler
    assert asked == [compile]


@pytest.mark.parametrize(
    ("precision", "products"), [("tf32", "high"), ("float32", "highest"), ("bfloat16", "highest")]
)
def test_products_on_gpus_are_as_the_precision_says(
    run: RunConfig, precision: str, products: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(torch, "set_float32_matmul_precision", asked.append)
    make_trainable(random_model(run, 8, World()), changed(run, precision=precision).train, World())
    assert asked == [products]
