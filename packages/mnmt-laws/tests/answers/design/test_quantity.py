"""Quantities are read from their names."""

from __future__ import annotations

import pytest

from mnmt_laws.answers.design.quantity import FORMS, parse_quantity


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slope:en-de", "`quantity` must read loss:TASK@size=1e9,p=0.3 or"),
        ("loss:en-fr@size=1e9,p=0.3", "`quantity` must name a task of en-de, en-zh, but is 'loss:en-fr"),
        ("loss:en-de@size=1e9", "`quantity` must read loss:TASK@size=1e9,p=0.3 with numbers above 0"),
        ("fraction:en-de@p=-1", "with numbers above 0, but is 'fraction:en-de@p=-1'"),
        ("fraction:en-de@p=1.5", "must give a weight p of at most 1, but is 'fraction:en-de@p=1.5'"),
        ("size:en-fr=1", "`quantity` must read size:TASK=0.9,TASK=1.1"),
    ],
)
def test_quantities_that_cannot_be_read_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_quantity(text, ["en-de", "en-zh"])


def test_the_forms_that_are_named_can_be_read() -> None:
    for form in FORMS:
        assert (
            parse_quantity(form.replace("TASK=0.9,TASK", "a=0.9,b").replace("TASK", "a"), ["a", "b"]).kind
            in form
        )
