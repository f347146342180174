"""Figures that belong together on the page."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from matplotlib.figure import Figure

from mnmt_laws.figures.style import to_svg


@dataclass(frozen=True, kw_only=True)
class Plate:
    """Figures that share a heading and a caption."""

    title: str
    caption: str
    panels: tuple[bytes, ...]
    """SVG, one a panel."""

    wide: bool = False
    """Whether a panel takes the whole width of the page."""

    @property
    def images(self) -> tuple[str, ...]:
        """The panels as data addresses."""
        encoded = (base64.b64encode(panel).decode("ascii") for panel in self.panels)
        return tuple(f"data:image/svg+xml;base64,{panel}" for panel in encoded)

    def files(self) -> dict[str, bytes]:
        """The panels by file name, such as `trade-off-frontier-1.svg`."""
        stem = re.sub(r"[^a-z]+", "-", self.title.lower())
        return {f"{stem}-{number}.svg": panel for number, panel in enumerate(self.panels, start=1)}


def make_plate(title: str, caption: str, figures: list[Figure], *, wide: bool = False) -> Plate:
    """A plate of figures."""
    panels = tuple(to_svg(figure) for figure in figures)
    return Plate(title=title, caption=caption, panels=panels, wide=wide)
