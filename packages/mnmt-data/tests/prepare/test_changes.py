import json
import random
import shutil

import pytest

from mnmt_data.errors import DataError
from mnmt_data.prepare import check_prepared, prepare_study
from mnmt_data.store.atomic_file import write_json
from mnmt_data.store.prepared import open_prepared
from mnmt_data.store.vocabulary import train_vocabulary
from mnmt_data.study import read_study

WORDS = ("bal", "dor", "fim", "gus", "hen", "kor", "lat")
TEXT = """
name = "small"
[data]
tasks = ["en-de"]
corpus = "{corpus}"
dev_sentences = 20
test_sentences = 20
{more}
[data.vocab]
size = {size}
"""
CONTEXTS = """
name = "made"
[data]
tasks = ["xx-aa"]
{more}
[data.synthetic]
kind = "contexts"
languages = ["aa"]
train_sentences = 500
dev_sentences = 20
test_sentences = 20
sharpness = {sharpness}
[data.vocab]
kind = "word"
size = 100
"""


def corpus(folder, seed=1):
    draw = random.Random(seed)
    folder.mkdir(parents=True)
    for language in ("en", "de"):
        lines = (" ".join(draw.choices(WORDS, k=6)) for _ in range(300))
        text = "".join(f"{language} {line}\n" for line in lines)
        (folder / f"train.en-de.{language}").write_text(text, encoding="utf-8")
    return folder


def study(folder, template, name="study.toml", **values):
    path = folder / name
    path.write_text(template.format(**{"more": "", **values}), encoding="utf-8")
    return read_study(path)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A folder with a corpus `c`, and data prepared from it."""
    folder = tmp_path_factory.mktemp("text")
    corpus(folder / "c")
    prepare_study(study(folder, TEXT, corpus=folder / "c", size=300), folder, jobs=1)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    prepare_study(study(folder, CONTEXTS, sharpness=2.0), folder, jobs=1)
    return folder


@pytest.mark.parametrize(
    ("values", "setting", "old", "new"),
    [
        ({"more": "seed = 9"}, "[data] `seed`", "1", "9"),
        ({"size": 310}, "[data.vocab] `size`", "300", "310"),
        ({"more": "zero_shot = ['de-en']"}, "[data] `zero_shot`", "[]", '["de-en"]'),
        ({"more": "clean = { max_ratio = 2.5 }"}, "[data.clean] `max_ratio`", "3.0", "2.5"),
        ({"more": "files = { news = { en-de = ['n.tsv'] } }"}, "[data.files] `news`", "none", "{"),
        ({"more": "test_corpora = { web = 'w' }"}, "[data.test_corpora] `web`", "none", '"w"'),
    ],
)
def test_a_changed_setting_is_named_with_both_values(text, values, setting, old, new):
    changed = study(text, TEXT, "changed.toml", **{"corpus": text / "c", "size": 300, **values})
    with pytest.raises(DataError) as error:
        check_prepared(changed, open_prepared(text / "data"))
    message = str(error.value)
    assert message.startswith(f"{changed.path}: {setting} is {new}")
    assert "\n" not in message
    assert f"was prepared with {old}" in message
    assert "prepare again, with another --out" in message


def test_a_setting_of_made_up_languages_counts(made):
    changed = study(made, CONTEXTS, "changed.toml", sharpness=3.0)
    with pytest.raises(DataError, match=r"\[data.synthetic\] `sharpness` is 3.0, but .* with 2.0"):
        check_prepared(changed, open_prepared(made / "data"))


@pytest.mark.parametrize(
    "more",
    ["seed = 1", "max_length = 128", "max_bad_share = 0.5", "leaks = { ngrams = true }\nclean = {}"],
)
def test_defaults_and_what_does_not_shape_the_data_may_differ(text, more):
    same = study(text, TEXT, "same.toml", corpus=text / "c", size=300, more=more)
    check_prepared(same, open_prepared(text / "data"))


def test_settings_without_effect_on_made_up_languages_may_differ(made):
    more = "dev_sentences = 7\ntest_sentences = 8\nleaks = { ngrams = false }"
    check_prepared(study(made, CONTEXTS, "same.toml", sharpness=2, more=more), open_prepared(made / "data"))


def test_a_study_without_the_section_has_nothing_to_compare(text):
    path = text / "none.toml"
    path.write_text('name = "small"\n', encoding="utf-8")
    check_prepared(read_study(path), open_prepared(text / "data"))


def test_text_may_move_or_be_gone_but_not_be_other_text(text, tmp_path):
    shutil.copytree(text / "c", tmp_path / "moved")
    corpus(tmp_path / "other", seed=2)
    data = open_prepared(text / "data")
    for place in ("moved", "gone"):
        check_prepared(study(tmp_path, TEXT, corpus=tmp_path / place, size=300), data)
    with pytest.raises(DataError, match=r"\[data\] `corpus` is \".*other\", but"):
        check_prepared(study(tmp_path, TEXT, corpus=tmp_path / "other", size=300), data)


FILES = """
name = "small"
[data]
tasks = ["en-de"]
test_sentences = 20
files.train.en-de = ["{train}/train.en-de.{{lang}}"]
files.dev.en-de = ["{dev}/train.en-de.{{lang}}"]
[data.vocab]
{vocab}
"""


def test_another_file_is_a_change_and_one_that_is_gone_a_warning(text, tmp_path, caplog):
    for seed, name in enumerate(("a", "d", "b")):
        corpus(tmp_path / name, seed)
    model = shutil.copy(text / "data" / "vocab.model", tmp_path / "own.model")
    prepare = {"train": tmp_path / "a", "dev": tmp_path / "d", "vocab": f"path = '{model}'"}
    data = prepare_study(study(tmp_path, FILES, **prepare), tmp_path, jobs=1)
    check_prepared(study(tmp_path, FILES, **{**prepare, "dev": tmp_path / "gone"}), data)
    (line,) = caplog.messages
    assert line.startswith(f"text not compared with {data.folder}: {tmp_path / 'gone'}")
    with pytest.raises(DataError, match=r"\[data.files.train\] `en-de` is .*/b/.* with .*/a/"):
        check_prepared(study(tmp_path, FILES, **{**prepare, "train": tmp_path / "b"}), data)
    train_vocabulary(["other words"] * 9, tmp_path / "new.model", kind="unigram", size=280, languages=["de"])
    changed = study(tmp_path, FILES, **{**prepare, "vocab": f"path = '{tmp_path / 'new.model'}'"})
    with pytest.raises(DataError, match=r"\[data.vocab\] `path` is .*new.model"):
        check_prepared(changed, data)
    lines = []
    prepare_study(changed, tmp_path, jobs=1, report=lines.append)
    assert any("since [data.vocab] `path` was" in line and "new.model" in line for line in lines)


def test_moved_text_is_up_to_date(text, tmp_path):
    shutil.copytree(text, tmp_path / "all")
    shutil.move(tmp_path / "all" / "c", tmp_path / "moved")
    before, lines = (tmp_path / "all" / "data" / "prepared.json").read_bytes(), []
    moved = study(tmp_path, TEXT, corpus=tmp_path / "moved", size=300)
    prepare_study(moved, tmp_path / "all", jobs=1, report=lines.append)
    assert lines[-1].startswith("up to date")
    assert (tmp_path / "all" / "data" / "prepared.json").read_bytes() == before


def test_data_without_a_record_of_their_files_are_compared_by_settings(text, tmp_path):
    """As a release before 0.12 wrote them, without a setting that came later."""
    shutil.copytree(text / "data", tmp_path / "data")
    path = tmp_path / "data" / "prepared.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["inputs"], content["config"]["clean"]["language_id_model"], content["checksum"]
    from mnmt_data.store.description import CHECKSUM, _checksum

    write_json(path, {**content, CHECKSUM: _checksum(content)})
    data = open_prepared(tmp_path / "data")
    check_prepared(study(tmp_path, TEXT, corpus=tmp_path / "moved", size=300), data)
    with pytest.raises(DataError, match=r"\[data.vocab\] `size` is 301, but"):
        check_prepared(study(tmp_path, TEXT, corpus=tmp_path / "moved", size=301), data)


def test_preparing_anew_says_why(text, tmp_path):
    shutil.copytree(text, tmp_path / "all")
    lines = []
    changed = study(tmp_path, TEXT, corpus=text / "c", size=301)
    data = prepare_study(changed, tmp_path / "all", jobs=1, report=lines.append)
    why = "prepared again, since [data.vocab] `size` was 300 and is 301"
    assert any(why in line for line in lines)
    assert data.vocab.size <= 301


def test_an_unfinished_preparation_of_another_study_is_begun_anew_with_the_reason(text, tmp_path):
    class StopError(Exception):
        pass

    def stop(line):
        if line.startswith("vocabulary"):
            raise StopError

    with pytest.raises(StopError):
        prepare_study(study(tmp_path, TEXT, corpus=text / "c", size=300), tmp_path, jobs=1, report=stop)
    lines = []
    changed = study(tmp_path, TEXT, corpus=text / "c", size=300, more="seed = 5")
    prepare_study(changed, tmp_path, jobs=1, report=lines.append)
    assert any(line.endswith("begun anew, since [data] `seed` was 1 and is 5") for line in lines)


def test_another_version_of_the_pairs_is_prepared_again(text, tmp_path, monkeypatch):
    shutil.copytree(text, tmp_path / "all")
    for module in ("fingerprint", "pipeline"):
        monkeypatch.setattr(f"mnmt_data.prepare.{module}.PAIRS_VERSION", 99)
    lines = []
    same = study(tmp_path, TEXT, corpus=text / "c", size=300)
    prepare_study(same, tmp_path / "all", jobs=1, report=lines.append)
    assert any("prepared again, since its text has changed, or another version" in line for line in lines)


def test_the_digest_of_a_shard_is_that_of_its_pairs(text, tmp_path):
    shutil.copytree(text / "data", tmp_path / "data")
    other = prepare_study(
        study(tmp_path, TEXT, corpus=text / "c", size=300, more="seed = 9"), tmp_path / "o", jobs=1
    )
    one, copy = (
        open_prepared(folder).shard("train", "en-de") for folder in (text / "data", tmp_path / "data")
    )
    assert len(one) == len(other.shard("train", "en-de"))
    assert one.digest == copy.digest != other.shard("train", "en-de").digest
