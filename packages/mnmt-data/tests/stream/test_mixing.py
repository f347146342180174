import json
from dataclasses import replace

import numpy as np
import pytest

from mnmt_data.counter_rng import random_words, stream_key
from mnmt_data.errors import DataError
from mnmt_data.prepare import prepare_study
from mnmt_data.store.atomic_file import checksum
from mnmt_data.store.prepared import PreparedData
from mnmt_data.stream.mixing import (
    MixingConfig,
    WeightPhase,
    open_stream,
    order_path,
    read_order,
)
from mnmt_data.stream.mixture import Mixture
from mnmt_data.study import read_study, structure

MIXTURE = Mixture({"xx-aa": 0.25, "xx-bb": 0.75})
STUDY = """
name = "tiny"
[data]
tasks = ["xx-aa", "xx-bb"]
[data.vocab]
kind = "word"
size = 40
[data.synthetic]
concepts = 30
words_per_sentence = 2
syllable_inventory = 16
train_sentences = 300
dev_sentences = 5
test_sentences = 5
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixing")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return prepare_study(read_study(folder / "study.toml"), folder / "results")


def phases(config):
    return [(p.step, dict(p.mixture.weights)) for p in config.schedule(MIXTURE).phases]


def test_without_a_table_the_weights_hold_for_ever():
    assert phases(MixingConfig()) == [(0, {"xx-aa": 0.25, "xx-bb": 0.75})]


def test_a_phase_begins_at_its_step():
    config = MixingConfig(phases=(WeightPhase(step=5, weights={"xx-aa": 1.0}),))
    assert phases(config) == [(0, {"xx-aa": 0.25, "xx-bb": 0.75}), (5, {"xx-aa": 1.0, "xx-bb": 0.0})]


def test_explicit_scalarization_draws_evenly_and_weights_the_loss():
    (phase,) = MixingConfig(scalarization="explicit").schedule(MIXTURE).phases
    assert phase.mixture.weights == {"xx-aa": 0.5, "xx-bb": 0.5}
    assert phase.loss_weights == {"xx-aa": 0.5, "xx-bb": 1.5}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MixingConfig(phases=(WeightPhase(step=0, weights={"xx-aa": 1.0}),)),
            "`phases` must have rising steps, the first of at least 1.",
        ),
        (lambda: WeightPhase(step=1, weights={"xx-aa": 0.5}), "`weights` must sum to 1, but sum to 0.5."),
        (lambda: MixingConfig(keep=0.0), r"`keep` must be in \(0, 1\], but is 0.0."),
    ],
)
def test_a_wrong_setting_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_table_is_read_strictly():
    table = {"phases": [{"step": 9, "weights": {"xx-aa": 1.0}}], "keep": 0.5}
    config = structure(json.loads(json.dumps(table)), MixingConfig, where="mixing")
    assert config.phases == (WeightPhase(step=9, weights={"xx-aa": 1.0}),)
    with pytest.raises(ValueError, match="unknown key `kept`"):
        structure({"keep": 0.5, "kept": 0.5}, MixingConfig, where="mixing")


def test_a_change_of_a_task_that_is_not_there_is_named(data):
    config = MixingConfig(phases=(WeightPhase(step=1, weights={"xx-cc": 1.0}),))
    with pytest.raises(DataError, match=r"\[train.mixing\] `phases` must be of the run's tasks .* is xx-cc"):
        open_stream(data, MIXTURE, config, batch_tokens=100, seed=1)


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_a_mixture_of_what_is_never_trained_on_is_told_with_what_is(data, weight):
    zero_shot = PreparedData(folder=data.folder, description=replace(data.description, zero_shot=("aa-bb",)))
    for task, kind in (("aa-bb", ", a zero-shot task"), ("xx-cc", "")):
        mixture = Mixture({"xx-aa": 1 - weight, task: weight})
        with pytest.raises(DataError) as raised:
            open_stream(zero_shot, mixture, MixingConfig(), batch_tokens=100, seed=1)
        said = f"{data.folder}: has no training pairs of {task}{kind}; it has xx-aa, xx-bb."
        assert str(raised.value) == said


def write_order(path, order):
    np.save(path, order)
    path.with_suffix(".json").write_text(json.dumps({"sha256": checksum(path)}))


@pytest.fixture
def selected(data):
    """An order for each task, which are not to stay."""
    paths = [order_path(data.folder, task) for task in data.tasks]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        write_order(path, np.argsort(random_words(stream_key(0, path.name), 0, 300)).astype(np.int64))
    yield data
    for path in paths:
        path.unlink(missing_ok=True)
        path.with_suffix(".json").unlink(missing_ok=True)


def test_only_the_kept_share_of_selected_data_is_read(selected):
    config = MixingConfig(keep=0.1)
    stream = open_stream(selected, MIXTURE, config, batch_tokens=100, seed=1)
    best = {task: set(read_order(selected, task)[:30].tolist()) for task in selected.tasks}
    read = {address for step in range(256) for address in stream.locations(step)}
    assert read == {(task, row) for task in selected.tasks for row in best[task]}


def test_an_order_of_other_data_is_refused(selected):
    path = order_path(selected.folder, "xx-aa")
    write_order(path, np.arange(299))
    with pytest.raises(DataError, match=r"must hold the 300 rows .* but is int64\(299,\); select again\.$"):
        read_order(selected, "xx-aa")
    path.unlink()
    with pytest.raises(
        DataError, match=r"train\.xx-aa\.npy: no such order of selected data; `mnmt-data select`"
    ):
        read_order(selected, "xx-aa")


@pytest.mark.parametrize("content", [b"not an array", b""])
def test_what_is_no_order_is_one_line(content, selected):
    path = order_path(selected.folder, "xx-aa")
    path.write_bytes(content)
    path.with_suffix(".json").write_text(json.dumps({"sha256": checksum(path)}))
    with pytest.raises(DataError, match=r"train\.xx-aa\.npy: not an order of selected data"):
        read_order(selected, "xx-aa")


def test_an_order_is_compared_with_its_checksum(selected):
    path = order_path(selected.folder, "xx-aa")
    order = read_order(selected, "xx-aa").copy()
    order[[3, 5]] = order[[5, 3]]
    np.save(path, order)
    with pytest.raises(DataError, match=r"train\.xx-aa\.npy: has changed since it was written"):
        read_order(selected, "xx-aa")
    path.with_suffix(".json").unlink()
    with pytest.raises(DataError, match=r"train\.xx-aa\.json: no such file"):
        read_order(selected, "xx-aa")
