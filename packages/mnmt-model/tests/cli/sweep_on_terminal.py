"""Show a run in training on the terminal until a signal: the tests' program on a pseudo-terminal."""

import sys
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from fake_training import fake_runs

from mnmt_data.cli.signals import end_on_signals
from mnmt_data.jobs import HeartbeatWriter
from mnmt_model.cli.progress import SweepProgress
from mnmt_model.runs.run_config import new_record
from mnmt_model.runs.run_record import write_run

if __name__ == "__main__":
    folder, runs = Path(sys.argv[1]), fake_runs(2)
    run = folder / runs[0].name
    run.mkdir()
    write_run(run, new_record(runs[0], run, vocab_size=10, data=None))
    HeartbeatWriter(run, step=3, steps=10)
    with end_on_signals("test"), closing(SweepProgress(runs, folder, jobs=1)) as progress:
        while True:
            progress.look(waiting=False)
            time.sleep(0.1)
