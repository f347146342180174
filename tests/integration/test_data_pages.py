"""What the pages on data tell the reader to write works as it stands there."""

import re
import sys
from pathlib import Path

import pytest

from mnmt_data import prepare_study, read_study

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("bemo", "dira", "fulo", "gana", "hoti", "kelu", "lomi", "nasu", "pero", "rita")
STUDY = """
name = "page"
[data]
tasks = ["en-de"]
dev_sentences = 5
test_sentences = 5
[data.vocab]
kind = "word"
{more}
"""


def blocks(page, language):
    text = (ROOT / "docs/data" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """The data of the page in `results/mine`: two tasks of 300 pairs."""
    monkeypatch.chdir(tmp_path)
    Path("corpora").mkdir()
    for task in ("en-de", "en-fr"):
        for language in task.split("-"):
            lines = (
                f"{language} {WORDS[row % 10]} {WORDS[row // 10 % 10]} {WORDS[row // 100]}"
                for row in range(300)
            )
            Path(f"corpora/train.{task}.{language}").write_text("".join(f"{line}\n" for line in lines))
    study = STUDY.replace('["en-de"]', '["en-de", "en-fr"]\ncorpus = "corpora"').format(
        more="[data.leaks]\nngrams = false"
    )
    Path("mine.toml").write_text(study)
    return prepare_study(read_study("mine.toml"), tmp_path / "results/mine", jobs=1)


def run_page(number, monkeypatch, *arguments, **replaced):
    """Run a block of the page with other settings and arguments; return its names."""
    text = blocks("other-trainers.md", "python")[number]
    for name, value in replaced.items():
        text, count = re.subn(rf"\b{name}=[\w.]+", f"{name}={value}", text)
        assert count, name
    monkeypatch.setattr(sys, "argv", ["page", *arguments])
    names = {"__name__": "page"}
    exec(compile(text, "other-trainers.md", "exec"), names)
    return names


def test_batches_as_items_of_a_data_set(prepared, monkeypatch, capsys):
    pytest.importorskip("torch")
    names = run_page(0, monkeypatch, batch_tokens=200)
    shapes = capsys.readouterr().out.splitlines()
    assert len(shapes) == 3
    assert shapes[2] == f"2 { {name: tuple(tensor.shape) for name, tensor in names['item'].items()} }"
    exec(blocks("other-trainers.md", "python")[2], names)
    src = names["stream"].batch(100_000).src
    assert names["item"]["input_ids"].tolist() == src.tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of libraries that are not ours
def test_hugging_faces_trainer_goes_on_exactly_where_it_stopped(prepared, tmp_path, monkeypatch):
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    small = {
        "batch_tokens": 200,
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 1,
        "num_heads": 2,
        "dropout_rate": 0.0,
        "eval_steps": 3,
        "save_steps": 3,
    }
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    models = []
    for folder, runs in (("never", [(6, ())]), ("once", [(3, ()), (6, ("resume",))])):
        (tmp_path / folder / "results").mkdir(parents=True)
        (tmp_path / folder / "results/mine").symlink_to(tmp_path / "results/mine")
        monkeypatch.chdir(tmp_path / folder)
        for steps, arguments in runs:
            transformers.set_seed(1)
            names = run_page(1, monkeypatch, *arguments, max_steps=steps, **small)
        models.append(names["trainer"].model.state_dict())
        assert names["trainer"].state.global_step == 6
    for name, tensor in models[0].items():
        assert tensor.equal(models[1][name]), name
