"""Metrics by their names: direction, unit, and perplexities and bits as losses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_laws import LawFit, TableError, fit, observe, read_table
from mnmt_laws.tables.metrics import metric_of_column, read_metric

SIZES = np.array([1e6, 3e6, 1e7, 3e7, 1e8])
BLEU = [56.266, 62.483, 67.717, 71.511, 74.517]
LOSSES = 1.5 + 40 * SIZES**-0.28

SCORES = (
    "bleu", "BLEU", "spbleu", "spBLEU-200", "sacrebleu", "bleu.zh", "test_bleu", "eval/bleu", "bleu-4",
    "chrf", "chrF++", "chrf2++", "chrfpp", "bleurt", "BLEURT-20", "comet", "comet22", "wmt22-comet-da",
    "xcomet-xl", "cometkiwi", "meteor", "rougeL", "rouge_1", "bertscore", "accuracy", "val_acc", "f1",
    "exact_match", "em", "language",
)  # fmt: skip
ERRORS = ("accuracy_error", "ter", "TER", "wer", "dev/cer", "metricx-24", "error_rate")
LOSS_NAMES = (
    "loss",
    "eval/loss",
    "loss_mixed_precision",
    "recall_loss",
    "bleu_loss",
    "log_perplexities",
    "valid_loss",
    "nll",
    "cross-entropy",
    "xent",
    "log_ppl",
)


def table(values: object, metric: str = "loss", **columns: object) -> pd.DataFrame:
    return pd.DataFrame({"size": SIZES, "metric": metric, "value": values, **columns})


def power(values: object, metric: str, *, rising: bool | None = None) -> LawFit:
    return fit(observe(read_table(table(values, metric), rising=rising)), law="power")


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (SCORES, "score"),
        (ERRORS, "error"),
        (LOSS_NAMES, "loss"),
        (("ppl", "perplexity", "valid_ppl", "eval/perplexity"), "perplexity"),
        (("bits_per_byte", "bpb", "bpc", "bits per character", "bits"), "bits"),
    ],
)
def test_names_tell_the_kind(names: tuple[str, ...], kind: str) -> None:
    assert {name: metric.kind for name in names if (metric := read_metric(name))} == dict.fromkeys(
        names, kind
    )


NAMELESS = (
    "quality", "mqm", "blueprint", "tercet", "myscore", "log2_ppl", "log(ppl)", "log10_perplexity",
    "log_valid_ppl", "1-acc", "eval/1 - bleu", "100-chrf", "one_minus_f1",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMELESS)
def test_other_names_tell_nothing(name: str) -> None:
    assert read_metric(name) is None


@pytest.mark.parametrize("name", ["comet22", "accuracy"])
def test_shares_and_points_have_the_same_exponent(name: str) -> None:
    points, shares = power(BLEU, name), power(np.divide(BLEU, 100), name)
    np.testing.assert_allclose(shares.parameters["alpha"], points.parameters["alpha"], rtol=1e-3)
    np.testing.assert_allclose(100 * shares.parameters["l_inf"], points.parameters["l_inf"], rtol=1e-3)


def test_an_unknown_metric_is_asked_about() -> None:
    with pytest.raises(TableError, match="nothing tells which way `myscore` goes; say --higher-is-better or"):
        observe(table(BLEU, "myscore"))
    told, bleu = power(BLEU, "myscore", rising=True), power(BLEU, "bleu")
    np.testing.assert_allclose(told.parameters["alpha"], bleu.parameters["alpha"], rtol=1e-6)
    fallen = power(LOSSES, "myscore", rising=False)
    assert float(fallen.parameters["l_inf"].squeeze()) == pytest.approx(1.5, rel=0.02)
    assert (fallen.observations.rising, fallen.observations.unit) == (False, "points")


def test_a_known_metric_goes_its_own_way_unless_it_may_have_no_name() -> None:
    with pytest.raises(TableError, match="bleu is better where it is higher; leave --lower-is-better"):
        observe(read_table(table(BLEU, "bleu"), rising=False))
    nameless = observe(read_table(table(BLEU), rising=True))
    assert (nameless.metric, nameless.rising) == ("score", True)


@given(st.lists(st.floats(0.01, 12), min_size=5, max_size=5), st.sampled_from(["ppl", "valid_perplexity"]))
def test_perplexities_are_read_as_their_losses(losses: list[float], name: str) -> None:
    read, known = observe(table(np.exp(losses), name)), observe(table(losses))
    np.testing.assert_allclose(read.frame["value"], known.frame["value"], rtol=1e-9)
    assert read.metric == name.replace("p", "log_p", 1)
    assert (read.unit, read.rising) == ("nats per token", False)
    assert any(f"`{name}` holds perplexities: their logarithms are taken" in line for line in read.warnings)


@pytest.mark.parametrize(
    ("name", "unit"),
    [("bits_per_byte", "byte"), ("bpc", "character"), ("bits", "token"), ("bits per word", "word")],
)
def test_bits_are_read_as_nats(name: str, unit: str) -> None:
    read = observe(table(LOSSES / np.log(2), name))
    np.testing.assert_allclose(read.frame["value"], LOSSES)
    assert (read.metric, read.unit) == (f"nats_per_{unit}", f"nats per {unit}")


def test_loss_and_perplexity_of_one_table_are_not_mixed() -> None:
    both = pd.concat([table(LOSSES), table(np.exp(LOSSES), "ppl")])
    assert len(observe(both).frame) == len(observe(both, metric="ppl").frame) == len(SIZES)


def test_impossible_values_are_refused() -> None:
    with pytest.raises(TableError, match=r"`irreducible` must be a perplexity of at least 1, as the "):
        observe(table([9.0, 5, 4, 3, 2], "ppl", irreducible=0.9))
    with pytest.raises(
        TableError, match=r"table row 2: a perplexity must be above 1, but is 0\.9; if it is a"
    ):
        observe(table([0.9, 5, 4, 3, 2], "ppl"))
    with pytest.raises(TableError, match=r"row 2: `?accuracy`? must be in \[0, 100\], but is 101"):
        observe(table([101.0, 5, 4, 3, 2], "accuracy"))


def test_scores_may_be_negative() -> None:
    assert observe(table([-0.2, -0.1, 0, 0.1, 0.2], "bertscore")).frame["value"].min() == -0.2
    assert observe(read_table(table([-3.0, -2, -1, 0, 1]), rising=True)).frame["value"].min() == -3
    with pytest.raises(TableError, match="a loss must be above 0 nats"):
        read_table(table([-3.0, -2, -1, 0, 1]), rising=False)


def test_losses_of_more_than_a_guess_are_remarked() -> None:
    (line,) = observe(table([85.0, 40, 20, 15, 12])).warnings
    assert line.startswith(
        "table row 2: a loss of 85 nats per token is worse than a guess among 400,000 tokens"
    )


@pytest.mark.parametrize(
    ("columns", "meant"),
    [
        (("train loss", "val loss", "train ppl"), "val loss"),
        (("eval_loss", "eval_runtime"), "eval_loss"),
        (("Word Perplexity", "note"), "Word Perplexity"),
    ],
)
def test_the_column_of_values_is_found_by_its_name(columns: tuple[str, ...], meant: str) -> None:
    rows = pd.DataFrame({"size": SIZES} | dict.fromkeys(columns, 2.0))
    assert read_table(rows).warnings[0] == f"table: taken from other columns: value from `{meant}`."


@given(
    st.lists(st.floats(0.1, 12), min_size=5, max_size=5),
    st.sampled_from(["loss", "eval_loss", "ppl", "Byte Perplexity", "eval/bpb", "bits_per_byte", "bits"]),
)
def test_a_table_that_was_read_is_read_as_it_is(losses: list[float], name: str) -> None:
    numbers = np.exp(losses)
    once = read_table(table(numbers, name, irreducible=numbers.min()))
    twice = read_table(once.frame)
    pd.testing.assert_frame_equal(twice.frame, once.frame)
    first, second, asked = observe(once), observe(twice), observe(once, metric=name)
    assert (first.metric, first.unit) == (second.metric, second.unit) == (asked.metric, asked.unit)
    assert observe(first, metric=name) is first
    assert twice.warnings == ()


@pytest.mark.parametrize(
    ("pattern", "metric"),
    [
        ("value", "loss"), ("valid_*", "loss"), ("*", "loss"), ("metric/*_val_loss", "loss"),
        ("bleu_*", "bleu"), ("eval/ppl_*", "eval/ppl"), ("mmlu_*", "mmlu"), ("quality", "quality"),
        ("loss_per_byte", "loss_per_byte"),
    ],
)  # fmt: skip
def test_only_columns_of_a_split_hold_losses_without_saying_so(pattern: str, metric: str) -> None:
    assert metric_of_column(pattern) == metric
