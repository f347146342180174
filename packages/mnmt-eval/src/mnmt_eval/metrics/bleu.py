"""BLEU."""

from __future__ import annotations

import re

from sacrebleu.metrics.bleu import BLEU

from mnmt_eval.errors import EvalError
from mnmt_eval.metrics.corpus_metric import ONE_REFERENCE, CorpusMetric


def bleu(target: str) -> CorpusMetric:
    """Corpus BLEU (Papineni et al. 2002) as `sacrebleu -l SRC-TGT` computes it.

    Args:
        target: the target language; it chooses the tokenizer, which the signature names: `zh` for Chinese,
            `ja-mecab` for Japanese, `ko-mecab` for Korean, else `13a`. Of `zh_CN` only `zh` counts.

    Raises:
        EvalError: if the language's tokenizer is an extra that is not installed.
    """
    language = re.split(r"[-_]", target)[0].lower()
    try:
        scorer = BLEU(trg_lang=language, force=True, references=ONE_REFERENCE)
    except RuntimeError:
        raise EvalError(
            f"bleu: the tokenizer for {target} is missing; `pip install 'mnmt-eval[{language}]'` installs it."
        ) from None
    return CorpusMetric(name="bleu", scorer=scorer)
