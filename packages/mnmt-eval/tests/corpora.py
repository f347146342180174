"""Small corpora that every metric is tried on: hypotheses of two systems, two references, sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Corpus:
    target: str
    sources: list[str]
    references: list[list[str]]
    hypotheses: list[str]
    others: list[str]
    """Of another system."""


GERMAN = Corpus(
    target="de",
    sources=[
        "The dog sleeps in the garden today, doesn't it?",
        "It has been raining for 3.5 days.",
        "Fine.",
        "Yes &amp; no.",
        "He gave her the book that she had wanted for a long time.",
        "The new version saves all settings in one file.",
        "",
    ],
    references=[
        [
            "Der Hund schläft heute im Garten, oder?",
            "Es regnet seit 3,5 Tagen.",
            "Gut.",
            "Ja &amp; nein.",
            "Er gab ihr das Buch, das sie sich seit langem gewünscht hatte.",
            "Die neue Version speichert alle Einstellungen in einer Datei.",
            "",
        ],
        [
            "Heute schläft der Hund im Garten, nicht wahr?",
            "Seit dreieinhalb Tagen regnet es.",
            "In Ordnung.",
            "Ja und nein.",
            "Er gab ihr das lange gewünschte Buch.",
            "Alle Einstellungen speichert die neue Version in einer einzigen Datei.",
            "",
        ],
    ],
    hypotheses=[
        "Der Hund schläft im Garten, nicht wahr?",
        "Es regnet seit 3.5 Tagen.",
        "",
        "Ja &amp; nein.",
        "Er gab ihr das Buch, das sie seit langem wollte.",
        "Die neue Version speichert Einstellungen in einer Datei.",
        "",
    ],
    others=[
        "Schläft im Garten heute der Hund?",
        "Es hat für 3,5 Tage geregnet.",
        "Gut .",
        "Ja, nein",
        "Das Buch gab er ihr, das sie lange Zeit gewollt hatte.",
        "Die neue Version alle Einstellungen Datei speichert.",
        "und",
    ],
)

CHINESE = Corpus(
    target="zh",
    sources=["The weather is nice today.", "He went to Beijing in 2024, right?", "Open the File menu."],
    references=[
        ["今天的天气非常好。", "他2024年去过北京,对吗?", "请打开 File 菜单。"],
        ["今天天气真好。", "2024年他去了北京,是不是?", "打开“File”菜单。"],
    ],
    hypotheses=["今天天气很好。", "他在2024年去了北京,是吗?", "打开 File 菜单"],
    others=["今日天气好", "", "打开文件菜单"],
)

JAPANESE = Corpus(
    target="ja",
    sources=["The weather is very nice today.", "He went to Tokyo.", "The dog is sleeping in the garden."],
    references=[
        ["今日はとても良い天気です。", "彼は東京へ行った。", "犬は庭で寝ています。"],
        ["今日は天気がいいです。", "彼は東京に行きました。", "庭で犬が眠っている。"],
    ],
    hypotheses=["今日は天気がとても良いです。", "彼は東京に行きました。", "犬が庭で寝ている"],
    others=["天気です。", "東京へ行く。", ""],
)

KOREAN = Corpus(
    target="ko",
    sources=["The weather is nice today.", "He went to Seoul."],
    references=[
        ["오늘은 날씨가 좋습니다.", "그는 서울에 갔다."],
        ["오늘 날씨가 좋네요.", "그는 서울로 갔습니다."],
    ],
    hypotheses=["오늘 날씨가 좋습니다.", "그는 서울에 갔습니다."],
    others=["날씨.", "서울에 갔다"],
)

MADE_UP = Corpus(
    target="aa",
    sources=["a b c", "d e f", "c a a b"],
    references=[
        ["kani tolu mefa", "tolu mefa so", "mefa kani kani so"],
        ["tolu kani mefa", "so tolu mefa", "mefa so kani kani"],
    ],
    hypotheses=["kani tolu mefa", "tolu tolu", "mefa kani kani so"],
    others=["tolu", "so mefa tolu so so", "kani kani"],
)

CORPORA = {corpus.target: corpus for corpus in (GERMAN, CHINESE, JAPANESE, KOREAN, MADE_UP)}
