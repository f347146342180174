import json
from hashlib import sha256

import pytest

from mnmt_data.corpus import Bitext
from mnmt_data.errors import DataError
from mnmt_data.fetch.publish import check_codes, code, publish

ONE = Bitext(src=["one"], tgt=["eins"])


@pytest.mark.parametrize(
    ("language", "expected"), [("de", "de"), ("zh-CN", "zh"), ("pt_BR", "pt"), ("ZH-tw", "zh")]
)
def test_code(language, expected):
    assert code(language) == expected


def test_variants_of_one_language_are_refused():
    check_codes(("de", "zh-CN", "fr"))
    with pytest.raises(DataError) as raised:
        check_codes(("zh-CN", "de", "zh-TW"))
    assert str(raised.value) == "--langs: zh-CN and zh-TW would share the code zh; take one of them."


def test_folder_is_described(tmp_path):
    publish(tmp_path / "c", "train", {"en-de": ONE}, {"source": "here"})
    described = json.loads((tmp_path / "c/corpus.json").read_text(encoding="utf-8"))
    assert described == {
        "schema": 1,
        "provenance": {"source": "here"},
        "counts": {"train.en-de": 1},
        "sha256": {
            "train.en-de.de": sha256(b"eins\n").hexdigest(),
            "train.en-de.en": sha256(b"one\n").hexdigest(),
        },
    }


def test_earlier_corpus_is_replaced_and_nothing_else_stays(tmp_path):
    publish(tmp_path / "c", "train", {"en-de": ONE, "en-fr": ONE}, {})
    publish(tmp_path / "c", "train", {"en-fr": ONE}, {})
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == [
        "corpus.json",
        "train.en-fr.en",
        "train.en-fr.fr",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c/thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(DataError, match="c: holds other files; name a new folder"):
        publish(tmp_path / "c", "train", {"en-de": ONE}, {})
    assert (tmp_path / "c/thesis.tex").read_text(encoding="utf-8") == "years of work"
