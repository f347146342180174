from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from command_line import CommandLine

from mnmt_eval.runs import open_run
from mnmt_eval.runs.losses import Loss, sentence_losses
from mnmt_eval.runs.texts import run_text
from mnmt_model.runs.losses import shard_loss


def test_losses_are_of_the_references_in_their_order(tiny_run: Path) -> None:
    run, text = open_run(tiny_run), run_text([tiny_run], "test", "xx-aa")
    losses = sentence_losses(tiny_run, text)
    vocab = run.data.vocab
    assert losses[:, 1].tolist() == [len(ids) + 1 for ids in vocab.encode(text.references[0])]
    expected = shard_loss(
        run.loaded.model.translation_model, run.data.shard("test", "xx-aa"), batch_tokens=500
    )
    assert Loss().corpus(losses).value == pytest.approx(expected, rel=1e-5)
    alone = Loss().values(losses[3])
    src, tgt = run.data.shard("test", "xx-aa").gather(torch.tensor([3]).numpy())
    from mnmt_model.runs.log_probs import shard_nats

    nats = shard_nats(run.loaded.model.translation_model, src, tgt, batch_tokens=500)
    assert float(alone) == pytest.approx(float(nats[0]) / losses[3, 1], rel=1e-5)
    assert sentence_losses(tiny_run, text.head(5)).tolist() == losses[:5].tolist()


def test_losses_are_compared_within_groups(command_line: CommandLine, scored_run: Path) -> None:
    shutil.copytree(scored_run, scored_run.with_name("other"))
    arguments = (scored_run.parent, "--task", "xx-aa", "--metric", "chrf", "--losses", "--by", "thirds")
    done = command_line.run("compare", *arguments, "--json")
    assert done.status == 0, done.stderr
    (comparison,) = json.loads(done.stdout)["comparisons"]
    loss = comparison["metrics"][1]
    assert (loss["metric"], loss["higher_is_better"]) == ("loss", False)
    other, tiny = loss["systems"]
    assert tiny["against_baseline"]["difference"] == 0
    losses = sentence_losses(scored_run, run_text([scored_run], "test", "xx-aa"))
    assert other["value"] == Loss().corpus(losses).value
    assert sum(group["sentences"] for group in other["groups"]) == 20
    assert min(group["value"] for group in other["groups"]) < other["value"]


def test_only_runs_on_their_own_text_have_losses(
    command_line: CommandLine, scored_run: Path, tmp_path: Path
) -> None:
    text = run_text([scored_run], "test", "xx-aa")
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in text.references[0]), encoding="utf-8")
    (tmp_path / "other").write_text("x\n" * 20, encoding="utf-8")
    arguments = ("compare", scored_run, "--task", "xx-aa", "--losses")
    done = command_line.run("compare", f"perfect={tmp_path / 'ref'}", *arguments[1:])
    assert (done.status, done.stderr) == (
        2,
        "mnmt-eval: perfect: only runs have losses; leave out --losses.\n",
    )
    done = command_line.run(*arguments, "--reference", tmp_path / "other")
    assert done.status == 2
    assert "losses are on test sets of its own data, but the references are others." in done.stderr
