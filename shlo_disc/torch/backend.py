# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend of `torch.compile`: Dynamo's graphs, and their gradients by AOTAutograd, compiled once for all sizes."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import TracingContext
from torch.nn.attention import SDPBackend, sdpa_kernel

from shlo_disc.driver.compiling import compile_read
from shlo_disc.driver.recording import record_read
from shlo_disc.errors import OptionError, UnsupportedError
from shlo_disc.importer.programs import TextProgram
from shlo_disc.options import Options, check_names
from shlo_disc.torch.effects import without_checks
from shlo_disc.torch.floats import without_fixed_floats
from shlo_disc.torch.graph_text import arguments_of, function_of
from shlo_disc.torch.tensors import as_argument, as_tensor, new_key
from shlo_disc.torch.views import Split, split_views
from shlo_disc.torch.weights import CheckedWeights, Weights

if TYPE_CHECKING:
    from shlo_disc.driver.executable import Executable

LOGGER = logging.getLogger("shlo_disc")


def backend(module: torch.fx.GraphModule, inputs: Sequence[Any], **chosen: Any) -> Callable[..., Any]:
    """`torch.compile(..., backend="shlo_disc", dynamic=True)`.

    chosen: `options=` of torch.compile. "fallback": leave a graph with an op that has no translation to PyTorch, and
    say so in the log; else such a graph is an UnsupportedError, which Dynamo shows. "freezing": in inference, the
    memory of parameters and buffers, which are bound, is not compared at each call with what it was; they are bound
    again when PyTorch counts a change of one. Other names are fields of `shlo_disc.Options`. `mode=` is ignored, with a
    warning. Dynamo compiles sizes of 0 and 1 apart, as for all backends.
    """
    from shlo_disc.importer.aten.decompositions import decompositions_of
    from shlo_disc.importer.aten.wrapped_padding import check_circular_paddings

    own, options = _read(chosen.get("options"))
    if mode := chosen.get("mode"):
        warnings.warn(
            f'torch.compile(mode={mode!r}) is for the backend "inductor" and has no effect with "shlo_disc": leave it '
            "out; options={...} takes the fields of shlo_disc.Options",
            stacklevel=2,
        )
    try:
        check_circular_paddings(module)
    except UnsupportedError as error:
        if not own["fallback"]:
            raise
        LOGGER.warning("%s", _left(error))
        return module.forward

    def compile_graph(
        split: Split, graph: torch.fx.GraphModule, weights: frozenset[int], direction: str
    ) -> Callable[..., Any]:
        if LOGGER.isEnabledFor(logging.INFO):
            known = weights if direction == "backward" else _weights()
            of = f"the {direction} graph of {function_of(module)} for {arguments_of(graph, known)}"
            LOGGER.info("torch.compile: graph %d is %s", graph_count() + 1, of)
        kind = Weights if own["freezing"] else CheckedWeights
        if split.program is None and split.views is not None:
            return make_boxed_func(split.views)
        try:
            return make_boxed_func(CompiledGraph(split, options, weights, kind))
        except UnsupportedError as error:
            if not own["fallback"]:
                raise
            LOGGER.warning("%s", _left(error))
            return make_boxed_func(graph.forward)

    def compile_forward(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return compile_graph(split_views(without_checks(graph)), graph, frozenset(), "forward")

    def compile_backward(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return compile_graph(
            Split(without_checks(graph), None), graph, frozenset(), "backward"
        )  # gradients that share memory would be added to

    def compile_inference(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return compile_graph(split_views(without_checks(graph)), graph, _weights(), "inference")

    traced = aot_autograd(
        fw_compiler=compile_forward,
        bw_compiler=compile_backward,
        inference_compiler=compile_inference,
        decompositions=decompositions_of(module),
    )
    with sdpa_kernel(_attention(inputs)), without_fixed_floats(module, inputs) as left:
        compiled: Callable[..., Any] = traced(module, left)
    return compiled


def _attention(inputs: Sequence[Any]) -> list[SDPBackend]:
    """The form of attention in a graph: whole where nothing is differentiated, else as products and a softmax."""
    tensors = [v for v in inputs if isinstance(v, torch.Tensor)]
    if torch.is_grad_enabled() and any(v.requires_grad for v in tensors):
        return [SDPBackend.MATH]
    return [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]


def _weights() -> frozenset[int]:
    """The positions of the parameters and buffers, among the inputs of the graph that AOTAutograd has made, that the
    graph does not change."""
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return frozenset()
    metadata = context.fw_metadata
    return frozenset(metadata.static_input_indices) - frozenset(metadata.mutated_inp_runtime_indices)


def _left(error: UnsupportedError) -> str:
    """The warning of a graph that is left to PyTorch, without the advice to leave it, which the user has taken."""
    from shlo_disc.importer.aten.graph import LEAVE

    return f"a graph is left to PyTorch: {error}".replace(f", or {LEAVE}", "").replace(f"; {LEAVE}", "")


_OWN = {"fallback": False, "freezing": False}
"""The options that are not the compiler's."""


def _read(given: Mapping[str, Any] | Options | None) -> tuple[dict[str, bool], Options]:
    """The contents of `options=` of torch.compile. Raises OptionError."""
    if isinstance(given, Options):
        changed = [f.name for f in fields(Options) if getattr(given, f.name) != getattr(Options(), f.name)]
        shown = ", ".join(f'"{name}": {getattr(given, name)!r}' for name in changed)
        raise OptionError(f"options= of torch.compile is a dict of fields of shlo_disc.Options: write {{{shown}}}")
    chosen = dict(given or {})
    for name in _OWN:
        if type(chosen.get(name, True)) is not bool:
            raise OptionError(f"{name!r} in options= of torch.compile is True or False, not {chosen[name]!r}")
    check_names(chosen, [*_OWN, *(f.name for f in fields(Options))], "options= of torch.compile")
    others = {name: value for name, value in chosen.items() if name not in _OWN}
    return {name: bool(chosen.get(name, default)) for name, default in _OWN.items()}, Options(**others)


class CompiledGraph:
    """One graph of AOTAutograd's, compiled: called with its placeholders' values, returns what the graph returns.

    weights: the positions of the placeholders that the program is bound to while they stay what they are, as a `kind`
    has it.
    """

    def __init__(self, split: Split, options: Options, weights: frozenset[int], kind: type[Weights]):
        from shlo_disc.importer.aten.graphs import is_constant, translate

        assert split.program is not None  # noqa: S101  # by compile_graph
        self._views = split.views
        given = enumerate(node for node in split.program.graph.nodes if node.op == "placeholder")
        names = {place: node.name for place, node in given if not is_constant(node)}
        first = [name for place, name in names.items() if place in weights]
        translated = translate(split.program, "graph", first=first, bound=len(first), has_strides=True)
        read = TextProgram(translated.text, is_own=True)
        record_read(read, "torch.compile")
        self.executable: Executable = compile_read(read, options)
        self._fixed = [place for place in names if place in weights]
        self._captured = translated.captured
        count = len(self._captured) + len(self._fixed)
        others = [place for place in names if place not in weights]
        self._others = list(zip(others, translated.orders[count:], strict=True))
        self._weights = (kind if weights else Weights)(self.executable, translated.orders[:count])
        self._outputs = translated.outputs
        self._draws = translated.draws
        _Count.add()

    def __call__(self, *args: Any) -> list[Any]:
        """Run the graph."""
        leaves = [as_argument(args[place], f"argument {place}", order) for place, order in self._others]
        if self._draws:
            leaves.append(new_key())
        bound = [*self._captured, *(args[place] for place in self._fixed)]
        program = self._weights.program(bound) if bound else self.executable.loaded
        if program is None:
            program, leaves = self.executable.loaded, [*self._weights.arguments(bound), *leaves]
        found = program.execute(leaves, output="buffer")
        results = [found] if not isinstance(found, list | tuple) else found
        values = [_value(output, results) for output in self._outputs]
        return values if self._views is None else list(self._views(*args, *values))


def _value(output: Any, results: Sequence[Any]) -> Any:
    if output.result is None:
        return output.constant
    tensor = as_tensor(results[output.result])
    if output.is_size:
        return int(tensor)
    return tensor if output.permutation is None else _permuted(tensor, output.permutation)


def _permuted(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """A tensor of one's own with its axes in another order: for autograd it is no view."""
    dims, strides = tensor.shape, tensor.stride()
    return tensor.set_(tensor.untyped_storage(), 0, [dims[axis] for axis in order], [strides[axis] for axis in order])


class _Count:
    """The count of graphs that this process has compiled."""

    lock = threading.Lock()
    graphs = 0

    @classmethod
    def add(cls) -> None:
        with cls.lock:
            cls.graphs += 1


def graph_count() -> int:
    """The number of Dynamo graphs, forward and backward, that this process has compiled."""
    return _Count.graphs
