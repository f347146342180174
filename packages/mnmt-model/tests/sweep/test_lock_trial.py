import os
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from nfs_machines import OUT, SHARED, missing_programs, run_on_machines

from mnmt_model.cli.check_locks import verdict
from mnmt_model.errors import RunError
from mnmt_model.sweep import lock_trial
from mnmt_model.sweep.lock_trial import TRIAL, Claims, claim_items, compare, read_claims, try_locks


def fight(trial: Path, *, seconds: float = 1.0) -> None:
    """Let two threads claim items, as if they were machines."""
    (trial / "items").mkdir(parents=True)
    threads = [
        threading.Thread(target=claim_items, args=(trial, name, 0, seconds)) for name in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_locks_that_hold_let_every_item_be_claimed_once(tmp_path: Path) -> None:
    fight(tmp_path / TRIAL)
    result = compare(read_claims(tmp_path / TRIAL, 0))
    assert result.is_safe
    assert result.items > 2
    assert result.machines == ("one", "two")
    assert "each once" in verdict(result, tmp_path)


def test_locks_that_do_not_hold_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> AbstractContextManager[None]:
        return nullcontext()

    monkeypatch.setattr(lock_trial, "file_lock", broken)
    fight(tmp_path / TRIAL)
    result = compare(read_claims(tmp_path / TRIAL, 0))
    assert not result.is_safe
    assert result.held_twice > 0
    assert "its locks do not hold" in verdict(result, tmp_path)


def test_an_old_state_of_the_folder_is_noticed() -> None:
    claims = [Claims(machine=name, items=[7]) for name in ("one", "two")]
    result = compare(claims)
    assert (result.held_twice, result.claimed_again, result.is_safe) == (0, 1, False)


def test_machines_that_take_part_one_after_the_other_prove_nothing() -> None:
    claims = [
        Claims(machine="one", items=[0, 2], refused=[1]),
        Claims(machine="one", items=[1, 3]),
        Claims(machine="two", items=[4, 5]),
    ]
    with pytest.raises(RunError, match="one, two: did not take part at the same time; try again"):
        compare(claims)
    with pytest.raises(RunError, match="did not take part at the same time"):
        compare([*claims[:2], Claims(machine="two", refused=[3])])


def test_refusals_between_machines_are_told_apart_from_those_within_one(tmp_path: Path) -> None:
    result = compare(
        [
            Claims(machine="one", items=[0, 3], refused=[1, 2, 2]),
            Claims(machine="one", items=[1], refused=[0]),
            Claims(machine="two", items=[2], refused=[0, 3]),
        ]
    )
    assert (result.refusals_between, result.refusals_within) == (4, 2)
    assert "refused 4 times while another machine held one, 2 times while" in verdict(result, tmp_path)


def test_a_trial_leaves_nothing_behind(tmp_path: Path) -> None:
    result = try_locks(tmp_path, nodes=1, processes=2, seconds=0.3)
    assert result.is_safe
    assert list(tmp_path.iterdir()) == []


def test_a_trial_that_was_stopped_half_way_is_named(tmp_path: Path) -> None:
    (tmp_path / TRIAL).mkdir()
    (tmp_path / TRIAL / "here.machine").touch()
    with pytest.raises(RunError, match=r"here takes part already; .* --nodes 1 .* remove the folder"):
        try_locks(tmp_path, nodes=1, processes=1, seconds=0.1, machine="here")


@pytest.fixture
def environ() -> dict[str, str]:
    """The environment of commands on machines that share a folder over NFS."""
    if missing := missing_programs():
        pytest.skip(f"machines with NFS cannot be started here: they need {', '.join(missing)}")
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    values = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    return values | {"PATH": os.environ["PATH"]}


@pytest.mark.nfs
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("vers=4.2", "8 processes on 2 machines claimed"),
        ("vers=3", "8 processes on 2 machines claimed"),
        ("vers=3,nolock", "its locks do not hold"),
    ],
)
def test_the_locks_of_nfs_hold_between_machines_unless_it_is_mounted_without(
    options: str, says: str, environ: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "mnmt_model", "check-locks", str(SHARED), "--seconds", "10"]
    ends = run_on_machines(command, tmp_path, clients=2, options=options, environ=environ, seconds=300)
    for end in ends:
        assert says in end.output
        assert end.status == ("nolock" in options)


@pytest.mark.nfs
def test_sweeps_of_two_machines_train_every_run_once_over_nfs(
    environ: dict[str, str], tmp_path: Path
) -> None:
    ends = run_on_machines(
        ["bash", "-c", f"{sweep(runs=12, steps=25)} && {TELL}"],
        tmp_path,
        clients=2,
        options="vers=4.2",
        environ=environ,
        seconds=300,
    )
    for end in ends:
        assert (end.status, end.output.count("value")) == (0, 12)
        assert end.output.count('{"step": 0}') == end.output.count("step") == 12


@pytest.mark.nfs
def test_the_runs_of_a_machine_that_dies_are_taken_over_by_another(
    environ: dict[str, str], tmp_path: Path
) -> None:
    own = f'grep -l "$(hostname)" {RUNS}/*/heartbeat.json | sed s/heartbeat/weights/'
    trains = f"{own} | xargs -r -n 1 ls | grep -q ."
    dies = f"echo 1 > {OUT}/status2 && echo o > /proc/sysrq-trigger"
    when = f"until {trains}; do sleep 0.5; done > /dev/null 2>&1; {dies}"
    # Runs of half a minute at least: slow machines must not end theirs before one of them is seen to die.
    ends = run_on_machines(
        ["bash", "-c", f"[ $(hostname) != machine2 ] || ({when}) & {sweep(runs=6, steps=1500)} && {TELL}"],
        tmp_path,
        clients=2,
        options="vers=4.2",
        environ=environ,
        seconds=500,
    )
    end = ends[1]
    assert (end.status, end.output.count("value")) == (0, 6)
    # A run whose checkpoint the machine left continues from it; one that had none yet begins anew.
    starts, from_nothing = end.output.count("step"), end.output.count('{"step": 0}')
    assert 6 <= from_nothing < starts


RUNS = SHARED / "soak/runs"
TELL = f"cat {RUNS}/*/finished.jsonl {RUNS}/*/starts.jsonl"


def sweep(*, runs: int, steps: int) -> str:
    """Return the command of a sweep over simulated runs in the folder that machines share."""
    call = f"soak_sweeps.sweep(Path('{SHARED}/soak'), {runs}, slurm=False)"
    code = f"import soak_sweeps, sys; from pathlib import Path; soak_sweeps.STEPS = {steps}; sys.exit({call})"
    return f'{sys.executable} -c "{code}"'
