# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The accesses of owners to addresses in the emulator, and the races among them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Lanes = np.ndarray


@dataclass
class Accesses:
    """The accesses to addresses: pairs of address and owner, those that wrote apart, and those by atomic operations."""

    touched: list[np.ndarray] = field(default_factory=list)
    written: list[np.ndarray] = field(default_factory=list)
    atomic: list[np.ndarray] = field(default_factory=list)

    def add(self, addresses: Lanes, owners: Lanes, is_write: bool) -> None:
        """Record one access of several owners."""
        pairs = np.stack([addresses, owners], axis=1)
        self.touched.append(pairs)
        if is_write:
            self.written.append(pairs)

    def add_atomic(self, addresses: Lanes, owners: Lanes) -> None:
        """Record one atomic operation of several owners."""
        self.atomic.append(np.stack([addresses, owners], axis=1))

    def move(self, to: Accesses, owners: Lanes, of_each: int) -> None:
        """Move those of some owners to others, of which each is so many of them."""
        for mine, theirs in zip(
            (self.touched, self.written, self.atomic), (to.touched, to.written, to.atomic), strict=True
        ):
            all_ = np.concatenate([*mine, np.zeros((0, 2), np.int64)])
            chosen = owners[all_[:, 1]]
            theirs.append(all_[chosen] // [1, of_each])
            mine[:] = [all_[~chosen]]

    def check(self, what: str) -> None:
        """Fail when an address has two owners and was written, or touched by atomic operations and by others."""
        if not self.written and not self.atomic:
            return
        touched = np.unique(np.concatenate([*self.touched, *self.atomic]), axis=0)
        addresses, owners = np.unique(touched[:, 0], return_counts=True)
        shared = addresses[owners > 1]
        plain, written, atomic = (_among(shared, pairs) for pairs in (self.touched, self.written, self.atomic))
        assert not written.any(), f"two {what} touch one element, and one writes it"
        assert not (plain & atomic).any(), f"two {what} touch one element, and one does so by an atomic operation"


def _among(addresses: np.ndarray, accesses: list[np.ndarray]) -> np.ndarray:
    """A mask of the addresses that are among those of accesses."""
    return np.isin(addresses, np.concatenate(accesses)[:, 0]) if accesses else np.zeros(len(addresses), bool)
