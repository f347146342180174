"""Dev and test sets that share no sentence, on either side, with the training data of any task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import chain

from mnmt_data.clean import normalise
from mnmt_data.corpus import Bitext

Splits = dict[str, dict[str, Bitext]]


def shared_language(tasks: Sequence[str]) -> str:
    """The language that most tasks have on one of their sides; the first of several."""
    return Counter(language for task in tasks for language in task.split("-")).most_common(1)[0][0]


def carve(bitext: Bitext, sizes: Mapping[str, int], *, keys: Sequence[str], seed: int) -> dict[str, Bitext]:
    """Takes a dev and a test set out of a training corpus.

    Pairs are put in the order of a seeded hash of their keys; the test set is the beginning of that order,
    the dev set its end. So tasks whose keys are sentences of the language they share (n-way corpora, both
    directions of a pair) hold out largely the same ones.

    Args:
        bitext: pairs, more than the sets take.
        sizes: {"dev" or "test": pairs}, only those to take.
        keys: a sentence of each pair, of either side.
        seed: of the hash.

    Returns:
        {split: pairs} with what is left as `train`. A sentence that occurs twice may be in two splits, which
        `disjoint` mends.
    """
    order = _by_hash(keys, seed)
    test, dev = sizes.get("test", 0), len(order) - sizes.get("dev", 0)
    rows = {"test": order[:test], "dev": order[dev:], "train": order[test:dev]}
    return {split: bitext.take(sorted(rows[split])) for split in (*sizes, "train")}


def disjoint(splits: Splits) -> Splits:
    """Drops from dev the pairs with a sentence of a test set, from train those with one of dev or a test set.

    Sides and tasks do not matter: a sentence held out anywhere is nowhere trained on. Sentences are compared
    as `normalise` leaves them.
    """
    tests = [splits[split].values() for split in splits if split not in ("train", "dev")]
    held_out = _sentences(*chain.from_iterable(tests))
    dev = {task: _without(bitext, held_out) for task, bitext in splits["dev"].items()}
    held_out |= _sentences(*dev.values())
    train = {task: _without(bitext, held_out) for task, bitext in splits["train"].items()}
    return {**splits, "dev": dev, "train": train}


def sample(bitext: Bitext, size: int, *, keys: Sequence[str], seed: int) -> Bitext:
    """At most `size` pairs, chosen as `carve` chooses a test set, in their order."""
    return bitext.take(sorted(_by_hash(keys, seed)[:size]))


def _by_hash(keys: Sequence[str], seed: int) -> list[int]:
    salt = seed.to_bytes(8, "little", signed=True)
    hashes = [blake2b(key.encode(), digest_size=8, key=salt).digest() for key in keys]
    return sorted(range(len(keys)), key=hashes.__getitem__)


def _without(bitext: Bitext, held_out: frozenset[str]) -> Bitext:
    """The pairs neither of whose sides is held out."""
    pairs = zip(map(normalise, bitext.src), map(normalise, bitext.tgt), strict=True)
    return bitext.take([row for row, pair in enumerate(pairs) if held_out.isdisjoint(pair)])


def _sentences(*bitexts: Bitext) -> frozenset[str]:
    """Every sentence of either side."""
    return frozenset(normalise(line) for bitext in bitexts for line in chain(bitext.src, bitext.tgt))
