"""Any lines, in any format and compression, come back equal."""

import bz2
import gzip
import lzma
import zipfile
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backports import zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnmt_data.readers import find_readers, open_reader
from mnmt_data.readers.reader import Block, blocks_of

COMPRESSIONS = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstd.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}
XML_ONLY = "".join(map(chr, [*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF]))  # what XML cannot hold
SENTENCE = st.text(
    st.characters(exclude_characters="\n\r\t\ufeff" + XML_ONLY, exclude_categories=["Cs"]), max_size=12
)
WILD_SENTENCE = st.text(
    st.characters(exclude_characters="\n\r\t\ufeff", exclude_categories=["Cs"]), max_size=12
)


def write_text(path, lines):
    content = "".join(line + "\n" for line in lines).encode()
    path.write_bytes(COMPRESSIONS["".join(path.suffixes[2:])](content))


def write_tsv(folder, pairs, ending):
    path = folder / f"x.en-de.tsv{ending}"
    path.write_bytes(COMPRESSIONS[ending]("".join(f"{src}\t{tgt}\n" for src, tgt in pairs).encode()))
    return open_reader(str(path), "en-de")


def tmx(pairs):
    units = "".join(f"<tu>{variant('de', tgt)}\n{variant('en', src)}</tu>" for src, tgt in pairs)
    return f'<?xml version="1.0"?>\n<tmx version="1.4"><header/><body>{units}</body></tmx>'.encode()


def variant(code, text):
    return f'<tuv xml:lang="{code}"><seg>{escape(text)}</seg></tuv>'


def write_tmx(folder, pairs, ending):
    path = folder / f"x.tmx{ending}"
    path.write_bytes(COMPRESSIONS[ending](tmx(pairs)))
    return open_reader(str(path), "en-de")


def write_zip(folder, pairs, compression):
    path = folder / "x.zip"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("README", "About this corpus.")
        for code, side in (("de", 1), ("en", 0)):
            archive.writestr(f"X.de-en.{code}", "".join(pair[side] + "\n" for pair in pairs))
    return open_reader(str(path), "en-de")


def write_parquet(folder, pairs, compression):
    path = folder / "x.parquet"
    columns = {"en": [src for src, _ in pairs], "de": [tgt for _, tgt in pairs]}
    schema = pa.schema({"en": pa.string(), "de": pa.large_string()})
    pq.write_table(pa.table(columns, schema=schema), path, compression=compression, row_group_size=3)
    return open_reader(str(path), "en-de")


def read(reader):
    blocks = list(reader.blocks())
    assert [block.first for block in blocks] == [sum(map(len, blocks[:n])) for n in range(len(blocks))]
    for residue in range(2):
        some = list(reader.blocks(choice=lambda number, residue=residue: number % 2 == residue))
        assert some == [
            block if number % 2 == residue else Block(src=[], tgt=[], first=block.first)
            for number, block in enumerate(blocks)
        ]
    return [pair for block in blocks for pair in zip(block.src, block.tgt, strict=True)]


SMALL = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in ("text_pairs", "parquet"):
        monkeypatch.setattr(f"mnmt_data.readers.{module}.BLOCK_PAIRS", 4)
    monkeypatch.setattr(blocks_of, "__kwdefaults__", blocks_of.__kwdefaults__ | {"size": 4})
    monkeypatch.setattr("mnmt_data.readers.byte_sources.CHUNK_BYTES", 50)


def pairs_of(sentence):
    return st.lists(st.tuples(sentence, sentence), max_size=12)


@pytest.mark.parametrize(
    ("src_ending", "tgt_ending"), list(zip(COMPRESSIONS, reversed(COMPRESSIONS), strict=True))
)
@SMALL
@given(pairs=pairs_of(WILD_SENTENCE))
def test_two_texts(tmp_path, src_ending, tgt_ending, pairs):
    write_text(tmp_path / f"train.en-de.en{src_ending}", [src for src, _ in pairs])
    write_text(tmp_path / f"train.en-de.de{tgt_ending}", [tgt for _, tgt in pairs])
    (reader,) = find_readers(tmp_path, "train", "en-de")
    assert read(reader) == pairs


@pytest.mark.parametrize("ending", COMPRESSIONS)
@SMALL
@given(pairs=pairs_of(WILD_SENTENCE))
def test_tsv(tmp_path, ending, pairs):
    pairs = [("No header.", "Keine."), *pairs]
    assert read(write_tsv(tmp_path, pairs, ending)) == pairs


@pytest.mark.parametrize("ending", COMPRESSIONS)
@SMALL
@given(pairs=pairs_of(SENTENCE))
def test_tmx(tmp_path, ending, pairs):
    assert read(write_tmx(tmp_path, pairs, ending)) == pairs


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
@SMALL
@given(pairs=pairs_of(WILD_SENTENCE))
def test_zip(tmp_path, compression, pairs):
    assert read(write_zip(tmp_path, pairs, compression)) == pairs


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@SMALL
@given(pairs=pairs_of(WILD_SENTENCE))
def test_parquet(tmp_path, compression, pairs):
    assert read(write_parquet(tmp_path, pairs, compression)) == pairs
