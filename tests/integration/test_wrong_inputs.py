"""Wrong inputs to the four commands: exit status 2, and one line that names the place and the remedy."""

import pytest

CORPUS_STUDY = 'name = "small"\n[data]\ntasks = ["en-de"]\ncorpus = "corpus"\n'
ENGLISH, LATIN_1 = "one\ntwo\nthree\n", b"eins\nzw\xe9i\n"
TABLE = """size,task,weight,metric,value
1e6,en-de,0.5,loss,3.1
2e6,en-de,0.5,loss,2.9
4e6,en-de,0.5,loss,2.8
"""

DATA_FAULTS = {
    "missing study": ({}, ["study.toml", "no such"]),
    "not TOML": ({"study.toml": "name = \n"}, ["study.toml", "line 1"]),
    "unknown section": (
        {"study.toml": CORPUS_STUDY + "[trian]\n"},
        ["`trian`", "name, data, model, train, sweep"],
    ),
    "unknown key": (
        {"study.toml": CORPUS_STUDY + 'vocabulary = "word"\n'},
        ["study.toml", "[data]", "`vocabulary`", "tasks", "corpus", "vocab"],
    ),
    "wrong type": (
        {"study.toml": CORPUS_STUDY + 'seed = "1"\n'},
        ["study.toml", "data.seed", "integer", "'1'"],
    ),
    "missing side": (
        {"study.toml": CORPUS_STUDY, "corpus/train.en-de.en": ENGLISH},
        ["corpus/train.en-de.de", "no such file"],
    ),
    "unequal line counts": (
        {
            "study.toml": CORPUS_STUDY,
            "corpus/train.en-de.en": ENGLISH,
            "corpus/train.en-de.de": "eins\nzwei\n",
        },
        ["corpus/train.en-de.en", "3 lines", "corpus/train.en-de.de", "2"],
    ),
    "not UTF-8": (
        {
            "study.toml": CORPUS_STUDY,
            "corpus/train.en-de.en": ENGLISH,
            "corpus/train.en-de.de": LATIN_1,
        },
        ["corpus/train.en-de.de:2", "UTF-8"],
    ),
}

SWEEP_FAULTS = {
    "weights that do not sum to 1": (
        ("{ xx-aa = 0.3, xx-bb = 0.7 }", "{ xx-aa = 0.3, xx-bb = 0.6 }"),
        ["tiny.toml", "[sweep", "sum to 1", "0.9"],
    ),
    "negative weight": (
        ("{ xx-aa = 0.3, xx-bb = 0.7 }", "{ xx-aa = -0.3, xx-bb = 1.3 }"),
        ["tiny.toml", "xx-aa", "-0.3"],
    ),
    "unknown size": (('sizes = ["d16"]', 'sizes = ["d61"]'), ["tiny.toml", "'d61'", "d8, d12, d16"]),
    "negative width": (("d_model = 12", "d_model = -12"), ["tiny.toml", "`d_model`", "at least 1", "-12"]),
    "unknown key": (
        ("steps = 60", "stpes = 60"),
        ["tiny.toml", "[train]", "`stpes`", "steps", "batch_tokens"],
    ),
    "task without data": (("{ xx-bb = 1.0 }", "{ xx-cc = 1.0 }"), ["tiny.toml", "xx-cc", "xx-aa, xx-bb"]),
}

TABLE_FAULTS = {
    "NaN": (("2.9", "nan"), ["table.csv row 3", "`value`", "NaN"]),
    "negative size": (("2e6", "-2e6"), ["table.csv row 3", "`size`", "above 0", "-2e6"]),
    "weight above 1": (("2e6,en-de,0.5", "2e6,en-de,1.5"), ["table.csv row 3", "`weight`", "[0, 1]", "1.5"]),
    "duplicate rows": (("2e6", "1e6"), ["table.csv rows 2 and 3", "twice", "seed"]),
    "missing column": (("weight", "wieght"), ["table.csv row 1", "`weight`", "`wieght`"]),
    "not a number": (("2.9", "2,9"), ["table.csv row 3", "6 fields", "5"]),
}

ARGUMENT_FAULTS = {
    "no such run table": (["mnmt-laws", "fit", "missing.csv"], ["missing.csv", "no such file"]),
    "unknown law": (["mnmt-laws", "fit", "t.csv", "--law", "linear"], ["linear", "per-weighting"]),
    "unknown option": (["mnmt-data", "prepare", "study.toml", "--ot", "x"], ["--ot"]),
    "unknown preset": (["mnmt-model", "plan", "--preset", "huge"], ["'huge'", "fernandes-l2-d512"]),
    "no runs": (["mnmt-eval", "score", "."], ["run.json"]),
    "no beam": (["mnmt-eval", "score", ".", "--beam", "0"], ["beam", "1", "0"]),
}


def one_fast(faults):
    """The faults as parameters, all but the first in the slow tier: each starts a command."""
    marks = [(), *[pytest.mark.slow] * (len(faults) - 1)]
    return [
        pytest.param(*fault, id=name, marks=mark)
        for (name, fault), mark in zip(faults.items(), marks, strict=True)
    ]


def check_refused(finished, *, prog, says):
    """One line on stderr by `prog` with everything in `says`, nothing on stdout, exit status 2."""
    assert finished.returncode == 2, finished.stderr
    (line,) = finished.stderr.splitlines()
    assert line.startswith(f"{prog}: ")
    assert [part for part in says if part not in line] == []
    assert finished.stdout == ""


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize(("files", "says"), one_fast(DATA_FAULTS))
def test_prepare_refuses(tmp_path, command, files, says):
    write(tmp_path, files)
    check_refused(command(tmp_path, "mnmt-data", "prepare", "study.toml"), prog="mnmt-data", says=says)
    assert not (tmp_path / "results/small/data").exists()


@pytest.mark.parametrize(("change", "says"), one_fast(SWEEP_FAULTS))
def test_sweep_refuses(tmp_path, command, prepared, study_text, change, says):
    assert study_text.count(change[0]) == 1
    write(tmp_path, {"tiny.toml": study_text.replace(*change)})
    (tmp_path / "results/tiny").mkdir(parents=True)
    (tmp_path / "results/tiny/data").symlink_to(prepared / "results/tiny/data")
    check_refused(command(tmp_path, "mnmt-model", "sweep", "tiny.toml"), prog="mnmt-model", says=says)
    assert not (tmp_path / "results/tiny/runs").exists()


def test_sweep_without_prepared_data_names_the_command_that_makes_them(tmp_path, command, study_text):
    write(tmp_path, {"tiny.toml": study_text})
    refused = command(tmp_path, "mnmt-model", "sweep", "tiny.toml")
    check_refused(refused, prog="mnmt-model", says=["results/tiny/data", "mnmt-data prepare"])


@pytest.mark.parametrize(("change", "says"), one_fast(TABLE_FAULTS))
def test_laws_refuse(tmp_path, command, change, says):
    assert TABLE.count(change[0]) == 1
    write(tmp_path, {"table.csv": TABLE.replace(*change)})
    check_refused(command(tmp_path, "mnmt-laws", "fit", "table.csv"), prog="mnmt-laws", says=says)


@pytest.mark.parametrize(("arguments", "says"), one_fast(ARGUMENT_FAULTS))
def test_arguments_are_refused(tmp_path, command, arguments, says):
    check_refused(command(tmp_path, *arguments), prog=arguments[0], says=says)
