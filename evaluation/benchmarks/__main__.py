"""`bin/benchmark NAME`: runs one benchmark, prints its table and writes its figures; without a name it lists them.

A benchmark is a module with a docstring, `add_options`, `run` (options to figures) and `table` (figures to text).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from evaluation.benchmarks.common import about
from evaluation.experiments import write_json
from ncs.errors import BadInput
from ncs.exit_status import main_program

NAMES = ("build", "cold", "ctags", "extract", "names", "query", "scale", "serve", "soak", "tokens", "update", "vectors")


@main_program("benchmark")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 1 with errors among the figures (of `serve`), 2 an error in one line on stderr."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        for each in NAMES:
            title = str(import_module(f"evaluation.benchmarks.{each}").__doc__).partition("\n")[0]
            sys.stdout.write(f"bin/benchmark {each:<8} {title}\n")
        return 0
    if name not in NAMES:
        raise BadInput(f"no benchmark {name!r}; choose one of: {', '.join(NAMES)}")
    benchmark = import_module(f"evaluation.benchmarks.{name}")
    parser = argparse.ArgumentParser(
        prog=f"bin/benchmark {name}", description=benchmark.__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    benchmark.add_options(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures with commit, machine and load")
    options = parser.parse_args(rest)
    report = {**about(), **benchmark.run(options)}
    sys.stdout.write(f"{benchmark.table(report)}\n\nload {report['load']}\n")
    if options.json:
        write_json(report, options.json)
    return int(bool(report.get("errors")))


if __name__ == "__main__":
    sys.exit(main())
