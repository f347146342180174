"""`mnmt-data replay`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mnmt_data.cli.app import Count, Json, app


@app.command
def replay(run: Path, *, step: Count = 0, samples: Count = 3, as_json: Json = False) -> None:
    """Compute again what a run read: how often each task was drawn before a step, and the batch of that step.

    Args:
        run: Folder of a run record.
        step: The step, from 0 to the one before the run's end.
        samples: Pairs of its batch to show.
        as_json: Print JSON.
    """
    from mnmt_data.stream.replay import audit, describe_batch, open_recorded_stream, read_recorded_stream

    recorded = read_recorded_stream(run)
    recorded.check_step(step)
    stream, data = open_recorded_stream(recorded)
    draws, batch = audit(stream, step), describe_batch(stream, data, step, samples=samples)
    print(
        json.dumps({"draws": draws, "batch": batch}, ensure_ascii=False) if as_json else _table(draws, batch)
    )


def _table(draws: dict[str, Any], batch: dict[str, Any]) -> str:
    lines = [f"drawn before step {batch['step']}"]
    lines.append(f"{'task':<12}{'weight':>10}{'share':>10}{'pairs':>14}{'epochs':>9}{'deviation':>11}")
    for task, row in draws.items():
        shares = f"{row['weight']:>10.6f}{row['share']:>10.6f}"
        lines.append(f"{task:<12}{shares}{row['pairs']:>14,}{row['epochs']:>9.2f}{row['deviation']:>+10.2f}σ")
    size = f"{batch['pairs']:,} pairs, {batch['tgt_tokens']:,} target tokens, {batch['padding']:.1%} padding"
    lines.append(f"\nbatch of step {batch['step']}: {size}")
    lines += [
        f"\n{pair['task']} row {pair['row']}: {pair['src']}\n  {pair['tgt']}" for pair in batch["samples"]
    ]
    return "\n".join(lines)
