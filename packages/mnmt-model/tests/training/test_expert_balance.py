"""Gates that keep something of whole batches: the same at any number of processes."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from parallel_runs import changed, curve, train_with

from mnmt_data.study import read_study
from mnmt_model import RunConfig, TrainConfig, load_run, run_configs, train
from mnmt_model.distributed import World
from mnmt_model.training import ExpertBalance
from mnmt_model.transformer import ModelConfig
from mnmt_model.transformer.build import build_model
from mnmt_model.transformer.experts.gate import Gate
from mnmt_model.transformer.experts.routes import Balance

EXACT = {"rel": 2e-5}


@pytest.fixture(scope="module")
def balanced(study_file: Path, results: Path) -> RunConfig:
    """With all that balances a whole batch, and room for all choices, which groups cannot change."""
    run = run_configs(read_study(study_file), results / "data")[1]
    model = dataclasses.replace(run.model, decoder_layers=2, num_experts=4, capacity_factor=4.0)
    over_batch = {"auxiliary_loss": 0.1, "auxiliary_loss_over": "batch", "router_z_loss": 0.01}
    run = dataclasses.replace(run, model=model)
    settings = {"dropout": 0.0, "clip_norm": 0.5, "log_every": 2, "accumulation": 1}
    return changed(run, **settings, balance_bias_rate=0.01, **over_batch)


@pytest.fixture(scope="module")
def balanced_alone(balanced: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    folder = tmp_path_factory.mktemp("balanced") / "run"
    train(balanced, folder)
    return folder


def state(folder: Path) -> dict[str, torch.Tensor]:
    return load_run(folder).model.translation_model.state_dict()


def assert_same_state(run: Path, other: Path) -> None:
    ours, theirs = state(run), state(other)
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], rtol=1e-3, atol=1e-5)


def auxiliary_losses(folder: Path) -> list[float]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["auxiliary_loss"] for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "settings"),
    [(2, {}), (4, {"expert_parallel": 2, "parallel": "fsdp"})],
    ids=["2", "2 times 2 and fsdp"],
)
def test_a_batch_is_balanced_the_same_at_any_number_of_processes(
    balanced: RunConfig, balanced_alone: Path, tmp_path: Path, size: int, settings: dict[str, Any]
) -> None:
    statuses = train_with(size, changed(balanced, **settings), tmp_path / "run")
    assert statuses == [0] * size, [path.read_text()[-2000:] for path in sorted(tmp_path.glob("rank*.log"))]
    assert curve(tmp_path / "run") == pytest.approx(curve(balanced_alone), **EXACT)
    assert auxiliary_losses(tmp_path / "run") == pytest.approx(auxiliary_losses(balanced_alone), **EXACT)
    assert_same_state(tmp_path / "run", balanced_alone)


def test_biases_have_moved_by_steps_of_the_rate(balanced_alone: Path) -> None:
    biases = [tensor for name, tensor in state(balanced_alone).items() if name.endswith("balance_bias")]
    steps = torch.stack(biases) / 0.01
    torch.testing.assert_close(steps, steps.round(), rtol=0, atol=1e-4)
    assert (steps.abs() > 0.5).any()


def test_z_loss_and_biases_are_the_same_in_parts(balanced: RunConfig, tmp_path: Path) -> None:
    """The auxiliary loss is not, since it knows no later parts."""
    without = changed(balanced, auxiliary_loss=0.0)
    for parts in (1, 3):
        train(changed(without, accumulation=parts), tmp_path / str(parts))
    assert curve(tmp_path / "1") == pytest.approx(curve(tmp_path / "3"), **EXACT)
    assert_same_state(tmp_path / "1", tmp_path / "3")


def test_shares_are_those_of_the_parts_so_far() -> None:
    """E Σ f_e m_e, where f_e counts the parts up to this one, and m_e is of the whole batch."""
    config = ModelConfig(
        decoder_layers=2, num_experts=3, d_model=8, num_heads=2, d_ff=8, architecture="causal-lm"
    )
    settings = TrainConfig(accumulation=2, auxiliary_loss_over="batch", router_z_loss=0.1)
    experts = ExpertBalance(build_model(config, 20), settings, World())
    experts.start(src_tokens=3, tgt_tokens=7)
    counts, gate_sums = torch.tensor([[3, 1, 0], [1, 1, 4]]), torch.tensor([[2.0, 1.5, 0.5], [1.0, 2.0, 3.0]])
    total = z_total = 0.0
    for part in range(2):
        balance = Balance(
            auxiliary=torch.tensor(0.0),
            load=torch.zeros(1, 1, 3),
            drops=torch.zeros(1),
            counts=counts[part][None],
            gate_sums=gate_sums[part][None],
            log_squares=torch.tensor([part + 1.5]),
        )
        total += float(experts.auxiliary(balance, is_empty=False)) / 2
        z_total += float(experts.z_loss(balance, is_empty=False)) / 2
        assert float(experts.z_loss(balance, is_empty=True)) == 0
    first = 3 * (3 / 4 * 2.0 + 1 / 4 * 1.5) / 10
    second = 3 * (4 / 10 * 1.0 + 2 / 10 * 2.0 + 4 / 10 * 3.0) / 10
    assert total == pytest.approx(first + second, rel=1e-6)
    assert z_total == pytest.approx((1.5 + 2.5) / 10, rel=1e-6)


@pytest.mark.parametrize("accumulation", [1, 2])
def test_the_objective_is_all_that_training_minimises(
    balanced: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accumulation: int
) -> None:
    def first_line(name: str, **factors: float) -> dict[str, Any]:
        settings = {"auxiliary_loss_over": "group", "auxiliary_loss": 0.0, "router_z_loss": 0.0, **factors}
        run = changed(balanced, steps=1, log_every=1, accumulation=accumulation, **settings)
        train(run, tmp_path / name)
        (line,) = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        return dict(json.loads(line))

    bare = first_line("bare")
    assert bare["objective"] == pytest.approx(bare["loss"], rel=1e-6)  # summed in another order
    mixtures = len(bare["load"])
    auxiliary = first_line("auxiliary", auxiliary_loss=0.5)
    assert auxiliary["objective"] - auxiliary["loss"] == pytest.approx(
        0.5 * mixtures * auxiliary["auxiliary_loss"], rel=1e-4
    )
    logits: dict[int, list[torch.Tensor]] = {}
    compute = Gate.logits

    def record(gate: Gate, x: torch.Tensor) -> torch.Tensor:
        if gate.training:
            logits.setdefault(gate.number, []).append(compute(gate, x).detach())
        return compute(gate, x)

    monkeypatch.setattr(Gate, "logits", record)
    z = first_line("z", router_z_loss=0.25)
    squares = [torch.cat(parts).logsumexp(dim=1).square().mean().item() for parts in logits.values()]
    assert len(squares) == mixtures
    assert z["objective"] - z["loss"] == pytest.approx(0.25 * sum(squares), rel=1e-4)
