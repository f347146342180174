r"""Beam search of the same exported T5: ours, transformers' `generate` and CTranslate2 in float32.

Each batch is translated by every way, which take turns, so that what else the machine does falls on all of
them. Printed are sentences and target tokens a second (median and range over the rounds), the time of each in
that of our flat search, on the clock and of the processors, the share of sentences whose translation is that
of our flat search, and the mean score (log-probability by our model over the length) of what each way finds.
All stop as soon as `beam` hypotheses have ended, or, with `--exact`, ours and transformers when no better one
can follow; "early" is CTranslate2's own rule for one translation, which stops when the first has ended.

    pip install mnmt-model[export] mnmt-eval
    python -m benchmarks.eval.decoding_speed --run RUN --task en-de \
        --out benchmarks/results/eval/decoding_speed.json
    python -m benchmarks.eval.decoding_speed --sizes d256 d512 \
        --out benchmarks/results/eval/decoding_speed_random.json

With `--run`, the model is that of a trained run, and the sentences are of its test set. Without, weights are
drawn at random, sources too, and translations are forced to be as long as the longest source of their batch,
since an untrained model ends none. `--device cuda` adds the memory that torch took at its peak, weights left
out.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NamedTuple

import ctranslate2
import cyclopts
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.eval.decoding_ways import EOS, PAD, Output, Way, ctranslate2_float32, ours, transformers
from mnmt_data.store import Vocabulary, open_prepared, train_vocabulary
from mnmt_model import ModelConfig, build_model, load_run
from mnmt_model.export.engines import convert_to_ctranslate2, token_log_probs
from mnmt_model.export.hugging_face import export_hugging_face
from mnmt_model.transformer import TranslationModel, initialise

SEED = 1
WARM_UP_TOKENS = 4
FLAT, REORDER, TRANSFORMERS = "ours, flat", "ours, reorder", "transformers"
CTRANSLATE2, CTRANSLATE2_EARLY = "ctranslate2", "ctranslate2, early"


@dataclass(frozen=True, kw_only=True)
class Size:
    """A T5 1.1 of random weights."""

    d_model: int
    layers: int
    vocab_size: int

    @property
    def config(self) -> ModelConfig:
        """The shape of Fernandes et al. 2023, Table A: heads of 64, d_ff of 4 d_model."""
        return ModelConfig(
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            d_model=self.d_model,
            num_heads=self.d_model // 64,
            d_ff=4 * self.d_model,
        )


SIZES = {
    "d256": Size(d_model=256, layers=3, vocab_size=8_000),
    "d512": Size(d_model=512, layers=6, vocab_size=32_000),
    "d512-v128k": Size(d_model=512, layers=6, vocab_size=128_000),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model and what it translates."""

    name: str
    model: TranslationModel
    vocabulary: Path
    sources: Sequence[Tensor]
    is_trained: bool

    def batches(self, size: int) -> Iterator[Tensor]:
        """Sources of alike lengths, `(batch, src_len)`."""
        rows = sorted(self.sources, key=len)
        for start in range(0, len(rows), size):
            yield pad_sequence(rows[start : start + size], batch_first=True, padding_value=PAD)

    def lengths(self, src: Tensor) -> tuple[int, int]:
        """The fewest and the most tokens of translations of a batch."""
        longest = src.size(1)
        return (0, 2 * longest + 20) if self.is_trained else (longest, longest)


class Seconds(NamedTuple):
    """Time on the clock, and that of all processors, which says more on a machine that others use too."""

    wall: float
    processor: float

    def plus(self, other: Seconds) -> Seconds:
        """The sum of both."""
        return Seconds(self.wall + other.wall, self.processor + other.processor)


@dataclass(frozen=True, kw_only=True)
class Options:
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
    sizes: Annotated[tuple[str, ...], cyclopts.Parameter(consume_multiple=True)] = ("d256", "d512"),
    sentences: int = 128,
    batch: int = 32,
    beam: int = 8,
    threads: int = 2,
    rounds: int = 3,
    device: Literal["cpu", "cuda"] = "cpu",
    exact: bool = False,
    out: Path | None = None,
) -> None:
    """Measure every model, print a table and write the figures.

    Args:
        run: A trained run, in place of random weights.
        task: Whose test sources it translates.
        sizes: Of random weights, among d256, d512 and d512-v128k.
        sentences: How many.
        batch: Sentences translated at a time.
        beam: Hypotheses.
        threads: Of each way.
        rounds: How often everything is translated, after a first batch that does not count.
        device: `cpu` or `cuda`.
        exact: Whether to stop only when no better hypothesis can follow; CTranslate2 has no such rule.
        out: JSON file to write.
    """
    torch.set_num_threads(threads)
    options = Options(beam=beam, batch=batch, threads=threads, rounds=rounds, device=device, exact=exact)
    results = {}
    with TemporaryDirectory() as scratch:
        cases = (
            [trained(run, task, sentences)] if run else (drawn(s, sentences, Path(scratch)) for s in sizes)
        )
        for case in cases:
            ways = make_ways(case, Path(scratch) / case.name, options)
            results[case.name] = described(case) | measure(case, ways, options)
            print(table(case.name, results[case.name]["ways"]), flush=True)
    if out is not None:
        out.write_text(json.dumps(provenance(options) | {"models": results}, indent=1) + "\n", "utf-8")


def trained(run: Path, task: str, sentences: int) -> Case:
    """The run's newest checkpoint and sources of its test set, spread over it."""
    loaded = load_run(run)
    data = open_prepared(loaded.data)
    shard = data.shard("test", task)
    rows = torch.linspace(0, len(shard) - 1, min(sentences, len(shard))).long().unique()
    src, _ = shard.gather(rows.numpy())
    return Case(
        name=loaded.record.run,
        model=loaded.model.model,
        vocabulary=data.folder / "vocab.model",
        sources=[torch.from_numpy(src[row].astype("int64")) for row in range(len(rows))],
        is_trained=True,
    )


def drawn(name: str, sentences: int, scratch: Path) -> Case:
    """Random weights, and random sources of 10 to 50 tokens."""
    size = SIZES[name]
    vocabulary = scratch / f"{name}.model"
    words = (f"w{number}" for number in range(size.vocab_size))
    train_vocabulary(words, vocabulary, kind="word", size=size.vocab_size, languages=["xx"])
    model = build_model(size.config, Vocabulary.load(vocabulary).size)
    initialise(model, SEED)
    generator = torch.Generator().manual_seed(SEED)
    lengths = torch.randint(9, 50, (sentences,), generator=generator).tolist()
    sources = [
        torch.cat([torch.randint(4, model.vocab_size, (length,), generator=generator), torch.tensor([EOS])])
        for length in lengths
    ]
    return Case(name=name, model=model, vocabulary=vocabulary, sources=sources, is_trained=False)


def make_ways(case: Case, folder: Path, options: Options) -> dict[str, Way]:
    """All ways to decode the model, which is exported to `folder`."""
    export_hugging_face(case.model.config, case.model.state_dict(), case.vocabulary, folder)
    convert_to_ctranslate2(folder, folder / "ctranslate2")
    shared = {"beam": options.beam, "device": options.device}
    ways = {
        FLAT: ours(case.model, "flat", exact=options.exact, **shared),
        REORDER: ours(case.model, "reorder", exact=options.exact, **shared),
        TRANSFORMERS: transformers(folder, exact=options.exact, **shared),
    }
    if options.device == "cpu" or ctranslate2.get_cuda_device_count():
        load = partial(ctranslate2_float32, folder / "ctranslate2", threads=options.threads, **shared)
        ways[CTRANSLATE2], ways[CTRANSLATE2_EARLY] = load(n_best=options.beam), load(n_best=1)
    return ways


def measure(case: Case, ways: Mapping[str, Way], options: Options) -> dict[str, Any]:
    """Speed, agreement and scores of every way."""
    batches = list(case.batches(options.batch))
    for way in ways.values():
        way(batches[0], 0, WARM_UP_TOKENS)
    seconds: dict[str, list[Seconds]] = {name: [] for name in ways}
    outputs: dict[str, Output] = {}
    peaks: dict[str, int] = {}
    for _ in range(options.rounds):
        turns = dict.fromkeys(ways, Seconds(0.0, 0.0))
        outputs = {name: [] for name in ways}
        for src in batches:
            for name, way in ways.items():
                found, spent, peak = timed(way, src, case.lengths(src), options.device)
                turns[name] = turns[name].plus(spent)
                outputs[name] += found
                peaks[name] = max(peaks.get(name, 0), peak)
        for name, spent in turns.items():
            seconds[name].append(spent)
    scores = {name: mean_score(case, batches, found) for name, found in outputs.items()}
    return {
        "sentences": len(case.sources),
        "ways": {
            name: figures(outputs[name], seconds[name], outputs[FLAT], seconds[FLAT])
            | {"mean_score": round(scores[name], 5)}
            | ({"peak_gib": round(peaks[name] / 2**30, 3)} if peaks[name] else {})
            for name in ways
        },
    }


def timed(way: Way, src: Tensor, lengths: tuple[int, int], device: str) -> tuple[Output, Seconds, int]:
    """What the way finds, in how many seconds, and how many bytes torch took on a GPU meanwhile."""
    resident = 0
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        resident = torch.cuda.memory_allocated()
    wall, processor = time.perf_counter(), time.process_time()
    found = way(src, *lengths)
    spent = Seconds(time.perf_counter() - wall, time.process_time() - processor)
    return found, spent, torch.cuda.max_memory_allocated() - resident if device == "cuda" else 0


def figures(
    found: Output, seconds: Sequence[Seconds], flat: Output, flat_seconds: Sequence[Seconds]
) -> dict[str, Any]:
    """One way's, beside those of our flat search."""
    tokens, wall = sum(map(len, found)), [spent.wall for spent in seconds]
    processor, flat_processor = (median(each.processor for each in many) for many in (seconds, flat_seconds))
    return {
        "sentences_per_second": round(len(found) / median(wall), 2),
        "lowest": round(len(found) / max(wall), 2),
        "highest": round(len(found) / min(wall), 2),
        "tokens_per_second": round(tokens / median(wall), 1),
        "tokens": tokens,
        "processor_seconds": round(processor, 2),
        "it_over_flat": round(median(wall) / median(spent.wall for spent in flat_seconds), 2),
        "it_over_flat_processor": round(processor / flat_processor, 2),
        "same_as_flat": round(fmean(a == b for a, b in zip(found, flat, strict=True)), 4),
    }


@torch.inference_mode()
def mean_score(case: Case, batches: Sequence[Tensor], found: Output) -> float:
    """Mean over the sentences of the log-probability by our model, divided by the length."""
    scores, start = [], 0
    device = next(case.model.parameters()).device
    for src in batches:
        rows = [torch.tensor(tokens) for tokens in found[start : start + len(src)]]
        start += len(src)
        tgt = pad_sequence(rows, batch_first=True, padding_value=PAD)
        log_probs = token_log_probs(case.model.logits(src.to(device), tgt.to(device)).cpu(), tgt)
        scores += (log_probs.sum(axis=1) / (tgt != PAD).sum(dim=1).numpy()).tolist()
    return fmean(scores)


def table(name: str, ways: Mapping[str, Mapping[str, Any]]) -> str:
    """For people: "time" and "cpu time" are in those of our flat search."""
    titles = ("sentences/s", "range", "tokens/s", "time", "cpu time", "same", "score")
    lines = [f"{name:20}" + "".join(f"{title:>14}" for title in titles)]
    for way, row in ways.items():
        cells = (
            row["sentences_per_second"],
            f"{row['lowest']}-{row['highest']}",
            row["tokens_per_second"],
            row["it_over_flat"],
            row["it_over_flat_processor"],
            f"{row['same_as_flat']:.1%}",
            row["mean_score"],
        )
        memory = f"  {row['peak_gib']} GiB" if "peak_gib" in row else ""
        lines.append(f"{way:20}" + "".join(f"{cell:>14}" for cell in cells) + memory)
    return "\n".join(lines)


def described(case: Case) -> dict[str, Any]:
    """The model and its sentences."""
    return {
        "weights": "trained" if case.is_trained else "random",
        "model": asdict(case.model.config) | {"vocab_size": case.model.vocab_size},
        "mean_source_tokens": round(fmean(map(len, case.sources)), 1),
    }


def provenance(options: Options) -> dict[str, Any]:
    """What was run, and with what."""
    names = ("mnmt-model", "mnmt-eval", "torch", "transformers", "ctranslate2")
    gpu = {"gpu": torch.cuda.get_device_name()} if options.device == "cuda" else {}
    return {
        "benchmark": "decoding_speed",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.system()} {platform.machine()}",
        **gpu,
        "versions": {name: version(name) for name in names},
        "options": asdict(options),
    }


if __name__ == "__main__":
    cyclopts.run(main)
