import shutil
from pathlib import Path

import pytest
import torch
from command_line import CommandLine
from hypothesis import settings

from mnmt_data.prepare import prepare_study
from mnmt_data.study import read_study
from mnmt_model import run_configs, train

settings.register_profile("mnmt", deadline=None, derandomize=True)
settings.load_profile("mnmt")
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


@pytest.fixture
def results(trained_results: Path, tmp_path: Path) -> Path:
    """A copy of the tiny study's results, to change at will."""
    return Path(shutil.copytree(trained_results, tmp_path / "results"))


@pytest.fixture
def tiny_run(results: Path) -> Path:
    return results / "runs" / "tiny-run"


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> CommandLine:
    return CommandLine(monkeypatch, capsysbinary)
