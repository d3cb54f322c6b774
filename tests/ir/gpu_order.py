# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of accesses of different blocks to the memory of the device, as fences, atomic operations and barriers say.

A thread's fence covers what its block has done up to the last barrier, what the thread itself has done, and what that
is known to come after. An atomic operation releases what the thread's last fence covers, and takes what others have
released by atomic operations on the same element before; a further fence makes that known to the thread, and a barrier
to its block. An access comes after the known ones, and is unordered with all others of other blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tests.ir.gpu_accesses import Accesses

Lanes = np.ndarray
Covered = tuple[int, frozenset[int]]
"""Accesses of a block: so many of the first ones, and some others by their numbers."""

Known = dict[int, Covered]
"""The covered accesses of blocks, by the number of the block."""


def together(all_: Iterable[Known]) -> Known:
    """The accesses that are known from several sides."""
    found: Known = {}
    for known in all_:
        for block, (count, others) in known.items():
            before = found.get(block, (0, frozenset()))
            found[block] = max(count, before[0]), others | before[1]
    return found


@dataclass
class Access:
    """One access of some threads of a block. lane: the thread where it is a single one, else -1."""

    addresses: Lanes
    is_write: bool
    lane: int
    known: Known


def _addresses(accesses: list[Access]) -> Lanes:
    return np.concatenate([a.addresses for a in accesses]) if accesses else np.zeros(0, np.int64)


def _check_apart(ours: list[Access], theirs: list[Access]) -> None:
    """Fail where accesses of two blocks meet that are in no order, and one writes."""
    for mine, others in ((ours, [a for a in theirs if a.is_write]), ([a for a in ours if a.is_write], theirs)):
        meet = np.isin(_addresses(mine), _addresses(others))
        assert not meet.any(), "two blocks touch one element, and one writes it"


@dataclass
class DeviceOrder:
    """The blocks of a launch, and for each address what atomic operations there have released."""

    blocks: list[BlockOrder] = field(default_factory=list)
    released: dict[int, Known] = field(default_factory=dict)

    def check(self) -> None:
        """Fail where two blocks touch an element in no order, and one writes it."""
        grid = Accesses()
        for block in self.blocks:
            for access in block.accesses:
                if not access.known:
                    grid.add(access.addresses, np.full_like(access.addresses, block.number), access.is_write)
            for addresses in block.atomics:
                grid.add_atomic(addresses, np.full_like(addresses, block.number))
        grid.check("blocks")
        for block in self.blocks:
            for known in {id(a.known): a.known for a in block.accesses if a.known}.values():
                self._check_later(block, known)

    def _check_later(self, block: BlockOrder, known: Known) -> None:
        """The accesses of a block that come after the known ones of others."""
        own = [(number, a) for number, a in enumerate(block.accesses) if a.known is known]
        for other in (b for b in self.blocks if b is not block):
            theirs: dict[int, list[Access]] = {}
            for access in other.not_in(known):
                theirs.setdefault(id(access.known), []).append(access)
            for accesses in theirs.values():  # those that come after some of ours are in order with these
                count, others = accesses[0].known.get(block.number, (0, frozenset()))
                _check_apart([a for i, a in own if i >= count and i not in others], accesses)
            _check_apart([a for _, a in own], [Access(addresses, True, -1, {}) for addresses in other.atomics])


@dataclass
class BlockOrder:
    """The accesses of one block to the memory of the device, and what its threads know of others."""

    device: DeviceOrder
    number: int
    accesses: list[Access] = field(default_factory=list)
    atomics: list[Lanes] = field(default_factory=list)
    known: Known = field(default_factory=dict)
    _met: int = 0
    _fenced: dict[int, Known] = field(default_factory=dict)
    _taken: dict[int, Known] = field(default_factory=dict)
    _seen: dict[int, Known] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.device.blocks.append(self)

    def add(self, addresses: Lanes, is_write: bool, lane: int = -1) -> None:
        """Record an access."""
        self.accesses.append(Access(addresses, is_write, lane, self.known))

    def not_in(self, known: Known) -> list[Access]:
        """The accesses that are not among the known ones."""
        count, others = known.get(self.number, (0, frozenset()))
        return [a for i, a in enumerate(self.accesses[count:], count) if i not in others]

    def fence(self, lanes: Lanes) -> None:
        """Fences of some threads."""
        for lane in map(int, lanes):
            own = frozenset(i for i, a in enumerate(self.accesses[self._met :], self._met) if a.lane == lane)
            self._seen[lane] = together([self._seen.get(lane, {}), self._taken.pop(lane, {})])
            self._fenced[lane] = together([self.known, self._seen[lane], {self.number: (self._met, own)}])

    def atomic(self, addresses: Lanes, lanes: Lanes) -> None:
        """Atomic operations of some threads, each on one element."""
        self.atomics.append(addresses)
        for lane, address in zip(map(int, lanes), map(int, addresses), strict=True):
            before = self.device.released.get(address, {})
            self._taken[lane] = together([self._taken.get(lane, {}), before])
            if lane in self._fenced:
                self.device.released[address] = together([before, self._fenced[lane]])

    def barrier(self) -> None:
        """All threads of the block have met."""
        self._met = len(self.accesses)
        if self._seen:
            self.known = together([self.known, *self._seen.values()])
            self._seen = {}
