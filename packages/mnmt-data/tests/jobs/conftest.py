import pytest


class CountedWorkers:
    """Workers that are only counted, and end at once unless they `stay`."""

    poll_seconds = 0.0

    def __init__(self):
        self.count, self.stay, self.stopped = 0, False, 0
        self.started, self.error = [], None

    def alive(self):
        return self.count

    def start(self, count):
        if self.error is not None:
            raise self.error
        self.started.append(count)
        self.count += count if self.stay else 0

    def stop(self, signum):
        self.stopped = signum

    def describe(self):
        return "see the log"


@pytest.fixture
def counted_workers():
    return CountedWorkers()
