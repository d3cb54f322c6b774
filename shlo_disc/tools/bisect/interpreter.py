# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO's reference interpreter, in a process of its own, for it aborts on what it does not know.

The process gets the program and its arguments as an archive of arrays on its standard input, and writes one of results.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

_EXCHANGED = frozenset(["f", "i", "u"])


class NotEvaluated(Exception):
    """The interpreter does not run the program; the text says why."""


def evaluate(text: str, arrays: Sequence[np.ndarray], limit: float = 60.0) -> list[np.ndarray]:
    """The results of the static StableHLO program `text`. Raises NotEvaluated, also after `limit` seconds."""
    for array in arrays:
        if array.dtype.kind not in _EXCHANGED or array.dtype == np.float16:
            raise NotEvaluated(f"arguments of {array.dtype} do not pass into the interpreter")
    request = io.BytesIO()
    named: dict[str, Any] = {f"a{i}": a for i, a in enumerate(arrays)}
    np.savez(request, program=np.frombuffer(text.encode(), np.uint8), **named)
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-P", "-m", "shlo_disc.tools.bisect.interpreter"]
    try:
        # The command is fixed: this interpreter and this module.
        done = subprocess.run(  # noqa: S603
            command,
            input=request.getvalue(),
            capture_output=True,
            timeout=limit,
            env={**os.environ, "PYTHONPATH": path},
        )
    except subprocess.TimeoutExpired:
        raise NotEvaluated(f"not done after {limit:g} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["the interpreter aborted"]
        raise NotEvaluated(telling[0].strip()[:200])
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as archive:
        return [archive[name] for name in archive.files]


def _main() -> None:
    from shlo_disc.shape_dialect.dialect.context import make_context
    from shlo_disc.shape_dialect.mlir import ir, stablehlo

    with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as archive:
        text = archive["program"].tobytes().decode()
        arrays = [archive[name] for name in archive.files if name != "program"]
    with make_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        block = next(iter(module.body.operations)).regions[0].blocks[0]
        attributes = [
            ir.DenseElementsAttr.get(np.ascontiguousarray(a).data, type=v.type)
            for a, v in zip(arrays, block.arguments, strict=True)
        ]
        results = [np.array(r) for r in stablehlo.eval_module(module, attributes)]
    answer = io.BytesIO()
    made: dict[str, Any] = {f"r{i}": r for i, r in enumerate(results)}
    np.savez(answer, **made)
    sys.stdout.buffer.write(answer.getvalue())


if __name__ == "__main__":
    _main()
