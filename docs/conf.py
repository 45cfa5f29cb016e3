"""Settings of the documentation site, which `make docs` makes of the pages of this repository.

The folder that Sphinx reads is the whole repository, so that a page links to other pages, pictures
and programs as it does on a code host. A link to a program leads to a page of the site that shows
it.
"""

from __future__ import annotations

import html
import posixpath
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from epochgate import __version__  # noqa: E402  # that of this checkout, by the line above

project = "epochgate"
author = "The epochgate authors"
release = version = __version__
language = "en"

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "diagrams/generated/**",
    "tests/README.md",
    "tests/*/README.md",
    "tests/spark/corpus/public/LICENCES.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "DECISIONS.md",
    "README.md",
    "SECURITY.md",
]
exclude_patterns = [".*", "build", "epochgate", "fsm", "models", "runtime", "spark", "**/*.txt"]


extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# A short name in a signature may stand for two classes, such as the two called Sink.
suppress_warnings = ["ref.python"]
nitpicky = False  # docstrings name much that is private

default_role = "code"  # docstrings write code between single backticks
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
python_maximum_signature_line_length = 88
add_module_names = False

html_theme = "furo"
html_title = "epochgate"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_extra"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
pygments_style = "friendly"
pygments_dark_style = "github-dark"

FOLDERS = {
    "diagrams/generated/README": "*",
    "docs/api/README": "*",
    "docs/cases/README": "*",
    "tests/README": "*/README\nspark/corpus/public/LICENCES",
}
"""The pages of folders, each with the pattern of what it leads to."""
PICTURES = {".png", ".svg", ".dot", ".mmd"}
SHOWN = "source"
"""Of the pages that show a program: source/PATH.html."""


def _lists_its_folder(app: Sphinx, docname: str, content: list[str]) -> None:
    """Put the pages of a folder below its README, which on a code host lists them by itself."""
    if docname in FOLDERS:
        content[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{FOLDERS[docname]}\n```\n"


def _leads_to_programs(app: Sphinx, doctree: nodes.document) -> None:
    """Make each link to a file that is no page lead to the page that shows it."""
    env: Any = app.env  # keeps what extensions put there
    shown: set[str] = getattr(env, "epochgate_shown", set())
    here = env.docname
    for node in list(doctree.findall(addnodes.download_reference)):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), node["reftarget"]))
        if not (ROOT / path).is_file():
            raise FileNotFoundError(f"{here} links to {path}, which is no file")
        if posixpath.splitext(path)[1] in PICTURES:
            continue
        shown.add(path)
        page = app.builder.get_relative_uri(here, f"{SHOWN}/{path}")
        text = node.children[0] if node.children else nodes.literal(text=path)
        node.replace_self(nodes.reference("", "", text, refuri=page, internal=True))
    env.epochgate_shown = shown


def _merge_shown(app: Sphinx, env: Any, docnames: set[str], other: Any) -> None:
    env.epochgate_shown = getattr(env, "epochgate_shown", set()) | getattr(
        other, "epochgate_shown", set()
    )


def _pages_of_programs(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True)
    for path in sorted(getattr(app.env, "epochgate_shown", set())):
        text = (ROOT / path).read_text(encoding="utf-8")
        try:
            lexer = get_lexer_for_filename(path)
        except ClassNotFound:
            lexer = TextLexer()
        title = html.escape(path)
        body = f"<h1>{title}</h1>\n{highlight(text, lexer, formatter)}"
        yield f"{SHOWN}/{path}", {"title": title, "body": body, "parents": []}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Show the programs that pages link to."""
    for shown_as_text in ("mermaid", "csv"):  # code hosts draw and colour them
        app.add_lexer(shown_as_text, TextLexer)
    app.connect("source-read", _lists_its_folder)
    app.connect("doctree-read", _leads_to_programs, priority=100)  # before downloads are collected
    app.connect("env-merge-info", _merge_shown)
    app.connect("html-collect-pages", _pages_of_programs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
