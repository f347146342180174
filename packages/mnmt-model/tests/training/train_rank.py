"""One process of a training run, with torchrun's environment: train_rank.py PLAN.pickle FOLDER STOP_AT."""

import os
import pickle
import sys
from pathlib import Path

import torch

from mnmt_model import Watcher, train


class StopAt(Watcher):
    """Ends the first process in the middle, as a kill does; the others notice."""

    def __init__(self, at: int) -> None:
        self.at = at

    def step(self, step: int) -> None:
        if step == self.at:
            os._exit(1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    plan = pickle.loads(Path(sys.argv[1]).read_bytes())
    train(plan, Path(sys.argv[2]), watchers=[StopAt(int(sys.argv[3]))])
