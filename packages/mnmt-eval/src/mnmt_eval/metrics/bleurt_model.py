"""BLEURT's model; needs torch and the extra `bleurt`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from bleurt_pytorch import BleurtForSequenceClassification, BleurtTokenizer
from safetensors import SafetensorError

from mnmt_eval.errors import EvalError

BATCH_SENTENCES = 32
"""Sentences scored at a time."""


class BleurtModel:
    """A BLEURT checkpoint, ready to score, on the first GPU if there is one."""

    def __init__(self, checkpoint: Path) -> None:
        """Load the checkpoint from its folder; nothing is downloaded.

        Args:
            checkpoint: A folder with config.json, weights, and spm.model or vocab.txt.

        Raises:
            EvalError: If the folder holds no whole checkpoint.
        """
        try:
            self._tokenizer = BleurtTokenizer.from_pretrained(checkpoint, local_files_only=True)
            model, loading = BleurtForSequenceClassification.from_pretrained(
                checkpoint, local_files_only=True, output_loading_info=True
            )
        except (OSError, ValueError, TypeError, RuntimeError, SafetensorError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise EvalError(f"{checkpoint}: the BLEURT checkpoint cannot be loaded: {reason}") from None
        # Missing weights would be drawn at random.
        if missing := loading["missing_keys"]:
            raise EvalError(
                f"{checkpoint}: the BLEURT checkpoint lacks {len(missing)} weights, such as {min(missing)}."
            )
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model = model.to(self._device).eval()

    @torch.inference_mode()
    def score(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
        """Return the model's score of each hypothesis against its reference."""
        by_length = sorted(range(len(hypotheses)), key=lambda i: len(hypotheses[i]) + len(references[i]))
        scores = [0.0] * len(hypotheses)
        for start in range(0, len(by_length), BATCH_SENTENCES):
            batch = by_length[start : start + BATCH_SENTENCES]
            batch_scores = self._score_batch([hypotheses[i] for i in batch], [references[i] for i in batch])
            for i, score in zip(batch, batch_scores, strict=True):
                scores[i] = score
        return scores

    def _score_batch(self, hypotheses: list[str], references: list[str]) -> list[float]:
        inputs = self._tokenizer(
            references,
            hypotheses,
            padding="longest",
            truncation="longest_first",
            max_length=self._model.config.max_position_embeddings,
            return_tensors="pt",
        ).to(self._device)
        scores: list[float] = self._model(**inputs).logits.flatten().float().tolist()
        return scores
