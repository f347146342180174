"""Jobs share the blocks of a source: whatever their number and order, the parts are the same."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnmt_data.errors import DataError
from mnmt_data.filters import CleanConfig, Cleaner
from mnmt_data.prepare import clean as clean_module
from mnmt_data.prepare.clean import CleanJob, PairsCleaned, clean, num_shares, run_clean_job
from mnmt_data.prepare.config import DataConfig
from mnmt_data.prepare.inputs import Source, find_inputs
from mnmt_data.prepare.stages import Stages
from mnmt_data.prepare.workspace import Workspace
from mnmt_data.readers import open_reader

PAIRS = 47
BLOCK = 5
BLOCKS = 10


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr("mnmt_data.readers.text_pairs.BLOCK_PAIRS", BLOCK)
    monkeypatch.setattr("mnmt_data.readers.byte_sources.CHUNK_BYTES", 60)
    monkeypatch.setattr(clean_module, "_SMALLEST_SHARE", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    draw = random.Random(1)
    for language in ("en", "de"):
        lines = ["".join(draw.choices("abcdé ", k=draw.randrange(12))) for _ in range(PAIRS)]
        (folder / f"train.en-de.{language}").write_text("".join(line + "\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def space_of(tmp_path_factory):
    def make():
        space = Workspace(folder=tmp_path_factory.mktemp("space") / "partial")
        space.open(["any"])
        return space

    return make


def jobs_of(folder, space, shares):
    source = Source(
        split="train", task="en-de", number=0, reader=open_reader(str(folder / "train.en-de.{lang}"), "en-de")
    )
    cleaner = Cleaner(CleanConfig(), "en-de")
    return [
        CleanJob(
            source=source,
            share=share,
            shares=shares,
            space=space,
            cleaner=cleaner,
            unfiltered=False,
            skip_bad=False,
            sampled=True,
        )
        for share in range(shares)
    ]


def parts(space):
    return {path.name: path.read_bytes() for path in space.parts({"train.en-de.000"})}


@pytest.fixture(scope="module")
def whole(folder, space_of):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mnmt_data.readers.text_pairs.BLOCK_PAIRS", BLOCK)
        space = space_of()
        assert run_clean_job(*jobs_of(folder, space, 1)) == BLOCKS
    assert len(parts(space)) == BLOCKS
    return parts(space)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shares=st.integers(1, 13), seed=st.integers(0, 99), lost=st.sets(st.integers(0, BLOCKS - 1)))
def test_shares_in_any_order_are_the_whole(folder, space_of, whole, shares, seed, lost):
    """After a first round some parts are lost, and other shares write them again."""
    space = space_of()
    for count in (shares, 14 - shares):
        jobs = jobs_of(folder, space, count)
        random.Random(seed).shuffle(jobs)
        assert {run_clean_job(job) for job in jobs} == {BLOCKS}
        assert parts(space) == whole
        for number in lost:
            jobs[0].path(number).unlink(missing_ok=True)


def test_a_part_that_is_there_is_not_written_again(folder, space_of):
    space = space_of()
    for job in jobs_of(folder, space, 3):
        run_clean_job(job)
    before = {path: path.stat().st_mtime_ns for path in space.parts({"train.en-de.000"})}
    for job in jobs_of(folder, space, 2):
        run_clean_job(job)
    assert {path: path.stat().st_mtime_ns for path in space.parts({"train.en-de.000"})} == before


def test_pairs_are_counted_as_they_are_cleaned(folder, space_of):
    space = space_of()
    first, second = jobs_of(folder, space, 2)
    run_clean_job(first)
    cleaned = PairsCleaned(space, {"train.en-de.000"})
    assert cleaned() == 0
    run_clean_job(second)
    assert cleaned() == cleaned() == PAIRS - 25


def test_the_stage_reports_all_pairs_and_shares_a_large_source(folder, space_of, whole):
    config = DataConfig(tasks=("en-de",), corpus=folder)
    space, lines, told = space_of(), [], []
    with Stages(3, report=lines.append, progress=lambda stage, pairs: told.append(pairs)) as stages:
        cleaned = clean(config, find_inputs(config, folder), space, stages)
    assert lines == [f"clean: {PAIRS} pairs done"]
    assert sum(told) == PAIRS
    assert cleaned["train"]["en-de"].read == PAIRS
    assert parts(space) == whole


def test_a_mistake_in_any_share_is_told(folder, space_of, tmp_path):
    for language in ("en", "de"):
        lines = (folder / f"train.en-de.{language}").read_bytes().split(b"\n")
        lines[31] = b"\xff"
        (tmp_path / f"train.en-de.{language}").write_bytes(b"\n".join(lines))
    for job in jobs_of(tmp_path, space_of(), 4):
        if job.share == 31 // BLOCK % 4:
            with pytest.raises(DataError, match=r"train\.en-de\.en:32: not valid UTF-8"):
                run_clean_job(job)


@given(sizes=st.lists(st.integers(1, 10**6), min_size=1, max_size=8), count=st.integers(1, 64))
def test_shares_are_fair(sizes, count):
    total = sum(sizes)
    shares = [num_shares(size, total, count) for size in sizes]
    assert all(1 <= number <= count for number in shares)
    assert max(size / number for size, number in zip(sizes, shares, strict=True)) <= max(total / count, 1)
    assert sum(shares) < count + len(sizes) + 1
