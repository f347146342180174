import pytest

from mnmt_data.errors import DataError
from mnmt_data.store.lock import file_lock, is_locked


@pytest.mark.parametrize("error", [DataError, OSError])
def test_a_lock_is_held_once_and_given_back(tmp_path, error):
    path = tmp_path / ".lock"

    def hold():
        with file_lock(path, name="results", error=error):
            return True

    with file_lock(path, name="results"), pytest.raises(error) as raised:
        hold()
    assert str(raised.value) == "results: another process is writing it; wait for it or stop it."
    with pytest.raises(ZeroDivisionError), file_lock(path, name="results"):
        raise ZeroDivisionError
    assert hold()


def test_a_lock_is_seen_without_being_taken(tmp_path):
    path = tmp_path / ".lock"
    assert not is_locked(path)
    with file_lock(path, name="results"):
        assert is_locked(path)
    assert not is_locked(path)


def test_a_lock_leaves_nothing_but_its_file(tmp_path):
    with file_lock(tmp_path / ".lock", name="results"):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]
