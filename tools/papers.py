"""Four papers recomputed: `python tools/papers.py [--only 003] [--block 003.table5] [--check]` writes docs/papers.md and its pictures.
`--pictures` only draws, into docs/pictures/papers, what is missing there or older than what draws it; tools/make_site.py calls it.

000 Meng and Han 2007, 002 Kane 1981, 003 Wang et al. 2020, 004 Tian et al. 2010. Every table and figure that carries numbers is made with
the library (`rt_kernels.multibody`, `rt_kernels.offline`) and put beside what is printed, with a verdict. What is not made again stays on
the page as it was; a page is replaced block by block, so the command may be stopped at any time. `--check` compares the page with what
it would be, without the blocks whose figures are times of this machine. Exit code 1: a row differs without a reason, or the page does.

Needs sympy (group `models`) and a C compiler for 002; Pinocchio (group `test`) for the chain of segments of 003.
"""

import argparse
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.paper_rows import chain, dumbbell, kane, spatial_operators  # noqa: E402
from tools.paper_rows.page import PAGE, PICTURES, Block, Context  # noqa: E402

INTRODUCTION = """\
# The papers, reproduced

`python tools/papers.py` recomputes four papers with the multibody library and writes this page in a few minutes (`--only 003`: one paper;
`--check`: compare). Works, errata numbers: [bibliography.md](bibliography.md). *Agree* lists values computed here that equal print, or the
named reference, within the tolerance given or rounding. Curves of figures are not at hand: captions and sentences are judged. Blocks with
† hold times of one machine or take long; tests make all others again. A test puts each erratum back and fails.
"""
PAPERS = {
    "000": (spatial_operators, "## Meng and Han 2007: recursion by spatial operators on a free tree, mixed joints"),
    "002": (kane, "## Kane 1981: a new method to set up equations of motion"),
    "003": (dumbbell, "## Wang et al. 2020: dumbbell spacecraft, rigid - truss - rigid"),
    "004": (chain, "## Tian et al. 2010: flexible chain with active and passive joints"),
}


def blocks(paper: str | None = None) -> list[Block]:
    """All blocks in the order of the page, or those of one paper."""
    return [block for number, (module, _) in PAPERS.items() if paper in (None, number) for block in module.BLOCKS]


def page(made: dict[str, str], old: str) -> str:
    """The page: blocks just made, the others as they stand on the old page, those never made left out."""
    parts = [INTRODUCTION]
    for number, (_, title) in PAPERS.items():
        parts.append(title)
        parts += [text for block in blocks(number) if (text := made.get(block.name) or block.found(old))]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def draw() -> None:
    """The pictures that the page shows, those of a block that are not there or older than the modules of the papers."""
    text, made_by = PAGE.read_text(), max(file.stat().st_mtime for file in Path(__file__).with_name("paper_rows").glob("*.py"))
    for block in blocks():
        files = [PICTURES / name for name in re.findall(r"pictures/papers/(\w+\.svg)", block.found(text) or "")]
        if all(file.exists() and file.stat().st_mtime >= made_by for file in files):
            continue
        print(f"drawing {', '.join(file.name for file in files)}", file=sys.stderr)
        try:
            block.make(Context(draw=True))
        except ModuleNotFoundError as error:
            print(f"not drawn: {error}", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(PAPERS), help="one paper")
    parser.add_argument("--block", choices=[block.name for block in blocks()], help="one block")
    parser.add_argument("--check", action="store_true", help="compare with the page, write nothing")
    parser.add_argument("--pictures", action="store_true", help="only draw the pictures of the page that are missing or old")
    options = parser.parse_args(arguments)
    if options.pictures:
        draw()
        return 0
    chosen = [block for block in blocks(options.only) if options.block in (None, block.name)]
    if options.check:
        chosen = [block for block in chosen if not block.live]
    context, stale = Context(draw=not options.check), []
    try:
        for number, block in enumerate(chosen, 1):
            print(f"[{number}/{len(chosen)}] {block.name} ...", end="", flush=True, file=sys.stderr)
            begun = time.monotonic()
            text = block.on_page(block.make(context))
            old = PAGE.read_text() if PAGE.exists() else ""
            if options.check:
                if block.found(old) != text:
                    stale.append(block.name)
            else:
                fresh = PAGE.with_suffix(".new")
                fresh.write_text(page({block.name: text}, old))
                fresh.replace(PAGE)
            print(f" {time.monotonic() - begun:.1f} s", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nstopped; the page holds what was made", file=sys.stderr)
        return 130
    for name in stale:
        print(f"{PAGE.name}: block {name} is not what the library gives: python tools/papers.py --block {name}", file=sys.stderr)
    for what in context.unexplained:
        print(f"differs without a reason: {what}", file=sys.stderr)
    return 1 if stale or context.unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
