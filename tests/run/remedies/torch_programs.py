# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exported programs of PyTorch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import shlo_disc
from shlo_disc.errors import ArgumentTypeError, DiscError, ProgramError, ShapeError

from .case import Case, Numbers, X, value_of


class TorchCase(Case):
    """A call of a module that adds, and multiplies by a number."""

    needs = "torch"
    error = ShapeError

    @staticmethod
    def module() -> Any:
        import torch

        class Added(torch.nn.Module):
            """x + y, n times."""

            def forward(self, x: Any, y: Any, n: Any = 1) -> Any:
                return (x + y) * n

        return Added()

    @classmethod
    def compiled(cls, *more: Any, shapes: Any = None) -> Any:
        from torch import export, from_numpy

        arguments = (from_numpy(X), from_numpy(X), *more)
        return shlo_disc.compile(export.export(cls.module(), arguments, dynamic_shapes=shapes))

    @staticmethod
    def tensor(array: Any) -> Any:
        import torch

        return torch.from_numpy(np.ascontiguousarray(array))

    def sums(self, program: Any, *more: Any) -> Numbers:
        """Results of the program for two rows of numbers, and their sums."""
        return program(self.tensor(X), self.tensor(X), *more).numpy(), X + X


class TorchFixedSize(TorchCase):
    remedy = r"x\.shape\[0\], which was fixed .* export it with dynamic_shapes=\{('x'): \{(0): Dim\.(AUTO)\}\}"

    def provoke(self) -> Any:
        return self.compiled()(self.tensor(X[:1]), self.tensor(X[:1]))

    def follow(self, found: re.Match[str]) -> Numbers:
        import torch

        size = getattr(torch.export.Dim, found[3])
        shapes = {value_of(found[1]): {int(found[2]): size}, "y": {0: size}}
        return self.compiled(shapes=shapes)(self.tensor(X[:1]), self.tensor(X[:1])).numpy(), X[:1] * 2


class TorchRange(TorchCase):
    remedy = r"batch is above its range, which ends at 4, by (max)= of its Dim"

    def with_limit(self, **limits: int) -> Numbers:
        import torch

        batch = torch.export.Dim("batch", **limits)
        x = np.zeros((5, 4), np.float32)
        program = self.compiled(shapes={"x": {0: batch}, "y": {0: batch}})
        return program(self.tensor(x), self.tensor(x)).numpy(), x

    def provoke(self) -> Any:
        return self.with_limit(max=4)

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.with_limit(**{found[1]: 8})


class TorchDtype(TorchCase):
    error = ArgumentTypeError
    remedy = r"convert it by x\.(to)\(torch\.(\w+)\)"

    def provoke(self) -> Any:
        return self.compiled()(self.tensor(X).double(), self.tensor(X))

    def follow(self, found: re.Match[str]) -> Numbers:
        import torch

        x = getattr(self.tensor(X).double(), found[1])(getattr(torch, found[2]))
        return self.compiled()(x, self.tensor(X)).numpy(), X + X


class TorchStructure(TorchCase):
    error = ArgumentTypeError
    remedy = r"exported for forward\(x, y\), and the call gives 3 arguments: export the program with those that calls"

    def provoke(self) -> Any:
        return self.sums(self.compiled(), 1)

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.sums(self.compiled(1), 1)


class TorchNumber(TorchCase):
    error = ArgumentTypeError
    remedy = r"the argument n is (\d); .*: export it for each value"

    def provoke(self) -> Any:
        return self.sums(self.compiled(2), 1)

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.sums(self.compiled(int(found[1])), 1)


class TorchGradient(TorchCase):
    error = ArgumentTypeError
    remedy = r"call it under torch\.(no_grad)\(\)"

    def provoke(self) -> Any:
        return self.compiled()(self.tensor(X).requires_grad_(), self.tensor(X))

    def follow(self, found: re.Match[str]) -> Numbers:
        import torch

        with getattr(torch, found[1])():
            return self.compiled()(self.tensor(X).requires_grad_(), self.tensor(X)).numpy(), X + X


class TorchModule(TorchCase):
    error = ProgramError
    remedy = r"shlo_disc\.(compile)\(shlo_disc\.torch\.export\(module, args, dynamic_shapes=\.\.\.\)\)"

    def provoke(self) -> Any:
        return shlo_disc.compile(self.module())

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.sums(self.compiled())


class TorchArgs(TorchCase):
    error = DiscError
    remedy = r"give them to torch\.export\.export, as args and (dynamic_shapes)="

    def provoke(self) -> Any:
        from torch import export, from_numpy

        program = export.export(self.module(), (from_numpy(X), from_numpy(X)))
        return shlo_disc.compile(program, args=(("b, 4", "float32"), ("b, 4", "float32")))

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.sums(self.compiled(shapes={"x": {}, "y": {}}))
