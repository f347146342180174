"""run.json: what a run is and where it ran."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from os import path
from pathlib import Path
from typing import Any

from mnmt_data.store import VOCABULARY, PreparedData, checksum
from mnmt_model import jsonl
from mnmt_model.planning.parameters import count
from mnmt_model.runs.run_config import RunPlan
from mnmt_model.runs.run_record import RUN, SCHEMA


def describe(plan: RunPlan, folder: Path, *, vocab_size: int, data: PreparedData | None) -> dict[str, Any]:
    """The run.json of a run about to start in `folder`, from its data if it is trained here."""
    vocabulary = plan.data / VOCABULARY
    counted = count(plan.model, vocab_size)
    return {
        "schema": SCHEMA,
        "run": plan.name,
        "study": plan.study,
        "status": "running",
        "error": None,
        "role": plan.role,
        "architecture": plan.model.architecture,
        "size": counted.size,
        "encoder_size": counted.encoder_size,
        "decoder_size": counted.decoder_size,
        "active_size": counted.active_size,
        "num_params": counted.num_params,
        "vocab_size": vocab_size,
        "vocabulary": checksum(vocabulary) if vocabulary.is_file() else None,
        "mixture": dict(plan.mixture),
        "irreducible": dict(data.irreducible) if data else {},
        "seed": plan.seed,
        "data": path.relpath(plan.data.resolve(), folder.resolve()),
        "data_fingerprint": data.fingerprint if data else None,
        "config": _as_read({"model": asdict(plan.model.resolved()), "train": asdict(plan.train)}),
        "versions": {
            "mnmt-model": version("mnmt-model"),
            "torch": version("torch"),
            "python": platform.python_version(),
        },
        "host": f"{platform.system()} {platform.machine()}",
        "started": now(),
        "finished": None,
        "wall_seconds": 0.0,
        "stopped": None,
        "peak_flops": None,
    }


def _as_read(config: dict[str, Any]) -> Any:
    """As JSON gives it back, with lists for tuples, so that a plan can be compared with a record."""
    return json.loads(json.dumps(config))


def write_record(folder: Path, record: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Replace run.json by `record` with `changes`; returns what was written."""
    changed = {**record, **changes}
    jsonl.write_json(folder / RUN, changed)
    return changed


def now() -> str:
    """The time, in UTC to the second."""
    return datetime.fromtimestamp(time.time(), tz=UTC).isoformat(timespec="seconds")
