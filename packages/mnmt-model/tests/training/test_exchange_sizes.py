"""The sizes of the experts' exchange follow from the plan of a batch: processes do not ask each other."""

import dataclasses
import json
from pathlib import Path

import pytest
from exchange_runs import train_logged
from ranks import run_ranks

from mnmt_data.study import read_study
from mnmt_model import run_configs

pytestmark = pytest.mark.slow
RANKS = 4


@pytest.mark.parametrize("architecture", ["encdec", "prefix-lm"])
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_processes_agree_on_shapes_without_an_all_reduce(
    study_file: Path, results: Path, tmp_path: Path, parallel: str, architecture: str
) -> None:
    run = run_configs(read_study(study_file), results / "data")[1]
    model = dataclasses.replace(
        run.model, architecture=architecture, num_experts=4, experts_every=1, eval_capacity_factor=2.0
    )
    # A dozen pairs, so that some of eight parts have one and others two.
    settings = dataclasses.replace(
        run.train, parallel=parallel, expert_parallel=2, accumulation=2, batch_tokens=140, dropout=0.0
    )
    run = dataclasses.replace(run, model=model, train=settings)
    statuses = run_ranks(RANKS, train_logged, run, tmp_path / "run", logs=tmp_path)
    assert statuses == [0] * RANKS, [path.read_text()[-2000:] for path in sorted(tmp_path.glob("rank*.log"))]
    logs = [json.loads((tmp_path / f"passes.{rank}.json").read_text()) for rank in range(RANKS)]
    for first, second in (logs[:2], logs[2:]):
        assert [each["shapes"] for each in first] == [each["shapes"] for each in second]
        assert [each["tokens"] for each in first] != [each["tokens"] for each in second]
    assert any(each["shapes"] for each in logs[0])
