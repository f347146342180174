import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnmt_data.cli import app
from mnmt_data.errors import DataError
from mnmt_data.store.description import PreparedDescription, VocabularyInfo
from mnmt_data.store.prepared import VOCABULARY, PreparedData, shard_path
from mnmt_data.store.score_file import ScoresInfo, score_table
from mnmt_data.store.segments import write_segment
from mnmt_data.store.shards import segment_path
from mnmt_data.store.vocabulary import Vocabulary, train_vocabulary
from mnmt_data.stream.mixing import MixingConfig, open_stream, order_path
from mnmt_data.stream.mixture import Mixture
from mnmt_data.stream.selection import best_first, pair_scores, select

TASK = "en-de"
TARGETS = ["eins", "zwei drei", "vier", "fünf sechs sieben", "acht", "neun zehn"]
SOURCES = ["one", "two three", "four", "five six seven", "eight", "nine ten"]
INFO = ScoresInfo(run="base", step=10, weights="0", split="train", task=TASK, fingerprint="these")
TIED = st.lists(st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.25, 3.0]), min_size=1, max_size=60)


@pytest.fixture
def data(tmp_path):
    """Six pairs of numbers."""
    folder = tmp_path / "data"
    shard = shard_path(folder, "train", TASK)
    shard.mkdir(parents=True)
    train_vocabulary(SOURCES + TARGETS, folder / VOCABULARY, kind="word", size=40, languages=["de"])
    vocab = Vocabulary.load(folder / VOCABULARY)
    write_segment(segment_path(shard, 0), vocab.encode_ragged(SOURCES), vocab.encode_ragged(TARGETS))
    tags = {"de": vocab.tag("de")}
    description = PreparedDescription(
        tasks=(TASK,), fingerprint="these", vocabulary=VocabularyInfo(tags=tags)
    )
    description.write(folder)
    return PreparedData(folder=folder, description=description)


def write_scores(path, nats, tokens, **changes):
    info = ScoresInfo(**{**vars(INFO), **changes})
    lengths = np.asarray(tokens)
    pq.write_table(score_table(np.asarray(nats, dtype=np.float32), lengths, 4 * lengths, info), path)
    return path


@pytest.fixture
def scored(tmp_path):
    """Scores of the six pairs under a base and a tuned model; row 4 gains most, row 1 loses."""
    tokens = [2, 3, 2, 4, 2, 3]
    base = write_scores(tmp_path / "base.parquet", [8.0, 6.0, 6.0, 8.0, 9.0, 9.0], tokens)
    tuned = write_scores(tmp_path / "tuned.parquet", [7.0, 9.0, 5.0, 8.0, 3.0, 6.0], tokens, run="tuned")
    return {"base": base, "tuned": tuned}


CONTRASTS = [0.5, -1.0, 0.5, 0.0, 3.0, 1.0]
ORDER = [4, 5, 0, 2, 3, 1]


def test_contrast_is_what_tuning_gained_a_token(scored):
    np.testing.assert_allclose(pair_scores(**scored), CONTRASTS)


def test_blocks_do_not_change_the_scores(scored, monkeypatch):
    monkeypatch.setattr("mnmt_data.store.score_file.BLOCK_ROWS", 4)
    np.testing.assert_allclose(pair_scores(**scored), CONTRASTS)
    assert best_first(pair_scores(**scored)).tolist() == ORDER


@pytest.mark.parametrize(("value", "said"), [(float("nan"), "nan"), (float("inf"), "-inf")])
def test_scores_that_are_no_numbers_are_refused_with_their_row(tmp_path, value, said):
    path = write_scores(tmp_path / "s.parquet", [1.0, 2.0, value], [1, 1, 1])
    with pytest.raises(DataError, match=rf"s\.parquet: row 2: its score is {said}, but must be"):
        pair_scores(base=path, tuned=None)


@given(
    scores=TIED
    | st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=40)
)
def test_order_is_by_falling_score_then_row(scores):
    array = np.array(scores, dtype=np.float32)
    expected = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    assert best_first(array).tolist() == expected


def test_selection_is_written_and_training_draws_the_best(data, scored):
    out = order_path(data.folder, TASK)
    select(data, TASK, **scored, out=out)
    assert np.load(out, mmap_mode="r").tolist() == ORDER
    np.testing.assert_allclose(np.load(out.with_suffix(".scores.npy")), CONTRASTS)
    described = json.loads(out.with_suffix(".json").read_text())
    assert (described["score"], described["tuned"]["run"]) == ("contrast", "tuned")
    mixing = MixingConfig(keep=0.5)
    stream = open_stream(data, Mixture({TASK: 1.0}), mixing, batch_tokens=40, seed=1)
    drawn = {row for step in range(10) for _, row in stream.locations(step)}
    assert drawn == set(ORDER[:3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "en-fr"}, "scores train of en-fr, but must score train of en-de"),
        ({"split": "dev"}, "scores dev of en-de, but must score train of en-de"),
        ({"fingerprint": "others"}, "scores other data than"),
    ],
)
def test_scores_of_other_pairs_are_refused(data, tmp_path, change, message):
    path = write_scores(tmp_path / "other.parquet", [1.0] * 6, [1] * 6, **change)
    with pytest.raises(DataError, match=message):
        select(data, TASK, base=path, tuned=None, out=tmp_path / "order.npy")


def test_scores_of_a_different_number_of_pairs_are_refused(data, scored, tmp_path):
    short = write_scores(tmp_path / "short.parquet", [1.0] * 5, [1] * 5)
    with pytest.raises(DataError, match=r"short\.parquet: scores other data .*6 pairs"):
        select(data, TASK, base=short, tuned=None, out=tmp_path / "order.npy")
    with pytest.raises(DataError, match="is of other pairs than"):
        pair_scores(base=short, tuned=scored["tuned"])


@pytest.mark.parametrize(
    ("content", "message"), [(None, "no such score file"), (b"text", "not a score file")]
)
def test_a_file_that_is_no_score_file_is_named(tmp_path, content, message):
    path = tmp_path / "s.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=rf"s\.parquet: {message}") as raised:
        pair_scores(base=path, tuned=None)
    assert "\n" not in str(raised.value)


def command(data, *arguments):
    tokens = ["select", str(data.folder), *map(str, arguments)]
    app(tokens, exit_on_error=False, print_error=False, result_action="return_value")


def test_command_prints_what_each_share_keeps_and_samples(data, scored, capsys):
    files = ["--base", scored["base"], "--tuned", scored["tuned"]]
    command(data, "--task", TASK, *files, "--samples", "1")
    lines = capsys.readouterr().out.splitlines()
    assert "   50%               3          0.500" in lines
    assert lines[-6:-1] == [
        "best, row 4, 3.000: eight",
        "  acht",
        "",
        "worst, row 1, -1.000: two three",
        "  zwei drei",
    ]
    assert lines[-1] == f"selected: {order_path(data.folder, TASK)}"


def test_command_prints_json(data, scored, capsys):
    command(data, "--task", TASK, "--tuned", scored["tuned"], "--json")
    printed = json.loads(capsys.readouterr().out)
    assert printed["order"] == str(order_path(data.folder, TASK))
    assert printed["shares"][-1] == {"share": 1.0, "pairs": 6, "lowest": -3.5}
    assert printed["samples"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", TASK], "--base and --tuned: give one score file"),
        (["--task", "en-fr", "--base", "b"], "--task must be one of en-de, but is en-fr"),
        (["--task", TASK, "--base", "b.parquet"], r"b\.parquet: no such score file; `mnmt-model log-probs`"),
    ],
)
def test_a_wrong_command_says_so_in_one_line(data, arguments, message):
    with pytest.raises(DataError, match=message):
        command(data, *arguments)
