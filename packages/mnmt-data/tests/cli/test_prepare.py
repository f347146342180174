"""Text that cannot be used, through the command line: one line, status 2, and nothing that looks whole."""

import gzip
import os
import zipfile

import pytest

from mnmt_data import DataConfig
from mnmt_data.prepare import stages

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
BOMB = """<?xml version="1.0"?>
<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;">]>
<tmx version="1.4"><body><tu><tuv xml:lang="en"><seg>&c;</seg></tuv><tuv xml:lang="de"><seg>x</seg></tuv></tu>
</body></tmx>"""


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
    ("files", "source", "names"),
    [
        (
            both(lines_of(LINES), lines_of(LINES[:-1])),
            "raw.{lang}",
            "raw.en: has 30 lines, but raw.de has 29",
        ),
        (both(b"\xff\n" + lines_of(LINES), b"x\n" + lines_of(LINES)), "raw.{lang}", "raw.en:1"),
        (both(lines_of(LINES[:4]) + b"a \xed\xa0\x80\n", lines_of(LINES[:5])), "raw.{lang}", "raw.en:5"),
        (both(b"", b""), "raw.{lang}", "raw.en"),
        (
            {"raw.en.gz": gzip.compress(lines_of(LINES))[:-20], "raw.de.gz": gzip.compress(lines_of(LINES))},
            "raw.{lang}.gz",
            "raw.en.gz",
        ),
        ({"bomb.tmx": BOMB.encode()}, "bomb.tmx", "bomb.tmx"),
        ({"raw.doc": b"x"}, "raw.doc", "raw.doc"),
        ({}, "none.tsv", "none.tsv"),
        ({"raw.zip": b"PK not a zip"}, "raw.zip", "raw.zip"),
        ({"raw.parquet": b"PAR1 not one"}, "raw.parquet", "raw.parquet"),
        (both(lines_of([""] * 30), lines_of(LINES)), "raw.{lang}", "raw.en"),
    ],
    ids=[
        "unequal lines",
        "not UTF-8",
        "lone surrogate",
        "empty files",
        "truncated gzip",
        "TMX bomb",
        "unknown format",
        "missing file",
        "broken zip",
        "broken Parquet",
        "empty sides only",
    ],
)
def test_text_that_cannot_be_used_is_one_line_and_2(prepare, tmp_path, files, source, names):
    status, out, err = prepare(files, source)
    assert (status, out) == (2, "")
    *log, last = err.splitlines()
    assert last.startswith(f"mnmt-data: {names}")
    assert not any(line.startswith("mnmt-data:") for line in log)
    assert not (tmp_path / "out/data").exists()


def test_a_zip_that_escapes_writes_nothing_outside(prepare, tmp_path):
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as archive:
        for language, lines in (("en", LINES), ("de", german(LINES))):
            archive.writestr(f"../../escaped.de-en.{language}", lines_of(lines))
    status, _, _ = prepare({}, "raw.zip")
    assert status in (0, 2)
    assert not list(tmp_path.parent.rglob("escaped*"))
    assert not list(tmp_path.rglob("escaped*"))


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


def test_any_option_of_sbatch_is_taken(cli):
    status, _, error = cli("prepare", "none.toml", "--cluster", "slurm", "--slurm.qos", "high")
    assert (status, error) == (2, "mnmt-data: none.toml: no such study file.\n")


@pytest.mark.parametrize("cluster", [[], ["--cluster", "local"]])
def test_what_a_job_asks_needs_slurm(cli, cluster):
    status, _, error = cli("prepare", "study.toml", "--minutes", "5", *cluster)
    assert (status, "needs --cluster slurm" in error) == (2, True)


def test_an_sbatch_that_fails_is_one_line_and_was_given_every_option(cli, tmp_path, monkeypatch):
    pytest.importorskip("submitit", reason="submitit is not installed")
    monkeypatch.setattr(stages, "STARTING_PAIRS", 0)
    says = ('echo "sbatch: error: $(grep -- --qos "$1")" >&2', "echo sbatch: fatal: no Slurm >&2", "exit 1")
    for name, script in {"srun": "", "sbatch": "\n".join(says)}.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    for language, lines in (("en", LINES), ("de", german(LINES))):
        (tmp_path / f"raw.{language}").write_bytes(lines_of(lines))
    (tmp_path / "bad.toml").write_text(STUDY.format(source="raw.{lang}"))
    status, _, error = cli("prepare", "bad.toml", "--cluster", "slurm", "--slurm.qos", "high")
    assert (status, error) == (2, "mnmt-data: sbatch failed: #SBATCH --qos=high; no Slurm\n")


def test_sections_that_no_installed_package_reads_are_remarked(tmp_path, cli, monkeypatch):
    monkeypatch.setattr("mnmt_data.study.study_file.section_configs", lambda: {"data": DataConfig})
    monkeypatch.setattr("mnmt_data.study.study_file.study_checks", lambda: ())
    (tmp_path / "s.toml").write_text(
        'name = "s"\n[data]\ntasks = ["en-de"]\ncorpus = "none"\n[model]\nany = 1'
    )
    status, _, err = cli("prepare", "s.toml", "--out", "out")
    assert (status, err.splitlines()[0]) == (2, "not checked, since no installed package reads them: model")
