import os
import signal

import pytest

from mnmt_model.training.interruption import SIGNALS, Interruption


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_is_noted_and_handlers_come_back(signum: int) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    with Interruption() as interruption:
        assert interruption.signum == 0
        os.kill(os.getpid(), signum)
        assert interruption.signum == signum
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_a_second_ctrl_c_ends_at_once() -> None:
    with Interruption():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_under_torchrun_ctrl_c_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
    assert interruption.signum == signal.SIGINT
