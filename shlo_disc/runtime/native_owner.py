# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common part of objects with native code: they never change, and are not pickled with that code."""

from __future__ import annotations

from typing import Any, ClassVar, Self


class NativeOwner:
    """An object that is its own copy, and that says what to pickle instead of it."""

    pickle_instead: ClassVar[str] = ""

    def __copy__(self) -> Self:
        """Itself: nothing of it changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> Any:
        """Raises TypeError, as Python does for what cannot be pickled."""
        raise TypeError(f"cannot pickle a {type(self).__name__}, which has native code: {self.pickle_instead}")


__all__ = ["NativeOwner"]
