"""Settings of the documentation; `make docs` builds it, with warnings as errors."""

from errata.version import __version__

project = "Errata"
author = "the authors of Errata"
copyright = author
release = __version__

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
root_doc = "index"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # a link may point to a heading; one that does not exist is an error
suppress_warnings = ["myst.header"]  # generated pages go from a title to its third level

html_theme = "pydata_sphinx_theme"
html_title = "Errata"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": True,
    # The tables of papers.md take the whole width.
    "secondary_sidebar_items": {"**": ["page-toc"], "papers": []},
    "show_prev_next": False,
}
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_sidebars = {"papers": []}
