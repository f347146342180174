"""On a GPU search finds what it finds on a CPU."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from small_models import PREFIX, SRC, all_models, all_searches, close, model

from mnmt_eval.search import SearchConfig, search
from mnmt_model.transformer import Architecture, IncrementalModel

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch.cuda is not available: no GPU to run on"),
]


@all_models
@all_searches
def test_what_is_found_is_what_a_cpu_finds(
    architecture: Architecture, parts: str, config: SearchConfig
) -> None:
    here = model(architecture, parts)
    there = IncrementalModel(deepcopy(here.model).to("cuda"))
    found = search(there, SRC.to("cuda"), config, prefix=PREFIX.to("cuda"))
    close(found, search(here, SRC, config, prefix=PREFIX))
