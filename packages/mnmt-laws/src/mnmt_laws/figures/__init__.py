"""Figures: each function returns an Altair chart, which a notebook shows and `save` writes."""

from mnmt_laws.figures.coefficients import draw_coefficients
from mnmt_laws.figures.decisions import draw_frontier
from mnmt_laws.figures.losses import draw_lengths, draw_losses
from mnmt_laws.figures.predictions import draw_held_out
from mnmt_laws.figures.quality import draw_quality
from mnmt_laws.figures.style import chart_spec, panels_of, save
from mnmt_laws.figures.weights import draw_fractions, draw_fractions_by_size, draw_fractions_of_sets

__all__ = [
    "chart_spec",
    "draw_coefficients",
    "draw_fractions",
    "draw_fractions_by_size",
    "draw_fractions_of_sets",
    "draw_frontier",
    "draw_held_out",
    "draw_lengths",
    "draw_losses",
    "draw_quality",
    "panels_of",
    "save",
]
