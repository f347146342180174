"""Which tokenizer BLEU needs for a language."""

from __future__ import annotations

from pathlib import Path

from sacrebleu import utils as sacrebleu_utils
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS

from mnmt_eval.errors import EvalError
from mnmt_eval.language.codes import base_language

_BY_LANGUAGE = {
    "zh": ("zh", "zho", "cmn", "yue", "wuu"),
    "ja-mecab": ("ja", "jpn"),
    "ko-mecab": ("ko", "kor"),
    # No spaces between words: Thai, Lao, Khmer, Burmese, Shan, Tibetan, Dzongkha.
    "flores200": ("th", "tha", "lo", "lao", "km", "khm", "my", "mya", "shn", "bo", "bod", "dz", "dzo"),
}
_EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}


def tokenizer_of(target: str) -> str:
    """The tokenizer of sacreBLEU for a target language: `13a` where words stand between spaces."""
    language = base_language(target)
    return next((name for name, languages in _BY_LANGUAGE.items() if language in languages), "13a")


def check_tokenizer(tokenizer: str, target: str) -> None:
    """Refuse a tokenizer that is unknown or would have to be downloaded.

    Raises:
        EvalError: Saying where its model belongs, or which there are.
    """
    if tokenizer not in BLEU.TOKENIZERS:
        raise EvalError(f"`tokenizer` must be one of {', '.join(BLEU.TOKENIZERS)}, but is {tokenizer!r}.")
    if tokenizer not in SPM_MODELS:
        return
    model = Path(sacrebleu_utils.SACREBLEU_DIR) / "models" / Path(SPM_MODELS[tokenizer]["url"]).name
    if not model.is_file():
        raise EvalError(
            f"bleu: {target} needs the tokenizer {tokenizer}, whose model is missing; "
            f"`sacrebleu --tokenize {tokenizer}` downloads it to {model}. "
            "Or choose another `tokenizer`, such as char."
        )


def missing_tokenizer(tokenizer: str, target: str) -> EvalError:
    """What to say where a tokenizer's packages are missing."""
    extra = _EXTRAS[tokenizer]
    return EvalError(
        f"bleu: the tokenizer {tokenizer} for {target} is missing; "
        f"`pip install 'mnmt-eval[{extra}]'` installs it."
    )
