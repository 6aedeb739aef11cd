"""The documentation site in build/docs: `python tools/make_site.py [FOLDER] [--without-api]` (`make docs`), needs the group `docs`.

The pictures that only the site shows are drawn first (docs/pictures: half a minute, then only those whose tool has changed). The pages of
the tree by Sphinx (docs/conf.py), where every warning is an error; the API reference by pdoc in `api/`; then every link,
picture and script of every page that was made is followed, and one that leads nowhere, or to another machine for something the page
needs, is an error. What is made needs no network, its search neither.
"""

import argparse
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that a link may name."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("href") and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(given["href"])
        elif given.get("src"):
            self.loads.append(given["src"])


def broken(folder: Path) -> list[str]:
    """One line for every link below the folder that leads nowhere, and for everything that a page would fetch from elsewhere."""
    pages = {file.resolve(): Page(file) for file in sorted(folder.rglob("*.html"))}
    found = []
    for file, page in pages.items():
        for target in (*page.links, *page.loads):
            where = urlsplit(target)
            if where.scheme == "data":
                continue
            if where.scheme or where.netloc:
                if target in page.loads:
                    found.append(f"{file.relative_to(folder.resolve())}: loads {target}")
                continue
            aim = (file.parent / unquote(where.path)).resolve() if where.path else file
            place = unquote(where.fragment)
            if not aim.is_file() or (place and aim in pages and place not in pages[aim].places):
                found.append(f"{file.relative_to(folder.resolve())}: {target}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "docs")
    parser.add_argument("--without-api", action="store_true", help="the pages alone, in a fifth of the time")
    args = parser.parse_args()
    shutil.rmtree(args.folder, ignore_errors=True)
    subprocess.run([sys.executable, ROOT / "tools" / "papers.py", "--pictures"], check=True)
    sphinx = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "-c", ROOT / "docs", ROOT, args.folder]
    subprocess.run([*sphinx, "-d", args.folder.with_name(f"{args.folder.name}-read")], check=True)
    shutil.copy(args.folder / "README.html", args.folder / "index.html")
    if args.without_api:  # the page that links to it says how it is made
        (args.folder / "api").mkdir()
        (args.folder / "api" / "index.html").write_text("<title>API reference</title>Left out: make docs\n")
    else:
        subprocess.run([sys.executable, ROOT / "tools" / "make_reference.py", args.folder / "api"], check=True, stdout=subprocess.DEVNULL)
    faults = broken(args.folder)
    print(*faults, args.folder / "index.html", sep="\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
