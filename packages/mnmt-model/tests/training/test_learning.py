"""Models learn: pairs by heart, and directions that they never saw are measured."""

import dataclasses
import json
from pathlib import Path

import pytest

from mnmt_data.prepare import prepare_study
from mnmt_data.study import read_study
from mnmt_model import RunConfig, load_run, run_configs, train
from mnmt_model.runs.run_record import read_evals
from mnmt_model.transformer.model_config import ARCHITECTURES, Architecture

STUDY = """
name = "learning"
[data]
tasks = ["xx-aa", "aa-xx", "xx-bb", "bb-xx"]
zero_shot = ["aa-bb"]
target_tag = "appended"
[data.vocab]
kind = "word"
size = 64
[data.synthetic]
pairs = ["xx-aa", "aa-xx", "xx-bb", "bb-xx", "aa-bb"]
languages = ["aa", "bb"]
concepts = 30
synonym_rate = 0.0
words_per_sentence = 2
syllable_inventory = 16
train_sentences = 100
dev_sentences = 20
test_sentences = 20
[model]
decoder_layers = 2
d_model = 48
num_heads = 2
d_ff = 96
[train]
steps = 200
batch_tokens = 1200
optimizer = "adamw"
learning_rate = 0.004
warmup_steps = 20
cooldown_steps = 130
checkpoint_every = 200
log_every = 25
[sweep.sizes.d32]
[sweep.fit]
sizes = ["d32"]
mixtures = [{ xx-aa = 1.0 }, { xx-aa = 0.25, aa-xx = 0.25, xx-bb = 0.25, bb-xx = 0.25 }]
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[RunConfig]:
    folder = tmp_path_factory.mktemp("learning")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    study = read_study(folder / "study.toml")
    prepare_study(study, folder)
    return run_configs(study, folder / "data")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_hundred_pairs_are_learnt_by_heart(
    runs: list[RunConfig], tmp_path: Path, architecture: Architecture
) -> None:
    model = dataclasses.replace(runs[0].model, architecture=architecture)
    train(dataclasses.replace(runs[0], model=model), tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["loss"] < 0.05
    assert load_run(tmp_path / "run").progress.step == 200


def test_directions_that_were_never_trained_are_measured(runs: list[RunConfig], tmp_path: Path) -> None:
    many_to_many = dataclasses.replace(runs[1].train, steps=10, warmup_steps=0, cooldown_steps=0)
    train(dataclasses.replace(runs[1], train=many_to_many), tmp_path / "run")
    evaluated = {(e.task, e.testset) for e in read_evals(tmp_path / "run")}
    assert {("aa-bb", "dev"), ("aa-bb", "test"), ("bb-xx", "test")} <= evaluated
