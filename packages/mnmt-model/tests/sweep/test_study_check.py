import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from jsonschema.validators import Draft4Validator

from mnmt_data.cli import main as mnmt_data
from mnmt_data.errors import StudyError
from mnmt_data.study import read_study
from mnmt_data.study.schema import study_schema
from mnmt_model.sweep import SweepConfig
from mnmt_model.sweep.study_check import check_study

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
FIT = "mixtures = [{ xx-aa = 1.0 }, { xx-aa = 0.3, xx-bb = 0.7 }]"
GOAL = '[goal]\nsize = "d24"\nimportance = { xx-aa = 2, xx-bb = 1 }'

MISTAKES = [
    ("[train]", "[trian]", "unknown key `trian`; `train` may be meant"),
    (
        'name = "tiny"',
        'name = "tiny"\nlearning_rate = 0.1',
        "unknown key `learning_rate`, which belongs to [train]",
    ),
    ('tasks = ["xx-aa", "xx-bb"]', 'tasks = "xx-aa"', "`data.tasks` must be an array"),
    ("[data]", "[data]\nseed = -1", "[data] `seed` must be at least 0"),
    (
        'kind = "word"\nsize = 64',
        "size = 200",
        "`vocab.size` must be above 261, the 3 special ids, 2 tags",
    ),
    (
        "[model]",
        "[data.model]",
        "unknown key `model`, which belongs to the file, as the section [model]",
    ),
    ("concepts = 30", "concepts = 30\nsharpness = 1", 'belongs to [data.synthetic] of kind "contexts"'),
    (
        "size = 64",
        "size = 1_000_000_000",
        "[data.vocab] `size` must be at most 10,000,000, ten times the largest",
    ),
    ("d_ff = 32", "num-heads = 2", "[model] holds an unknown key `num-heads`; it is written `num_heads`"),
    ("d_ff = 32", "steps = 32", "[model] holds an unknown key `steps`, which belongs to [train]"),
    ("d_ff = 32", 'd_ff = "32"', "`model.d_ff` must be an integer, but is '32'"),
    ("d_ff = 32", "d_ff = -32", "[model] `d_ff` must be at least 1"),
    ("d_ff = 32", "d_ff = 1_000_000_000_000", "[model] `d_ff` must be at most 10,000,000"),
    (
        "d_model = 16",
        "d_model = 10_000_000",
        "[model] `d_model` must be at most 1,000,000, beyond any published model",
    ),
    ("d_ff = 32", 'architecture = "decoder-only"', "`model.architecture` must be one of 'encdec'"),
    (
        "d_ff = 32",
        "num_experts = 2\nexperts_per_token = 4",
        "[model] `experts_per_token` must be at most",
    ),
    ("steps = 12", "steps = 12\nweight_decay = 0.1", '[train] `weight_decay` needs `optimizer = "adamw"`.'),
    (
        "d_ff = 32",
        "num_experts = 2\ncapacity_factor = nan",
        "[model] `capacity_factor` must be at least 0, but is nan",
    ),
    ("steps = 12", f"steps = {10**23}", "`train.steps` must be below 2^63"),
    (
        "steps = 12",
        "steps = 12\naccumulation = 1_000_000",
        "`accumulation` must be at most `batch_tokens` (300)",
    ),
    ("steps = 12", "steps = 12\nlearning_rate = nan", "[train] `learning_rate` must be above 0, but is nan"),
    ("steps = 12", "steps = 12\nwarmup_steps = 13", "[train] `warmup_steps` must be at most `steps`"),
    (
        "steps = 12",
        "steps = 12\nexpert_parallel = 2",
        "[sweep.sizes.d16] `expert_parallel` must be 1 for a dense",
    ),
    (
        "steps = 12",
        "steps = 12\nmixing.phases = [{ step = 2, weights = { xx-cc = 1.0 } }]",
        "[train.mixing] `phases` must be of the run's tasks (xx-aa, xx-bb), but one is xx-cc",
    ),
    (
        "steps = 12",
        "steps = 12\nmixing.phases = [{ step = 12, weights = { xx-aa = 1.0 } }]",
        "[train.mixing] `phases` must begin before the last step (12), but one is at 12",
    ),
    ("[sweep]", "[sweep]\nseeds = [-1]", "[sweep] `seeds` must be integers from 0"),
    ("[sweep]", "[sweep]\nseeds = [1, 1]", "[sweep] holds the run d16_xx-aa-1_seed1 twice"),
    (
        'sizes = ["d16", "d24"]',
        'sizes = ["d99"]',
        "`fit.sizes` holds an unknown size `d99`; the valid ones are d16, d24",
    ),
    ('sizes = ["d16", "d24"]', "sizes = []", "[sweep.fit] `sizes` must not be empty"),
    (FIT, "mixtures = []", "[sweep.fit] `mixtures` must not be empty"),
    (FIT, "mixtures = { xx-aa = 1.0 }", "`sweep.fit.mixtures` must be an array"),
    (FIT, "mixtures = [{ xx-zz = 1.0 }]", "[sweep.fit] `mixtures[0]` names an unknown task `xx-zz`"),
    ("xx-bb = 0.7", "xx-bb = 0.8", "`mixtures[1]`: `weights` must sum to 1, but sum to 1.1"),
    ("xx-bb = 0.7", "xx-bb = -0.7", "`mixtures[1]`: `weights` must be finite and not negative"),
    (FIT, 'mixtures = ["xx-aa"]', "`mixtures[0]`: must be ratios such as 'en-de:3,en-fr:1', but is 'xx-aa'"),
    (FIT, "mixtures = [1]", "`sweep.fit.mixtures[0]` must be a table or a string, but is 1"),
    (FIT, "mixtures = [{ temperature = 0.0 }]", "`temperature` must be above 0, but is 0.0"),
    ("xx-aa = 0.5, xx-bb = 0.5", "xx-aa = 1.0", "holds the run d24_xx-aa-1_seed1 twice"),
    ("[[sweep.held_out]]", "[sweep.held_out]", "`sweep.held_out` must be an array of tables"),
    ("d_model = 24", 'preset = "huge"', "[sweep.sizes.d24] `preset`: there is no preset 'huge'"),
    (
        "d_model = 24",
        "d_model = 24\nnum_experts = 4\nexperts_every = 9",
        "[sweep.sizes.d24] `experts_every` must be at most the layers of the deeper stack",
    ),
    (
        "d_model = 24",
        "d_model = 24\nnum_experts = 4\nexperts_every = 1\nuniform_routing_steps = 13",
        "[sweep.sizes.d24] `uniform_routing_steps` must be at most `steps`, or the first of `horizons` (12)",
    ),
    (
        "d_model = 24",
        "d_model = 1_000_000\nd_ff = 10_000_000",
        "[sweep.sizes.d24] makes a model of … parameters, … fill … TiB; at most 10,000,000,000,000",
    ),
    ("[sweep.sizes.d16]", '[sweep.sizes."../d16"]', "plain name…but one has '../d16'"),
    (
        '[goal]\nsize = "d24"',
        '[goal]\nsize = "d42"',
        "[goal] `size` is an unknown size `d42`; `d24` may be meant",
    ),
    ("xx-aa = 2, xx-bb = 1", "xx-ab = 2", "[goal] `importance` names an unknown task `xx-ab`"),
    ("xx-aa = 2, xx-bb = 1", "xx-aa = 2", "[goal] `importance` lacks xx-bb; give it a number"),
    ("xx-aa = 2, xx-bb = 1", "xx-aa = -2", "[goal] `importance` must be finite and above 0"),
    ("[goal]", '[goal]\naim = "worst"', "[goal] `importance` has no part in the aim worst"),
    ("[sweep]", "[train]\n[sweep]", "not a TOML file: Cannot declare ('train',) twice"),
    ("steps = 12", "steps = ...", "not a TOML file: Invalid value"),
]


@pytest.fixture(scope="module")
def text(study_file: Path) -> str:
    return study_file.read_text(encoding="utf-8") + GOAL


def test_every_section_is_registered() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    for group, entries in project["entry-points"].items():
        registered = {entry.name: entry.value for entry in entry_points(group=group)}
        assert entries.items() <= registered.items()


def test_a_whole_study_passes(text: str, tmp_path: Path) -> None:
    (tmp_path / "whole.toml").write_text(text, encoding="utf-8")
    check_study(read_study(tmp_path / "whole.toml"))


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_prepare_refuses_a_mistake_of_any_section_in_one_line(
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    message: str,
) -> None:
    assert old in text
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(StudyError, match=".*".join(map(re.escape, message.split("…")))):
        read_study(wrong)
    monkeypatch.setattr(sys, "argv", ["mnmt-data", "prepare", str(wrong), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as end:
        mnmt_data()
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mnmt-data: {wrong}: ")
    assert not (tmp_path / "out").exists()


STUDIES = sorted((Path(__file__).parents[4] / "studies").glob("*.toml"))
OF_KEY_OR_TYPE = re.compile("unknown key|must be (an integer|an array|a number|a string|one of|given)")


def test_a_study_is_checked_without_torch(study_file: Path) -> None:
    code = f"import sys; from mnmt_data.study import read_study; read_study({str(study_file)!r})"
    check = f"{code}; sys.exit('torch' in sys.modules or 'mnmt_model.sweep.study_check' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_passes_its_schema_and_all_checks(path: Path) -> None:
    check_study(read_study(path))
    Draft4Validator(study_schema()).validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((old, new) for old, new, message in MISTAKES if OF_KEY_OR_TYPE.search(message)),
        ("steps = 12", "steps = 0"),
        ("steps = 12", "steps = 1_000_000_000_000"),
        ("d_ff = 32", "d_ff = -32"),
        ("d_model = 24", "d_model = 10_000_000"),
        ("size = 64", "size = 1_000_000_000"),
        ("dropout = 0.1", "dropout = 1.0"),
        ("concepts = 30", "concepts = 0"),
    ],
)
def test_the_schema_finds_mistakes_of_key_type_and_range(text: str, old: str, new: str) -> None:
    assert not Draft4Validator(study_schema()).is_valid(tomllib.loads(text.replace(old, new, 1)))


def test_tasks_may_be_spelled_with_hyphens_everywhere(tmp_path: Path) -> None:
    study = """name = "s"
    [data]
    tasks = ["en-zh-Hans", "en-de"]
    corpus = "corpora"
    [train]
    mixing.phases = [{ step = 10, weights = { en-zh-Hans = 1.0 } }]
    [sweep]
    sizes = { d64 = {} }
    fit = { sizes = ["d64"], mixtures = ["en-zh-Hans:2,en-de:2"] }
    [goal]
    size = "d64"
    importance = { en-zh-Hans = 2, en-de = 1 }"""
    (tmp_path / "s.toml").write_text(study, encoding="utf-8")
    read = read_study(tmp_path / "s.toml")
    assert read.section("sweep", SweepConfig).fit.weights == ({"en-zh_Hans": 0.5, "en-de": 0.5},)


def test_a_model_section_that_no_size_uses_is_refused(text: str, tmp_path: Path) -> None:
    presets = text.replace("[sweep.sizes.d16]", '[sweep.sizes.d16]\npreset = "fernandes-l2-d512"')
    presets = presets.replace("d_model = 24", 'preset = "fernandes-l2-d512"')
    (tmp_path / "presets.toml").write_text(presets, encoding="utf-8")
    with pytest.raises(StudyError, match=r"\[model\] has no effect, since every size starts from a `preset`"):
        read_study(tmp_path / "presets.toml")
