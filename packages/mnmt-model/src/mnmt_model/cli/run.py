"""Commands on a trained run: `mnmt-model average`, `log-probs`, `export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mnmt_model.errors import RunError


def average(
    run: Path,
    *,
    last: int | None = None,
    best: int | None = None,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
) -> None:
    """Average the weights of checkpoints of a run, for translation or to start other runs from.

    Args:
        run: Folder of the run.
        last: Number of newest checkpoints to average.
        best: Number of checkpoints with the lowest dev loss to average instead; see `keep_best` in [train].
        out: Folder to write; RUN/averages/last-N or best-N by default.
    """
    from mnmt_model.checkpoints.average import AVERAGES, average_checkpoints, select_checkpoints
    from mnmt_model.runs.load import dev_loss
    from mnmt_model.runs.run_record import read_run

    if (last is None) == (best is None) or min(last or 1, best or 1) < 1:
        raise RunError("give either --last N or --best N, with an N of at least 1")
    read_run(run)
    out = out or run / AVERAGES / (f"last-{last}" if last else f"best-{best}")
    checkpoints = select_checkpoints(run, last=last, best=best)
    average_checkpoints(checkpoints, out)
    names = ", ".join(path.name for path in checkpoints)
    print(f"averaged: {out} ({names}), dev loss {dev_loss(out):.4f} nats a token")


def log_probs(
    run: Path,
    *,
    task: str,
    data: Path | None = None,
    out: Annotated[Path | None, Parameter(("--out", "-o"))] = None,
) -> None:
    """Write the log-probability of every training pair under a run's newest model.

    `mnmt-data select` reads the file. The command continues where it was interrupted.

    Args:
        run: Folder of the run.
        task: Task of the pairs, such as en-de.
        data: Folder of prepared data with the run's vocabulary; the run's own data by default.
        out: Parquet file to write; RUN/scores/train.TASK.parquet by default.
    """
    from rich.console import Console
    from rich.progress import Progress

    from mnmt_model.runs.log_probs import write_log_probs

    out = out or run / "scores" / f"train.{task}.parquet"
    terminal = sys.stderr.isatty()
    with Progress(console=Console(stderr=True, force_terminal=terminal), disable=not terminal) as progress:
        task_id = progress.add_task("pairs", total=None)

        def advance(pairs: int, total: int) -> None:
            progress.update(task_id, completed=pairs, total=total)
            if not terminal:
                print(f"pair {pairs:,} of {total:,}", file=sys.stderr, flush=True)

        write_log_probs(run, data, split="train", task=task, out=out, on_pairs=advance)
    print(f"written: {out}")


def export(
    run: Path,
    *,
    out: Annotated[Path, Parameter(("--out", "-o"))],
    checkpoint: Path | None = None,
) -> None:
    """Write a run's model for transformers and CTranslate2, with a certificate that they agree with it.

    Args:
        run: Folder of the run.
        out: Folder to write, which must not exist; its `ctranslate2` holds the CTranslate2 model.
        checkpoint: A checkpoint or average of the run; its newest checkpoint by default.
    """
    from mnmt_model.export.conversion import export_run

    certificate = export_run(run, out, checkpoint=checkpoint)
    print(f"exported: {out} ({len(certificate.pairs)} pairs agree under {', '.join(certificate.engines)})")
