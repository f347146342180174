"""Bytes that training keeps from step to step: weights, gradients and the optimiser's state, all float32."""

from __future__ import annotations

from typing import Literal

FLOAT32 = 4
"""Bytes of a number in float32."""


def state_bytes(num_params: int, optimizer: Literal["adafactor", "adamw"]) -> int:
    """Return the float32 bytes of weights, gradients and the optimiser's state of a model on one device.

    AdamW stores two numbers a parameter. Adafactor stores one for each row and column of a matrix, which is
    neglected: below 1% from 200 rows and columns on. Activations are not included.
    """
    return FLOAT32 * num_params * (4 if optimizer == "adamw" else 2)
