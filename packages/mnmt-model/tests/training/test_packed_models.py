"""Packs against the same runs trained alone. `eager` stacks as `inductor` does, and compiles nothing."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from rounding import EPSILON, SLACK
from torch.nn.functional import pad

from mnmt_data.store import open_prepared
from mnmt_data.study import read_study
from mnmt_model import RunConfig, run_configs
from mnmt_model.distributed.world import World
from mnmt_model.training.packed_models import PackedModels, _tables
from mnmt_model.training.run_state import RunState
from mnmt_model.training.single_model import SingleModel, single_trainer
from mnmt_model.training.trainer import Trainer
from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture, ModelConfig

STEPS = 6


@pytest.fixture(scope="module")
def runs(study_file: Path, results: Path) -> list[RunConfig]:
    """Two runs of different mixtures, and one of another seed, without dropout."""
    first, second = run_configs(read_study(study_file), results / "data")[:2]
    runs = [first, second, dataclasses.replace(second, seed=2)]
    return [with_train(run, dropout=0.0, log_every=2) for run in runs]


def with_train(run: RunConfig, **changes: object) -> RunConfig:
    return dataclasses.replace(run, train=dataclasses.replace(run.train, **changes))  # type: ignore[arg-type]


def alone(runs: Sequence[RunConfig], folder: Path) -> list[RunState]:
    """Return the states of runs, each ready to be trained alone."""
    states = []
    for number, run in enumerate(runs):
        path = folder / str(number)
        path.mkdir(parents=True)
        states += single_trainer(run, path, open_prepared(run.data), World()).runs
    return states


def packed(runs: Sequence[RunConfig], folder: Path) -> Trainer:
    states = alone(runs, folder)
    return Trainer(states, PackedModels(states, backend="eager"))


def take_steps(trainer: Trainer, steps: int) -> None:
    for run in trainer.runs:
        run.model.train()
    for step in range(1, steps + 1):
        trainer._step(step)


def weights(state: RunState) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in state.model.named_parameters()}


def spread(run: RunConfig, folder: Path, steps: int) -> float:
    """How far float32 weights may be from exact ones after training: as far as changes of last bits lead."""
    results = []
    for seed in range(3):
        (state,) = alone([run], folder / str(seed))
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in state.model.parameters() if seed else ():
                signs = 2 * torch.randint(2, parameter.shape, generator=generator) - 1
                parameter.mul_(1 + EPSILON * signs)
        take_steps(single(state), steps)
        results.append(weights(state))
    return SLACK * max(distance(results[0], other) for other in results[1:])


def single(state: RunState) -> Trainer:
    return Trainer([state], SingleModel(state, state.model))


def distance(some: dict[str, torch.Tensor], others: dict[str, torch.Tensor]) -> float:
    return max(float((some[name] - others[name]).abs().max()) for name in some)


def assert_equal_alone(runs: Sequence[RunConfig], folder: Path, steps: int = STEPS) -> Trainer:
    """Train a pack and the same runs alone; compare weights and the losses of the last steps."""
    trainer = packed(runs, folder / "packed")
    take_steps(trainer, steps)
    for state, expected in zip(trainer.runs, alone(runs, folder / "alone"), strict=True):
        take_steps(single(expected), steps)
        limit = spread(state.run, folder / "spread" / state.folder.name, steps)
        assert distance(weights(state), weights(expected)) <= limit
        assert state.progress.tokens == expected.progress.tokens
        last, before = (each.log._last.losses for each in (state, expected))
        torch.testing.assert_close(last.nats, before.nats, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(last.objective, before.objective, rtol=1e-4, atol=1e-4)
    return trainer


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_architecture_trains_as_alone(
    runs: list[RunConfig], tmp_path: Path, architecture: Architecture
) -> None:
    model = ModelConfig(
        architecture=architecture,
        d_model=16,
        num_heads=2,
        head_dim=8,
        d_ff=32,
        decoder_layers=2,
    )
    assert_equal_alone([dataclasses.replace(run, model=model) for run in runs[:2]], tmp_path, steps=3)


def test_the_parts_of_the_first_transformer_train_as_alone(runs: list[RunConfig], tmp_path: Path) -> None:
    parts = {"norm": "layer", "norm_order": "post", "positions": "sinusoidal", "feed_forward": "relu"}
    model = dataclasses.replace(runs[0].model, **parts, biases=True, embeddings="tied", scaled_attention=True)  # type: ignore[arg-type]
    assert_equal_alone([dataclasses.replace(run, model=model) for run in runs[:2]], tmp_path, steps=3)


@pytest.mark.parametrize("optimizer", ["adafactor", "adamw"])
def test_each_optimiser_clips_and_updates_each_model_by_itself(
    runs: list[RunConfig], tmp_path: Path, optimizer: str
) -> None:
    settings = {"optimizer": optimizer, "learning_rate": 0.01, "weight_decay": 0.1, "clip_norm": 0.3}
    objective = {"label_smoothing": 0.1, "z_loss": 1e-3}
    trainer = assert_equal_alone([with_train(run, **settings, **objective) for run in runs], tmp_path)
    assert trainer.engine.optimizer._joint is not None  # type: ignore[attr-defined]


def test_factored_moments_are_those_of_each_model(runs: list[RunConfig], tmp_path: Path) -> None:
    model = dataclasses.replace(runs[0].model, d_model=128, d_ff=160)
    assert_equal_alone([dataclasses.replace(run, model=model) for run in runs[:2]], tmp_path, steps=3)


def test_a_step_that_one_model_skips_is_taken_by_the_others(
    runs: list[RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, undisturbed = packed(runs, tmp_path / "a"), packed(runs, tmp_path / "b")
    clip = trainer.engine.clip
    take_steps(undisturbed, 3)
    trainer._step(1)
    trainer._step(2)
    before = weights(trainer.runs[1])
    monkeypatch.setattr(trainer.engine, "clip", lambda: [clip()[0], math.nan, 1.0])
    trainer._step(3)
    assert distance(weights(trainer.runs[1]), before) == 0
    assert trainer.runs[1].log.skipped == 1
    for number in (0, 2):
        assert distance(weights(trainer.runs[number]), weights(undisturbed.runs[number])) == 0
    monkeypatch.undo()
    trainer._step(4)
    assert distance(weights(trainer.runs[1]), before) > 0


def test_a_model_that_fails_leaves_the_others_to_train(
    runs: list[RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = [with_train(run, max_skipped=0) for run in runs]
    trainer = packed(strict, tmp_path)
    clip = trainer.engine.clip
    monkeypatch.setattr(trainer.engine, "clip", lambda: [math.inf, *clip()[1:]])
    trainer._step(1)
    trainer._step(2)
    assert "the gradient norm is inf at step 1" in str(trainer.runs[0].error)
    assert [run.progress.step for run in trainer.runs] == [0, 2, 2]


def test_dropout_is_drawn_from_the_step(runs: list[RunConfig], tmp_path: Path) -> None:
    dropped = [with_train(run, dropout=0.3) for run in runs[:2]]
    first, second, without = (
        packed(each, tmp_path / name) for each, name in ((dropped, "a"), (dropped, "b"), (runs[:2], "c"))
    )
    for trainer in (first, second, without):
        take_steps(trainer, 2)
        torch.rand(5)
    assert distance(weights(first.runs[1]), weights(second.runs[1])) == 0
    assert distance(weights(first.runs[1]), weights(without.runs[1])) > 0


def test_one_program_serves_all_shapes_and_padding_changes_nothing(
    runs: list[RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PackedModels, "_common_shape", lambda _: None)
    states = alone(runs[:2], tmp_path)
    engine = PackedModels(states, backend="eager")
    batches = [state.batches.read(0) for state in states]
    src, tgt, weights = _tables([batch.parts[0] for batch in batches])
    scales = torch.tensor([1 / batch.tgt_tokens for batch in batches])
    expected = engine._losses(engine.stack, src, tgt, weights, scales)
    with torch.compiler.set_stance("fail_on_recompile"):
        for rows, src_width, tgt_width in ((5, 3, 2), (1, 0, 9), (0, 7, 0)):
            tables = pad(src, (0, src_width, 0, rows)), pad(tgt, (0, tgt_width, 0, rows))
            losses = engine._losses(engine.stack, *tables, pad(weights, (0, rows)), scales)
            for loss, other in zip(losses, expected, strict=True):
                torch.testing.assert_close(loss, other, rtol=1e-5, atol=0)
