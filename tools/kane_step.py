"""C step function of a small symbolic model: `python tools/kane_step.py MODEL.py NAME > NAME.c`.

MODEL.py defines `model()` that returns a `rt_kernels.offline.kane.KaneModel`. NAME_accelerate and NAME_step are explained in
`KaneModel.emit_c`.
"""

import argparse
import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="Python file with a function model()")
    parser.add_argument("name", help="prefix of the C functions")
    options = parser.parse_args(arguments)
    namespace = runpy.run_path(options.model)
    if "model" not in namespace:
        print(f"{options.model}: no function model()", file=sys.stderr)
        return 2
    try:
        sys.stdout.write(namespace["model"]().emit_c(options.name))
    except ValueError as error:
        print(f"{options.model}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
