r"""Greedy and beam search of the same exported T5, in batches and one sentence at a time.

Compared are our search in torch, of our model and of the one that transformers loads, CTranslate2 in float32
and int8, and transformers' `generate`. Cited in docs/eval/search.md.

Weights and sources are random; the weights are so unequal that rounding changes no translation, and targets
end at different lengths. All ways have the same limits of length and stop by the same rule. They translate
every batch in turn, so that other work of the machine falls on all of them. A row has our sentences a second,
and the time of each other way over ours (median and range over the rounds).

    python -m benchmarks.eval.decoding_speed --out benchmarks/results/eval/decoding_speed.json
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.measurement import Figures, Names, Out, print_table, provenance, ratios, run, write_report
from mnmt_data.store import EOS, PAD, Vocabulary, train_vocabulary
from mnmt_eval.search import HuggingFaceModel, MaxLength, SearchConfig
from mnmt_eval.translate import CTranslate2Engine, TorchEngine
from mnmt_eval.translate.engine_config import Compute
from mnmt_model import ModelConfig, build_model
from mnmt_model.export import convert_to_ctranslate2, export_hugging_face
from mnmt_model.transformer import IncrementalModel, TranslationModel, initialise

SEED = 1
OURS = "ours"
ALPHA = SearchConfig().length_penalty.alpha
SIZES = {
    "d64": (1_000, ModelConfig(encoder_layers=2, decoder_layers=2, d_model=64, num_heads=2, d_ff=256)),
    "d256": (8_000, ModelConfig(encoder_layers=3, decoder_layers=3, d_model=256, num_heads=4, d_ff=1024)),
    "d512": (32_000, ModelConfig(encoder_layers=6, decoder_layers=6, d_model=512, num_heads=8, d_ff=2048)),
}
"""{name: tokens of the vocabulary, and the model}."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A search, and the sentences that are translated at a time."""

    beam: int
    batch: int


Way = Callable[[Tensor, int, int], list[list[int]]]
"""Translates `src (batch, src_len)` with a beam into at most some tokens, `</s>` included."""


def main(
    *,
    sizes: Names = ("d64", "d256"),
    sentences: int = 96,
    batch: int = 32,
    beam: int = 4,
    threads: int = 1,
    rounds: int = 3,
    device: Literal["cpu", "cuda"] = "cpu",
    out: Out = None,
) -> None:
    """Print a table for every model.

    Args:
        sizes: Sizes of the models: d64, d256, d512.
        sentences: Number of sentences in batches; one at a time, a sixth of them.
        batch: Sentences translated at a time.
        beam: Number of hypotheses.
        threads: Threads of each way.
        rounds: How often everything is translated, after a first batch that does not count.
        device: `cpu` or `cuda`.
        out: JSON file for the figures.
    """
    torch.set_num_threads(threads)
    models: dict[str, Figures] = {}
    settings = [Setting(beam=width, batch=size) for width in (1, beam) for size in (batch, 1)]
    for name in sizes:
        with TemporaryDirectory() as scratch:
            model, vocabulary = random_model(name, Path(scratch))
            ways = make_ways(model, vocabulary, Path(scratch) / "model", device)
        sources = random_sources(sentences, model.vocab_size)
        rows = [measure(ways, sources, setting, rounds) for setting in settings]
        models[name] = {"model": asdict(model.config), "vocab_size": model.vocab_size, "rows": rows}
        print(f"\n### {name}\n")
        print_table(list(map(summary, rows)))
    options = {"sentences": sentences, "threads": threads, "rounds": rounds, "device": device}
    packages = ("mnmt-model", "mnmt-eval", "torch", "transformers", "ctranslate2")
    figures = {"options": options, "models": models}
    write_report(out, "search of one T5", figures, provenance(*packages, gpu=device == "cuda"))


def random_model(name: str, folder: Path) -> tuple[TranslationModel, Path]:
    """Return a model and the file of its vocabulary."""
    size, config = SIZES[name]
    vocabulary = folder / "vocab.model"
    words = (f"w{number}" for number in range(size))
    train_vocabulary(words, vocabulary, kind="word", size=size, languages=["xx"])
    model = build_model(config, Vocabulary.load(vocabulary).size)
    initialise(model, SEED)
    with torch.no_grad():
        model.softmax.weight *= 4
        model.softmax.weight[PAD] = 0.0
        model.softmax.weight[EOS] *= 2  # so that targets end at different lengths
    return model, vocabulary


def random_sources(count: int, vocab_size: int) -> list[Tensor]:
    """Return sources of 10 to 50 tokens."""
    generator = torch.Generator().manual_seed(SEED)
    lengths = torch.randint(9, 50, (count,), generator=generator).tolist()
    rows = [torch.randint(4, vocab_size, (length,), generator=generator) for length in lengths]
    return [torch.cat([row, torch.tensor([EOS])]) for row in rows]


def make_ways(model: TranslationModel, vocabulary: Path, folder: Path, device: str) -> Mapping[str, Way]:
    """Return all ways to translate with the model, which is exported to `folder`."""
    export_hugging_face(model.config, model.state_dict(), vocabulary, folder)
    convert_to_ctranslate2(folder, folder / "ctranslate2")
    return {
        OURS: _ours(IncrementalModel(model.to(device)), device),
        "our search of transformers' model": _ours(HuggingFaceModel.load(folder).to(device), device),
        "ctranslate2 float32": _ctranslate2(folder / "ctranslate2", device, "float32"),
        "ctranslate2 int8": _ctranslate2(folder / "ctranslate2", device, "int8"),
        "transformers": _transformers(folder, device),
    }


def _config(beam: int, most: int) -> SearchConfig:
    return SearchConfig(beam=beam, max_length=MaxLength(ratio=0.0, extra=most))


def _ours(model: Any, device: str) -> Way:
    def translate(src: Tensor, beam: int, most: int) -> list[list[int]]:
        engine = TorchEngine(model=model, config=_config(beam, most), device=device)
        return [list(n_best[0].tokens) for n_best in engine.search(src.numpy())]

    return translate


def _transformers(folder: Path, device: str) -> Way:
    model = import_module("transformers").T5ForConditionalGeneration.from_pretrained(folder).eval().to(device)

    @torch.inference_mode()
    def translate(src: Tensor, beam: int, most: int) -> list[list[int]]:
        options: dict[str, Any] = {"length_penalty": ALPHA, "early_stopping": True} if beam > 1 else {}
        outputs = model.generate(
            input_ids=src.to(device),
            attention_mask=(src != PAD).long().to(device),
            num_beams=beam,
            max_new_tokens=most,
            suppress_tokens=[PAD],
            do_sample=False,
            **options,
        )
        rows = [row[1:] for row in outputs.tolist()]
        return [row[: row.index(EOS) + 1] if EOS in row else row for row in rows]

    return translate


def _ctranslate2(folder: Path, device: str, compute: Compute) -> Way:
    loaded = CTranslate2Engine(folder=folder, config=_config(1, 1), compute=compute, device=device)

    def translate(src: Tensor, beam: int, most: int) -> list[list[int]]:
        engine = replace(loaded, config=_config(beam, most))
        vars(engine).update(vars(loaded) | {"config": engine.config})  # the model that is loaded
        return [list(n_best[0].tokens) for n_best in engine.search(src.numpy())]

    loaded.search(np.array([[4, EOS]]))
    return translate


def measure(ways: Mapping[str, Way], sources: Sequence[Tensor], setting: Setting, rounds: int) -> Figures:
    """Return speed and translations of every way in a setting."""
    count = len(sources) if setting.batch > 1 else -(-len(sources) // 6)
    rows = sorted(sources[:count], key=len)
    batches = [
        pad_sequence(rows[start : start + setting.batch], batch_first=True, padding_value=PAD)
        for start in range(0, count, setting.batch)
    ]
    for way in ways.values():
        way(batches[0], setting.beam, 4)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    outputs: dict[str, list[list[int]]] = {}
    for _ in range(rounds):
        outputs = {name: [] for name in ways}
        turn = dict.fromkeys(ways, 0.0)
        for src in batches:
            for name, way in ways.items():
                start = time.perf_counter()
                outputs[name] += way(src, setting.beam, src.size(1))
                turn[name] += time.perf_counter() - start
        for name, value in turn.items():
            seconds[name].append(value)
    figures = {
        name: {
            "sentences_per_second": round(count / median(seconds[name]), 2),
            "time_over_ours": ratios(seconds[name], seconds[OURS]),
            "same_as_ours": round(fmean(map(list.__eq__, outputs[name], outputs[OURS])), 4),
            "mean_tokens": round(fmean(map(len, outputs[name])), 1),
        }
        for name in ways
    }
    return asdict(setting) | {"sentences": count, "ways": figures}


def summary(row: Figures) -> Figures:
    """Return the printed row of a setting."""
    search_name = "greedy" if row["beam"] == 1 else f"beam {row['beam']}"
    printed = {
        "search": f"{search_name}, {row['batch']} at a time",
        "tokens": row["ways"][OURS]["mean_tokens"],
        "ours, sentences/s": row["ways"][OURS]["sentences_per_second"],
    }
    for name, way in row["ways"].items():
        if name != OURS:
            ratio = way["time_over_ours"]
            printed[f"{name} / ours"] = f"{ratio['ratio']} [{ratio['lowest']}, {ratio['highest']}]"
            printed[f"{name}, same"] = way["same_as_ours"]
    return printed


if __name__ == "__main__":
    smoke = {"sizes": ("d64",), "sentences": 6, "batch": 3, "beam": 2, "rounds": 1}
    run(main, smoke=smoke, needs=("transformers", "ctranslate2"))
