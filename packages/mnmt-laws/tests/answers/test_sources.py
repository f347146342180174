"""Answers where tasks are not the sources of the mixtures, and mixtures have many sources."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mnmt_laws import LawFit, ResidualBootstrap, fit, recommend

SOURCES = ("books", "code", "news", "web", "wiki")
USE = {
    "books": (0.6, 0.1, 0.3, 0.2, 0.4),
    "chat": (0.1, 0.2, 0.3, 0.6, 0.3),
    "news": (0.2, 0.1, 0.7, 0.3, 0.3),
}


@pytest.fixture(scope="module")
def fitted() -> LawFit:
    """A law of transfer: five sources, and three test sets of which one is no source."""
    rng = np.random.default_rng(1)
    rows = []
    for number in range(36):
        mixture = rng.dirichlet(np.ones(len(SOURCES)))
        text = ",".join(f"{name}:{weight!r}" for name, weight in zip(SOURCES, mixture.tolist(), strict=True))
        for size in (1e6, 1e7, 1e8):
            for task, use in USE.items():
                share = float(np.dot(use, mixture))
                rows.append(
                    {
                        "run": f"{number}-{size:g}",
                        "task": task,
                        "size": size,
                        "metric": "loss",
                        "mixture": text,
                        "weight": mixture[SOURCES.index(task)] if task in SOURCES else 0.0,
                        "value": (0.5 + 30 * (share * size) ** -0.3) * (1 + 0.003 * rng.standard_normal()),
                    }
                )
    return fit(pd.DataFrame(rows), law="transfer-capacity", uncertainty=ResidualBootstrap(refits=12))


def test_the_best_mixture_gives_weights_to_sources_for_losses_of_tasks(fitted: LawFit) -> None:
    advice = recommend(fitted, size=1e9)
    assert list(advice.weights) == list(SOURCES)
    assert list(advice.predicted) == ["books", "chat", "news"]
    points = np.random.default_rng(0).dirichlet(np.ones(5), 4000) * 0.995 + 0.001
    losses = fitted.evaluator.predict_points(fitted.parameters, points=points[None], size=1e9)[0].mean(axis=0)
    assert np.mean(list(advice.predicted.values())) <= losses.min() + 1e-9
