import json
import subprocess
import sys

import pytest

from mnmt_model import PRESETS, RunError, count, preset

# Fernandes et al. 2023, Table A: parameters with embedding and softmax, and without.
TABLE_A = {
    "fernandes-l2-d512": (149_953_024, 18_881_024),
    "fernandes-l3-d768": (260_322_816, 63_714_816),
    "fernandes-l6-d768": (324_035_328, 127_427_328),
    "fernandes-l9-d768": (387_747_840, 191_139_840),
    "fernandes-l9-d1024": (601_931_776, 339_787_776),
    "fernandes-l12-d1024": (715_193_344, 453_049_344),
    "fernandes-l12-d1280": (1_035_876_864, 707_869_184),
    "fernandes-l12-d1536": (1_412_528_128, 1_019_312_128),
}


def vocab_size(name: str) -> int:
    return 128_128 if name == "fernandes-l12-d1280" else 128_000


def test_every_row_of_the_table_is_a_preset() -> None:
    assert list(PRESETS) == list(TABLE_A)


@pytest.mark.parametrize("name", TABLE_A)
def test_counts_equal_the_published_table(name: str) -> None:
    counted = count(preset(name), vocab_size(name))
    assert (counted.num_params, counted.size) == TABLE_A[name]


def test_an_unknown_preset_lists_the_valid_ones() -> None:
    with pytest.raises(RunError, match="no preset 'tiny'; the presets are fernandes-l2-d512, "):
        preset("tiny")


def test_plan_prints_json() -> None:
    command = [sys.executable, "-m", "mnmt_model", "plan", "--preset", "fernandes-l12-d1280", "--json"]
    printed = json.loads(
        subprocess.run([*command, "--vocab-size", "128128"], check=True, capture_output=True).stdout
    )
    assert (printed["num_params"], printed["size"]) == TABLE_A["fernandes-l12-d1280"]
