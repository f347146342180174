"""The tokenizer of a Hugging Face folder as the vocabulary of a model, and the languages that it knows."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mnmt_data import Ragged
from mnmt_data.readers import best_tags, canonical_task
from mnmt_eval.errors import EvalError
from mnmt_eval.language import languages_of
from mnmt_eval.search.hugging_face import TargetTag, quiet_transformers
from mnmt_eval.search.numbering import Numbering

_TEXT_TAG = re.compile(r">>(.+)<<|<2(\w+)>")
"""Tokens that name the target language at the beginning of a source: of OPUS-MT, and of MADLAD and ours."""


@dataclass(frozen=True, kw_only=True)
class HuggingFaceVocabulary:
    """A tokenizer of transformers as a `SourceVocabulary`.

    Targets are language pairs such as `en-de`, since many models read the source's language too. Languages
    may have any of their codes; the model's own ones are found.
    """

    folder: Path
    """The folder of the tokenizer's files, for messages."""
    tokenizer: Any
    """The tokenizer."""
    numbering: Numbering
    """The numbers of tokens in searches."""
    prefix: str = ""
    """Text before every source."""
    prefixes: Mapping[str, str]
    """{language pair: text before its sources}, which the model's configuration names."""

    def target_of(self, task: str) -> str:
        """Return the language pair in the form that `encode_sources` takes.

        Raises:
            EvalError: If `task` is no language pair, or the model has no such language.
            DataError: If several languages of the model are meant.
        """
        task = canonical_task(task)
        self._own_codes(task)
        return task

    def encode_sources(self, lines: Sequence[str], *, target: str) -> Ragged:
        """Encode sources, with all that names their languages.

        Args:
            lines: Text.
            target: The language pair, such as `en-de`.

        Raises:
            EvalError: If the model has no such language.
        """
        src, tgt = self._own_codes(target)
        prefix = self.prefix or self._text_tags.get(tgt) or self.prefixes.get(f"{src}-{tgt}", "")
        if self.tag_kind != "none":
            self.tokenizer.src_lang = src
        texts = [prefix + line for line in lines]
        rows = self.tokenizer(texts, verbose=False).input_ids if texts else []
        tag = [] if self.tag_kind == "none" else [self._language_ids[tgt]]
        return Ragged.from_rows([self.numbering.search_ids([*tag, *row]) for row in rows])

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; special ids and those of languages have no text."""
        languages = set(self._language_ids.values())  # not all tokenizers call them special
        numbers = [number for number in self.numbering.model_ids(ids) if number not in languages]
        text: str = self.tokenizer.decode(numbers, skip_special_tokens=True)
        return text

    @property
    def tag_kind(self) -> TargetTag:
        """How the model learns the language of targets; if it needs a token, sources begin with it."""
        if not self._language_ids:
            return "none"
        return (
            "start" if type(self.tokenizer).__name__ in ("MBartTokenizer", "MBartTokenizerFast") else "first"
        )

    @cached_property
    def pieces(self) -> list[str]:
        """The text of every token."""
        pieces = self.tokenizer.convert_ids_to_tokens(self.numbering.to_model.tolist())
        return [piece or "" for piece in pieces]

    @cached_property
    def _language_ids(self) -> dict[str, int]:
        """{language code of the model: its token}; empty if tokens name no languages of sources."""
        if not hasattr(self.tokenizer, "src_lang"):
            return {}
        if named := getattr(self.tokenizer, "lang_code_to_id", None):
            return dict(named)
        codes = self.tokenizer.additional_special_tokens
        return dict(zip(codes, self.tokenizer.convert_tokens_to_ids(codes), strict=True))

    @cached_property
    def _text_tags(self) -> dict[str, str]:
        """{language code of the model: text before sources that are translated into it}."""
        matches = filter(None, map(_TEXT_TAG.fullmatch, sorted(self.tokenizer.get_vocab())))
        return {match[1] or match[2]: f"{match[0]} " for match in matches}

    def _own_codes(self, task: str) -> tuple[str, str]:
        """Return the model's codes of a task's languages; any code where a model has none."""
        codes, src = [*(self._language_ids or self._text_tags)], languages_of(task)[0]
        if not codes:
            return languages_of(task) if self.prefix or not self.prefixes else self._of_prefixes(task)
        # Where only targets are named, every source language passes.
        tags = best_tags(tuple(codes if self._language_ids else {*codes, src}), task, str(self.folder))
        if tags is None or tags[1] not in codes:
            raise EvalError(f"{self.folder}: cannot translate {task}; it has {', '.join(sorted(codes))}.")
        return tags

    def _of_prefixes(self, task: str) -> tuple[str, str]:
        """Return a task's languages by the codes of the pairs that have prefixes."""
        codes = dict.fromkeys(code for pair in self.prefixes for code in languages_of(pair))
        tags = best_tags(tuple(codes), task, str(self.folder))
        if tags is None or "-".join(tags) not in self.prefixes:
            raise EvalError(
                f"{self.folder}: cannot translate {task}; it has {', '.join(self.prefixes)}, and others "
                "with --source-prefix."
            )
        return tags


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a local folder.

    Raises:
        EvalError: If the folder holds none.
    """
    # Fast tokenizers warn of every fork after their threads have started.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    transformers = quiet_transformers()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sacremoses is recommended, but never called
            return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # transformers raises errors of any kind for a broken folder
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise EvalError(
            f"{folder}: has no tokenizer that transformers can read ({line}); copy its files there."
        ) from None


def numbering_of(tokenizer: Any) -> Numbering:
    """Return the numbers in searches of a tokenizer's tokens.

    Raises:
        EvalError: If it has no padding or no end of a sentence.
    """
    pad, eos = tokenizer.pad_token_id, tokenizer.eos_token_id
    if pad is None or eos is None:
        raise EvalError("the tokenizer names no `pad_token` or `eos_token`.")
    ids = {*tokenizer.get_vocab().values(), *getattr(tokenizer, "lang_code_to_id", {}).values()}
    return Numbering(size=max(ids) + 1, pad=pad, eos=eos)
