# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The works that backends are measured on: a program with its weights, and the stream of shapes it meets."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from benchmarks.data import Folder, save
from benchmarks.timing import shape_stream
from examples.model import export_function, function, symbolic_sizes

Shape = tuple[int, ...]
Shapes = Sequence[Shape]


@dataclasses.dataclass(frozen=True)
class Work:
    """A program `function(params, *inputs)`; see `benchmarks.data.Folder` for the fields that stand in both.

    export: the program for all shapes, or for one, such as dims="2, 7".
    init: the weights.
    make_inputs: NumPy inputs of given sizes.
    """

    name: str
    title: str
    dims: str
    shapes: Shapes
    function: Callable[..., Any]
    export: Callable[..., jax.export.Exported]
    init: Callable[[], Any]
    make_inputs: Callable[..., tuple[Any, ...]]
    limits: Shape
    torch_model: str
    small: bool
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    padded: tuple[str, ...] = ()
    host_inputs: bool = False
    trains: bool = False
    pullback: int = 0

    def write(self, path: Path) -> Folder:
        """Writes the weights and the inputs at all shapes to `path`, for processes without JAX."""
        exported = self.export()
        weights = len(jax.tree.leaves(self.init()))
        folder = Folder(
            path=path,
            work=self.name,
            small=self.small,
            dims=self.dims,
            shapes=[list(shape) for shape in self.shapes],
            specs=[[str(dim) for dim in aval.shape] for aval in exported.in_avals[weights:]],
            results=[[str(dim) for dim in aval.shape] for aval in exported.out_avals],
            limits=list(self.limits),
            torch_model=self.torch_model,
            weights_count=weights,
            padded=list(self.padded),
            host_inputs=self.host_inputs,
            trains=self.trains,
            pullback=self.pullback,
            config=self.config,
        )
        path.mkdir(parents=True, exist_ok=True)
        folder.write()
        save(folder.weights, self.init())
        for index, shape in enumerate(self.shapes):
            save(folder.inputs(index), self.make_inputs(*shape))
        return folder


def _model(name: str, title: str, shapes: Shapes, small: bool, module: str = "", **options: Any) -> Work:
    """A work of one of the example models; in its small configuration with the first few shapes that it admits."""
    model = importlib.import_module(f"examples.{module or name}")
    config = model.SMALL if small else options.pop("config", model.BASE)
    options.pop("config", None)
    if small:
        most = model.limits(config)
        shapes = list(dict.fromkeys(tuple(map(min, shape, most)) for shape in shapes))[:3]
    return Work(
        name=name,
        title=title,
        dims=model.DIMS,
        shapes=shapes,
        function=function(model, config),
        export=functools.partial(model.export, config),
        init=functools.partial(model.init, config),
        make_inputs=functools.partial(model.make_inputs, config),
        limits=model.limits(config),
        torch_model=module or name,
        small=small,
        config=dataclasses.asdict(config),
        **options,
    )


def _bert(small: bool) -> Work:
    return _model("bert", "BERT-base", shape_stream(24, 8, 512, 1024), small, padded=("b", "s"))


def _seq2seq(small: bool) -> Work:
    shapes = [(4, 1 + step, 30) for step in range(66)]
    return _model("seq2seq", "seq2seq decoding, growing cache", shapes, small, padded=("b",))


def _dien(small: bool) -> Work:
    shapes = [(64, length) for length in _lengths(24, 4, 100)]
    return _model("dien", "DIEN", shapes, small, padded=("b", "t"))


def _asr(small: bool) -> Work:
    shapes = [(1, length) for length in _lengths(20, 20, 400)]
    return _model("asr", "speech encoder", shapes, small, padded=("b", "t"))


def _crnn(small: bool) -> Work:
    return _model("crnn", "CRNN", [(2, width) for width in _lengths(20, 12, 128)], small, padded=("b",))


def _gpt2(small: bool) -> Work:
    return _model("gpt2", "GPT-2 prefill", shape_stream(12, 4, 1024, 1024), small, padded=("b", "s"))


def _gpt2_decode(small: bool) -> Work:
    shapes = [(1, length) for length in _lengths(24, 1, 1000)]
    return _model("gpt2_decode", "GPT-2 decoding, growing cache", shapes, small, padded=("b",))


def _vit(small: bool) -> Work:
    shapes = [(1, 196), (8, 49), (2, 100), (1, 49), (4, 196), (3, 144), (8, 121), (1, 16), (5, 81), (2, 169)]
    return _model("vit", "ViT-base", shapes, small, padded=("b",))


def _resnet50(small: bool) -> Work:
    shapes = [(1, 224), (4, 128), (2, 160), (1, 96), (3, 192), (1, 320), (2, 224), (1, 257), (8, 112), (1, 65)]
    return _model("resnet50", "ResNet-50", shapes, small, padded=("b",))


def _transformer_train(small: bool) -> Work:
    from examples.transformer_train import Config

    config = Config(layers=4, width=768, heads=12, vocabulary=8192, max_length=512)
    shapes = shape_stream(12, 8, 256, 512, seed=1)
    return _model("transformer_train", "train step, 4 layers of 768", shapes, small, config=config, trains=True)


def _increment(small: bool) -> Work:
    """x + 1 on 8 floats: what a call costs by itself."""

    def program(params: Any, x: jax.Array) -> jax.Array:
        return x + 1.0

    def export(dims: str = "n") -> jax.export.Exported:
        return export_function(program, {}, [jax.ShapeDtypeStruct(symbolic_sizes(dims), jnp.float32)])

    def make_inputs(n: int) -> tuple[Any, ...]:
        return (np.arange(n, dtype=np.float32),)

    return Work(
        name="increment",
        title="x + 1 on 8 floats, from NumPy",
        dims="n",
        shapes=[(8,)],
        function=program,
        export=export,
        init=dict,
        make_inputs=make_inputs,
        limits=(8,),
        torch_model="increment",
        small=small,
        padded=("n",),
        host_inputs=True,
    )


def _lengths(count: int, least: int, most: int) -> list[int]:
    """`count` lengths from least to most, evenly spread, in a random order."""
    return [int(length) for length in np.random.default_rng(0).permutation(np.linspace(least, most, count).round())]


MODELS: dict[str, Callable[[bool], Work]] = {
    "bert": _bert,
    "seq2seq": _seq2seq,
    "dien": _dien,
    "asr": _asr,
    "crnn": _crnn,
    "gpt2": _gpt2,
    "gpt2_decode": _gpt2_decode,
    "vit": _vit,
    "resnet50": _resnet50,
    "transformer_train": _transformer_train,
    "increment": _increment,
}
"""The models by name; the argument chooses the small configuration, for tests of the benchmarks."""


def all_works() -> dict[str, Callable[[bool], Work]]:
    """Each work by name, the micro programs included; the argument chooses the small configuration."""
    from benchmarks.micro_works import WORKS as MICRO  # which imports this file

    return MODELS | MICRO


def find(name: str, small: bool = False) -> Work:
    """The work or the stream of `benchmarks.comparison` called `name`. Raises KeyError when there is none."""
    from benchmarks.comparison.streams import STREAMS  # which imports this file

    return (all_works() | STREAMS)[name](small)
