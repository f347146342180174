"""The `[train.mixing]` table and mixtures by temperature, in training."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from mnmt_data.errors import DataError
from mnmt_data.store import open_prepared
from mnmt_data.stream import MixingConfig, Mixture, WeightPhase, open_stream
from mnmt_data.study import read_study
from mnmt_model import RunConfig, run_configs, train
from mnmt_model.checkpoints import find_checkpoints
from mnmt_model.runs.run_record import read_run, write_run

HOOK = """
def repeat_some(pairs):
    src = [list(row[:-1]) * int(1 + key % 3) + [1] for row, key in zip(pairs.src, pairs.keys)]
    return src, pairs.tgt
"""
EVEN, ODD = {"xx-aa": 0.5, "xx-bb": 0.5}, {"xx-aa": 0.3, "xx-bb": 0.7}


@pytest.fixture(scope="module")
def run(study_file: Path, results: Path) -> RunConfig:
    return run_configs(read_study(study_file), results / "data")[1]


def mixed(run: RunConfig, mixture: dict[str, float], **mixing: object) -> RunConfig:
    config = replace(run.train, mixing=MixingConfig(**mixing), dropout=0.0)
    return replace(run, mixture=mixture, train=config)


def trained(run: RunConfig, folder: Path) -> dict[str, torch.Tensor]:
    train(run, folder)
    return load_file(find_checkpoints(folder / "checkpoints")[-1] / "model.safetensors")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def test_scalarizing_equal_weights_explicitly_changes_nothing(run: RunConfig, tmp_path: Path) -> None:
    implicit = trained(mixed(run, EVEN), tmp_path / "implicit")
    explicit = trained(mixed(run, EVEN, scalarization="explicit"), tmp_path / "explicit")
    assert same(implicit, explicit)


def test_explicit_weights_reach_the_loss(run: RunConfig, tmp_path: Path) -> None:
    even = trained(mixed(run, EVEN, scalarization="explicit"), tmp_path / "even")
    odd = trained(mixed(run, ODD, scalarization="explicit"), tmp_path / "odd")
    assert not same(even, odd)


def test_weights_change_at_their_step(run: RunConfig) -> None:
    phase = WeightPhase(step=6, weights={"xx-aa": 1.0})
    config = mixed(run, {"xx-aa": 0.0, "xx-bb": 1.0}, phases=(phase,))
    train, mixture = config.train, Mixture(config.mixture)
    data = open_prepared(config.data)
    stream = open_stream(data, mixture, train.mixing, batch_tokens=train.batch_tokens, seed=config.seed)
    before, after = stream.counts(6), stream.counts(12)
    assert before["xx-aa"] == 0 < after["xx-aa"]
    assert after["xx-bb"] == before["xx-bb"] > 0


def test_a_record_of_an_earlier_version_continues(run: RunConfig, tmp_path: Path) -> None:
    phase = WeightPhase(step=6, weights={"xx-aa": 1.0})
    config = mixed(run, EVEN, phases=(phase,))
    train(config, tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"phases"', '"changes"'), encoding="utf-8")
    train(config, tmp_path / "run")
    with pytest.raises(Exception, match="was trained with another config"):
        train(mixed(run, EVEN), tmp_path / "run")


def test_a_hook_is_recorded_and_a_run_with_it_resumes_bit_for_bit(
    run: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hooks_of_a_test.py").write_text(HOOK, encoding="utf-8")
    config = mixed(run, EVEN, hook="hooks_of_a_test:repeat_some")
    config = replace(config, train=replace(config.train, checkpoint_every=5))
    folder = tmp_path / "run"
    expected = trained(config, folder)
    assert read_run(folder).config["train"]["mixing"]["hook"] == "hooks_of_a_test:repeat_some"
    assert not same(expected, trained(mixed(run, EVEN), tmp_path / "plain"))
    shutil.rmtree(find_checkpoints(folder / "checkpoints")[-1])
    write_run(folder, replace(read_run(folder), status="running"))
    assert same(expected, trained(config, folder))


@pytest.mark.parametrize("hook", ["hooks_that_are_not:f", "json:absent"])
def test_a_hook_that_is_not_there_is_named(run: RunConfig, tmp_path: Path, hook: str) -> None:
    with pytest.raises(DataError, match=rf"^\[train.mixing\] `hook`: {hook} cannot be imported \(.*\)\.$"):
        train(mixed(run, EVEN, hook=hook), tmp_path / "run")
    with pytest.raises(ValueError, match=r"`hook` must be package\.module:function, but is 'f'"):
        MixingConfig(hook="f")


def test_a_run_with_other_mixing_is_another_run(run: RunConfig, tmp_path: Path) -> None:
    train(mixed(run, EVEN), tmp_path / "run")
    assert read_run(tmp_path / "run").config["train"]["mixing"]["scalarization"] == "implicit"
    with pytest.raises(Exception, match="was trained with another config"):
        train(mixed(run, EVEN, scalarization="explicit"), tmp_path / "run")


def test_selected_data_must_have_been_selected(run: RunConfig, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"train\.xx-aa\.npy: no such order of selected data; `mnmt-data select`"
    ):
        train(mixed(run, EVEN, keep=0.5), tmp_path / "run")


def test_a_mixture_may_be_a_temperature(study_file: Path, results: Path, tmp_path: Path) -> None:
    text = study_file.read_text().replace("{ xx-aa = 0.5, xx-bb = 0.5 }", "{ temperature = 5 }")
    (tmp_path / "study.toml").write_text(text)
    last = run_configs(read_study(tmp_path / "study.toml"), results / "data")[-1]
    assert last.mixture == {"xx-aa": 0.5, "xx-bb": 0.5}  # both tasks have as many pairs
