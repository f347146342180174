"""Run the exported model in transformers and CTranslate2; no other module imports them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the customary name

from mnmt_model.errors import RunError
from mnmt_model.transformer.sentences import PAD

Ids = NDArray[np.int64]

Scorer = Callable[[Ids, Ids], NDArray[np.float64]]
"""Maps source ids `(batch, src_len)` and target ids `(batch, tgt_len)`, padded with 0, to the
log-probabilities of the target tokens `(batch, tgt_len)`, in nats, 0 at padding."""

Translator = Callable[[Ids], Ids]
"""Maps source ids `(batch, src_len)` to the ids of their greedy translations, both padded with 0."""

GREEDY_TOKENS = 64
"""Length at which greedy translations are truncated."""


def token_log_probs(logits: Tensor, tgt: Tensor) -> NDArray[np.float64]:
    """Return the log-probabilities of `tgt (batch, tgt_len)` from `logits (batch, tgt_len, vocab_size)`."""
    nats = F.cross_entropy(logits.flatten(0, 1).float(), tgt.flatten(), ignore_index=PAD, reduction="none")
    return -nats.view(tgt.shape).double().numpy()


def load_transformers(folder: Path) -> Any:
    """Return the model that transformers loads from `folder`.

    Raises:
        RunError: If transformers is not installed.
    """
    with export_extra():
        from transformers import AutoModelForSeq2SeqLM
    return AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


def transformers_scorer(model: Any) -> Scorer:
    """Return a scorer of a model of transformers."""
    start = model.config.decoder_start_token_id

    @torch.inference_mode()
    def score(src: Ids, tgt: Ids) -> NDArray[np.float64]:
        sources, targets = torch.from_numpy(src), torch.from_numpy(tgt)
        shifted = F.pad(targets[:, :-1], (1, 0), value=start)
        mask = (sources != PAD).long()
        output = model(input_ids=sources, attention_mask=mask, decoder_input_ids=shifted, use_cache=False)
        return token_log_probs(output.logits, targets)

    return score


def transformers_translator(model: Any) -> Translator:
    """Return the greedy search of a model of transformers, with padding suppressed."""

    def translate(src: Ids) -> Ids:
        sources = torch.from_numpy(src)
        output = model.generate(
            input_ids=sources,
            attention_mask=(sources != PAD).long(),
            max_new_tokens=GREEDY_TOKENS,
            num_beams=1,
            do_sample=False,
            suppress_tokens=[PAD],
        )
        translations: Ids = output[:, 1:].numpy()
        return translations

    return translate


def tokenizer_ids(folder: Path) -> Callable[[Sequence[str]], list[list[int]]]:
    """Return a function from texts to their ids, `</s>` included, by the `AutoTokenizer` in `folder`.

    Raises:
        RunError: If transformers is not installed.
    """
    with export_extra():
        from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(folder)  # type: ignore[no-untyped-call,unused-ignore]
    return lambda texts: [list(ids) for ids in tokenizer(list(texts))["input_ids"]]


def convert_to_ctranslate2(folder: Path, out: Path) -> None:
    """Convert the exported model in `folder` to CTranslate2's float32 format in `out`.

    Raises:
        RunError: If transformers or CTranslate2 is not installed.
    """
    with export_extra():
        from ctranslate2.converters import TransformersConverter

    class Converter(TransformersConverter):  # type: ignore[misc,unused-ignore]
        def load_model(self, *arguments: Any, **options: Any) -> Any:
            model = super().load_model(*arguments, **options)
            # transformers 5 reports tied embeddings in spite of config.json, and logits would be scaled.
            model.config.tie_word_embeddings = False
            return model

    Converter(str(folder)).convert(str(out))


def ctranslate2_scorer(folder: Path) -> Scorer:
    """Return a scorer of the model that CTranslate2 loads from `folder`, in float32 on the CPU.

    Raises:
        RunError: If CTranslate2 is not installed.
    """
    with export_extra():
        import ctranslate2
    translator = ctranslate2.Translator(str(folder), device="cpu", compute_type="float32")
    vocabulary = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))

    def score(src: Ids, tgt: Ids) -> NDArray[np.float64]:
        sources = [_pieces(vocabulary, row) for row in src]
        # CTranslate2 appends </s> to targets, but not to sources.
        targets = [_pieces(vocabulary, row)[:-1] for row in tgt]
        log_probs = np.zeros(tgt.shape)
        for row, result in enumerate(translator.score_batch(sources, targets, max_input_length=0)):
            log_probs[row, : len(result.log_probs)] = result.log_probs
        return log_probs

    return score


def versions(*, with_ctranslate2: bool) -> dict[str, str]:
    """Return {distribution: version} of the libraries that ran the model."""
    names = [
        "mnmt-model",
        "torch",
        "transformers",
        "tokenizers",
        *(["ctranslate2"] if with_ctranslate2 else []),
    ]
    return {name: version(name) for name in names}


def _pieces(vocabulary: Sequence[str], ids: Ids) -> list[str]:
    return [vocabulary[token] for token in ids.tolist() if token != PAD]


@contextmanager
def export_extra() -> Iterator[None]:
    """Turn a failed import of a module of the extra `export` into an error with the remedy.

    Raises:
        RunError: If a module is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise RunError(f"exporting needs {error.name}: pip install './packages/mnmt-model[export]'") from None
