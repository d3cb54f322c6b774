# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The errors of shlo_disc.

Every error that you can cause derives from `DiscError` and from a matching Python built-in, so `except ValueError`
catches a wrong size and `except TypeError` a wrong dtype or pytree.
"""

from __future__ import annotations

from dataclasses import dataclass

from shlo_disc.error_codes import advice_of, code_of


class DiscError(Exception):
    """Base class of every error that shlo_disc raises on purpose. Its text is `message`, then `code` in brackets."""

    def __str__(self) -> str:
        message, code = self.message, self.code
        if not code:
            return message
        return f"{message.rstrip()}\n[{code}]" if "\n" in message else f"{message} [{code}]"

    @property
    def message(self) -> str:
        """The text without the code."""
        said, code = super().__str__(), self.code
        return said.removesuffix(f"[{code}]").rstrip() if code and said.endswith(f"[{code}]") else said

    @property
    def code(self) -> str:
        """The stable code of the error, such as "DISC-S101", which `python -m shlo_disc why` explains."""
        return code_of((kind.__name__ for kind in type(self).__mro__), super().__str__())

    @property
    def remedy(self) -> str:
        """General advice: the end of the page of the code; "" if there is no page."""
        return advice_of(self.code)


class ProgramError(DiscError, ValueError):
    """The program cannot be parsed, deserialized or verified. The message has the position."""


class OptionError(DiscError, ValueError):
    """An option, target or hint does not exist or does not match the program."""


class ShapeError(DiscError, ValueError):
    """The sizes of a call violate the signature: a wrong rank or size, a violated constraint, an overflow."""


class ArgumentTypeError(DiscError, TypeError):
    """The dtypes or the pytree of a call violate the signature."""


class ArtifactError(DiscError, ValueError):
    """An artifact is damaged, has another version, or is for another processor."""


class RecompileError(DiscError, RuntimeError):
    """A function of `shlo_disc.jit(..., compile_once=True)` needs a second compile, or the plugin needs more programs
    for a function than SHLO_DISC_MAX_PROGRAMS allows."""


class CustomCallError(DiscError, RuntimeError):
    """A function registered for a custom call returned an error. The program has run; its results are lost."""


class DeviceError(DiscError, RuntimeError):
    """A GPU or its driver is missing, or work on it failed. The message quotes the driver."""


class CompilerError(DiscError, RuntimeError):
    """A stage failed, or produced IR that violates its rules. This is a bug in shlo_disc, not in the program."""


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
