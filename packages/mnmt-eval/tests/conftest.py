import os
import shutil
from pathlib import Path

import pytest
import torch
from command_line import CommandLine
from hypothesis import settings

from mnmt_data.prepare import prepare_study
from mnmt_data.study import read_study
from mnmt_eval.runs import ScoreConfig, open_run, read_testsets, score_run
from mnmt_eval.search import SearchConfig
from mnmt_eval.translate import EngineConfig
from mnmt_model import run_configs, train

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=15)
settings.register_profile("nightly", deadline=None, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
torch.set_num_threads(1)

STUDY = """
name = "tiny"
[data]
tasks = ["xx-aa", "xx-bb"]
[data.vocab]
kind = "word"
size = 64
[data.synthetic]
concepts = 30
words_per_sentence = 2
syllable_inventory = 16
train_sentences = 1000
dev_sentences = 20
test_sentences = 20
[model]
d_model = 16
num_heads = 2
head_dim = 8
d_ff = 32
[train]
steps = 40
batch_tokens = 400
log_every = 20
checkpoint_every = 40
[sweep]
[sweep.sizes.d16]
[sweep.fit]
sizes = ["d16"]
mixtures = [{ xx-aa = 0.5, xx-bb = 0.5 }]
"""


@pytest.fixture(scope="session")
def trained_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a tiny study: its data, and one trained run in `runs/`."""
    folder = tmp_path_factory.mktemp("study")
    path = folder / "tiny.toml"
    path.write_text(STUDY, encoding="utf-8")
    study = read_study(path)
    prepare_study(study, folder / "results")
    (plan,) = run_configs(study, folder / "results" / "data")
    train(plan, folder / "results" / "runs" / "tiny-run")
    return folder / "results"


@pytest.fixture(scope="session")
def trained_and_scored(trained_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same results after `mnmt-eval score` in torch."""
    folder = Path(shutil.copytree(trained_results, tmp_path_factory.mktemp("scored") / "results"))
    run = open_run(folder / "runs" / "tiny-run")
    texts = read_testsets(run.data, testsets=(), max_sentences=None)
    for _ in score_run(
        run, texts, ScoreConfig(search=SearchConfig(beam=4), engine=EngineConfig(name="torch"))
    ):
        pass
    return folder


@pytest.fixture
def results(trained_results: Path, tmp_path: Path) -> Path:
    """A copy of the tiny study's results, to change at will."""
    return Path(shutil.copytree(trained_results, tmp_path / "results"))


@pytest.fixture
def scored_results(trained_and_scored: Path, tmp_path: Path) -> Path:
    """A copy of the scored results, to change at will."""
    return Path(shutil.copytree(trained_and_scored, tmp_path / "scored"))


@pytest.fixture
def scored_run(scored_results: Path) -> Path:
    return scored_results / "runs" / "tiny-run"


@pytest.fixture
def tiny_run(results: Path) -> Path:
    return results / "runs" / "tiny-run"


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> CommandLine:
    return CommandLine(monkeypatch, capsysbinary)
