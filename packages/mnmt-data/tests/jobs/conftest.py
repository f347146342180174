import pytest


class CountedWorkers:
    """Workers that are only counted, and end at once unless they `stay`."""

    poll_seconds = 0.0

    def __init__(self):
        self.count, self.stay, self.killed = 0, False, False
        self.started, self.error = [], None

    def alive(self):
        return self.count

    def start(self, count):
        if self.error is not None:
            raise self.error
        self.started.append(count)
        self.count += count if self.stay else 0

    def stop(self, signum):
        """Leave them."""

    def kill(self):
        self.killed = True

    def describe(self):
        return "see the log"


@pytest.fixture
def counted_workers():
    return CountedWorkers()
