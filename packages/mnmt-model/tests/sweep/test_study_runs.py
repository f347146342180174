from pathlib import Path

import pytest

from mnmt_data.study import read_study
from mnmt_model import RunConfig, RunError, run_configs


@pytest.fixture(scope="module")
def runs(study_file: Path, results: Path) -> list[RunConfig]:
    return run_configs(read_study(study_file), results / "data")


def test_the_runs_are_sizes_times_mixtures_and_the_held_out(runs: list[RunConfig]) -> None:
    assert [(run.name, run.role) for run in runs] == [
        ("d16_xx-aa-1_seed1", "fit"),
        ("d16_xx-aa-0.3_xx-bb-0.7_seed1", "fit"),
        ("d24_xx-aa-1_seed1", "fit"),
        ("d24_xx-aa-0.3_xx-bb-0.7_seed1", "fit"),
        ("d24_xx-aa-0.5_xx-bb-0.5_seed1", "held-out"),
    ]
    assert [run.model.d_model for run in runs] == [16, 16, 24, 24, 24]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{ xx-aa = 1.0 }", "{ xx-zz = 1.0 }", r"mixture names 'xx-zz'; the prepared tasks are xx-aa, xx-bb"),
        ('sizes = ["d16", "d24"]', 'sizes = ["d99"]', r"`sizes` has no 'd99'; it has d16, d24"),
        ("xx-bb = 0.7", "xx-bb = 0.8", r"1\.1"),
        ("d_ff = 32", "d_fff = 32", r"unknown key `d_fff`; the valid ones are architecture, "),
        ("xx-aa = 0.5, xx-bb = 0.5", "xx-aa = 1.0", r"holds the run d24_xx-aa-1_seed1 twice"),
        ("d_model = 24", 'preset = "huge"', r"no preset 'huge'"),
        ("[sweep.sizes.d16]", '[sweep.sizes."../d16"]', r"plain name.*but one has '\.\./d16'"),
        ("[sweep.sizes.d16]", '[sweep.sizes.".d16"]', r"plain name.*but one has '\.d16'"),
        ("[sweep.sizes.d16]", '[sweep.sizes.""]', r"plain name.*but one has ''"),
        ("[sweep.sizes.d16]", '[sweep.sizes."nul.1"]', r"plain name.*but one has 'nul\.1'"),
        ("{ xx-aa = 1.0 }", "{ temperature = 0.0 }", r"\[sweep\] `temperature` must be above 0, but is 0\.0"),
        ("{ xx-aa = 1.0 }", "{ temperature = nan }", r"\[sweep\] `temperature` must be above 0, but is nan"),
        ("{ xx-aa = 1.0 }", "{ xx-aa = nan }", r"must be finite and not negative, but xx-aa has nan"),
        ("steps = 12", "steps = 12\nwarmup_steps = 13", r"\[train\] `warmup_steps` must be at most `steps`"),
        ("steps = 12", "steps = 12\nz_loss = inf", r"\[train\] `z_loss` must be finite, but is inf"),
        (
            "d_model = 16",
            "d_model = 16\ncapacity_factor = nan",
            r"\[model\] `capacity_factor` must be a finite number",
        ),
        (
            "d_model = 24",
            "d_model = 24\nshared_experts = 2",
            r"wrong\.toml: \[sweep\.sizes\.d24\] `shared_experts` needs `num_experts` above 0",
        ),
        ("d_model = 24", "d_model = -24", r"\[sweep\.sizes\.d24\] `d_model` must be at least 1, but is -24"),
    ],
)
def test_a_mistake_in_the_study_names_file_and_key(
    study_file: Path, results: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = study_file.read_text()
    assert old in text
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(Exception, match=message) as error:
        run_configs(read_study(wrong), results / "data")
    assert "\n" not in str(error.value)
    assert isinstance(error.value, RunError) or "wrong.toml" in str(error.value)
