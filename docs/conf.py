"""Settings of the documentation site: `make docs` builds it with Sphinx."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "site")]

project = "holotrace"
author = "the holotrace contributors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "dark_pictures",
    "docstrings",
    "public_names",
]
exclude_patterns = ["site"]
language = "en"
highlight_language = "none"  # every code block names its language, except tables in docstrings, which are plain text

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors = False  # GitHub creates its anchors in the browser, where linkcheck does not see them
linkcheck_ignore = [r"http://127\.0\.0\.1.*", r"http://localhost.*"]

html_theme = "pydata_sphinx_theme"
html_title = "holotrace"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_favicon = "../src/holotrace/web/assets/icon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": [],
    "footer_end": [],
}
html_sidebars = {page: [] for page in ("index", "install", "getting_started", "gallery", "faq", "explanation/design")}
