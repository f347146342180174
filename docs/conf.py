"""Configuration of the documentation site."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
PACKAGES = DOCS.parent / "packages"
sys.path.insert(0, str(DOCS))

from api_pages import write_api_pages  # noqa: E402 - it lies beside this file

project = "mnmt"
copyright = "The mnmt authors"
extensions = [
    "myst_parser",
    "mathml",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
html_math_renderer = "mathml"
html_theme = "furo"
html_title = "mnmt"
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

# The API pages are made from the source. BLEURT's package is the only import that the environment may lack.
sys.path[:0] = [str(source) for source in sorted(PACKAGES.glob("*/src"))]
autodoc_mock_imports = ["bleurt_pytorch"]
write_api_pages(PACKAGES, DOCS / "api")
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
default_role = "literal"
highlight_language = "none"  # a block without a language holds commands or output
# The words before a colon in a field's docstring count as its type, so that `tokens` seems to name something.
suppress_warnings = ["ref.python"]
