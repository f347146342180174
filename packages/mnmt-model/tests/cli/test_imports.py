"""What a dense model imports."""

from __future__ import annotations

import subprocess
import sys


def test_a_dense_model_needs_neither_dtensors_nor_the_compiler() -> None:
    """FSDP2 and divided experts need the first; torch's optimisers import both, when one is made."""
    program = """
import sys
from mnmt_model.transformer import ModelConfig, build_model, initialise
import mnmt_model.training.run, mnmt_model.optim.adafactor
initialise(build_model(ModelConfig(d_model=16, d_ff=32), 40), seed=1)
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "torch" in loaded
    assert not {"torch.distributed.tensor", "torch.distributed.fsdp", "torch._dynamo"} & loaded
