"""How Sphinx builds the website from what `build.py` collects."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from docstrings import readable
from docutils.nodes import SkipNode
from latex2mathml.converter import convert

project = "clickgym"
author = copyright = "the clickgym developers"
version = release = version_of("clickgym")

extensions = [
    "myst_nb",
    "notfound.extension",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_merge_streams = True
nb_execution_raise_on_error = True
default_role = "py:obj"  # a name in single backticks, as docstrings here have them
autodoc_typehints = "none"  # the Args say it in words
autodoc_member_order = "bysource"
napoleon_use_ivar = True
napoleon_custom_sections = [
    "Idea",
    "Algorithm",
    "Source",
    "Deviations from the paper",
    "Click law",
    "User",
]
# Languages of code that have no colours; names that several classes have.
suppress_warnings = ["misc.highlighting_failure", "ref.python"]

# The page 404.html is shown at any address, so that its links start at the root:
# clickgym.github.io/clickgym/.
notfound_urls_prefix = "/clickgym/"
notfound_context = {
    "title": "Page not found",
    "body": f"""<h1>Page not found</h1>
<p>There is no page at this address. Use the search or the contents beside this text, or
<a href="{notfound_urls_prefix}index.html">start at the first page</a>.</p>""",
}

html_math_renderer = "mathml"
html_theme = "furo"
html_search_scorer = str(Path(__file__).parent / "scorer.js")
html_title = f"clickgym {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0a58a6", "color-brand-content": "#0a58a6"},
    "dark_css_variables": {"color-brand-primary": "#7ab8f5", "color-brand-content": "#7ab8f5"},
}


def _turned(app, what, name, thing, options, lines):
    lines[:] = readable(lines)


def _skipped(app, what, name, thing, skip, options):
    """The fields of a named tuple stand among its attributes, each with its meaning."""
    text = getattr(thing, "__doc__", None) or ""
    return True if text.startswith("Alias for field number") else None


def _formula(translator, node, display):
    """A formula as MathML, which browsers draw without a script, in the colours of the page."""
    translator.body.append(convert(node.astext(), display=display))
    raise SkipNode


def _inline(translator, node):
    _formula(translator, node, "inline")


def _block(translator, node):
    _formula(translator, node, "block")


def setup(app):
    app.connect("autodoc-process-docstring", _turned, priority=1)
    app.connect("autodoc-skip-member", _skipped)
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )
