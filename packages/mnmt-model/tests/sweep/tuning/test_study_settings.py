import tomllib
from pathlib import Path

import pytest

from mnmt_model.errors import RunError
from mnmt_model.sweep.tuning.study_settings import Setting, write_settings

STUDY = """# What this is for
name = "mine"

[sweep.sizes]
# widths
small = { d_model = 64, d_ff = 256 }   # quick
medium = {d_model = 128, learning_rate = 0.02, d_ff = 512}
plain = {} # as [model] says
"two words" = { learning_rate = 0.5 }

[sweep.sizes.large]
d_model = 256 # wide

# and deep
encoder_layers = 6

# what the laws are fitted to
[sweep.fit]
sizes = ["small", "large"] # learning_rate = 9
"""


def lines_changed(before: str, after: str) -> list[str]:
    return sorted(set(after.splitlines()) - set(before.splitlines()))


def test_rates_are_written_and_all_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(STUDY, encoding="utf-8")
    sizes = ("small", "medium", "plain", "two words", "large")
    write_settings(path, {size: {"learning_rate": 0.05 + number} for number, size in enumerate(sizes)})
    text = path.read_text(encoding="utf-8")
    assert lines_changed(STUDY, text) == sorted(
        [
            "small = { d_model = 64, d_ff = 256, learning_rate = 0.05 }   # quick",
            "medium = {d_model = 128, learning_rate = 1.05, d_ff = 512}",
            "plain = { learning_rate = 2.05 } # as [model] says",
            '"two words" = { learning_rate = 3.05 }',
            "learning_rate = 4.05",
        ]
    )
    expected = tomllib.loads(STUDY)
    for number, size in enumerate(sizes):
        expected["sweep"]["sizes"][size]["learning_rate"] = 0.05 + number
    assert tomllib.loads(text) == expected
    assert "encoder_layers = 6\nlearning_rate = 4.05\n\n# what the laws" in text


def test_writing_twice_is_writing_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(STUDY, encoding="utf-8")
    settings: dict[str, dict[str, Setting]] = {
        "large": {"learning_rate": 0.1, "steps": 500, "horizons": [250, 500]},
        "small": {"steps": 4, "horizons": [2, 4]},
    }
    write_settings(path, settings)
    once = path.read_text(encoding="utf-8")
    write_settings(path, settings)
    assert path.read_text(encoding="utf-8") == once


@pytest.mark.parametrize(
    "sizes",
    ["[sweep]\nsizes = { a = { d_model = 1 }, b = {} }\n", "[sweep.sizes]\na.d_model = 1\n"],
)
def test_a_form_that_cannot_be_edited_is_refused_and_nothing_written(tmp_path: Path, sizes: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(sizes, encoding="utf-8")
    with pytest.raises(RunError, match=r"cannot change 'a' .* set learning_rate = 0.1 there yourself"):
        write_settings(path, {"a": {"learning_rate": 0.1}})
    assert path.read_text(encoding="utf-8") == sizes
