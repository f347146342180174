"""Write formulas as MathML, which browsers show without a script and without a network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def to_mathml(formula: str, *, display: str) -> str:
    """Return a formula as MathML, with a thin space before and after the names of functions."""
    mathml = convert(formula, display=display)
    return re.sub(r"<mi>(exp|ln|log)</mi>", r'<mo lspace="0.17em" rspace="0.17em">\1</mo>', mathml)


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(to_mathml(node.astext(), display="inline"))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula of its own; one that is wider than the page can be scrolled."""
    formula = to_mathml(node.astext(), display="block")
    writer.body.append(f'<div style="overflow-x: auto; margin: 1em 0">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
