"""Text that cannot be used, through the command line: one line, status 2, and nothing that looks whole."""

import pytest

from mnmt_data import DataConfig

STUDY = """
name = "bad"
[data]
tasks = ["en-de"]
dev_sentences = 2
test_sentences = 2
[data.files]
train.en-de = ["{source}"]
[data.vocab]
kind = "word"
size = 100
"""
LINES = [f"one more sentence {'n' * number}" for number in range(1, 31)]


def lines_of(lines, end="\n"):
    return "".join(line + end for line in lines).encode()


def german(lines):
    return [line.replace("sentence", "Satz") for line in lines]


@pytest.fixture
def prepare(tmp_path, cli):
    """Write files and a study that reads `source`, and prepare it: (status, stdout, stderr)."""

    def run(files, source="raw.{lang}"):
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        (tmp_path / "bad.toml").write_text(STUDY.format(source=source))
        return cli("prepare", "bad.toml", "--out", "out")

    return run


def both(english, german):
    return {"raw.en": english, "raw.de": german}


@pytest.mark.parametrize(
    ("english", "other"),
    [
        (lines_of(LINES, "\r\n"), lines_of(german(LINES), "\r\n")),
        (b"\xef\xbb\xbf" + lines_of(LINES), b"\xef\xbb\xbf" + lines_of(german(LINES))),
        (lines_of(LINES), lines_of([line.replace(" ", "\x00 ") for line in german(LINES)])),
        (lines_of([*LINES, ""]), lines_of([*german(LINES), "x"])),
        (lines_of([*LINES, "long " * 300_000]), lines_of([*german(LINES), "lang " * 300_000])),
        (lines_of(LINES)[:-1], lines_of(german(LINES))),
    ],
    ids=["CRLF", "BOM", "NUL", "an empty side", "lines of a megabyte", "no newline at the end"],
)
def test_blemishes_are_mended(prepare, tmp_path, english, other):
    status, _, err = prepare(both(english, other))
    assert status == 0, err
    text = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out/data/text").iterdir()}
    assert all(line in LINES for line in text["test.en-de.en"].splitlines())
    assert all(line in german(LINES) for line in text["dev.en-de.de"].splitlines())
    assert not any(character in content for content in text.values() for character in "\x00\r\ufeff")


@pytest.mark.parametrize("option", ["minutes", "processes", "cpus-per-task"])
def test_what_no_job_can_ask_is_one_line(cli, option):
    status, _, error = cli("prepare", "study.toml", "--cluster", "local", f"--{option}", "-1")
    assert status == 2
    assert error.startswith(f"mnmt-data: `{option.replace('-', '_')}` must be")
    assert error.count("\n") == 1


@pytest.mark.parametrize("cluster", [[], ["--cluster", "local"]])
def test_what_a_job_asks_needs_slurm(cli, cluster):
    status, _, error = cli("prepare", "study.toml", "--minutes", "5", *cluster)
    assert (status, "needs --cluster slurm" in error) == (2, True)


def test_sections_that_no_installed_package_reads_are_remarked(tmp_path, cli, monkeypatch):
    monkeypatch.setattr("mnmt_data.study.study_file.section_configs", lambda: {"data": DataConfig})
    monkeypatch.setattr("mnmt_data.study.study_file.study_checks", lambda: ())
    (tmp_path / "s.toml").write_text(
        'name = "s"\n[data]\ntasks = ["en-de"]\ncorpus = "none"\n[model]\nany = 1'
    )
    status, _, err = cli("prepare", "s.toml", "--out", "out")
    assert (status, err.splitlines()[0]) == (2, "not checked, since no installed package reads them: model")
