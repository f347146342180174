"""Sentences whose language is known."""

from __future__ import annotations

STUDY = ("de", "en", "fr", "zh_CN")
SENTENCES = {
    "de": [
        "Der Hund schläft im Garten.",
        "Wählen Sie die Zelle aus, die Sie löschen möchten.",
        "GUTEN MORGEN",
    ],
    "en": ["The dog sleeps in the garden.", "Choose the cell that you want to delete.", "GOOD MORNING"],
    "fr": ["Le chien dort dans le jardin.", "Choisissez la cellule à supprimer.", "BONJOUR À TOUS"],
    "zh": ["狗在花园里睡觉。", "选择要删除的单元格。", "早上好"],
}
