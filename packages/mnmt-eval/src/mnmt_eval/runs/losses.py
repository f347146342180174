"""The loss of runs' models on each sentence of a test set, as a metric like those of translations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mnmt_eval.errors import EvalError, require_runs
from mnmt_eval.metrics.protocol import Floats, Metric
from mnmt_eval.runs.texts import ReferenceText, run_text


class Loss(Metric):
    """−log p(reference | source) under a model, in nats per token of the reference, `</s>` included.

    Statistics: nats, tokens. `sentence_losses` computes them; losses compare models of one vocabulary.
    """

    name = "loss"
    signature = "nrefs:1|unit:nats|per:token"

    def sentence_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[str] = ()
    ) -> Floats:
        """Refuse, since a loss is a property of the model, not of its translations.

        Raises:
            EvalError: Always.
        """
        raise EvalError("loss: is of a model, not of its translations.")

    def values(self, totals: Floats) -> Floats:
        """Return nats per token; see `Metric`."""
        return np.asarray(totals[..., 0] / totals[..., 1])


def sentence_losses(run: Path, text: ReferenceText) -> Floats:
    """Return nats and tokens of each reference, (sentences, 2), under a run's newest model.

    They are stored where `mnmt-model log-probs` writes them, and computed again if the model has changed.

    Args:
        run: The run's folder.
        text: A test set of the run's data, or its first sentences.

    Raises:
        EvalError: If the text is not of the run's data.
        RunError: If the run has no checkpoint, or its data now have another vocabulary.
        DataError: If its data cannot be read.
    """
    require_runs("a comparison of losses")
    from mnmt_data.store import ScoreFile
    from mnmt_model import write_log_probs

    if run_text([run], text.testset, text.task).head(len(text)).checksum != text.checksum:
        raise EvalError(f"{run}: losses are on test sets of its own data, but the references are others.")
    path = run / "scores" / f"{text.testset}.{text.task}.parquet"
    write_log_probs(run, split=text.testset, task=text.task, out=path)
    nats, tokens = ScoreFile.open(path).nats_and_tokens()
    return text.weigh(np.stack([nats, tokens.astype(np.float64)], axis=1)[: len(text)])
