"""Readers that other distributions offer."""

import pytest

from mnmt_data.errors import DataError
from mnmt_data.readers import PluginReader, find_readers, open_reader

SOURCE = '''
from dataclasses import dataclass
from pathlib import Path
from mnmt_data.readers import Block, blocks_of

@dataclass(frozen=True)
class Bars:
    """A pair a line: source, bar, target."""
    path: Path
    task: str

    @property
    def paths(self):
        return (self.path,)

    def blocks(self, *, skip_bad=False):
        lines = self.path.read_text(encoding="utf-8").splitlines()
        yield from blocks_of((tuple(line.split("|")) for line in lines), skip_bad=skip_bad)

def named(source, task):
    scheme, name = source.split(":")
    return Bars(Path(name), f"{scheme} {task}")

class Nowhere(Bars):
    paths = ()

class Unequal(Bars):
    def blocks(self, *, skip_bad=False):
        yield Block(src=["a", "b"], tgt=["A", "B"], first=0)
        yield Block(src=["c"], tgt=[], first=2)

class Late(Bars):
    def blocks(self, *, skip_bad=False):
        yield Block(src=["a"], tgt=["A"], first=1)
'''


def points(*lines):
    return "[mnmt_data.readers]\n" + "\n".join(lines) + "\n"


@pytest.fixture
def bars(tmp_path):
    path = tmp_path / "train.en-de.bars"
    path.write_text("a house|ein Haus\na tree|ein Baum\n")
    return path


def pairs(reader):
    return [pair for block in reader.blocks() for pair in zip(block.src, block.tgt, strict=True)]


PAIRS = [("a house", "ein Haus"), ("a tree", "ein Baum")]


def test_an_ending_is_read_wherever_a_file_is_named(install, bars, tmp_path):
    install("acme", points(".bars = acme:Bars"), SOURCE, version="1.2")
    reader = open_reader(str(bars), "en-de")
    assert (pairs(reader), reader.paths) == (PAIRS, (bars,))
    assert isinstance(reader, PluginReader)
    assert reader.origin == "acme 1.2"
    (by_name,) = find_readers(tmp_path, "train", "en-de")
    assert pairs(by_name) == PAIRS


def test_a_scheme_gets_the_source_as_it_is_written(install, bars):
    install("acme", points("bars = acme:named"), SOURCE)
    reader = open_reader(f"bars:{bars}", "en-de")
    assert pairs(reader) == PAIRS
    assert reader.reader.task == "bars en-de"


def test_the_longest_ending_wins(install, tmp_path):
    install("acme", points(".bars.tsv = acme:Bars"), SOURCE)
    for name, text in (("x.bars.tsv", "a|A\n"), ("x.tsv", "a\tA\n")):
        (tmp_path / name).write_text(text)
        assert pairs(open_reader(str(tmp_path / name), "en-de")) == [("a", "A")]


def test_an_unknown_ending_lists_those_of_plugins_too(install, tmp_path):
    install("acme", points(".bars = acme:Bars"), SOURCE)
    (tmp_path / "x.unknown").write_text("")
    with pytest.raises(DataError, match=r"one of \.tsv, .*, \.parquet, \.bars, or have"):
        open_reader(str(tmp_path / "x.unknown"), "en-de")


@pytest.mark.parametrize(
    ("ending", "others"), [(".bars", "other 2.0 and acme 1.0"), (".tsv", "mnmt-data and acme 1.0")]
)
def test_an_ending_that_two_offer_is_a_mistake_where_it_is_used(install, tmp_path, ending, others):
    install("acme", points(f"{ending} = acme:Bars"), SOURCE)
    if ending == ".bars":
        install("other", points(".bars = other:Bars"), SOURCE, version="2.0")
    (tmp_path / "x.csv").write_text("src,tgt\na,A\n")
    assert pairs(open_reader(str(tmp_path / "x.csv"), "en-de")) == [("a", "A")]
    (tmp_path / f"x{ending}").write_text("a\tA\n")
    with pytest.raises(DataError) as raised:
        open_reader(str(tmp_path / f"x{ending}"), "en-de")
    assert (
        str(raised.value) == f"mnmt_data.readers: `{ending}` is offered by {others}; uninstall all but one."
    )


def test_the_scheme_of_hugging_face_is_taken(install):
    install("acme", points("hf = acme:named"), SOURCE)
    with pytest.raises(DataError, match="`hf` is offered by mnmt-data and acme"):
        open_reader("hf:a/b:train", "en-de")


@pytest.mark.parametrize(
    ("value", "source", "reason"),
    [
        ("acme:Bar", SOURCE, "module 'acme' has no attribute 'Bar'"),
        ("nothing:Bars", SOURCE, "No module named 'nothing'"),
        ("acme:Bars", "import nothing_at_all", "No module named 'nothing_at_all'"),
        ("acme:Bars", "1 / 0", "division by zero"),
    ],
)
def test_what_cannot_be_loaded_is_named_with_its_distribution(install, bars, value, source, reason):
    install("acme", points(f".bars = {value}"), source)
    with pytest.raises(DataError) as raised:
        open_reader(str(bars), "en-de")
    name = f"mnmt_data.readers: `.bars = {value}` of acme 1.0"
    assert str(raised.value) == f"{name} cannot be loaded ({reason}); mend or uninstall it."


def test_a_reader_of_no_files_is_refused(install, bars):
    install("acme", points(".bars = acme:Nowhere"), SOURCE)
    with pytest.raises(DataError, match=r"the reader of acme 1\.0 has no `paths`"):
        open_reader(str(bars), "en-de")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Unequal", "gave a block of 1 and 0 sentences from 2 on; it must have as many of both, from 2 on."),
        ("Late", "gave a block of 1 and 1 sentences from 1 on; it must have as many of both, from 0 on."),
    ],
)
def test_blocks_that_do_not_fit_are_refused(install, bars, name, message):
    install("acme", points(f".bars = acme:{name}"), SOURCE)
    with pytest.raises(DataError) as raised:
        list(open_reader(str(bars), "en-de").blocks())
    assert str(raised.value) == f"{bars}: acme 1.0 {message}"


def test_what_a_reader_raises_names_its_distribution(install, bars):
    install("acme", points(".bars = acme:Bars"), SOURCE)
    bars.write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError) as raised:
        list(open_reader(str(bars), "en-de").blocks())
    assert raised.value.__notes__ == ["The reader is that of acme 1.0."]
