# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distribution of the time of a cold start: `python -m benchmarks.cold bert seq2seq dien transformer_train`.

Each start is a process of its own: without the compile cache, and with one that holds the program. Processor seconds
stand beside the wall clock, for a machine that has other things to do. Weights are not counted, shapes are enough.
Python keeps its bytecode, which an installed package has from the start; so the first start of all may take longer.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.tables import table


class Clock:
    """Steps with the seconds that they took, on the wall clock and of the processor."""

    def __init__(self) -> None:
        self.steps: dict[str, tuple[float, float]] = {}
        self._last = (time.perf_counter(), time.process_time())

    def lap(self, name: str) -> None:
        """Records the time since the last lap under `name`."""
        last, self._last = self._last, (time.perf_counter(), time.process_time())
        self.steps[name] = (self._last[0] - last[0], self._last[1] - last[1])


def start(model_name: str, layers: int) -> dict[str, Any]:
    """One cold start in this process: the steps, and the wall clock of each stage of the compile."""
    clock = Clock()
    import jax
    import jax.export
    import jax.numpy
    import numpy as np

    clock.lap("import jax")
    model = importlib.import_module(f"examples.{model_name}")
    config = dataclasses.replace(model.BASE, layers=layers) if layers else model.BASE
    weights = jax.tree.map(np.asarray, model.init(config))
    model.init = lambda *_: weights  # type: ignore[attr-defined]  # exports need its shapes
    sizes = [min(most, 17) for most in model.limits(config)]
    inputs = model.make_inputs(config, *sizes)
    clock.lap("not counted")
    exported = model.export(config)
    clock.lap("trace and export")
    import shlo_disc

    executable = shlo_disc.compile(exported)
    clock.lap("import shlo_disc, compile")
    for name in ("first call", "second call"):
        executable(weights, *inputs)
        clock.lap(name)
    del clock.steps["not counted"]
    libraries = [name for name in ("torch_mlir", "llvmlite", "scipy") if name in sys.modules]
    return {"steps": clock.steps, "stages": dict(executable.timings), "libraries": libraries}


def start_apart(model_name: str, layers: int, cache: str) -> dict[str, Any]:
    """`start` in a fresh process that uses this cache directory, none when it is ""."""
    command = [sys.executable, "-m", "benchmarks.cold", model_name, "--layers", str(layers), "--here"]
    caches = {"SHLO_DISC_CACHE_DIR": cache, "SHLO_DISC_CODE_CACHE_DIR": ""}
    settings = {**caches, "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": ""}
    environment = {**os.environ, **settings}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def report(model_name: str, layers: int) -> str:
    """The table of one model."""
    with tempfile.TemporaryDirectory() as cache:
        starts = {"no cache": start_apart(model_name, layers, "")}
        start_apart(model_name, layers, cache)
        starts["cached"] = start_apart(model_name, layers, cache)
    rows = []
    for kind, result in starts.items():
        steps = result["steps"]
        total = [sum(times) for times in zip(*steps.values(), strict=True)]
        rows += [(kind, name, f"{wall:.3f}", f"{cpu:.3f}") for name, (wall, cpu) in {**steps, "all": total}.items()]
        rows += [(kind, f"  {stage}", f"{seconds:.3f}", "") for stage, seconds in result["stages"].items()]
        rows.append((kind, f"  imports {', '.join(result['libraries']) or 'neither MLIR nor LLVM'}", "", ""))
    name = f"{model_name}, {layers} layers" if layers else model_name
    return table((name, "step", "wall s", "processor s"), rows)


def main() -> int:
    """Entry point; `--here` is how the processes of the starts are started."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="modules of examples/")
    parser.add_argument("--layers", type=int, nargs="+", default=[0], help="depths to try; 0: the model's own")
    parser.add_argument("--here", action="store_true", help="one start in this process, as JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(start(options.models[0], options.layers[0])))
        return 0
    for model_name in options.models:
        for layers in options.layers:
            print(report(model_name, layers), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
