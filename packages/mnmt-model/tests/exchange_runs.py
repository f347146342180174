"""What a process of a test does in place of plain training, to watch or to change the experts' exchange.

Processes import these functions by name, which the modules of tests cannot offer.
"""

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

from torch import Tensor, distributed

import mnmt_moe_ext
from mnmt_model import RunConfig, train
from mnmt_model.transformer.translation_model import TranslationModel


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("a process waited for all others within a pass")


def train_logged(run: RunConfig, folder: Path) -> None:
    """Train; write the tokens of each pass in training, and the shapes of the slots that it exchanges."""
    passes: list[dict[str, Any]] = []
    forward, exchange = TranslationModel.forward, distributed.all_to_all_single

    def logged_exchange(received: Tensor, sent: Tensor, *args: Any, **options: Any) -> Any:
        if sent.dim() == 3:
            passes[-1]["shapes"].append(list(sent.shape))
        return exchange(received, sent, *args, **options)

    def logged_forward(model: TranslationModel, src: Any, tgt: Any, **options: Any) -> Any:
        passes.append({"tokens": [src.num_tokens, tgt.num_tokens], "training": model.training, "shapes": []})
        with (
            patch.object(distributed, "all_reduce", refuse),
            patch.object(distributed, "all_to_all_single", logged_exchange),
        ):
            return forward(model, src, tgt, **options)

    with patch.object(TranslationModel, "forward", logged_forward):
        train(run, folder)
    log = [each for each in passes if each["training"]]
    (folder.parent / f"passes.{os.environ['RANK']}.json").write_text(json.dumps(log))


def train_without_slots(run: RunConfig, folder: Path) -> None:
    """Train where no slots can travel."""
    del mnmt_moe_ext.apply_experts
    train(run, folder)
