import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.clean import normalise
from mnmt_data.corpus import Bitext
from mnmt_data.split import carve, disjoint, sample, shared_language

# Few different sentences, some alike but for white space, so that they recur in every place.
SENTENCES = st.sampled_from([*"abcdefghijkl", "a ", " b", "e\u0301", "é"])
BITEXTS = st.lists(st.tuples(SENTENCES, SENTENCES), max_size=6).map(
    lambda pairs: Bitext(src=[src for src, _ in pairs], tgt=[tgt for _, tgt in pairs])
)
SPLITS = st.fixed_dictionaries(
    {
        split: st.fixed_dictionaries({"en-de": BITEXTS, "de-fr": BITEXTS})
        for split in ("train", "dev", "test", "news")
    }
)


def pairs(bitext):
    return list(zip(bitext.src, bitext.tgt, strict=True))


def sentences(splits, *names):
    bitexts = [bitext for name in names for bitext in splits[name].values()]
    return {normalise(line) for bitext in bitexts for line in (*bitext.src, *bitext.tgt)}


@given(SPLITS)
def test_no_sentence_is_held_out_and_trained_on(splits):
    result = disjoint(splits)
    tests = sentences(result, "test", "news")
    assert not sentences(result, "train") & (tests | sentences(result, "dev"))
    assert not sentences(result, "dev") & tests


@given(SPLITS)
def test_test_sets_keep_every_pair(splits):
    result = disjoint(splits)
    assert (result["test"], result["news"]) == (splits["test"], splits["news"])


@given(SPLITS)
def test_only_overlapping_pairs_are_dropped(splits):
    result = disjoint(splits)
    held_out = sentences(result, "test", "news", "dev")
    for task, bitext in splits["train"].items():
        expected = [p for p in pairs(bitext) if not {normalise(p[0]), normalise(p[1])} & held_out]
        assert pairs(result["train"][task]) == expected


@given(st.integers(0, 30), st.integers(0, 30), st.integers(), st.integers(0, 10))
def test_carving_takes_what_was_asked_and_keeps_the_rest(dev, test, seed, rest):
    total = dev + test + rest
    bitext = Bitext(src=[f"s{n}" for n in range(total)], tgt=[f"t{n}" for n in range(total)])
    split = carve(bitext, {"dev": dev, "test": test}, keys=bitext.src, seed=seed % 2**32)
    assert {name: len(part) for name, part in split.items()} == {"dev": dev, "test": test, "train": rest}
    assert sorted(pair for part in split.values() for pair in pairs(part)) == sorted(pairs(bitext))


def test_sets_that_are_not_asked_for_are_not_made():
    bitext = Bitext(src=["a", "b", "c"], tgt=["x", "y", "z"])
    split = carve(bitext, {"dev": 1}, keys=bitext.src, seed=1)
    assert {name: len(part) for name, part in split.items()} == {"dev": 1, "train": 2}
    assert carve(bitext, {}, keys=bitext.src, seed=1) == {"train": bitext}


@pytest.mark.parametrize(
    ("tasks", "language"),
    [
        (["en-de", "en-fr"], "en"),
        (["de-en", "fr-en"], "en"),
        (["de-fr", "fr-en", "en-zh", "it-en"], "en"),
        (["de-en"], "de"),
    ],
)
def test_language_that_most_tasks_share(tasks, language):
    assert shared_language(tasks) == language


def test_tasks_with_the_same_keys_hold_out_the_same_sentences():
    english = [f"sentence {n}" for n in range(1000)]
    german = [f"Satz {n}" for n in english]
    there = carve(Bitext(src=english, tgt=german), {"dev": 50, "test": 100}, keys=english, seed=5)
    back = carve(Bitext(src=german, tgt=english), {"dev": 50, "test": 100}, keys=english, seed=5)
    fewer = carve(Bitext(src=english[:900], tgt=german[:900]), {"test": 100}, keys=english[:900], seed=5)
    assert [there[split].src for split in there] == [back[split].tgt for split in back]
    assert len(set(there["test"].src) & set(fewer["test"].src)) > 80


def test_the_seed_changes_what_is_held_out():
    bitext = Bitext(src=[f"s{n}" for n in range(200)], tgt=[f"t{n}" for n in range(200)])
    first, second, again = (
        carve(bitext, {"test": 20}, keys=bitext.src, seed=seed)["test"] for seed in (1, 2, 1)
    )
    assert first == again
    assert first != second


def test_a_sample_is_a_part_in_order():
    bitext = Bitext(src=[f"s{n:02}" for n in range(50)], tgt=[f"t{n:02}" for n in range(50)])
    taken = sample(bitext, 10, keys=bitext.src, seed=3)
    assert len(taken) == 10
    assert taken.src == sorted(taken.src)
    assert set(pairs(taken)) <= set(pairs(bitext))
    assert all(sample(bitext, size, keys=bitext.tgt, seed=3) == bitext for size in (50, 99))
