r"""Greedy and beam search of the same exported T5, in batches and one sentence at a time.

Claim: our search is at least 3 times as fast as transformers', and, at a beam of 8, 1.1 times as fast as
CTranslate2's in float32; greedy search takes no more than 1.2 times as long as CTranslate2's.
Peers: transformers' `generate` and CTranslate2 in float32 and int8. Cited in docs/eval/search.md.

Every batch is translated by every way, one after the other, so that other work of the machine falls on all of
them. Printed is a row for each setting: our sentences a second (median and range over the rounds), and the
time of each peer over ours in the same round (median and range). The JSON file has the times of processors,
tokens, the share of sentences that have our translation, and the mean score of the translations
(log-probability by our model over the length). All have the same limits of length. "filled" stops as soon as
`beam` hypotheses have ended, "exact" when no better one can follow; CTranslate2 has only its own rule.

    pip install './packages/mnmt-model[export]'
    python -m benchmarks.eval.decoding_speed --runs RUN RUN --task en-de \
        --out benchmarks/results/eval/decoding_speed.json

With `--runs`, the models are those of trained runs, and the sentences are those of their test sets. Otherwise
weights and sources are random, and translations are forced to the length of the longest source of their
batch, since an untrained model ends none. `--device cuda` adds the peak memory of torch without the weights.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Annotated, Literal, NamedTuple

import torch
from cyclopts import Parameter
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.eval.decoding_cases import Case, random_case, trained_case
from benchmarks.eval.decoding_ways import OURS, PAD, Output, Setting, Way, make_ways
from benchmarks.measurement import Counts, Figures, Names, Out, print_table, provenance, ratios, write_report
from benchmarks.measurement import run as run_benchmark
from mnmt_model.export import token_log_probs

WARM_UP_TOKENS = 4


class Seconds(NamedTuple):
    """Time on the clock, and of all processors, which says more on a machine that others use too."""

    wall: float
    processor: float


def main(
    *,
    runs: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = (),
    task: str = "en-de",
    sizes: Names = ("d256", "d512"),
    sentences: int = 96,
    batch: int = 32,
    beam: int = 8,
    threads: Counts = (1, 2),
    rounds: int = 3,
    device: Literal["cpu", "cuda"] = "cpu",
    out: Out = None,
) -> None:
    """Print a table for every model.

    Args:
        runs: Folders of trained runs; random weights by default.
        task: Task of the runs whose test sources are translated.
        sizes: Sizes of the models with random weights, among d64, d256, d512 and d512-v128k.
        sentences: Number of sentences in batches; one at a time, a sixth of them.
        batch: Sentences translated at a time.
        beam: Number of hypotheses.
        threads: Threads of each way.
        rounds: How often everything is translated, after a first batch that does not count.
        device: `cpu` or `cuda`.
        out: JSON file for the figures.
    """
    models: dict[str, Figures] = {}
    settings = list(make_settings(batch, beam, threads))
    with TemporaryDirectory() as scratch:
        cases = (
            (trained_case(run, task, sentences) for run in runs)
            if runs
            else (random_case(size, sentences, Path(scratch)) for size in sizes)
        )
        for case in cases:
            ways = make_ways(case.model, case.vocabulary, Path(scratch) / f"model{len(models)}", device)
            rows = [measure(case, ways, each, sentences, rounds, device) for each in settings]
            models[case.name] = case.description() | {"rows": rows}
            print(f"\n### {case.name}\n")
            print_table(list(map(summary, rows)))
    packages = ("mnmt-model", "mnmt-eval", "torch", "transformers", "ctranslate2")
    options = {"sentences": sentences, "rounds": rounds, "device": device}
    figures = {"options": options, "models": models}
    write_report(out, "search of one T5", figures, provenance(*packages, gpu=device == "cuda"))


def make_settings(batch: int, beam: int, threads: Sequence[int]) -> Iterator[Setting]:
    """Yield every combination of beam, stop, batch and threads."""
    for width, exact in ((1, False), (beam, False), (beam, True)):
        for size in (batch, 1):
            for number in threads:
                yield Setting(beam=width, batch=size, threads=number, exact=exact)


def measure(
    case: Case, ways: Mapping[str, Way], setting: Setting, sentences: int, rounds: int, device: str
) -> Figures:
    """Return speed, agreement and scores of every way in a setting."""
    torch.set_num_threads(setting.threads)
    batches = case.batches(setting.batch, sentences if setting.batch > 1 else -(-sentences // 6))
    for way in ways.values():
        way(batches[0], 0, WARM_UP_TOKENS, setting)
    seconds: dict[str, list[Seconds]] = {name: [] for name in ways}
    outputs: dict[str, Output] = {}
    peaks = dict.fromkeys(ways, 0)
    for _ in range(rounds):
        turns: dict[str, list[Seconds]] = {name: [] for name in ways}
        outputs = {name: [] for name in ways}
        for src in batches:
            for name, way in ways.items():
                output, elapsed, peak = timed(way, src, case.lengths(src), setting, device)
                turns[name].append(elapsed)
                outputs[name] += output
                peaks[name] = max(peaks[name], peak)
        for name, each in turns.items():
            seconds[name].append(Seconds(*map(sum, zip(*each, strict=True))))
    return asdict(setting) | {
        "sentences": sum(map(len, batches)),
        "ways": {
            name: way_figures(outputs[name], seconds[name], outputs[OURS], seconds[OURS])
            | {"mean_score": round(mean_score(case, batches, outputs[name]), 5)}
            | ({"peak_gib": round(peaks[name] / 2**30, 3)} if device == "cuda" else {})
            for name in ways
        },
    }


def timed(
    way: Way, src: Tensor, lengths: tuple[int, int], setting: Setting, device: str
) -> tuple[Output, Seconds, int]:
    """Return the translations of a way, its seconds, and the bytes that torch took on a GPU meanwhile."""
    resident = 0
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        resident = torch.cuda.memory_allocated()
    wall, processor = time.perf_counter(), time.process_time()
    output = way(src, *lengths, setting)
    elapsed = Seconds(time.perf_counter() - wall, time.process_time() - processor)
    return output, elapsed, torch.cuda.max_memory_allocated() - resident if device == "cuda" else 0


def way_figures(
    output: Output, seconds: Sequence[Seconds], ours: Output, our_seconds: Sequence[Seconds]
) -> Figures:
    """Return the figures of a way, and its time over that of ours."""
    wall, our_wall = ([each.wall for each in many] for many in (seconds, our_seconds))
    processor, our_processor = ([each.processor for each in many] for many in (seconds, our_seconds))
    return {
        "sentences_per_second": round(len(output) / median(wall), 2),
        "lowest": round(len(output) / max(wall), 2),
        "highest": round(len(output) / min(wall), 2),
        "tokens": sum(map(len, output)),
        "processor_seconds": round(median(processor), 3),
        "time_over_ours": ratios(wall, our_wall),
        "processor_time_over_ours": ratios(processor, our_processor),
        "same_as_ours": round(fmean(a == b for a, b in zip(output, ours, strict=True)), 4),
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


def summary(row: Figures) -> Figures:
    """Return the printed row of a setting."""
    ways: Mapping[str, Figures] = row["ways"]
    ours = ways[OURS]
    setting = Setting(**{name: row[name] for name in ("beam", "batch", "threads", "exact")})
    printed = {
        "search": str(setting),
        "stop": "" if setting.beam == 1 else "exact" if setting.exact else "filled",
        "threads": setting.threads,
        "ours, sentences/s": f"{ours['sentences_per_second']} [{ours['lowest']}, {ours['highest']}]",
    }
    for name, way in ways.items():
        if name != OURS:
            ratio = way["time_over_ours"]
            printed[f"{name} / ours"] = f"{ratio['ratio']} [{ratio['lowest']}, {ratio['highest']}]"
    return printed


if __name__ == "__main__":
    smoke = {"threads": (1,), "sizes": ("d64",), "sentences": 6, "batch": 3, "beam": 2, "rounds": 1}
    run_benchmark(main, smoke=smoke)
