"""Mixtures of experts: `score` counts their choices, and `analyse` shows them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine

from mnmt_data.study import read_study
from mnmt_eval.runs import count_experts, open_run
from mnmt_model import ModelConfig, run_configs, train


@pytest.fixture(scope="module")
def trained_mixture(trained_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with runs of a mixture of four experts, of too few layers for one, and of a dense model."""
    folder = Path(shutil.copytree(trained_results, tmp_path_factory.mktemp("mixture") / "results"))
    shutil.copy(trained_results.parent / "tiny.toml", folder)
    (plan,) = run_configs(read_study(folder / "tiny.toml"), folder / "data")
    model = ModelConfig(
        encoder_layers=2, decoder_layers=2, d_model=16, num_heads=2, head_dim=8, d_ff=32, num_experts=4
    )
    train(replace(plan, model=model), folder / "runs" / "mixture")
    train(replace(plan, model=replace(model, encoder_layers=1, decoder_layers=1)), folder / "runs" / "flat")
    return folder


@pytest.fixture
def mixture(trained_mixture: Path, tmp_path: Path) -> Path:
    """A copy of the run, to change at will."""
    return Path(shutil.copytree(trained_mixture, tmp_path / "results")) / "runs" / "mixture"


def test_scores_count_and_analyses_show_them(command_line: CommandLine, mixture: Path) -> None:
    done = command_line.run("score", mixture, "--beam", "1", "--metric", "chrf")
    assert done.status == 0, done.stderr
    printed = command_line.run("analyse", mixture, "--metric", "chrf").stdout.decode()
    lines = printed[printed.index("mixture, test, step 40: 2 tasks, 4 experts") :].splitlines()
    assert lines[2].split() == ["task", "load"]
    assert [line.split()[:2] for line in lines[3:5]] == [["encoder", "2"], ["decoder", "2"]]
    shares = {line.split()[0] + " 2": float(line.split()[2]) for line in lines[3:5]}
    assert lines[6].startswith(f"{max(shares, key=lambda name: shares[name])}, which tells most: the experts")


def test_json_has_the_shares_of_the_files(command_line: CommandLine, mixture: Path) -> None:
    command_line.scored(mixture, "--beam", "1", "--metric", "chrf")
    done = command_line.run("analyse", mixture, "--metric", "chrf", "--json")
    (use,) = json.loads(done.stdout)["experts"]
    assert (use["run"], use["testset"], sorted(use["tasks"])) == ("mixture", "test", ["xx-aa", "xx-bb"])
    for place, task in enumerate(use["tasks"]):
        with np.load(mixture / "experts" / f"test.{task}.npz") as file:
            counts = file["loads"].sum(axis=0)
        for layer, of_layer in zip(use["layers"], counts, strict=True):
            assert layer["shares"][place] == pytest.approx((of_layer / of_layer.sum()).tolist())
    estimate = use["layers"][1]["specialisation"]["task"]
    assert estimate["lower"] <= estimate["share"] <= estimate["upper"] <= 1


def test_nothing_is_counted_where_no_layer_has_experts(mixture: Path) -> None:
    flat = mixture.parent / "flat"
    count_experts(open_run(flat), "test", "xx-aa")
    assert not (flat / "experts").exists()


def test_what_another_model_chose_is_measured_again(mixture: Path) -> None:
    count_experts(open_run(mixture), "test", "xx-aa")
    path = mixture / "experts" / "test.xx-aa.npz"
    with np.load(path) as file:
        content = dict(file)
    np.savez_compressed(path, **{**content, "weights": np.array("others"), "loads": content["loads"] + 1})
    count_experts(open_run(mixture), "test", "xx-aa")
    with np.load(path) as file:
        assert file["loads"].tolist() == content["loads"].tolist()
