"""How Sphinx builds the website from what `build.py` collects."""

import re
from importlib.metadata import version as version_of

project = "clickgym"
author = copyright = "the clickgym developers"
version = release = version_of("clickgym")

extensions = ["myst_nb", "notfound.extension", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["docs/README.md", "tools/README.md"]  # for readers of the repository
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_merge_streams = True
nb_execution_raise_on_error = True
suppress_warnings = ["misc.highlighting_failure"]  # languages of code that have no colours
notfound_urls_prefix = "/clickgym/"  # of clickgym.github.io/clickgym/

html_theme = "furo"
html_title = f"clickgym {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0a58a6", "color-brand-content": "#0a58a6"},
    "dark_css_variables": {"color-brand-primary": "#7ab8f5", "color-brand-content": "#7ab8f5"},
}


def link_figures(app, page, template, context, tree):
    """Let a click on a figure open it alone, in its full size."""
    pattern = r'(<img [^>]*src="([^"]+)"[^>]*>)'
    context["body"] = re.sub(
        pattern, r'<a class="figure" href="\2">\1</a>', context.get("body", "")
    )


def setup(app):
    app.connect("html-page-context", link_figures)
