"""Dev and test sets that share no sentence, on either side, with the training data of any task."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from mnmt_data.corpus import Bitext
from mnmt_data.errors import DataError

Splits = dict[str, dict[str, Bitext]]


def carve(corpora: Mapping[str, Bitext], sizes: Mapping[str, int], *, seed: int) -> Splits:
    """Takes dev and test sets out of training corpora.

    Source sentences are put in the order of a keyed hash, and the test set is the beginning, the dev set the end of
    that order: tasks that share source sentences (n-way corpora) hold out largely the same ones.

    Args:
        corpora: {task: pairs}.
        sizes: {split: pairs a task}.
        seed: of the hash.

    Returns:
        {split: {task: pairs}}, with what is left as `train`. Splits may still share sentences that occur twice:
        see `disjoint`.

    Raises:
        DataError: if a task has too few pairs.
    """
    splits: Splits = {split: {} for split in (*sizes, "train")}
    for task, bitext in corpora.items():
        if len(bitext) <= sum(sizes.values()):
            needed = sum(sizes.values())
            raise DataError(f"{task}: has {len(bitext)} pairs, but dev and test alone take {needed}; make them smaller.")
        order = sorted(range(len(bitext)), key=lambda row: _hash(bitext.src[row], seed))
        test, dev = sizes.get("test", 0), sizes.get("dev", 0)
        rows = {"test": order[:test], "train": order[test : len(order) - dev], "dev": order[len(order) - dev :]}
        for split, bitexts in splits.items():
            bitexts[task] = bitext.take(sorted(rows[split]))
    return splits


def disjoint(splits: Splits) -> Splits:
    """Drops from dev and train every pair either of whose sides stands in a test set, and from train likewise for dev.

    Sides and tasks do not matter: a sentence held out anywhere is nowhere trained on.
    """
    tests = [split for split in splits if split not in ("train", "dev")]
    held_out = sentences(splits, *tests)
    dev = {task: without(bitext, held_out) for task, bitext in splits["dev"].items()}
    held_out |= sentences({"dev": dev}, "dev")
    train = {task: without(bitext, held_out) for task, bitext in splits["train"].items()}
    return {**splits, "dev": dev, "train": train}


def sample(bitext: Bitext, size: int, *, seed: int) -> Bitext:
    """At most `size` pairs, chosen by a keyed hash of the source sentence, in their order."""
    if len(bitext) <= size:
        return bitext
    order = sorted(range(len(bitext)), key=lambda row: _hash(bitext.src[row], seed))
    return bitext.take(sorted(order[:size]))


def without(bitext: Bitext, held_out: frozenset[str]) -> Bitext:
    """The pairs neither of whose sides is among the sentences in `held_out`."""
    pairs = zip(bitext.src, bitext.tgt, strict=True)
    return bitext.take([row for row, pair in enumerate(pairs) if held_out.isdisjoint(pair)])


def sentences(splits: Splits, *names: str) -> frozenset[str]:
    """Every sentence, of either side and any task, in the named splits."""
    return frozenset(
        line for name in names for bitext in splits[name].values() for side in (bitext.src, bitext.tgt) for line in side
    )


def _hash(sentence: str, seed: int) -> bytes:
    return blake2b(sentence.encode(), digest_size=8, key=seed.to_bytes(8, "little", signed=True)).digest()
