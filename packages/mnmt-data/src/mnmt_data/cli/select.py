"""`mnmt-data select`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnmt_data.cli.progress import Count, Json
from mnmt_data.errors import DataError

if TYPE_CHECKING:
    from mnmt_data.store.prepared import PreparedData
    from mnmt_data.stream.selection import SelectedShare, Selection

SHARES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


def select(
    prepared: Path,
    *,
    task: str,
    base: Path | None = None,
    tuned: Path | None = None,
    by: str | None = None,
    samples: Count = 0,
    as_json: Json = False,
) -> None:
    """Order a task's training pairs, best first, for `keep` of `[train.mixing]` to use a share of them.

    The order is PREPARED/selection/train.TASK.npy.

    With both score files of `mnmt-model log-probs`, pairs are ordered by how much tuning on trusted text
    raised their log-probability per token; with one file, by the log-probability per token; with `--by`, by a
    score from another tool.

    Args:
        prepared: Folder of prepared data, such as results/NAME/data.
        task: The task whose training pairs were scored.
        base: Scores under the model trained on all pairs.
        tuned: Scores under that model, tuned on trusted pairs.
        by: A score of `[data.scores]`, in place of base and tuned.
        samples: Best and worst pairs to show.
        as_json: Print JSON.
    """
    from mnmt_data.store.prepared import open_prepared
    from mnmt_data.stream.mixing import order_path
    from mnmt_data.stream.selection import select as select_pairs
    from mnmt_data.stream.selection import select_by

    if (by is None) == (base is None and tuned is None):
        what = "give one score file of `mnmt-model log-probs`, or both; or --by with a score of the data"
        raise DataError(f"--base and --tuned: {what}.")
    data = open_prepared(prepared)
    if task not in data.tasks:
        raise DataError(f"--task must be one of {', '.join(data.tasks)}, but is {task}.")
    out = order_path(prepared, task)
    if by is not None:
        selection = select_by(data, task, by, out=out)
    else:
        selection = select_pairs(data, task, base=base, tuned=tuned, out=out)
    shares = [selection.best(share) for share in SHARES]
    examples = list(_samples(data, task, selection, samples))
    if as_json:
        print(
            json.dumps(
                {"order": str(out), "shares": [asdict(row) for row in shares], "samples": examples},
                ensure_ascii=False,
            )
        )
    else:
        print(_table(shares, examples))
        print(f"selected: {out}")


def _samples(data: PreparedData, task: str, selection: Selection, count: int) -> Iterator[dict[str, Any]]:
    """Yield the best and the worst pairs as text."""
    shard = data.shard("train", task)
    ends = {"best": selection.order[:count], "worst": selection.order[len(selection.order) - count :]}
    for end, rows in ends.items():
        src, tgt = shard.gather(rows)
        for place, row in enumerate(rows.tolist()):
            texts = {"src": data.vocab.decode(src[place]), "tgt": data.vocab.decode(tgt[place])}
            yield {"end": end, "row": row, "score": float(selection.scores[row]), **texts}


def _table(shares: Sequence[SelectedShare], examples: Sequence[dict[str, Any]]) -> str:
    lines = [f"{'share':>6}{'pairs':>16}{'lowest score':>15}"]
    lines += [f"{row.share:>6.0%}{row.pairs:>16,}{row.lowest:>15.3f}" for row in shares]
    lines += [
        f"\n{pair['end']}, row {pair['row']}, {pair['score']:.3f}: {pair['src']}\n  {pair['tgt']}"
        for pair in examples
    ]
    return "\n".join(lines)
