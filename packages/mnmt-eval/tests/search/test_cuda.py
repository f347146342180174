"""On a GPU search finds what it finds on a CPU."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from small_models import SRC, Find, all_models, all_searches, close, model

from mnmt_model.transformer import Architecture, IncrementalModel

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch.cuda is not available: no GPU to run on"),
]


@all_models
@all_searches
def test_what_is_found_is_what_a_cpu_finds(architecture: Architecture, parts: str, find: Find) -> None:
    on_cpu = model(architecture, parts)
    on_gpu = IncrementalModel(deepcopy(on_cpu.translation_model).to("cuda"))
    close(find(on_gpu, SRC.to("cuda")), find(on_cpu, SRC))
