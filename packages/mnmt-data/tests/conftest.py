import os
import random
import struct
import sys

import pytest
from hypothesis import settings

from mnmt_data.cli import main

# How long an example takes depends on what else the machine does.
settings.register_profile("ci", deadline=None, max_examples=15, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    """Run `mnmt-data ARGUMENTS` in an empty folder: (status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["mnmt-data", *map(str, arguments)])
        with pytest.raises(SystemExit) as raised:
            main()
        captured = capsys.readouterr()
        return raised.value.code, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def make_mo():
    """Makes a gettext .mo file: two tables of (length, offset), then the strings, each with a final NUL."""

    def make(entries, *, plural="nplurals=2; plural=n != 1;", charset="UTF-8", order="<", header=""):
        header = f"Content-Type: text/plain; charset={charset}\nPlural-Forms: {plural}\n{header}"
        texts = {"": header, **entries}
        pairs = sorted((key.encode(charset), value.encode(charset)) for key, value in texts.items())
        tables, strings = b"", b""
        for side in range(2):
            for pair in pairs:
                start = 28 + 16 * len(pairs) + len(strings)
                tables += struct.pack(f"{order}2I", len(pair[side]), start)
                strings += pair[side] + b"\0"
        counts = (0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 0)
        return struct.pack(f"{order}7I", *counts) + tables + strings

    return make


WORDS = {
    "eng_Latn": "the of and house was weather nobody left",
    "deu_Latn": "der die das und haus war wetter niemand",
    "fra_Latn": "le la et maison était temps personne quitté",
}


@pytest.fixture(scope="session")
def fasttext_model(tmp_path_factory):
    """A model of three languages with a few words each, and the library."""
    fasttext = pytest.importorskip("fasttext")
    folder, draw = tmp_path_factory.mktemp("fasttext"), random.Random(1)
    lines = [
        f"__label__{label} {' '.join(draw.choices(words.split(), k=6))}\n"
        for label, words in WORDS.items()
        for _ in range(300)
    ]
    (folder / "text.txt").write_text("".join(lines), encoding="utf-8")
    model = fasttext.train_supervised(
        str(folder / "text.txt"), dim=8, epoch=5, minn=2, maxn=4, bucket=1000, thread=1, verbose=0
    )
    model.save_model(str(folder / "model.bin"))
    return folder / "model.bin"


ENGLISH_GERMAN = [
    (
        "The {} that we saw in the {} was {} and nobody wanted to have it.",
        "Die {}, die wir in der {} sahen, war {} und niemand wollte sie haben.",
    ),
    (
        "There are {} of them in the {}, but only one is {}?",
        "Es gibt {} davon in der {}, aber ist nur eine {}?",
    ),
    (
        "Who would have thought that the {} is not a {} any more!",
        "Wer hätte gedacht, dass die {} keine {} mehr ist!",
    ),
    (
        "Because of the {} they had to go home early, which was not {} (see the {}).",
        "Wegen der {} mussten sie früh nach Hause gehen, was nicht {} war (siehe die {}).",
    ),
    ("I know.", "Das weiß ich."),
]


@pytest.fixture(scope="session")
def english_german():
    """Makes sentences of English and German: (English, German) of `count` different pairs."""
    syllables = ["ka", "lo", "min", "ter", "sa", "vel", "un", "dor", "pi", "ga", "zen", "ri"]

    def make(count, seed=1):
        draw = random.Random(seed)
        pairs = {}
        while len(pairs) < count:
            english, german = draw.choice(ENGLISH_GERMAN)
            names = ["".join(draw.choices(syllables, k=draw.randrange(1, 5))).title() for _ in range(2)]
            fillers = [*names, str(draw.randrange(1, 999))]
            place = f"{draw.choice(names)} {len(pairs)}: "
            pairs[place + english.format(*fillers)] = place + german.format(*fillers)
        return list(pairs), list(pairs.values())

    return make
