# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one error hierarchy of the project.

Every error that a user can cause derives from `DiscError`, and also from the Python built-in that a caller would expect
to catch, so that `except ValueError` works on a wrong size and `except TypeError` on a wrong dtype or pytree.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.error_codes import advice_of, code_of


class DiscError(Exception):
    """Base class of every error raised on purpose by shlo_disc. Its text is `message`, and `code` in brackets."""

    def __str__(self) -> str:
        message, code = self.message, self.code
        if not code:
            return message
        return f"{message.rstrip()}\n[{code}]" if "\n" in message else f"{message} [{code}]"

    @property
    def message(self) -> str:
        """The text without the code, which an error that is raised again already has."""
        said, code = super().__str__(), self.code
        return said.removesuffix(f"[{code}]").rstrip() if code and said.endswith(f"[{code}]") else said

    @property
    def code(self) -> str:
        """The stable name of what went wrong, such as "DISC-S101", which `python -m shlo_disc why` explains."""
        return code_of((kind.__name__ for kind in type(self).__mro__), super().__str__())

    @property
    def remedy(self) -> str:
        """General advice, the end of the code's page; "" where there is no page."""
        return advice_of(self.code)


class ProgramError(DiscError, ValueError):
    """The program cannot be parsed, deserialised or verified. The message carries the position."""


class OptionError(DiscError, ValueError):
    """An option, a target or a hint that does not exist or does not fit the program."""


class ShapeError(DiscError, ValueError):
    """A call's sizes break the program's signature: wrong rank or size, a broken constraint, an overflow."""


class ArgumentTypeError(DiscError, TypeError):
    """A call's dtypes or pytree break the program's signature."""


class ArtifactError(DiscError, ValueError):
    """An artifact is damaged, of another version, or made for another processor."""


class RecompileError(DiscError, RuntimeError):
    """`shlo_disc.jit(..., compile_once=True)` would have had to compile a second time, or the plugin a function more
    often than SHLO_DISC_MAX_PROGRAMS allows."""


class CustomCallError(DiscError, RuntimeError):
    """A function that was registered for a custom call reported an error. The program has run; its results are lost."""


class DeviceError(DiscError, RuntimeError):
    """A GPU or its driver is missing, or work on it failed. The message has the driver's words."""


class CompilerError(DiscError, RuntimeError):
    """A stage produced IR that breaks its own rules. This is a defect of shlo_disc, not of the program."""


class ReaderError(DiscError, RuntimeError):
    """The process that reads programs from outside cannot be started, or does not answer."""


@dataclass(frozen=True)
class Unsupported:
    """One construct that cannot be compiled: the op, the dtype (or ""), the user's source line, why, what to do."""

    op: str
    dtype: str
    location: str
    reason: str
    suggestion: str = ""

    def __str__(self) -> str:
        dtype = f" on {self.dtype}" if self.dtype else ""
        hint = f"; {self.suggestion}" if self.suggestion else ""
        return f"{self.op}{dtype} at {self.location}: {self.reason}{hint}"


class UnsupportedError(DiscError, NotImplementedError):
    """The program uses constructs that cannot be compiled. Lists all of them at once, in `constructs`."""

    def __init__(self, constructs: list[Unsupported]):
        self.constructs = tuple(constructs)
        lines = "\n".join(f"  - {c}" for c in self.constructs)
        super().__init__(f"{len(self.constructs)} unsupported construct(s):\n{lines}")
