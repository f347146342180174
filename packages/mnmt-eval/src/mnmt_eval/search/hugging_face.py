"""Encoder-decoders of Hugging Face's transformers as models to search."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from mnmt_eval.errors import EvalError
from mnmt_eval.search.numbering import Numbering

TargetTag = Literal["none", "start", "first"]
"""How a target's language is set: not by the decoder; by the token that it starts from (mBART-25); or by the
first token of the target, `forced_bos_token_id` of transformers (NLLB, M2M100, mBART-50)."""

_UNSUPPORTED = {"encoder_no_repeat_ngram_size": 0, "encoder_repetition_penalty": 1.0, "guidance_scale": None}
"""{option of generation_config: value that turns it off}, for options that our search does not follow."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HuggingFaceState:
    """Hypotheses of some sources: one row each."""

    sentences: Tensor
    """`(rows,)` the source of each row."""
    memory: Tensor
    """`(rows, src_len, d_model)` the encoder's output."""
    mask: Tensor
    """`(rows, src_len)` int64, 0 at padding."""
    targets: Tensor
    """`(rows, length)` the decoder's tokens so far, in the model's numbering."""
    tags: Tensor | None
    """`(rows,)` the first token of each target, if it is set."""
    cache: Any
    """transformers' keys and values; they belong to the newest state alone."""

    def select(self, rows: Tensor) -> HuggingFaceState:
        """Return the given rows `(n,)`; this state must not be used again.

        Mostly hypotheses only change places within their sentences. Then what depends on the source stays.
        """
        sentences = self.sentences[rows]
        is_same = torch.equal(sentences, self.sentences)
        self.cache.self_attention_cache.reorder_cache(rows)
        if not is_same:
            self.cache.cross_attention_cache.reorder_cache(rows)
        return HuggingFaceState(
            sentences=sentences,
            memory=self.memory if is_same else self.memory[rows],
            mask=self.mask if is_same else self.mask[rows],
            targets=self.targets[rows],
            tags=None if self.tags is None else self.tags[rows],
            cache=self.cache,
        )


class HuggingFaceModel:
    """An encoder-decoder of transformers (Marian, M2M100, NLLB, mBART, BART, T5 and others) to search.

    Tokens have the numbers of `numbering`, so that padding is 0 and the end of a sentence 1. What the model's
    `generation_config` forces, forbids or penalises counts here too, by transformers' own processors of
    log-probabilities. Beam, length penalty, limits of length, stopping and sampling are those of
    `SearchConfig` instead, and no `forced_eos_token_id` hides that a target was cut off.

    Args:
        model: The model.
        target_tag: How the language of targets is set; if it is, every source begins with the token.

    Raises:
        EvalError: If the model is no encoder-decoder, or has an option that our search does not follow.
    """

    def __init__(self, model: Any, *, target_tag: TargetTag = "none") -> None:
        self.model, self.target_tag = model.eval(), target_tag
        options = deepcopy(model.generation_config)
        _check(model, options)
        options.update(do_sample=False, forced_eos_token_id=None)
        if target_tag == "first":
            options.forced_bos_token_id = None
        tables = model.get_input_embeddings(), model.get_output_embeddings()
        size = max(table.weight.size(0) for table in tables)
        self.numbering = Numbering(size=size, pad=options.pad_token_id, eos=_only(options.eos_token_id))
        self._start: int = _first(options.decoder_start_token_id, options.bos_token_id)
        device = model.device
        # Private, but the only way to all processors of log-probabilities that an option may call for.
        model._prepare_special_tokens(options, True, device)
        self._processors = model._get_logits_processor(options, input_ids_seq_length=1, device=device)
        self._to_model = torch.from_numpy(self.numbering.to_model).to(device)
        self._moved = torch.from_numpy(self.numbering.moved).to(device)

    @classmethod
    def load(cls, folder: Path | str, *, target_tag: TargetTag = "none") -> HuggingFaceModel:
        """Load a model from a local folder, in float32.

        Raises:
            EvalError: If the folder holds no such model, or lacks weights of it.
        """
        return cls(_load(Path(folder)), target_tag=target_tag)

    def to(self, device: str) -> HuggingFaceModel:
        """Move the model to a device such as `cuda:1`, and return it."""
        return HuggingFaceModel(self.model.to(device), target_tag=self.target_tag)

    def encode(self, src: Tensor, padding_mask: Tensor) -> HuggingFaceState:
        """Return the state before the first target token; see `SearchModel.encode`."""
        from transformers import DynamicCache, EncoderDecoderCache

        ids = self._to_model[src]
        tags = ids[:, 0]
        if self.target_tag != "none":
            ids, padding_mask = ids[:, 1:], padding_mask[:, 1:]
        mask = (~padding_mask).long()
        memory = self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        start = tags if self.target_tag == "start" else torch.full_like(tags, self._start)
        return HuggingFaceState(
            sentences=torch.arange(len(ids), device=ids.device),
            memory=memory,
            mask=mask,
            targets=start[:, None],
            tags=tags if self.target_tag == "first" else None,
            cache=EncoderDecoderCache(DynamicCache(), DynamicCache()),
        )

    def step(self, state: HuggingFaceState, tokens: Tensor) -> tuple[Tensor, HuggingFaceState]:
        """Append one token to every hypothesis, and score the tokens that may follow; see `SearchModel.step`.

        The state that is passed in must not be used again.
        """
        if state.cache.get_seq_length():
            state = replace(state, targets=torch.cat([state.targets, self._to_model[tokens][:, None]], dim=1))
        output = self.model(
            encoder_outputs=(state.memory,),
            attention_mask=state.mask,
            decoder_input_ids=state.targets[:, -1:],
            past_key_values=state.cache,
            use_cache=True,
        )
        log_probs = self._processors(state.targets, output.logits[:, -1].float().log_softmax(-1))
        if state.tags is not None and state.targets.size(1) == 1:
            log_probs = torch.full_like(log_probs, -torch.inf).scatter_(1, state.tags[:, None], 0.0)
        log_probs[:, self._moved] = log_probs[:, self._to_model[self._moved]]
        return log_probs, replace(state, cache=output.past_key_values)


def _load(folder: Path) -> Any:
    transformers = quiet_transformers()
    try:
        model, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    except Exception as error:  # transformers raises errors of any kind for a broken folder
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise EvalError(f"{folder}: cannot be loaded as an encoder-decoder: {line}") from None
    if missing := sorted(report["missing_keys"]):
        raise EvalError(f"{folder}: lacks weights of the model: {', '.join(missing[:3])}")
    return model


def quiet_transformers() -> Any:
    """Import transformers, which then writes no warnings and no progress to stderr."""
    transformers: Any = import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _check(model: Any, options: Any) -> None:
    if not model.config.is_encoder_decoder:
        raise EvalError(f"{type(model).__name__} is no encoder-decoder; only these can be searched.")
    for name, off in _UNSUPPORTED.items():
        if getattr(options, name, None) not in (None, off):
            raise EvalError(f"generation_config: `{name}` is not supported; set it to {off}.")
    for name in ("pad_token_id", "eos_token_id"):
        if getattr(options, name) is None:
            raise EvalError(f"generation_config: `{name}` is missing.")


def _first(*ids: int | None) -> int:
    """Return the first id that is set."""
    for number in ids:
        if number is not None:
            return number
    raise EvalError("generation_config: `decoder_start_token_id` is missing.")


def _only(ids: int | list[int]) -> int:
    """Return the id of the end of a sentence, of which there must be one."""
    if isinstance(ids, int):
        return ids
    if len(ids) != 1:
        raise EvalError(f"generation_config: `eos_token_id` must be one token, but is {ids}.")
    return ids[0]
