"""Configuration of the documentation site."""

import sys
from pathlib import Path

PACKAGES = Path(__file__).parent.parent / "packages"

project = "mnmt"
copyright = "The mnmt authors"
extensions = [
    "myst_parser",
    "sphinx.ext.apidoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "api/*/modules.rst"]
html_theme = "furo"
html_title = "mnmt"
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

# The API pages are made from the source, so that neither torch nor a compiler is needed.
sys.path[:0] = [str(source) for source in sorted(PACKAGES.glob("*/src"))]
autodoc_mock_imports = [
    "bleurt_pytorch",
    "lingua",
    "mnmt_moe_ext._native",
    "py3langid",
    "safetensors",
    "torch",
]
apidoc_modules = [
    {"path": module, "destination": f"api/{module.name}", "separate_modules": True, "module_first": True}
    for module in sorted(PACKAGES.glob("*/src/*/"))
]
autodoc_default_options = {"ignore-module-all": True}  # each thing once, where it is defined
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
default_role = "literal"
# The words before a colon in a field's docstring count as its type, so that `tokens` seems to name something.
suppress_warnings = ["ref.python"]
