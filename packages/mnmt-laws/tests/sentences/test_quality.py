"""The sentence about quality names only scores that were measured."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mnmt_laws.sentences.quality import quality_sentence


def test_models_and_tasks_without_scores_are_left_out() -> None:
    pairs = pd.DataFrame(
        {
            "size": [1e6, 1e6, 1e6, 1e7],
            "task": ["de", "fr", "uk", "de"],
            "bleu": [20.0, np.nan, np.nan, np.nan],
            "chrf": [40.0, 50.0, np.nan, np.nan],
        }
    )
    sentence = quality_sentence(pairs, {"bleu": "BLEU", "chrf": "chrF"})
    assert sentence == "The best models of 1M parameters reach BLEU 20 on de and chrF 40 on de and 50 on fr."


def test_models_that_have_learned_little_are_called_so() -> None:
    pairs = pd.DataFrame({"size": [1e6, 1e6], "task": ["de", "fr"], "bleu": [0.3, 1.2]})
    assert "They have learned little yet" in quality_sentence(pairs, {"bleu": "BLEU"})
    well = quality_sentence(pairs.assign(bleu=[0.3, 21.0]), {"bleu": "BLEU"})
    assert "learned little" not in well
