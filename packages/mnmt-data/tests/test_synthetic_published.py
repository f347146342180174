"""Published studies rest on what version 0.1.0 wrote: the same settings must go on writing the same bytes."""

from hashlib import sha256

import pytest

from mnmt_data.synthetic import SyntheticConfig, write_synthetic_corpus

PHRASES = {
    "languages": ("aa", "cc"),
    "concepts": 60,
    "zipf_exponent": 1.4,
    "words_per_sentence": 2,
    "source_syllables": 2,
    "target_syllables": 3,
    "syllable_inventory": 128,
    "synonym_rate": 0.25,
    "train_sentences": 40_000,
    "dev_sentences": 10,
    "test_sentences": 20,
    "seed": 1,
}


@pytest.mark.parametrize(
    ("settings", "checksums"),
    [
        (
            {"concepts": 300, "train_sentences": 3000, "dev_sentences": 100, "test_sentences": 200},
            {
                "corpus.json": "cf30395ed89e3dfe",
                "dev.xx-aa.aa": "e1a8f4ec0922530b",
                "dev.xx-aa.xx": "a9df072f18c7f5b9",
                "dev.xx-bb.bb": "4cac30d511a7c6fd",
                "dev.xx-bb.xx": "9f517ba330e38f65",
                "test.xx-aa.aa": "045d9a6c95d9b066",
                "test.xx-aa.xx": "3597b3dea05cd7d4",
                "test.xx-bb.bb": "5ffec0f062bf1421",
                "test.xx-bb.xx": "ef9ca3c5393801e9",
                "train.xx-aa.aa": "82cc73ad8c8eab6b",
                "train.xx-aa.xx": "60180231d5f5a711",
                "train.xx-bb.bb": "eb8c3ec51f5a4b65",
                "train.xx-bb.xx": "d7d54a30aadc4be3",
            },
        ),
        (
            PHRASES,
            {
                "corpus.json": "0c4b788d91e44253",
                "dev.xx-aa.aa": "f58649f93774e091",
                "dev.xx-aa.xx": "d61c6b019ec95481",
                "dev.xx-cc.cc": "ec005c1fd4aa4efd",
                "dev.xx-cc.xx": "49223f8a3e119362",
                "test.xx-aa.aa": "6c7d8a921b78abf2",
                "test.xx-aa.xx": "06b675ed95a3086e",
                "test.xx-cc.cc": "d6704a34b1924f06",
                "test.xx-cc.xx": "62fc891147c2d2f2",
                "train.xx-aa.aa": "83669f005fe6ea50",
                "train.xx-aa.xx": "13b0f7234133df25",
                "train.xx-cc.cc": "07a40b95fc45e5da",
                "train.xx-cc.xx": "c8d27d5dc51852fe",
            },
        ),
    ],
)
def test_files_are_those_of_the_first_version(settings, checksums, tmp_path):
    """The checksums, cut to 64 bits, are of files that version 0.1.0 wrote."""
    write_synthetic_corpus(SyntheticConfig(**settings), tmp_path)
    found = {file.name: sha256(file.read_bytes()).hexdigest()[:16] for file in tmp_path.iterdir()}
    assert found == checksums
