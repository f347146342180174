"""Ways to decode the same exported T5 with beam search, for decoding_speed.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from mnmt_eval.search import LengthPenalty, MaxLength, SearchConfig, beam_search, flat_beam_search
from mnmt_model.transformer import IncrementalModel, TranslationModel

PAD, EOS = 0, 1

Output = list[list[int]]
"""Tokens of the best translation of each source, with `</s>` where it has one."""

Way = Callable[[Tensor, int, int], Output]
"""Translates `src (batch, src_len)` into at least and at most so many tokens."""


def ours(
    model: TranslationModel, cache: Literal["flat", "reorder"], *, beam: int, device: str, exact: bool
) -> Way:
    """Return `mnmt_eval.search` with the given cache."""
    search = flat_beam_search if cache == "flat" else beam_search
    incremental = IncrementalModel(model.to(device))

    def translate(src: Tensor, fewest: int, most: int) -> Output:
        config = SearchConfig(
            beam=beam,
            length_penalty=LengthPenalty(kind="power", alpha=1.0),
            max_length=MaxLength(ratio=0.0, extra=most),
            min_length=fewest,
            early_stopping="exact" if exact else "filled",
        )
        return [list(hypotheses[0].tokens) for hypotheses in search(incremental, src.to(device), config)]

    return translate


def transformers(folder: Path, *, beam: int, device: str, exact: bool) -> Way:
    """Return `generate` of `T5ForConditionalGeneration`."""
    model = import_module("transformers").T5ForConditionalGeneration.from_pretrained(folder).eval().to(device)

    @torch.inference_mode()
    def translate(src: Tensor, fewest: int, most: int) -> Output:
        src = src.to(device)
        outputs = model.generate(
            input_ids=src,
            attention_mask=(src != PAD).long(),
            num_beams=beam,
            length_penalty=1.0,
            early_stopping="never" if exact else True,
            min_new_tokens=fewest,
            max_new_tokens=most,
            do_sample=False,
        )
        return [_up_to_end(row[1:]) for row in outputs.tolist()]

    return translate


def ctranslate2_float32(folder: Path, *, beam: int, device: str, threads: int, n_best: int) -> Way:
    """Return `Translator.translate_batch`.

    It stops when `n_best` hypotheses have ended and the best of the beam is one of them. With 1 that is
    before the other ways stop, with `beam` about when they do.
    """
    translator = import_module("ctranslate2").Translator(
        str(folder), device=device, compute_type="float32", inter_threads=1, intra_threads=threads
    )
    vocabulary = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
    ids = {token: number for number, token in enumerate(vocabulary)}

    def translate(src: Tensor, fewest: int, most: int) -> Output:
        sources = [[vocabulary[token] for token in row if token != PAD] for row in src.tolist()]
        results = translator.translate_batch(
            sources,
            beam_size=beam,
            num_hypotheses=n_best,
            length_penalty=1.0,
            min_decoding_length=fewest,
            max_decoding_length=most,
            max_input_length=0,
            return_end_token=True,
        )
        return [[ids[token] for token in result.hypotheses[0]] for result in results]

    return translate


def _up_to_end(tokens: list[int]) -> list[int]:
    if EOS in tokens:
        return tokens[: tokens.index(EOS) + 1]
    return [token for token in tokens if token != PAD]
