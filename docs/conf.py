"""The documentation site: `make docs` builds it with Sphinx into build/docs; tools/make_site.py adds the API reference.

The pages are the plain Markdown of the tree, as GitHub shows it, in their own places; README.md is the first one. What the site needs and
Markdown does not (the table of contents, the way to the API reference) is added here. A page that no list below names goes to MORE by
itself.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

project = "HIL server"
author = "the HIL server's contributors"
html_title = project
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "DECISIONS.md", "docs/*.md", "docs/*/**.md", "rt_kernels/CHANNELS.md"]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
nitpicky = True
highlight_language = "text"

html_theme = "furo"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

PAGES = {
    "Documents": ["docs/README"],
    "Tutorials": ["docs/tutorial", "docs/berthing"],
    "How-to guides": [
        "docs/configuration", "docs/live-test", "docs/requirements", "docs/console", "docs/results", "docs/client", "docs/craft",
        "docs/control", "docs/devices", "docs/real-time-host", "docs/new-part", "docs/multibody",
    ],
    "Explanations": [
        "docs/architecture", "docs/safety", "docs/contact-stability", "docs/stand-models", "docs/craft-models", "docs/glossary",
    ],
    "Reference": ["docs/keys", "docs/shipped", "rt_kernels/CHANNELS", "docs/papers"],
    "Validation": ["docs/validation"],
    "The project": ["CONTRIBUTING", "DECISIONS", "CHANGELOG", "docs/bibliography"],
}  # fmt: skip
MORE = "More"


def contents() -> str:
    """The table of contents: the pages of PAGES that are there, then every other one of `docs`."""
    there = {caption: [page for page in pages if (ROOT / f"{page}.md").exists()] for caption, pages in PAGES.items()}
    named = {page for pages in there.values() for page in pages}
    there[MORE] = [page for file in sorted(ROOT.glob("docs/**/*.md")) if (page := str(file.relative_to(ROOT).with_suffix(""))) not in named]
    return "".join("\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])
                   for caption, pages in there.items() if pages)  # fmt: skip


def with_contents(app, name, source):
    """Hands the start page over with the table of contents behind it."""
    if name == root_doc:
        source[0] += contents()
    elif name == "docs/README":
        source[0] += '\n<p><a href="../api/index.html">Open the API reference</a></p>\n'


PICTURE = re.compile(r"(?m)^<!-- picture: (\S+) -->\n\*(.+?)\*.*$")
IMAGE = re.compile(r"(?m)^!\[([^\]]+)\]\((\S+)\)$")


def with_pictures(app, name, source):
    """Pictures that tools draw are not in the tree: the page has the mark `<!-- picture: FILE -->` and a line in words below it, which
    gives way to the picture where that was drawn. Without its picture the page shows the words."""
    folder = (ROOT / name).parent

    def there(file):
        app.env.note_dependency(str(folder / file))  # the page is read again when it is drawn
        return (folder / file).exists()

    source[0] = PICTURE.sub(lambda found: f"![{found[2]}]({found[1]})" if there(found[1]) else found[0], source[0])
    source[0] = IMAGE.sub(lambda found: found[0] if there(found[2]) else f"*{found[1]}* (not drawn here)", source[0])


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", with_pictures)
    app.connect("source-read", with_contents)
