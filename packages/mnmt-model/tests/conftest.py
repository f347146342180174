import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from mnmt_data.prepare import prepare_study
from mnmt_data.study import read_study
from mnmt_model.cli import main

settings.register_profile("ci", deadline=None, max_examples=15, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the user's cache out of the tests, and of the processes that they start."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


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
train_sentences = 2000
dev_sentences = 20
test_sentences = 20
[model]
d_model = 16
num_heads = 2
head_dim = 8
d_ff = 32
[train]
steps = 12
batch_tokens = 300
dropout = 0.1
log_every = 4
checkpoint_every = 5
[sweep]
[sweep.sizes.d16]
[sweep.sizes.d24]
d_model = 24
[sweep.fit]
sizes = ["d16", "d24"]
mixtures = [{ xx-aa = 1.0 }, { xx-aa = 0.3, xx-bb = 0.7 }]
[[sweep.held_out]]
sizes = ["d24"]
mixtures = [{ xx-aa = 0.5, xx-bb = 0.5 }]
"""


@pytest.fixture(scope="session")
def study_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny study."""
    path = tmp_path_factory.mktemp("study") / "tiny.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def results(study_file: Path) -> Path:
    """The tiny study's results folder with its data prepared."""
    folder = study_file.parent / "results"
    prepare_study(read_study(study_file), folder)
    return folder


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it printed."""

    status: object
    stdout: str
    stderr: str


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run `mnmt-model` in this process, where torch is loaded already."""

    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["mnmt-model", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return Result(end.value.code, *capsys.readouterr())

    return run
