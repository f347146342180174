"""A wrong input to each command: exit status 2, and one line that names the place and the remedy."""

import pytest

TABLE = "size,task,weight,metric,value\n1e6,en-de,0.5,loss,3.1\n2e6,en-de,0.5,loss,nan\n"
FILES = {
    "study.toml": 'name = "small"\n[data]\ntasks = ["en-de"]\ncorpus = "corpus"\n',
    "corpus/train.en-de.en": "one\ntwo\n",
    "corpus/train.en-de.de": b"eins\nzw\xe9i\n",
    "table.csv": TABLE,
}


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


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["mnmt-data", "prepare", "study.toml"], ["corpus/train.en-de.de:2", "UTF-8"]),
        (["mnmt-model", "plan", "--preset", "huge"], ["'huge'", "fernandes-l2-d512"]),
        (["mnmt-eval", "score", "."], ["run.json"]),
        (["mnmt-laws", "fit", "table.csv"], ["table.csv row 3", "`value`", "NaN"]),
    ],
)
def test_a_command_refuses(tmp_path, command, arguments, says):
    write(tmp_path, FILES)
    check_refused(command(tmp_path, *arguments), prog=arguments[0], says=says)
    assert not (tmp_path / "results/small/data").exists()


@pytest.mark.slow
def test_sweep_refuses_a_task_without_data(tmp_path, command, prepared, study_text):
    write(tmp_path, {"tiny.toml": study_text.replace("{ xx-bb = 1.0 }", "{ xx-cc = 1.0 }")})
    (tmp_path / "results/tiny").mkdir(parents=True)
    (tmp_path / "results/tiny/data").symlink_to(prepared / "results/tiny/data")
    refused = command(tmp_path, "mnmt-model", "sweep", "tiny.toml")
    check_refused(refused, prog="mnmt-model", says=["tiny.toml", "xx-cc", "`xx-bb` may be meant"])
    assert not (tmp_path / "results/tiny/runs").exists()


def test_sweep_without_prepared_data_names_the_command_that_makes_them(tmp_path, command, study_text):
    write(tmp_path, {"tiny.toml": study_text})
    refused = command(tmp_path, "mnmt-model", "sweep", "tiny.toml")
    check_refused(refused, prog="mnmt-model", says=["results/tiny/data", "mnmt-data prepare"])
