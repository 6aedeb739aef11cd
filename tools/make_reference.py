"""The API reference out of the docstrings: `python tools/make_reference.py [FOLDER]` (default build/docs/api), needs the group `docs`.

Kernels and drivers: every module. `hil_server`: what a script of a user imports. A warning, as of a module that cannot be imported, is an
error.
"""

import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

OF_THE_SERVER = ["hil_server.exchange.log_view", "hil_server.client", "hil_server.config", "hil_server.errors", "hil_server.registry",
                 "hil_server.log.reader"]  # fmt: skip


def modules() -> list[str]:
    """Names for pdoc: it finds the modules of a package by itself, but not those of one that names its public things (`__all__`)."""
    from pdoc.extract import walk_specs

    chosen = [*OF_THE_SERVER, "rt_kernels", "drivers"]
    every = set()
    for package in ("rt_kernels", "drivers"):
        for file in (*ROOT.joinpath(package).rglob("*.py"), *ROOT.joinpath(package).rglob("*.pyx")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            every.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return chosen + sorted(every - set(walk_specs(chosen)))


def main() -> None:
    import pdoc

    warnings.simplefilter("error")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs" / "api"
    pdoc.render.configure(docformat="markdown", show_source=False, footer_text="HIL server")
    pdoc.pdoc(*modules(), output_directory=folder)
    print(folder / "index.html")


if __name__ == "__main__":
    main()
