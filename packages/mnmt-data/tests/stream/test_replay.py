import json
from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from mnmt_data.errors import DataError
from mnmt_data.store.description import PreparedDescription
from mnmt_data.store.prepared import shard_path
from mnmt_data.store.segments import SegmentInfo, write_segment
from mnmt_data.store.shards import segment_path
from mnmt_data.store.vocabulary import Vocabulary, train_vocabulary
from mnmt_data.stream.batch_stream import BatchStream
from mnmt_data.stream.mixture import Mixture, Schedule, explicit_scalarization
from mnmt_data.stream.replay import audit, describe_batch, open_recorded_stream, read_recorded_stream

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
ROWS = {"en-de": 40, "en-fr": 300}
MIXTURE = {"en-de": 0.25, "en-fr": 0.75, "en-it": 0.0}


def lines(task):
    """(source, target) of every pair, in words."""
    random = np.random.default_rng(ROWS[task])
    return [
        tuple(" ".join(random.choice(WORDS, size=length)) for length in sizes)
        for sizes in random.integers(1, 7, size=(ROWS[task], 2))
    ]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Prepared data beside the folder of runs, as a study has them."""
    folder = tmp_path_factory.mktemp("study")
    data = folder / "data"
    data.mkdir()
    languages = ["de", "fr", "it"]
    train_vocabulary([" ".join(WORDS)], data / "vocab.model", kind="word", size=20, languages=languages)
    vocab = Vocabulary.load(data / "vocab.model")
    for task in ROWS:
        path = shard_path(data, "train", task)
        path.mkdir(parents=True)
        sources, targets = zip(*lines(task), strict=True)
        tagged = vocab.encode_sources(sources, target=task[-2:])
        write_segment(segment_path(path, 0), tagged, vocab.encode_ragged(targets))
    PreparedDescription(tasks=tuple(MIXTURE), zero_shot=("de-fr",)).write(data)
    return folder


@pytest.fixture
def run(study):
    def write(**changes):
        """A run record in the form of docs/run-record.md; a value of None takes the key away."""
        record = {
            "schema": 1,
            "run": "s1",
            "mixture": MIXTURE,
            "seed": 7,
            "data": "../../data",
            "config": {"model": {}, "train": {"batch_tokens": 200, "steps": 1000}},
        } | changes
        folder = study / "runs" / "s1"
        folder.mkdir(parents=True, exist_ok=True)
        kept = {key: value for key, value in record.items() if value is not None}
        (folder / "run.json").write_text(json.dumps(kept), encoding="utf-8")
        return folder

    return write


class Sized:
    """As much of a corpus as counting needs."""

    def __init__(self, pairs):
        self.info = SegmentInfo(
            pairs=pairs, src_tokens=5 * pairs, tgt_tokens=5 * pairs, longest=10, longest_side=5
        )

    def lengths(self, rows):
        return np.full(len(rows), 5), np.full(len(rows), 5)


def test_a_run_record_decides_the_stream(run, study):
    recorded = read_recorded_stream(run())
    assert recorded.data.resolve() == (study / "data").resolve()
    assert (recorded.mixture, recorded.batch_tokens, recorded.seed) == (Mixture(MIXTURE), 200, 7)
    stream, data = open_recorded_stream(recorded)
    shards = {task: data.shard("train", task) for task in ROWS}
    trained = BatchStream(shards, Mixture(MIXTURE), batch_tokens=200, seed=7)
    assert stream.state() == trained.state()
    np.testing.assert_array_equal(stream.batch(123).tgt, trained.batch(123).tgt)


def test_a_mixing_table_decides_the_stream_too(run):
    later = {"en-de": 0.5, "en-fr": 0.5}
    mixing = {"scalarization": "explicit", "changes": [{"step": 10, "weights": later}], "selection": None}
    train = {"batch_tokens": 200, "mixing": mixing}
    stream, data = open_recorded_stream(read_recorded_stream(run(config={"train": train})))
    first, second = (
        Mixture({**weights, "en-it": 0.0}) for weights in ({"en-de": 0.25, "en-fr": 0.75}, later)
    )
    schedule = Schedule((explicit_scalarization(first), replace(explicit_scalarization(second), step=10)))
    shards = {task: data.shard("train", task) for task in ROWS}
    assert stream.state() == BatchStream(shards, schedule, batch_tokens=200, seed=7).state()


@pytest.mark.parametrize("step", [1, 130, 500])
def test_an_audit_counts_what_walking_the_stream_finds(step, run):
    stream, _ = open_recorded_stream(read_recorded_stream(run()))
    tasks = Counter(task for batch in islice(stream, step) for task in batch.tasks.tolist())
    found = audit(stream, step)
    assert list(found) == list(MIXTURE)
    for number, (task, row) in enumerate(found.items()):
        assert row["weight"] == pytest.approx(MIXTURE[task])
        assert row["pairs"] == tasks[number]
        assert row["share"] == tasks[number] / tasks.total()
        assert row["epochs"] == tasks[number] / ROWS.get(task, 1)
    spread = np.sqrt(tasks.total() * 0.25 * 0.75)
    assert found["en-de"]["deviation"] == pytest.approx((tasks[0] - 0.25 * tasks.total()) / spread)
    assert found["en-de"]["deviation"] == pytest.approx(-found["en-fr"]["deviation"])
    assert found["en-it"]["deviation"] == 0


def test_nothing_is_drawn_before_the_first_step(run):
    stream, _ = open_recorded_stream(read_recorded_stream(run()))
    for row in audit(stream, 0).values():
        assert (row["pairs"], row["share"], row["epochs"], row["deviation"]) == (0, 0, 0, 0)


def test_deviations_over_a_long_run_are_those_of_independent_draws():
    """Of window borders: of each of 200 seeds after a million draws."""
    deviations = []
    for seed in range(200):
        stream = BatchStream({"a": Sized(10**6), "b": Sized(10**6)}, Mixture({"a": 0.3, "b": 0.7}),
                             batch_tokens=640, seed=seed)  # fmt: skip
        deviations.append(audit(stream, 128 * 125)["a"]["deviation"])
    assert abs(np.mean(deviations)) < 4 / np.sqrt(200)
    assert np.var(deviations) == pytest.approx(1, abs=4 * np.sqrt(2 / 200))


def test_a_described_batch_is_the_batch_and_its_text(run):
    stream, data = open_recorded_stream(read_recorded_stream(run()))
    batch, found = stream.batch(9), describe_batch(stream, data, 9, samples=1000)
    assert found["step"] == 9
    assert (found["pairs"], found["tgt_tokens"]) == (len(batch.src), batch.num_tokens)
    assert found["padding"] == batch.padding
    assert [(pair["task"], pair["row"]) for pair in found["samples"]] == stream.locations(9)
    for pair in found["samples"]:
        assert (pair["src"], pair["tgt"]) == lines(pair["task"])[pair["row"]]


@pytest.mark.parametrize("samples", [0, 2])
def test_as_many_pairs_are_shown_as_asked_for(samples, run):
    stream, data = open_recorded_stream(read_recorded_stream(run()))
    assert len(describe_batch(stream, data, 0, samples=samples)["samples"]) == samples


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mixture": None}, r"KeyError\('mixture'\)"),
        ({"mixture": {"en-de": 0.5}}, r"ValueError\('`weights` must sum to 1, but sum to 0\.5\.'\)"),
        ({"mixture": [0.5, 0.5]}, "AttributeError"),
        ({"mixture": {"en-de": "half"}}, "TypeError"),
        ({"config": {"model": {}}}, r"KeyError\('train'\)"),
        ({"config": {"train": {"batch_tokens": "many"}}}, "ValueError"),
        ({"seed": None}, r"KeyError\('seed'\)"),
        ({"data": 7}, "TypeError"),
        ({"config": {"train": {"batch_tokens": 9, "mixing": {"kept": 1}}}}, r".*\[mixing\]"),
    ],
)
def test_a_record_that_does_not_say_is_named(changes, reason, run):
    with pytest.raises(DataError, match=rf"run\.json: does not say what the run read \({reason}.*\)\.$"):
        read_recorded_stream(run(**changes))


@pytest.mark.parametrize("text", ["", "{", "7", "[]", '"run"'])
def test_a_record_that_is_none_is_named(text, run):
    folder = run()
    (folder / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"run\.json: does not say what the run read \(.+\)\.$"):
        read_recorded_stream(folder)


def test_a_folder_without_a_record_is_named(tmp_path):
    with pytest.raises(DataError, match=r"run\.json: no such run record; name the folder of a run\."):
        read_recorded_stream(tmp_path)


def test_the_record_itself_in_place_of_its_folder_is_named(run):
    with pytest.raises(DataError, match=r"run\.json: no such run record; name the folder of a run\."):
        read_recorded_stream(run() / "run.json")


def test_replay_prints_shares_and_the_batch(cli, run):
    folder = run()
    stream, _ = open_recorded_stream(read_recorded_stream(folder))
    (task, row), drawn = stream.locations(500)[0], audit(stream, 500)["en-fr"]
    status, out, err = cli("replay", folder, "--step", 500, "--samples", 1)
    assert (status, err) == (0, "")
    table = out.splitlines()
    assert table[0] == "drawn before step 500"
    assert table[1].split() == ["task", "weight", "share", "pairs", "epochs", "deviation"]
    expected = ["en-fr", "0.750000", f"{drawn['share']:.6f}", f"{drawn['pairs']:,}", f"{drawn['epochs']:.2f}"]
    assert table[3].split() == [*expected, f"{drawn['deviation']:+.2f}σ"]
    assert table[6].startswith(f"batch of step 500: {len(stream.locations(500))} pairs, ")
    src, tgt = lines(task)[row]
    assert table[8:] == [f"{task} row {row}: {src}", f"  {tgt}"]


def test_replay_prints_only_json_when_asked(cli, run):
    folder = run()
    stream, data = open_recorded_stream(read_recorded_stream(folder))
    status, out, err = cli("replay", folder, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == {"draws": audit(stream, 0), "batch": describe_batch(stream, data, 0, samples=3)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--step", "-1"], 'Invalid value "-1" for --step. Must be >= 0.'),
        (["--samples", "-1"], 'Invalid value "-1" for --samples. Must be >= 0.'),
    ],
)
def test_a_wrong_option_of_replay_is_one_line_and_2(options, message, cli, run):
    assert cli("replay", run(), *options) == (2, "", f"mnmt-data: {message}\n")


def test_replay_of_a_step_beyond_the_run_is_one_line_and_2(cli, run):
    assert cli("replay", run(), "--step", 999)[0] == 0
    what = "the last of the run's 1,000 steps is 999, counted from 0, but it is 1000"
    assert cli("replay", run(), "--step", 1000) == (
        2,
        "",
        f"mnmt-data: --step must be in the run: {what}.\n",
    )


def test_replay_of_nothing_is_one_line_and_2(cli, tmp_path):
    message = f"mnmt-data: {tmp_path / 'run.json'}: no such run record; name the folder of a run.\n"
    assert cli("replay", tmp_path) == (2, "", message)


def test_replay_without_the_data_is_one_line_and_2(cli, run):
    status, out, err = cli("replay", run(data="../../gone"))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "gone/prepared.json: no prepared data here; run `mnmt-data prepare` first." in err
