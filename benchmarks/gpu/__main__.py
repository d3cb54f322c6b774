# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks.gpu`: compile works for the GPU of this machine, and time them beside what else is installed.

The works are those of `benchmarks.gpu.works`, by default all but the example models; `--works` names others. The other
options are those of a bundle's run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.gpu import run
from benchmarks.gpu.bundle import Bundle, Refusal
from benchmarks.gpu.recording import record
from benchmarks.gpu.works import sources_of, works
from shlo_disc.driver.compiler import named_target
from shlo_disc.errors import DiscError
from shlo_disc.options import CUDA


def main(arguments: list[str]) -> int:
    """Entry point; the exit status is that of the run, and 2 where there is no GPU."""
    known = works()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    default = [name for name, (family, _) in known.items() if family != "models"]
    parser.add_argument("--works", nargs="*", default=default, choices=list(known), metavar="WORK")
    run.add_options(parser)
    parser.set_defaults(output=Path("build/gpu-report"), only="times")
    options = parser.parse_args(arguments)
    try:
        target = named_target(CUDA)
    except DiscError as error:
        print(f"nothing can be timed here: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        bundle = Bundle(Path(folder))
        record_works(bundle, target, options.works)
        return run.measure(options, bundle)


def record_works(bundle: Bundle, target: str, names: list[str]) -> None:
    """Compile and record works, and what is refused of them."""
    refused = []
    for name in names:
        for source in sources_of(name):
            made = record(source, target, bundle)
            print(f"{source.name}: {made.reason if isinstance(made, Refusal) else 'compiled'}", flush=True)
            if isinstance(made, Refusal):
                refused.append(made)
                break
    bundle.write_refused(refused)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
