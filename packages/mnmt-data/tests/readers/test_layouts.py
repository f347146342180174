import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mnmt_data.errors import DataError
from mnmt_data.readers import find_readers


def write(folder, *names):
    """Each file holds its own name."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = f"{name}\n".encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def found(folder, testset, task="en-de"):
    blocks = [block for reader in find_readers(folder, testset, task) for block in reader.blocks()]
    return [pair for block in blocks for pair in zip(block.src, block.tgt, strict=True)]


def test_moses_names(tmp_path):
    write(tmp_path, "train.en-de.en", "train.en-de.de.gz", "dev.de-en.en", "dev.de-en.de")
    assert found(tmp_path, "train") == [("train.en-de.en", "train.en-de.de.gz")]
    assert found(tmp_path, "train", "de-en") == [("train.en-de.de.gz", "train.en-de.en")]
    assert found(tmp_path, "dev") == [("dev.de-en.en", "dev.de-en.de")]
    assert find_readers(tmp_path, "test", "en-de") == ()
    assert find_readers(tmp_path, "train", "en-fr") == ()
    assert find_readers(tmp_path / "nowhere", "train", "en-de") == ()


def test_the_opposite_direction_serves_only_where_there_is_no_other(tmp_path):
    write(tmp_path, "train.en-de.en", "train.en-de.de", "train.de-en.en", "train.de-en.de")
    assert found(tmp_path, "train") == [("train.en-de.en", "train.en-de.de")]
    assert found(tmp_path, "train", "de-en") == [("train.de-en.de", "train.de-en.en")]


def test_everything_that_is_there_is_read(tmp_path):
    write(tmp_path, "train.en-de.en", "train.en-de.de")
    (tmp_path / "train.en-de.tsv").write_text("a\tA\n", encoding="utf-8")
    pq.write_table(pa.table({"en": ["b"], "de": ["B"]}), tmp_path / "train.en-de.parquet")
    assert found(tmp_path, "train") == [("train.en-de.en", "train.en-de.de"), ("a", "A"), ("b", "B")]


def test_a_tsv_named_for_the_opposite_direction_trades_columns(tmp_path):
    (tmp_path / "train.de-en.tsv").write_text("A\ta\n", encoding="utf-8")
    assert found(tmp_path, "train") == [("a", "A")]
    assert found(tmp_path, "train", "de-en") == [("A", "a")]


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ("train.en-de.en", "train.en-de.de"),
        ("train.de-en.de.gz", "train.de-en.en"),
        ("wmt19.en-de.src", "wmt19.en-de.ref"),
        ("wmt19.en-de.ref", "wmt19.en-de.src"),
    ],
)
def test_one_side_alone_is_a_mistake(tmp_path, there, missing):
    write(tmp_path, there)
    with pytest.raises(DataError) as error:
        find_readers(tmp_path, there.partition(".")[0], "en-de")
    expected = f"{tmp_path / missing}: no such file; a task needs both sides; its folder holds "
    assert str(error.value).startswith(expected)


@pytest.mark.parametrize("names", [("train.en-de.en", "train.en-de.de"), ("train.eng", "train.deu")])
def test_the_same_text_twice_is_a_mistake(tmp_path, names):
    write(tmp_path, *names, f"{names[1]}.gz")
    with pytest.raises(DataError) as error:
        find_readers(tmp_path, "train", "en-de")
    assert str(error.value) == f"{tmp_path / names[1]}: {names[1]}.gz is there as well; keep one of them."


SACREBLEU = ("wmt19/wmt19.en-de.src", "wmt19/wmt19.en-de.ref", "wmt19/wmt19.en-de.docid")


@pytest.mark.parametrize(
    ("folder", "testset"), [("wmt19", "wmt19"), ("", "wmt19"), ("wmt19", "newstest2019")]
)
def test_what_sacrebleu_left(tmp_path, folder, testset):
    write(tmp_path, *SACREBLEU)
    assert found(tmp_path / folder, testset) == [SACREBLEU[:2]]
    assert found(tmp_path / folder, testset, "de-en") == [SACREBLEU[1::-1]]
    assert found(tmp_path / folder, testset, "en-fr") == []


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_what_sacrebleu_left_is_never_a_split(tmp_path, split):
    write(tmp_path, *SACREBLEU, "wmt19/en-de.en", "wmt19/en-de.de")
    assert find_readers(tmp_path / "wmt19", split, "en-de") == ()


def test_sacrebleus_original_languages_are_origins(tmp_path):
    for field, text in (("src", "a\nb\nc\n"), ("ref", "A\nB\nC\n"), ("origlang", "en\nde\nfr\n")):
        (tmp_path / f"wmt19.en-de.{field}").write_text(text, encoding="utf-8")
    (reader,) = find_readers(tmp_path, "wmt19", "en-de")
    (block,) = reader.blocks()
    assert block.origins == ["en", "de", "fr"]
    assert reader.paths == tuple(tmp_path / f"wmt19.en-de.{field}" for field in ("src", "ref", "origlang"))
    (tmp_path / "wmt19.en-de.origlang").write_text("en\n", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"wmt19\.en-de\.src: has 3 lines, but .*wmt19\.en-de\.origlang has 1;"
    ):
        list(reader.blocks())


@pytest.mark.parametrize(
    ("references", "first"),
    [
        (("ref-B", "ref-A"), "ref-A"),
        (("ref-refA", "ref-refB"), "ref-refA"),
        (("ref-1", "ref-0"), "ref-0"),
        (("ref", "ref-A"), "ref"),
    ],
)
def test_the_first_of_several_references_is_read(tmp_path, references, first):
    write(tmp_path, "wmt21.en-de.src", *(f"wmt21.en-de.{reference}" for reference in references))
    assert found(tmp_path, "wmt21") == [("wmt21.en-de.src", f"wmt21.en-de.{first}")]


@pytest.mark.parametrize(
    ("folder", "testset"),
    [("", "wmt21/systems"), ("wmt21/systems", "wmt21/systems"), ("wmt21/systems", "news")],
)
def test_subsets_of_sacrebleu(tmp_path, folder, testset):
    names = ("wmt21/systems/wmt21_systems.en-de.src", "wmt21/systems/wmt21_systems.en-de.ref-A")
    write(tmp_path, *names)
    assert found(tmp_path / folder, testset) == [names]


MTDATA = (
    "train.eng",
    "train.deu",
    "train.meta.gz",
    "dev.deu",
    "dev.eng",
    "test1.deu",
    "test1.eng",
    "test2.deu",
    "test2.eng",
    "test10.deu",
    "test10.eng",
    "tests/Statmt-newstest_deen-2019-deu-eng.deu",
    "tests/Statmt-newstest_deen-2019-deu-eng.eng",
    "train-parts/Statmt-europarl-10-deu-eng.deu.gz",
    "train-parts/Statmt-europarl-10-deu-eng.eng.gz",
    "train-parts/Facebook-wikimatrix-1-deu-eng_US.deu.gz",
    "train-parts/Facebook-wikimatrix-1-deu-eng_US.eng_US.gz",
    "mtdata.signature.txt",
)


def test_what_mtdata_left(tmp_path):
    write(tmp_path, *MTDATA)
    assert found(tmp_path, "train") == [("train.eng", "train.deu")]
    assert found(tmp_path, "train", "de-en") == [("train.deu", "train.eng")]
    assert found(tmp_path, "dev") == [("dev.eng", "dev.deu")]
    assert found(tmp_path, "test") == [(f"test{n}.eng", f"test{n}.deu") for n in (1, 2, 10)]
    assert found(tmp_path, "test2") == [("test2.eng", "test2.deu")]
    for name in (
        "newstest_deen",
        "newstest_deen-2019",
        "Statmt-newstest_deen",
        "Statmt-newstest_deen-2019-deu-eng",
    ):
        assert found(tmp_path, name) == [tuple(sorted(MTDATA[11:13], reverse=True))]
    assert found(tmp_path, "newstest") == []
    assert found(tmp_path, "train", "en-fr") == []


def test_unmerged_parts_of_mtdata(tmp_path):
    write(tmp_path, *MTDATA[11:])
    assert found(tmp_path, "train") == [(MTDATA[16], MTDATA[15]), (MTDATA[14], MTDATA[13])]
    assert found(tmp_path, "dev") == []


def test_a_code_that_is_there_itself_goes_before_its_other_spellings(tmp_path):
    write(tmp_path, "dev.en", "dev.eng", "dev.deu", "dev.fr")
    assert found(tmp_path, "dev") == [("dev.en", "dev.deu")]
