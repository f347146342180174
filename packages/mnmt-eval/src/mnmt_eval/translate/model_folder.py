"""A local folder of Hugging Face or CTranslate2 that is ready to translate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mnmt_eval.errors import EvalError
from mnmt_eval.search.config import MaxLength, SearchConfig
from mnmt_eval.search.hugging_face import HuggingFaceModel
from mnmt_eval.translate.ctranslate2_engine import CTranslate2Engine, check_compute
from mnmt_eval.translate.engine import Engine, TorchEngine
from mnmt_eval.translate.engine_config import TORCH, EngineConfig, missing_package, obstacle
from mnmt_eval.translate.folders import (
    CTRANSLATE2,
    checksum_of,
    ctranslate2_folder,
    is_hugging_face,
    read_settings,
)
from mnmt_eval.translate.tokenizer import HuggingFaceVocabulary, load_tokenizer, numbering_of
from mnmt_eval.translate.translator import LEAST_MAX_SOURCE, Translator
from mnmt_eval.translate.window import WINDOW_LINES

_NO_LIMIT = 10**6
"""From this length on, a tokenizer's limit means none."""


@dataclass(frozen=True, kw_only=True)
class FolderTranslator:
    """A model folder that is ready to translate."""

    folder: Path
    vocab: HuggingFaceVocabulary
    translator: Translator
    config: SearchConfig
    """The options of the search."""
    engine: EngineConfig
    """The engine that was chosen."""

    def target_of(self, task: str) -> str:
        """Return a language pair in the form that the vocabulary takes.

        Raises:
            EvalError: If it is none, or the model has no such language.
        """
        return self.vocab.target_of(task)

    @property
    def made_with(self) -> dict[str, Any]:
        """Every setting that changes a line's translation, except for its task."""
        return {
            "model": self.folder.resolve().name,
            "weights": checksum_of(self.folder),
            "prefix": self.vocab.prefix,
            "engine": str(self.engine),
            "search": self.config.signature,
            "n_best": self.config.n_best,
            "max_source": self.translator.max_source,
        }


def open_model_folder(
    folder: Path,
    *,
    config: SearchConfig,
    engine: EngineConfig = EngineConfig(),  # noqa: B008 - it is frozen
    prefix: str = "",
    window_lines: int = WINDOW_LINES,
    device: str = "cpu",
) -> FolderTranslator:
    """Load a Hugging Face encoder-decoder, or its export for CTranslate2, to translate with.

    Args:
        folder: A folder with config.json, weights and tokenizer; or with CTranslate2's model.bin and the
            tokenizer; or the former with the latter in its folder `ctranslate2`.
        config: The options of the search.
        engine: The engine that searches; `auto` is CTranslate2 if its model is there and can be searched so.
        prefix: Text before every source, such as `translate English to German: `.
        window_lines: The lines that are read, and sorted by length, before the first is translated.
        device: The device that will search.

    Raises:
        EvalError: If the folder cannot be loaded, or the engine cannot search so.
    """
    exported = ctranslate2_folder(folder)
    engine = _choose(folder, exported, config, engine)
    tokenizer, settings = load_tokenizer(folder), read_settings(folder)
    vocab = HuggingFaceVocabulary(
        folder=folder,
        tokenizer=tokenizer,
        numbering=numbering_of(tokenizer),
        prefix=prefix,
        prefixes=_prefixes(settings),
    )
    if engine.name == "torch":
        model = HuggingFaceModel.load(folder, target_tag=vocab.tag_kind)
        vocab = replace(vocab, numbering=model.numbering)
        torch_engine = TorchEngine(model=model, config=config)
        searching: Engine = torch_engine
    else:
        assert exported is not None
        check_compute(engine.exported_compute, device)
        searching = CTranslate2Engine(
            folder=exported,
            config=config,
            compute=engine.exported_compute,
            pieces=vocab.pieces,
            target_tag=vocab.tag_kind,
        )
    translator = Translator(
        engine=searching,
        vocab=vocab,
        max_source=_longest_source(folder, config.max_length, settings, tokenizer.model_max_length),
        window_lines=window_lines,
    )
    return FolderTranslator(folder=folder, vocab=vocab, translator=translator, config=config, engine=engine)


def _choose(folder: Path, exported: Path | None, config: SearchConfig, engine: EngineConfig) -> EngineConfig:
    """Return the engine that searches."""
    if engine.name == "auto":
        can = exported is not None and not obstacle(config) and not missing_package()
        engine = EngineConfig(name="ctranslate2") if can or not is_hugging_face(folder) else TORCH
    engine.check(config)
    if engine.name == "torch" and not is_hugging_face(folder):
        raise EvalError(
            f"{folder}: is an export for CTranslate2; `--engine torch` needs the folder that it was made of."
        )
    if engine.name == "ctranslate2" and exported is None:
        raise EvalError(
            f"{folder}: has no {CTRANSLATE2} for CTranslate2; make one with "
            f"`ct2-transformers-converter --model {folder} --output_dir {folder / 'ctranslate2'}`."
        )
    return engine


def _prefixes(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return {language pair: text before its sources} of T5's configuration, `translation_en_to_de`."""
    tasks = settings.get("task_specific_params") or {}
    return {
        name.removeprefix("translation_").replace("_to_", "-"): options["prefix"]
        for name, options in tasks.items()
        if name.startswith("translation_") and "prefix" in options
    }


def _longest_source(
    folder: Path, max_length: MaxLength, settings: Mapping[str, Any], tokenizer_limit: int
) -> int | None:
    """Return the largest source for which the model has positions, and for its longest translation.

    Raises:
        EvalError: If there are none for the shortest translation.
    """
    limits = [settings.get(name) for name in ("max_position_embeddings", "n_positions")]
    positions: int = min([*filter(None, limits), tokenizer_limit])
    if positions >= _NO_LIMIT:
        return None
    fits = (positions - max_length.extra) / max_length.ratio if max_length.ratio else positions
    if max_length.extra > positions or fits < LEAST_MAX_SOURCE:
        raise EvalError(f"{folder}: has {positions} positions, too few for `max_length` {max_length}.")
    return min(positions, int(fits))
