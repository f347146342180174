import os
import signal

import pytest

from mnmt_data.errors import Interrupted
from mnmt_data.jobs import Interruption
from mnmt_data.jobs.interruption import SIGNALS


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_is_noted_and_handlers_come_back(signum):
    before = [signal.getsignal(each) for each in SIGNALS]
    with Interruption() as interruption:
        assert (interruption.signum, interruption.exit_status) == (0, 0)
        os.kill(os.getpid(), signum)
        assert (interruption.signum, interruption.exit_status) == (signum, 128 + signum)
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_a_second_ctrl_c_ends_at_once():
    with Interruption():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_under_torchrun_ctrl_c_comes_twice(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
    assert interruption.signum == signal.SIGINT


def test_work_with_nothing_to_save_ends_at_once():
    with Interruption() as interruption:
        with pytest.raises(Interrupted, match="SIGTERM"), interruption.at_once():
            os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.signum == signal.SIGTERM
        with pytest.raises(Interrupted), interruption.at_once():
            raise AssertionError("begun after a signal")
