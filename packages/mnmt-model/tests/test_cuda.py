"""On a GPU models compute what they compute on a CPU, and runs train, stop and go on."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from mnmt_data.store import open_prepared
from mnmt_data.study import read_study
from mnmt_model import ModelConfig, RunConfig, build_model, run_configs, train
from mnmt_model.distributed.world import World
from mnmt_model.training.trainer import Trainer
from mnmt_model.transformer.build import initialise
from mnmt_model.transformer.model_config import ARCHITECTURES, VASWANI, Architecture
from mnmt_model.transformer.sentences import Sentences

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch.cuda is not available: no GPU to run on"),
]


def sentences(seed: int) -> Sentences:
    ids = torch.randint(2, 60, (9, 23), generator=torch.Generator().manual_seed(seed))
    for row in range(9):
        ids[row, 23 - 2 * row :] = 0
    return Sentences.from_padded(ids)


EXPERTS = {"num_experts": 4, "experts_every": 1, "second_expert": "always"}
DROPLESS = {**EXPERTS, "capacity_factor": 0.0, "expert_feed_forward": "gated-silu", "shared_experts": 1}


@pytest.mark.parametrize(
    "parts", [{}, VASWANI, EXPERTS, DROPLESS], ids=["t5", "vanilla", "experts", "dropless"]
)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_losses_and_gradients_are_those_of_a_cpu(
    architecture: Architecture, parts: dict[str, object]
) -> None:
    config = ModelConfig(architecture=architecture, decoder_layers=2, d_model=32, d_ff=64, **parts)
    model = build_model(config, 60)
    initialise(model, seed=1)
    src, tgt = sentences(1), sentences(2)
    expected = model(src, tgt, label_smoothing=0.1, z_loss=1e-3)
    expected.objective.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    device = torch.device("cuda")
    model.to(device)
    losses = model(src.to(device), tgt.to(device), label_smoothing=0.1, z_loss=1e-3)
    losses.objective.backward()
    torch.testing.assert_close(losses.pair_nats.cpu(), expected.pair_nats, rtol=1e-4, atol=1e-4)
    for name, parameter in model.named_parameters():
        reference = gradients[name]
        torch.testing.assert_close(
            parameter.grad.cpu(), reference, rtol=1e-3, atol=1e-4 * float(reference.norm()) + 5e-6
        )


@pytest.mark.filterwarnings("default")  # the compiler's own warnings are not ours to mend
@pytest.mark.parametrize("changes", [{}, {"precision": "bfloat16", "compile": True}], ids=["plain", "fast"])
def test_a_run_trains_on_a_gpu(study_file: Path, results: Path, tmp_path: Path, changes: dict) -> None:
    run: RunConfig = run_configs(read_study(study_file), results / "data")[1]
    run = dataclasses.replace(run, train=dataclasses.replace(run.train, steps=60, **changes))
    train(run, tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["loss"] < lines[0]["loss"]


@pytest.mark.parametrize("optimizer", ["adafactor", "adamw"])
def test_a_step_lets_the_host_go_on(study_file: Path, results: Path, tmp_path: Path, optimizer: str) -> None:
    run = run_configs(read_study(study_file), results / "data")[1]
    settings = {"optimizer": optimizer, "skip_above": 3.0, "steps": 100, "log_every": 100}
    run = dataclasses.replace(run, train=dataclasses.replace(run.train, **settings))
    trainer = Trainer(run, tmp_path, open_prepared(run.data), World(device=torch.device("cuda")))
    for step in (1, 2):
        trainer._step(step)
    torch.cuda.set_sync_debug_mode("error")
    try:
        trainer._step(3)
    finally:
        torch.cuda.set_sync_debug_mode("default")
        trainer.close()
