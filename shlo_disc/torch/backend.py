# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend of `torch.compile`: Dynamo's graphs, and their gradients by AOTAutograd, compiled once for all sizes."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.nn.attention import SDPBackend, sdpa_kernel

from shlo_disc.compiling import compile_read
from shlo_disc.errors import OptionError, UnsupportedError
from shlo_disc.options import Options
from shlo_disc.programs import TextProgram
from shlo_disc.torch.tensors import as_argument, as_tensor, new_key

if TYPE_CHECKING:
    from shlo_disc.executable import Executable

LOGGER = logging.getLogger("shlo_disc")


def backend(module: torch.fx.GraphModule, inputs: Sequence[Any], **chosen: Any) -> Callable[..., Any]:
    """`torch.compile(..., backend="shlo_disc", dynamic=True)`.

    chosen: `options=` of torch.compile. "fallback": leave a graph with an op that has no translation to PyTorch, and
    say so in the log; else such a graph is an UnsupportedError, which Dynamo shows. Other names are fields of
    `shlo_disc.Options`. Dynamo compiles sizes of 0 and 1 apart, as for all backends.
    """
    fallback, options = _read(dict(chosen.get("options") or {}))
    decompositions = importlib.import_module("shlo_disc.import.aten.decompositions").for_exporting()

    def compile_graph(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        try:
            return make_boxed_func(CompiledGraph(graph, options))
        except UnsupportedError as error:
            if not fallback:
                raise
            LOGGER.warning("a graph is left to PyTorch: %s", error)
            return make_boxed_func(graph.forward)

    with sdpa_kernel(SDPBackend.MATH):
        compiled: Callable[..., Any] = aot_autograd(
            fw_compiler=compile_graph, bw_compiler=compile_graph, decompositions=decompositions
        )(module, inputs)
    return compiled


def _read(chosen: Mapping[str, Any]) -> tuple[bool, Options]:
    """What `options=` of torch.compile says. Raises OptionError."""
    others = {name: value for name, value in chosen.items() if name != "fallback"}
    try:
        return bool(chosen.get("fallback", False)), Options(**others)
    except TypeError as error:
        raise OptionError(
            f"options= of torch.compile takes fallback and the fields of shlo_disc.Options: {error}"
        ) from None


class CompiledGraph:
    """One graph of AOTAutograd's, compiled: called with its placeholders' values, returns what the graph returns."""

    def __init__(self, graph: torch.fx.GraphModule, options: Options):
        graphs = importlib.import_module("shlo_disc.import.aten.graphs")
        translated = graphs.translate(graph, "graph", has_strides=True)
        self.executable: Executable = compile_read(TextProgram(translated.text, is_own=True), options)
        self._captured = [as_argument(t, "a constant") for t in translated.captured]
        self._outputs = translated.outputs
        self._draws = translated.draws
        _Count.add()

    def __call__(self, *args: Any) -> list[Any]:
        """Run the graph."""
        leaves = [*self._captured, *(as_argument(a, f"argument {i}") for i, a in enumerate(args))]
        if self._draws:
            leaves.append(new_key())
        found = self.executable.loaded.execute(leaves, output="buffer")
        results = [found] if not isinstance(found, list | tuple) else found
        return [_value(output, results) for output in self._outputs]


def _value(output: Any, results: Sequence[Any]) -> Any:
    if output.result is None:
        return output.constant
    tensor = as_tensor(results[output.result])
    if output.is_size:
        return int(tensor)
    return tensor if output.permutation is None else tensor.permute(output.permutation)


class _Count:
    """How many graphs this process has compiled."""

    lock = threading.Lock()
    graphs = 0

    @classmethod
    def add(cls) -> None:
        with cls.lock:
            cls.graphs += 1


def graph_count() -> int:
    """How many graphs of Dynamo's, forwards and backwards, this process has compiled."""
    return _Count.graphs
