"""Makes what is generated: `python tools/generate.py` (`make generate`) writes what is missing or not what it is made from.

  --check      writes nothing, says what differs; exit code 1
  --build      only what is not committed, and only after a change of what it is made from (tools/environment.sh, behind the kernels)
  --into DIR   only stubs and schemas, read off the packages built in this folder and written there (setup.py, for a wheel)

                                                                                                              made by           committed
  rt_kernels/tick.pyx, rt_kernels/CHANNELS.md, the README's table of the tick   rt_kernels/channels.toml      generate_channels yes
  sample.pxd, codes.pxd, injections.pxd, tick.pxd, stages.py, layout.py         rt_kernels/channels.toml      generate_channels no
  record.pxd and record.py beside a record.toml                                 the record                    generate_channels no
  *_parameters.pxd that a kernel cimports                                       Parameter(...) of the parts   generate_channels no
  stand_configs/schemas/*.json                                                  declarations of the loader    generate_schemas  no
  *.pyi beside a *.pyx                                                          the built module              generate_stubs    no
  docs/keys.md, docs/shipped.md                                                 declarations, stand_configs   generate_pages    no
  the hazards of docs/safety.md                                                 docs/hazards.toml, the table  generate_pages    yes
  docs/stand.svg, docs/architecture.svg                                         the stand's file, the table   draw_pictures     yes

What people read and review is committed. The first four rows need Python alone: setup.py makes the second to fourth before it builds and
stops where tick.pyx is another. All else needs the built kernels. Pictures of pages are drawn with the site (tools/make_site.py).
"""

import argparse
import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMP = ROOT / "build" / "generated"  # when `--build` was here last, and what it made
SOURCES = ("hil_server", "rt_kernels", "drivers", "stand_configs", "tools")
KINDS = (".py", ".pyx", ".pyi", ".so", ".toml", ".json")
COMMITTED = ("rt_kernels/tick.pyx", "rt_kernels/CHANNELS.md", "README.md", "docs/safety.md", "docs/stand.svg", "docs/architecture.svg")
Texts = dict[Path, str]


def table() -> Texts:
    """What channels.toml, the records and the declared parameters give."""
    from tools import generate_channels

    return generate_channels.products()


def read_off(folder: Path = ROOT) -> Texts:
    """What is read off the built packages of the folder: stubs and schemas."""
    from tools import generate_schemas, generate_stubs

    return generate_stubs.stubs(folder) | generate_schemas.files(folder)


def documents() -> Texts:
    """Pages and the two pictures of the README."""
    from tools import draw_pictures, generate_pages

    return generate_pages.files() | draw_pictures.files()


def left_over(made: Texts) -> list[Path]:
    """Stubs, schemas and structs whose subject is gone."""
    there = [p for package in ("rt_kernels", "drivers") for end in ("*.pyi", "*_parameters.pxd") for p in ROOT.joinpath(package).rglob(end)]
    return sorted({*there, *ROOT.glob("stand_configs/schemas/*.json")} - made.keys())


def differing(texts: Texts) -> Texts:
    """Those that are missing or have another text."""
    return {path: text for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text}


def write(texts: Texts, say: bool = True) -> None:
    """What differs; a file that is right keeps its time, so that nothing is built because of it."""
    for path, text in differing(texts).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if say:
            print(path.relative_to(ROOT))


def complaints(texts: Texts) -> Iterator[str]:
    """What is wrong with each file: the first lines that differ."""
    for path, text in differing(texts).items():
        name = str(path.relative_to(ROOT))
        if not path.exists():
            yield f"{name}: missing"
            continue
        lines = list(difflib.unified_diff(path.read_text(encoding="utf-8").splitlines(), text.splitlines(), lineterm="", n=0))
        yield "\n    ".join([f"{name}: differs", *lines[2:12]])


def fresh() -> bool:
    """Whether everything that `--build` made is there and nothing that it was made from, or it itself, is newer."""
    if not STAMP.exists() or not all(ROOT.joinpath(name).exists() for name in STAMP.read_text().split("\n") if name):
        return False
    made = STAMP.stat().st_mtime_ns
    folders = [str(ROOT / folder) for folder in SOURCES]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(KINDS) and entry.stat().st_mtime_ns > made:
                    return False
    return True


def build() -> None:
    """What is not committed, unless it is as it was left."""
    if fresh():
        return
    made = table()
    write(uncommitted(made), say=False)
    made = uncommitted(made | read_off() | documents())
    write(made, say=False)
    for path in left_over(made):
        path.unlink()
    STAMP.parent.mkdir(exist_ok=True)
    STAMP.write_text("".join(f"{path.relative_to(ROOT)}\n" for path in sorted(made)))


def unbuilt() -> list[str]:
    """Kernels that are missing or older than their source: what is read off the others may be wrong."""
    found = []
    for source in (p for package in ("rt_kernels", "drivers") for p in ROOT.joinpath(package).rglob("*.pyx")):
        made = [so.stat().st_mtime for so in source.parent.glob(f"{source.stem}.*.so")]
        if max(made, default=0.0) < source.stat().st_mtime:
            found.append(str(source.relative_to(ROOT)))
    return found


def everything() -> int:
    """What is missing or differs, the committed files too. Exit code 1 where only the table's could be made."""
    made = table()
    changed = [path for path in differing(made) if path.suffix in (".pyx", ".pxd")]
    write(made)
    if changed or unbuilt():
        print("The kernels have to be built before the rest can be read off them: make build, then call this again.")
        return 1
    made |= read_off()
    made |= documents()
    write(made)
    for path in left_over(made):
        path.unlink()
    return 0


def uncommitted(texts: Texts) -> Texts:
    return {path: text for path, text in texts.items() if str(path.relative_to(ROOT)) not in COMMITTED}


def check() -> int:
    """Exit code 1 and what differs."""
    made = table()
    wrong = list(complaints(made))
    if not all(path.exists() for path in made) or unbuilt():
        wrong.append("the kernels are not built: the rest is read off them")
    else:
        made |= read_off() | documents()
        wrong = [*complaints(made), *(f"{path.relative_to(ROOT)}: made from something that is gone" for path in left_over(made))]
    if wrong:
        print(*wrong, "'make generate' makes what differs", sep="\n")
    return bool(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs; exit code 1")
    parser.add_argument("--build", action="store_true", help="only what is not committed, and only after a change")
    parser.add_argument("--into", type=Path, metavar="DIR", help="only stubs and schemas, of the packages built in this folder")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if options.check:
        return check()
    if options.build:
        build()
    elif options.into:
        sys.path.insert(0, str(options.into.resolve()))
        write(read_off(options.into.resolve()), say=False)
    else:
        return everything()
    return 0


if __name__ == "__main__":
    sys.exit(main())
