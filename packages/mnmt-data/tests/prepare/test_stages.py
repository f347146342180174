"""Stages give results in their jobs' order, and workers that are killed meanwhile change no byte."""

import os
import random
import signal
from contextlib import suppress

import pytest

from mnmt_data.jobs import JobQueue
from mnmt_data.prepare import prepare_study, stages
from mnmt_data.prepare.stages import Stages
from mnmt_data.study import read_study

STUDY = """
name = "shared"
[data]
tasks = ["en-de", "de-en"]
corpus = "{folder}"
dev_sentences = 10
test_sentences = 10
[data.vocab]
kind = "word"
size = 100
"""


class LazyPool:
    """Does a job when its result is asked for."""

    def __init__(self):
        self.jobs, self.closed = [], False

    def submit(self, work, job):
        self.jobs.append((work, job))
        return len(self.jobs) - 1

    def is_done(self, number):
        return number % 3 == 0

    def result(self, number):
        work, job = self.jobs[number]
        return work(job)

    def see_outputs(self):
        """See them."""

    def close(self):
        self.closed = True


def test_results_come_in_order_and_only_a_few_jobs_are_taken_ahead(monkeypatch):
    monkeypatch.setattr(stages, "STARTING_PAIRS", 3)
    taken, pool = [], LazyPool()

    def jobs():
        for length in range(1, 30):
            taken.append(length)
            yield "x" * length

    with Stages(2, open_pool=lambda: pool) as pipeline:
        for number, (job, result) in enumerate(pipeline.run("count", len, jobs()), start=1):
            assert (len(job), result) == (number, number)
            assert len(taken) <= number + 2 * 2 + 1
    assert len(pool.jobs) == 27  # The first three pairs are counted here.
    assert pool.closed


def test_each_stage_reports_its_pairs():
    lines, progress = [], []
    with Stages(report=lines.append, progress=lambda *done: progress.append(done)) as pipeline:
        assert len(list(pipeline.run("count", len, ["x", "xx"]))) == 2
    assert lines == ["count: 3 pairs done"]
    assert progress == [("count", 1), ("count", 2)]


@pytest.fixture
def study(tmp_path):
    draw = random.Random(1)
    for language in ("en", "de"):
        words = [f"{language}{stem}" for stem in "abcdefghi"]
        lines = (" ".join(draw.choices(words, k=6)) for _ in range(400))
        (tmp_path / f"train.en-de.{language}").write_text("\n".join(lines) + "\n")
    (tmp_path / "study.toml").write_text(STUDY.format(folder=tmp_path))
    return read_study(tmp_path / "study.toml")


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_workers_that_are_killed_change_no_byte(study, tmp_path, monkeypatch):
    alone = contents(prepare_study(study, tmp_path / "alone", jobs=1).folder)
    monkeypatch.setattr(stages, "STARTING_PAIRS", 0)
    out, killed, take = tmp_path / "together", [], JobQueue.take_result

    def kill_and_take(queue, number):
        """Kill the worker that has done the job, whatever it does by now."""
        if len(killed) < 3:
            attempts = queue.folder / f"{number:08}.attempts"
            killed.append(int(attempts.read_text().strip().rpartition(".")[2]))
            with suppress(ProcessLookupError):
                os.kill(killed[-1], signal.SIGKILL)
        return take(queue, number)

    monkeypatch.setattr(JobQueue, "take_result", kill_and_take)
    data = prepare_study(study, out, jobs=2)
    assert contents(data.folder) == alone
    assert len(killed) == 3
    assert sorted(path.name for path in out.iterdir()) == [".data.digests.json", ".data.lock", "data"]
