"""Bytes that training keeps from step to step: weights, gradients and the optimiser's state, all float32."""

from __future__ import annotations

from typing import Literal

FLOAT32 = 4
"""Bytes of a number in float32."""


def state_bytes(num_params: int, optimizer: Literal["adafactor", "adamw"]) -> int:
    """Return the bytes of weights, gradients and the optimiser's state of a model on one device.

    AdamW keeps two numbers a parameter. Adafactor keeps one for each row and column of a matrix, which is
    left out: below 1% from 200 rows and columns on. So are activations.
    """
    return FLOAT32 * num_params * (4 if optimizer == "adamw" else 2)
