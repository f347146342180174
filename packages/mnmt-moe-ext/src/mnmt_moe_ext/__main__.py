"""`python -m mnmt_moe_ext` prints how the extension was built."""

from __future__ import annotations

import sys
from dataclasses import asdict

import torch

from mnmt_moe_ext import __version__, build_info, is_available


def main() -> int:
    """Print the version, the devices with compiled operators, and how they were built; return 0."""
    print(f"mnmt-moe-ext {__version__}")
    devices = [name for name in ("cpu", "cuda") if is_available(torch.device(name))]
    print(f"compiled operators: {', '.join(devices) or 'none, only mnmt_moe_ext.reference'}")
    if devices:
        for name, value in asdict(build_info()).items():
            print(f"{name.replace('_', ' ')}: {value or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
