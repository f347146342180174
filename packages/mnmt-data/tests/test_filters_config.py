from __future__ import annotations

import re
from typing import Any

import pytest

from mnmt_data.filters import CleanConfig
from mnmt_data.study import StructureError, structure


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_characters": 0}, "`max_characters` must be at least 1, but is 0."),
        ({"max_ratio": 0.5}, "`max_ratio` must be at least 1, but is 0.5."),
        ({"max_ratio": float("nan")}, "`max_ratio` must be at least 1, but is nan."),
        ({"language_odds": 0.0}, "`language_odds` must be at least 1, but is 0.0."),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CleanConfig(**settings)


def test_settings_come_from_a_table() -> None:
    table = {"normalisation": "NFKC", "max_ratio": float("inf"), "near_duplicates": True, "identical": False}
    config = structure(table, CleanConfig, where="data.clean")
    assert config == CleanConfig(
        normalisation="NFKC", max_ratio=float("inf"), near_duplicates=True, identical=False
    )


def test_an_unknown_form_is_told_by_its_key() -> None:
    with pytest.raises(StructureError, match="normalisation` must be one of 'NFC', 'NFKC', but is 'NFD'"):
        structure({"normalisation": "NFD"}, CleanConfig, where="data.clean")
