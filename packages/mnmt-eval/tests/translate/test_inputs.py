from __future__ import annotations

from pathlib import Path

import pytest

from mnmt_eval.errors import EvalError
from mnmt_eval.translate.inputs import sources_of


def test_a_folder_holds_the_sources_of_many_pairs(tmp_path: Path) -> None:
    names = "a.en b.en-de.en b.en-de.de b.de-en.en c.en-fr.en d.2014-05.en e.x.en f.de g.en.gz"
    for name in names.split():
        (tmp_path / name).touch()
    result = {name: path.name for name, path in sources_of(tmp_path, "en-de").items()}
    assert result == {
        "a.en-de.de": "a.en",
        "b.en-de.de": "b.en-de.en",
        "d.2014-05.en-de.de": "d.2014-05.en",
        "e.x.en-de.de": "e.x.en",
    }
    assert list(sources_of(tmp_path, "de-en")) == ["f.de-en.en"]
    with pytest.raises(EvalError, match=r"holds neither NAME\.fr nor NAME\.fr-en\.fr to translate\."):
        sources_of(tmp_path, "fr-en")
    (tmp_path / "b.en").touch()
    with pytest.raises(
        EvalError, match=r"b\.en-de\.en: its translation would be b\.en-de\.de, as that of b\.en is"
    ):
        sources_of(tmp_path, "en-de")
