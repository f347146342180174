"""The model card of an export, README.md: what the model is, what it measured, and its certificate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mnmt_model.export.certificate import OURS
from mnmt_model.runs.run_record import Eval, RunRecord

_CARD = """---
{metadata}
---
# {name}

{what}

{verdict}

## Use

{use}

## Measured

{measured}

## Certificate

Of {num_pairs} test pairs, log p(target | source), compared with {ours}'s. Differences are in nats; \
relative ones are |theirs - ours| / max(|ours|, 1), and must be at most {tolerance:g}. certificate.json has \
every pair, {translations} greedy translations, and the checksums of weights and vocabulary.

{certificate}
"""

_USE = """```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(FOLDER)
model = AutoModelForSeq2SeqLM.from_pretrained(FOLDER)
inputs = tokenizer("{source}", return_tensors="pt")
print(tokenizer.batch_decode(model.generate(**inputs, num_beams=4), skip_special_tokens=True))
```"""


def model_card(
    record: RunRecord, evals: Sequence[Eval], certificate: Mapping[str, Any], *, name: str, tag: str
) -> str:
    """Return the text of a model card, with metadata as the Hugging Face Hub reads them.

    Args:
        record: The record of the run.
        evals: The measurements of what is exported.
        certificate: The content of certificate.json.
        name: The name of the model.
        tag: Where sources have the tag of their target: `prepended`, `appended` or `none`.
    """
    measured = [[each.testset, each.task, each.metric, f"{each.value:.4g}"] for each in evals]
    engines = [[name, *(f"{x:.2e}" for x in row.values())] for name, row in certificate["engines"].items()]
    differences = ("largest relative difference", "largest difference", "of a token")
    return _CARD.format(
        metadata=_metadata(record, evals, name),
        name=name,
        what=_what(record),
        verdict=_verdict(certificate),
        use=_USE.format(source=_source(record, tag)),
        measured=_table(("test set", "task", "metric", "value"), measured) if evals else "Nothing yet.",
        num_pairs=certificate["num_pairs"],
        ours=OURS,
        tolerance=certificate["tolerance"],
        translations=len(certificate["translations"]),
        certificate=_table(("engine", *differences), engines),
    )


def _metadata(record: RunRecord, evals: Iterable[Eval], name: str) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    results = [
        EvalResult(
            task_type="translation",
            dataset_name=f"{record.study} {each.testset} {each.task}",
            dataset_type=record.study,
            dataset_config=each.task,
            dataset_split=each.testset,
            metric_type=each.metric,
            metric_value=round(each.value, 4),
            metric_args={"signature": each.signature},
        )
        for each in evals
    ]
    return ModelCardData(
        model_name=name,
        language=sorted({code for task in record.mixture for code in task.split("-")[:2]}),
        library_name="transformers",
        pipeline_tag="translation",
        tags=["mnmt", *sorted(record.mixture)],
        eval_results=results or None,
    ).to_yaml()


def _what(record: RunRecord) -> str:
    mixture = ", ".join(f"{task} {weight:.3g}" for task, weight in record.mixture.items())
    train = record.config["train"]
    return (
        f"A translation model of {record.num_params:,} parameters, {record.size:,} of them besides "
        f"embeddings, trained by mnmt-model {record.versions['mnmt-model']} for {train['steps']:,} steps of "
        f"{train['batch_tokens']:,} tokens. It is the run {record.run} of the study {record.study}. "
        f"Weights of the tasks in training: {mixture}."
    )


def _verdict(certificate: Mapping[str, Any]) -> str:
    if certificate["agrees"]:
        engines = " and ".join(certificate["engines"])
        return f"**Agrees.** Under {engines} this is the model that was trained."
    failures = "".join(f"\n- {failure}" for failure in certificate["failures"])
    return f"**Does not agree.** Do not use this folder.\n{failures}"


def _source(record: RunRecord, tag: str) -> str:
    """Return a source as it must be written, with the tag of the first task's target."""
    text = "Text to translate."
    language = next(iter(record.mixture), "-").split("-")[1]
    return {"prepended": f"<2{language}> {text}", "appended": f"{text} <2{language}>"}.get(tag, text)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["--"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
