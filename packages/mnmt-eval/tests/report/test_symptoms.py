from __future__ import annotations

import pytest

from mnmt_eval.report import symptoms


@pytest.mark.parametrize(
    ("source", "reference", "translation", "found"),
    [
        ("a dog", "ein Hund", "ein Hund", ()),
        ("a dog", "ein Hund", " ", ("empty",)),
        (" ", "", "", ()),
        ("a dog", "ein Hund", "a dog", ("copy",)),
        ("OK", "OK", "OK", ()),
        ("", "ein Hund", "ein Hund", ()),
        ("no", "nein", "nein ja nein ja nein ja nein ja", ("repetition", "too long")),
        ("no no", "ja nein ja nein ja nein ja nein", "ja nein ja nein ja nein ja nein", ()),
        ("x", "这是一个非常普通的句子没有什么", "这是这是这是这是这是", ("repetition",)),
        ("x", "Ein ziemlich langer Satz mit vielen Wörtern.", "Ein Satz.", ("too short",)),
    ],
)
def test_symptoms(source: str, reference: str, translation: str, found: tuple[str, ...]) -> None:
    assert symptoms(source, [reference], translation) == found
    assert symptoms(source, [reference, translation], translation) == tuple(s for s in found if s == "empty")
