import sys
from pathlib import Path

import pytest

from mnmt_model import RunError
from mnmt_model.runs.run_record import Eval
from mnmt_model.training.watcher import TENSORBOARD, TensorBoard

Scalars = dict[str, list[tuple[int, float]]]


def read(run: Path) -> Scalars:
    """{tag: (step, value) of each event}, as TensorBoard itself would show them."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs the extra tensorboard"
    )
    events = accumulator.EventAccumulator(str(run / TENSORBOARD), purge_orphaned_data=True).Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]
    }


def open_board(run: Path, step: int) -> TensorBoard:
    pytest.importorskip("tensorboard", reason="needs the extra tensorboard")
    return TensorBoard(run, step=step)


def test_lines_and_measurements_become_scalars(tmp_path: Path) -> None:
    board = open_board(tmp_path, 0)
    board.log({"step": 5, "loss": 2.5, "mfu": None, "lr": 0.25})
    board.log({"step": 10, "loss": 2.0, "mfu": 0.5, "lr": 0.125})
    measured = Eval(
        step=10,
        tokens=1,
        flops=1,
        task="en-de",
        testset="dev",
        metric="loss",
        value=1.5,
        signature="nats/token",
    )
    board.evaluate([measured])
    board.close()
    assert read(tmp_path) == {
        "train/loss": [(5, 2.5), (10, 2.0)],
        "train/lr": [(5, 0.25), (10, 0.125)],
        "train/mfu": [(10, 0.5)],
        "loss/dev/en-de": [(10, 1.5)],
    }


def test_numbers_in_lists_and_mappings_have_tags_of_their_own(tmp_path: Path) -> None:
    board = open_board(tmp_path, 0)
    line = {"step": 5, "drop_rates": {"en-de": 0.25}, "load": [[0.5, 1.5], [0.75, 1.25]]}
    board.log({**line, "expert_loads": {"en-de": [[3, 4], [5, 2]]}})  # a tag for each would be too many
    board.close()
    assert read(tmp_path) == {
        "train/drop_rates/en-de": [(5, 0.25)],
        "train/load/0/0": [(5, 0.5)],
        "train/load/0/1": [(5, 1.5)],
        "train/load/1/0": [(5, 0.75)],
        "train/load/1/1": [(5, 1.25)],
    }


def test_a_line_can_be_read_while_the_run_goes_on(tmp_path: Path) -> None:
    board = open_board(tmp_path, 0)
    for step in (5, 10, 15):
        board.log({"step": step, "loss": 2.5})
        assert read(tmp_path)["train/loss"][-1] == (step, 2.5)
    board.close()


def test_a_resumed_run_forgets_the_steps_it_trains_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for resumed_at, steps in ((0, (5, 10, 15)), (7, (10, 15, 20))):
        # Files are named, and read in the order of, the second they were made in.
        monkeypatch.setattr("time.time", lambda second=1_700_000_000 + resumed_at: float(second))
        board = open_board(tmp_path, resumed_at)
        for step in steps:
            board.log({"step": step, "loss": float(step + resumed_at)})
        board.close()
    assert read(tmp_path) == {"train/loss": [(5, 5.0), (10, 17.0), (15, 22.0), (20, 27.0)]}


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(
        RunError, match=r"tensorboard = true needs `pip install './packages/mnmt-model\[tensorboard\]'`"
    ):
        TensorBoard(tmp_path, step=0)
