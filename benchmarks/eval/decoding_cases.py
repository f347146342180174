"""Models and sources to decode, for decoding_speed.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from benchmarks.eval.decoding_ways import EOS, PAD
from benchmarks.measurement import Figures
from mnmt_data.store import Vocabulary, open_prepared, train_vocabulary
from mnmt_model import ModelConfig, TrainConfig, build_model, load_run
from mnmt_model.runs.kernels import training_products
from mnmt_model.transformer import TranslationModel, initialise

SEED = 1


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model and its sources."""

    name: str
    model: TranslationModel
    vocabulary: Path
    sources: Sequence[Tensor]
    is_trained: bool

    def batches(self, size: int, sentences: int) -> list[Tensor]:
        """Return some of the sources, spread over them, in batches of similar lengths, `(batch, src_len)`."""
        places = np.unique(np.linspace(0, len(self.sources) - 1, sentences).astype(int))
        rows = sorted((self.sources[place] for place in places), key=len)
        return [
            pad_sequence(rows[start : start + size], batch_first=True, padding_value=PAD)
            for start in range(0, len(rows), size)
        ]

    def lengths(self, src: Tensor) -> tuple[int, int]:
        """Return the fewest and the most tokens of translations of a batch, the same for every way."""
        longest = src.size(1)
        return (0, 2 * longest + 20) if self.is_trained else (longest, longest)

    def description(self) -> Figures:
        """Return what the model and its sentences are."""
        return {
            "weights": "trained" if self.is_trained else "random",
            "model": asdict(self.model.config) | {"vocab_size": self.model.vocab_size},
            "mean_source_tokens": round(fmean(map(len, self.sources)), 1),
        }


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


def trained_case(run: Path, task: str, sentences: int) -> Case:
    """Return the run's newest checkpoint, and sources spread over its test set."""
    loaded = load_run(run)
    data = open_prepared(loaded.data)
    shard = data.shard("test", task)
    rows = np.unique(np.linspace(0, len(shard) - 1, min(sentences, len(shard))).astype(np.int64))
    src, _ = shard.gather(rows)
    return Case(
        name=f"{loaded.record.run.split('_')[0]}, step {loaded.progress.step:,}",
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
