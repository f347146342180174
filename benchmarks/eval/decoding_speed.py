r"""Beam search of the same exported T5: sentences and tokens a second.

Claim: our flat search is faster than one that reorders its cache, and than the peers', and finds translations
as good.
Peers: transformers' `generate` and CTranslate2 in float32. Cited in docs/eval/search.md.

Each batch is translated by every way. The ways take turns, so that other work of the machine falls on all of
them. Printed are sentences and target tokens a second (median and range over the rounds), and the time of
each way over that of our flat search, on the clock and of the processors. Then follow the share of sentences
with the translation of our flat search, and the mean score of the translations (log-probability by our model
over the length). All stop as soon as `beam` hypotheses have ended, or, with `--exact`, ours and transformers
when no better one can follow. "early" is CTranslate2's own rule for one translation, which stops when the
first has ended.

    pip install './packages/mnmt-model[export]'
    python -m benchmarks.eval.decoding_speed --run RUN --task en-de \
        --out benchmarks/results/eval/decoding_speed_trained.json
    python -m benchmarks.eval.decoding_speed --out benchmarks/results/eval/decoding_speed.json

With `--run`, the model is that of a trained run, and the sentences are those of its test set. Otherwise
weights and sources are random, and translations are forced to the length of the longest source of their
batch, since an untrained model ends none. `--device cuda` adds the peak memory of torch without the weights.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.eval.decoding_ways import EOS, PAD, Output, Way, ctranslate2_float32, ours, transformers
from benchmarks.measurement import Figures, Names, Out, is_installed, print_table, provenance, write_report
from benchmarks.measurement import run as run_benchmark
from mnmt_data.store import Vocabulary, open_prepared, train_vocabulary
from mnmt_model import ModelConfig, TrainConfig, build_model, load_run
from mnmt_model.export import convert_to_ctranslate2, export_hugging_face, token_log_probs
from mnmt_model.runs.kernels import training_products
from mnmt_model.transformer import TranslationModel, initialise

SEED = 1
WARM_UP_TOKENS = 4
FLAT, REORDER, TRANSFORMERS = "ours, flat", "ours, reorder", "transformers"
CTRANSLATE2, CTRANSLATE2_EARLY = "ctranslate2", "ctranslate2, early"


@dataclass(frozen=True, kw_only=True)
class Size:
    """A T5 1.1 with random weights."""

    d_model: int
    layers: int
    vocab_size: int

    @property
    def config(self) -> ModelConfig:
        """Shape of Fernandes et al. 2023, Table A: heads of 64, d_ff of 4 d_model."""
        return ModelConfig(
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            d_model=self.d_model,
            num_heads=self.d_model // 64,
            d_ff=4 * self.d_model,
        )


SIZES = {
    "d64": Size(d_model=64, layers=1, vocab_size=500),
    "d256": Size(d_model=256, layers=3, vocab_size=8_000),
    "d512": Size(d_model=512, layers=6, vocab_size=32_000),
    "d512-v128k": Size(d_model=512, layers=6, vocab_size=128_000),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model and its sources."""

    name: str
    model: TranslationModel
    vocabulary: Path
    sources: Sequence[Tensor]
    is_trained: bool

    def batches(self, size: int) -> Iterator[Tensor]:
        """Yield sources of similar lengths, `(batch, src_len)`."""
        rows = sorted(self.sources, key=len)
        for start in range(0, len(rows), size):
            yield pad_sequence(rows[start : start + size], batch_first=True, padding_value=PAD)

    def lengths(self, src: Tensor) -> tuple[int, int]:
        """Return the fewest and the most tokens of translations of a batch."""
        longest = src.size(1)
        return (0, 2 * longest + 20) if self.is_trained else (longest, longest)


class Seconds(NamedTuple):
    """Time on the clock, and of all processors, which says more on a machine that others use too."""

    wall: float
    processor: float

    def plus(self, other: Seconds) -> Seconds:
        """Return the sum of both."""
        return Seconds(self.wall + other.wall, self.processor + other.processor)


@dataclass(frozen=True, kw_only=True)
class DecodingConfig:
    """How to decode."""

    beam: int
    batch: int
    threads: int
    rounds: int
    device: Literal["cpu", "cuda"]
    exact: bool


def main(
    *,
    run: Path | None = None,
    task: str = "en-de",
    sizes: Names = ("d256", "d512"),
    sentences: int = 128,
    batch: int = 32,
    beam: int = 8,
    threads: int = 2,
    rounds: int = 3,
    device: Literal["cpu", "cuda"] = "cpu",
    exact: bool = False,
    out: Out = None,
) -> None:
    """Print a table for every model.

    Args:
        run: Folder of a trained run; random weights by default.
        task: Task of the run whose test sources are translated.
        sizes: Sizes of the models with random weights, among d64, d256, d512 and d512-v128k.
        sentences: Number of sentences.
        batch: Sentences translated at a time.
        beam: Number of hypotheses.
        threads: Threads of each way.
        rounds: How often everything is translated, after a first batch that does not count.
        device: `cpu` or `cuda`.
        exact: Whether to stop only when no better hypothesis can follow; CTranslate2 has no such rule.
        out: JSON file for the figures.
    """
    torch.set_num_threads(threads)
    config = DecodingConfig(
        beam=beam, batch=batch, threads=threads, rounds=rounds, device=device, exact=exact
    )
    models: dict[str, Figures] = {}
    with TemporaryDirectory() as scratch:
        cases = (
            [trained_case(run, task, sentences)]
            if run
            else (random_case(size, sentences, Path(scratch)) for size in sizes)
        )
        for case in cases:
            ways = make_ways(case, Path(scratch) / case.name, config)
            models[case.name] = describe(case) | measure(case, ways, config)
            print(f"\n### {case.name}\n")
            print_table([{"way": way, **row} for way, row in models[case.name]["ways"].items()])
    packages = ("mnmt-model", "mnmt-eval", "torch", "transformers", "ctranslate2")
    figures = {"options": asdict(config), "models": models}
    write_report(out, "beam search of one T5", figures, provenance(*packages, gpu=device == "cuda"))


def trained_case(run: Path, task: str, sentences: int) -> Case:
    """Return the run's newest checkpoint, and sources spread over its test set."""
    loaded = load_run(run)
    data = open_prepared(loaded.data)
    shard = data.shard("test", task)
    rows = np.unique(np.linspace(0, len(shard) - 1, min(sentences, len(shard))).astype(np.int64))
    src, _ = shard.gather(rows)
    return Case(
        name=loaded.record.run,
        model=loaded.model.translation_model,
        vocabulary=data.folder / "vocab.model",
        sources=[torch.from_numpy(src[row].astype("int64")) for row in range(len(rows))],
        is_trained=True,
    )


def random_case(name: str, sentences: int, scratch: Path) -> Case:
    """Return random weights, and random sources of 10 to 50 tokens."""
    size = SIZES[name]
    vocabulary = scratch / f"{name}.model"
    words = (f"w{number}" for number in range(size.vocab_size))
    train_vocabulary(words, vocabulary, kind="word", size=size.vocab_size, languages=["xx"])
    vocab_size = Vocabulary.load(vocabulary).size
    products = training_products(size.config, vocab_size, TrainConfig())
    model = build_model(size.config, vocab_size, products=products)
    initialise(model, SEED)
    generator = torch.Generator().manual_seed(SEED)
    lengths = torch.randint(9, 50, (sentences,), generator=generator).tolist()
    sources = [
        torch.cat([torch.randint(4, model.vocab_size, (length,), generator=generator), torch.tensor([EOS])])
        for length in lengths
    ]
    return Case(name=name, model=model, vocabulary=vocabulary, sources=sources, is_trained=False)


def make_ways(case: Case, folder: Path, config: DecodingConfig) -> dict[str, Way]:
    """Return all ways to decode the model, which is exported to `folder`."""
    export_hugging_face(case.model.config, case.model.state_dict(), case.vocabulary, folder)
    shared: Any = {"beam": config.beam, "device": config.device}
    ways: dict[str, Way] = {
        FLAT: ours(case.model, "flat", exact=config.exact, **shared),
        REORDER: ours(case.model, "reorder", exact=config.exact, **shared),
    }
    if is_installed("transformers"):
        ways[TRANSFORMERS] = transformers(folder, exact=config.exact, **shared)
        if is_installed("ctranslate2") and ctranslate2_runs_on(config.device):
            convert_to_ctranslate2(folder, folder / "ctranslate2")
            load = partial(ctranslate2_float32, folder / "ctranslate2", threads=config.threads, **shared)
            ways[CTRANSLATE2], ways[CTRANSLATE2_EARLY] = load(n_best=config.beam), load(n_best=1)
    return ways


def ctranslate2_runs_on(device: str) -> bool:
    """Return whether this build of CTranslate2 can use the device."""
    import ctranslate2

    return device == "cpu" or ctranslate2.get_cuda_device_count() > 0


def measure(case: Case, ways: Mapping[str, Way], config: DecodingConfig) -> Figures:
    """Return speed, agreement and scores of every way."""
    batches = list(case.batches(config.batch))
    for way in ways.values():
        way(batches[0], 0, WARM_UP_TOKENS)
    seconds: dict[str, list[Seconds]] = {name: [] for name in ways}
    outputs: dict[str, Output] = {}
    peaks: dict[str, int] = {}
    for _ in range(config.rounds):
        turns = dict.fromkeys(ways, Seconds(0.0, 0.0))
        outputs = {name: [] for name in ways}
        for src in batches:
            for name, way in ways.items():
                output, elapsed, peak = timed(way, src, case.lengths(src), config.device)
                turns[name] = turns[name].plus(elapsed)
                outputs[name] += output
                peaks[name] = max(peaks.get(name, 0), peak)
        for name, elapsed in turns.items():
            seconds[name].append(elapsed)
    scores = {name: mean_score(case, batches, output) for name, output in outputs.items()}
    return {
        "sentences": len(case.sources),
        "ways": {
            name: way_figures(outputs[name], seconds[name], outputs[FLAT], seconds[FLAT])
            | {"mean_score": round(scores[name], 5)}
            | ({"peak_gib": round(peaks[name] / 2**30, 3)} if peaks[name] else {})
            for name in ways
        },
    }


def timed(way: Way, src: Tensor, lengths: tuple[int, int], device: str) -> tuple[Output, Seconds, int]:
    """Return the translations of a way, its seconds, and the bytes that torch took on a GPU meanwhile."""
    resident = 0
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        resident = torch.cuda.memory_allocated()
    wall, processor = time.perf_counter(), time.process_time()
    output = way(src, *lengths)
    elapsed = Seconds(time.perf_counter() - wall, time.process_time() - processor)
    return output, elapsed, torch.cuda.max_memory_allocated() - resident if device == "cuda" else 0


def way_figures(
    output: Output, seconds: Sequence[Seconds], flat: Output, flat_seconds: Sequence[Seconds]
) -> Figures:
    """Return the figures of a way, and their ratios to those of our flat search."""
    tokens, wall = sum(map(len, output)), [each.wall for each in seconds]
    processor, flat_processor = (median(each.processor for each in many) for many in (seconds, flat_seconds))
    return {
        "sentences_per_second": round(len(output) / median(wall), 2),
        "lowest": round(len(output) / max(wall), 2),
        "highest": round(len(output) / min(wall), 2),
        "tokens_per_second": round(tokens / median(wall), 1),
        "tokens": tokens,
        "processor_seconds": round(processor, 2),
        "it_over_flat": round(median(wall) / median(each.wall for each in flat_seconds), 2),
        "it_over_flat_processor": round(processor / flat_processor, 2),
        "same_as_flat": round(fmean(a == b for a, b in zip(output, flat, strict=True)), 4),
    }


@torch.inference_mode()
def mean_score(case: Case, batches: Sequence[Tensor], output: Output) -> float:
    """Return the mean over the sentences of the log-probability by our model, divided by the length."""
    scores, start = [], 0
    device = next(case.model.parameters()).device
    for src in batches:
        rows = [torch.tensor(tokens) for tokens in output[start : start + len(src)]]
        start += len(src)
        tgt = pad_sequence(rows, batch_first=True, padding_value=PAD)
        log_probs = token_log_probs(case.model.logits(src.to(device), tgt.to(device)).cpu(), tgt)
        scores += (log_probs.sum(axis=1) / (tgt != PAD).sum(dim=1).numpy()).tolist()
    return fmean(scores)


def describe(case: Case) -> Figures:
    """Describe the model and its sentences."""
    return {
        "weights": "trained" if case.is_trained else "random",
        "model": asdict(case.model.config) | {"vocab_size": case.model.vocab_size},
        "mean_source_tokens": round(fmean(map(len, case.sources)), 1),
    }


if __name__ == "__main__":
    smoke = {"threads": 1, "sizes": ("d64",), "sentences": 8, "batch": 4, "beam": 2, "rounds": 1}
    run_benchmark(main, smoke=smoke)
