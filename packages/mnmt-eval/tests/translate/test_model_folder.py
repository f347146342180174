"""Folders of Hugging Face and CTranslate2, against `generate` with their own tokenizers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hugging_face_folders import FOLDERS, LINES, write_folder

from mnmt_eval.errors import EvalError
from mnmt_eval.search import LengthPenalty, MaxLength, SearchConfig
from mnmt_eval.translate import EngineConfig, Translation, translate
from mnmt_eval.translate.model_folder import FolderTranslator, open_model_folder

transformers: Any = pytest.importorskip("transformers", reason="the extra `hugging-face` is not installed")
ctranslate2: Any = pytest.importorskip("ctranslate2", reason="the extra `hugging-face` is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

CONFIG = SearchConfig(
    beam=4, n_best=4, max_length=MaxLength(ratio=0, extra=14), length_penalty=LengthPenalty(alpha=1.0)
)
TEXT = [LINES[0], LINES[40], LINES[3], LINES[7]]


@pytest.fixture(scope="module", params=FOLDERS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(request.param, tmp_path_factory.mktemp("folder"))


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder("marian", tmp_path_factory.mktemp("folder"))


def translated(model: FolderTranslator, task: str = "en-de") -> list[Translation]:
    return translate(model.translator.engine, model.vocab, TEXT, target=model.target_of(task))


def inputs_of(name: str, tokenizer: Any) -> tuple[list[str], dict[str, Any]]:
    """The text and the options with which users of transformers call `generate`, for English to German."""
    if name == "marian":
        return [f">>deu<< {line}" for line in TEXT], {}
    if name == "t5":
        return [f"the house to: {line}" for line in TEXT], {}
    codes = {"m2m_100": ("en", "de"), "nllb": ("eng_Latn", "deu_Latn")}
    tokenizer.src_lang, target = codes.get(name, ("en_XX", "de_DE"))
    number = tokenizer.get_lang_id(target) if name == "m2m_100" else tokenizer.convert_tokens_to_ids(target)
    return TEXT, {"decoder_start_token_id" if name == "mbart_25" else "forced_bos_token_id": number}


def test_translations_are_those_of_generate(folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    text, options = inputs_of(folder.name, tokenizer)
    output = theirs.generate(
        **tokenizer(text, return_tensors="pt", padding=True),
        num_beams=4,
        num_return_sequences=4,
        length_penalty=1.0,
        early_stopping=True,
        max_new_tokens=14,
        suppress_tokens=[tokenizer.pad_token_id],
        forced_eos_token_id=None,
        return_dict_in_generate=True,
        output_scores=True,
        **options,
    )
    ours = [each for line in translated(open_model_folder(folder, config=CONFIG)) for each in line.n_best]
    scores = output.sequences_scores.tolist()
    assert [each.score for each in ours] == pytest.approx(scores, rel=1e-5, abs=1e-5)
    expected = tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
    if folder.name == "m2m_100":  # whose language tokens are no special ones in this tokenizer
        expected = [re.sub(r"__\w{2,3}?__", "", text) for text in expected]
    assert [each.text for each in ours] == [" ".join(text.split()) for text in expected]


def test_ctranslate2_finds_the_same(folder: Path) -> None:
    if folder.name == "m2m_100":
        pytest.skip("CTranslate2 wants language tokens among the special ones, as NLLB has them")
    ours = translated(open_model_folder(folder, config=CONFIG, engine=EngineConfig(name="torch")))
    ctranslate2.converters.TransformersConverter(str(folder)).convert(str(folder / "ctranslate2"))
    try:
        model = open_model_folder(folder, config=CONFIG)
        assert model.engine.name == "ctranslate2"
        theirs = translated(model)
    finally:
        shutil.rmtree(folder / "ctranslate2")
    assert [[each.text for each in line.n_best] for line in theirs] == [
        [each.text for each in line.n_best] for line in ours
    ]
    for one, other in zip(theirs, ours, strict=True):
        scores = [each.score for each in other.n_best]
        assert [each.score for each in one.n_best] == pytest.approx(scores, rel=1e-4, abs=1e-4)


def test_an_export_for_ctranslate2_needs_only_its_tokenizer(marian: Path, tmp_path: Path) -> None:
    copied = ["source.spm", "target.spm", "vocab.json", "tokenizer_config.json", "special_tokens_map.json"]
    converter = ctranslate2.converters.TransformersConverter(str(marian), copy_files=copied)
    converter.convert(str(tmp_path / "export"))
    theirs = translated(open_model_folder(tmp_path / "export", config=CONFIG))
    ours = translated(open_model_folder(marian, config=CONFIG))
    assert [line.text for line in theirs] == [line.text for line in ours]


def test_languages_have_any_of_their_codes(folder: Path) -> None:
    model = open_model_folder(folder, config=CONFIG)
    rows = [
        model.vocab.encode_sources(TEXT, target=model.target_of(task)).values.tolist()
        for task in ("en-de", "eng-deu", "en-deu")
    ]
    assert rows[0] == rows[1] == rows[2]
    if folder.name not in ("t5", "mbart_25", "mbart_50"):
        french = model.vocab.encode_sources(TEXT, target=model.target_of("en-fr")).values.tolist()
        assert french != rows[0]


def test_a_prefix_is_put_before_every_source(marian: Path) -> None:
    plain = open_model_folder(marian, config=CONFIG).vocab
    prefixed = open_model_folder(marian, config=CONFIG, prefix=">>fra<< the ").vocab
    texts = ["the tree.", "house"]
    french = plain.encode_sources([f"the {text}" for text in texts], target="en-fr")
    assert prefixed.encode_sources(texts, target="en-de").values.tolist() == french.values.tolist()


def test_a_pair_without_a_prefix_is_refused(tmp_path: Path) -> None:
    folder = write_folder("t5", tmp_path)
    with pytest.raises(
        EvalError, match=r"cannot translate en-fr; it has en-de, and others with --source-pre"
    ):
        open_model_folder(folder, config=CONFIG).target_of("en-fr")
    assert open_model_folder(folder, config=CONFIG, prefix="to: ").target_of("en-fr") == "en-fr"


def test_sources_are_as_long_as_positions_allow(marian: Path) -> None:
    longest = {
        ratio: open_model_folder(
            marian, config=SearchConfig(max_length=MaxLength(ratio=ratio, extra=20))
        ).translator.max_source
        for ratio in (0.0, 2.0)
    }
    assert longest == {0.0: 64, 2.0: 22}
    with pytest.raises(EvalError, match="has 64 positions, too few for `max_length` 0x\\+65"):
        open_model_folder(marian, config=SearchConfig(max_length=MaxLength(ratio=0, extra=65)))


@pytest.mark.parametrize(
    ("remove", "engine", "message"),
    [
        ("model.safetensors", "auto", "cannot be loaded as an encoder-decoder"),
        ("source.spm", "auto", "has no tokenizer that transformers can read"),
        (None, "ctranslate2", "has no model.bin for CTranslate2; make one with `ct2-transformers-converter"),
    ],
)
def test_a_broken_folder_is_one_line(
    marian: Path, tmp_path: Path, remove: str | None, engine: Any, message: str
) -> None:
    folder = Path(shutil.copytree(marian, tmp_path / "broken"))
    if remove:
        (folder / remove).unlink()
    with pytest.raises(EvalError, match=message) as raised:
        open_model_folder(folder, config=CONFIG, engine=EngineConfig(name=engine))
    assert "\n" not in str(raised.value)


def test_weights_that_are_missing_are_named(tmp_path: Path) -> None:
    folder = write_folder("mbart_50", tmp_path)
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(settings | {"decoder_layers": 3}), encoding="utf-8")
    with pytest.raises(EvalError, match=r"lacks weights of the model: model\.decoder\.layers\.2"):
        open_model_folder(folder, config=CONFIG)
