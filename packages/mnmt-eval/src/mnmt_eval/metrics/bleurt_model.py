"""BLEURT's model; needs torch and the extra `bleurt`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from bleurt_pytorch import BleurtForSequenceClassification, BleurtTokenizer
from safetensors import SafetensorError

from mnmt_eval.errors import EvalError


class BleurtModel:
    """A BLEURT checkpoint, ready to score."""

    def __init__(self, checkpoint: Path, *, batch_sentences: int, device: str) -> None:
        """Load the checkpoint from its folder; nothing is downloaded.

        Args:
            checkpoint: A folder with config.json, weights, and spm.model or vocab.txt.
            batch_sentences: Sentences scored at a time.
            device: The device to load it to.

        Raises:
            EvalError: If the folder holds no whole checkpoint, or there is no such device.
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
        try:
            self._model = model.to(device).eval()
        except (RuntimeError, AssertionError) as error:
            reason = str(error).partition("\n")[0]
            raise EvalError(f"bleurt: `device` {device!r} cannot be used: {reason}") from None
        self._device = device
        self._batch_sentences = batch_sentences

    @torch.inference_mode()
    def score(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
        """Return the model's score of each hypothesis against its reference."""
        by_length = sorted(range(len(hypotheses)), key=lambda i: len(hypotheses[i]) + len(references[i]))
        scores = [0.0] * len(hypotheses)
        for start in range(0, len(by_length), self._batch_sentences):
            batch = by_length[start : start + self._batch_sentences]
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
