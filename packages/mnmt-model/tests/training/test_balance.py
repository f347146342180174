"""Lines of metrics.jsonl on the use of experts, from sums over parts, steps and processes."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from mnmt_model.training.balance import MOST_LOADS, BalanceLog, TaskBalance
from mnmt_model.transformer.experts.routes import Balance

TASKS = ("en-de", "en-fr", "en-ja")
LOADS = torch.tensor([[[60, 20, 20], [20, 60, 20], [0, 0, 0]], [[30, 40, 30], [30, 40, 30], [0, 0, 0]]])


def balance(load: torch.Tensor = LOADS) -> TaskBalance:
    drops = torch.arange(load.size(1))
    others = dict.fromkeys(("counts", "gate_sums", "log_squares"), torch.zeros(0))
    return TaskBalance.of(Balance(auxiliary=torch.tensor(2.5), load=load, drops=drops, **others))


def log_of(*balances: TaskBalance, tasks: tuple[str, ...] = TASKS) -> BalanceLog:
    log = BalanceLog(tasks)
    for each in balances:
        log.add(each)
    return log


def alone(sums: torch.Tensor) -> torch.Tensor:
    return sums


def test_a_line_has_the_counts_of_tasks_that_occur() -> None:
    line = log_of(balance(), balance()).line(alone)
    assert line["expert_loads"] == {
        "en-de": [[120, 40, 40], [60, 80, 60]],
        "en-fr": [[40, 120, 40], [60, 80, 60]],
    }
    assert all(isinstance(count, int) for count in line["expert_loads"]["en-de"][0])
    assert line["drop_rates"] == {"en-de": 0.0, "en-fr": 2 / 400}
    assert np.array(line["load"]) == pytest.approx(np.array([[0.6, 1.2], [0.9, 1.2]]))
    assert line["auxiliary_loss"] == 1.25


def test_specialisation_is_of_the_layer_whose_tasks_differ() -> None:
    first, second = log_of(balance()).line(alone)["specialisation"]
    shares = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]])
    mean = shares.mean(axis=0)
    nats = (shares * np.log(shares / mean)).sum() / 2
    chance = (3 - 1) * (2 - 1) / (2 * 200)
    assert first == pytest.approx((nats - chance) / np.log(2))
    assert second == pytest.approx(-chance / np.log(2))


def test_ranks_are_summed_and_a_line_goes_on_where_it_stopped() -> None:
    one, whole = log_of(balance()), log_of(balance(), balance())
    state = json.loads(json.dumps(one.state(alone)))
    resumed = BalanceLog(TASKS)
    resumed.restore(state, torch.device("cpu"))
    resumed.add(balance())
    assert resumed.line(alone) == whole.line(alone)
    assert one.line(lambda sums: 2 * sums) == whole.line(alone)


def test_counts_are_left_out_where_they_are_many() -> None:
    for experts, has_counts in ((MOST_LOADS // 8, True), (MOST_LOADS // 8 + 1, False)):
        load = torch.ones(4, 2, experts, dtype=torch.int64)
        line = log_of(balance(load), tasks=TASKS[:2]).line(alone)
        assert ("expert_loads" in line) == has_counts
        assert len(line["specialisation"]) == 4
