# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A store that machines share, behind the directories of the compile cache: a directory, or a URL of fsspec.

Entries hold native code, and others may be able to write to the store. So each is signed with a key that the operator
gives, and checked before anything of it is parsed.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

from shlo_disc.errors import OptionError
from shlo_disc.options import Options
from shlo_disc.runtime.cpu_features import host_level
from shlo_disc.runtime.native_module import release

from .client import StoreClient
from .signatures import KEY_FILE_VARIABLE, read_key
from .stores import DirectoryStore, FsspecStore, Store, open_store

STORE_VARIABLE = "SHLO_DISC_CACHE_STORE"


@dataclass(frozen=True)
class SharedEntries:
    """The entries of a store for this release and a level of processors, by kind and key."""

    client: StoreClient
    level: str

    def load(self, key: str, kind: str, limit: int) -> bytes | None:
        """The bytes of an entry; None without one of at most `limit` bytes that is signed as this very entry."""
        return self.client.load(self._name(key, kind), limit)

    def store(self, key: str, kind: str, data: bytes) -> None:
        """Write an entry in the background."""
        self.client.store(self._name(key, kind), data)

    def _name(self, key: str, kind: str) -> str:
        return f"{release}-{self.level}-{key}{kind}"


def shared_entries(options: Options) -> SharedEntries | None:
    """The store that the options, or else the environment, name; None without one, or with `cache_dir=""`.

    Raises OptionError without a key, or where the store cannot be opened.
    """
    stated = options.cache_store
    url = os.environ.get(STORE_VARIABLE, "") if stated is None else os.fspath(stated)
    if not url or (options.cache_dir is not None and not os.fspath(options.cache_dir)):
        return None
    key_file = os.environ.get(KEY_FILE_VARIABLE, "")
    if not key_file:
        raise OptionError(
            "the cache store holds native code, so its entries are signed: make a key of 32 bytes or more "
            f"(openssl rand -hex 32 > FILE; chmod 400 FILE), and name its file by {KEY_FILE_VARIABLE} on each machine"
        )
    levels = [host_level() if name == "host" else name for name in options.cpus]
    return SharedEntries(_client(url, key_file), "+".join(levels))


@functools.cache
def _client(url: str, key_file: str) -> StoreClient:
    client = StoreClient(open_store(url), read_key(key_file), url)
    _clients.append(client)
    return client


_clients: list[StoreClient] = []


def flush_stores() -> None:
    """Wait for entries that are being written, for some seconds at most."""
    for client in _clients:
        client.flush()


def cache_stats() -> dict[str, int]:
    """Counters of this process for the store that machines share: `hits`, `misses`, `refused` (entries that were not
    signed with the key as what they were asked for), `written`, and `failed` (reads and writes)."""
    names = ("hits", "misses", "refused", "written", "failed")
    return {name: sum(client.counts[name] for client in _clients) for name in names}


def _forget() -> None:
    """Open stores anew in a forked process, which has none of the threads."""
    _client.cache_clear()
    _clients.clear()


os.register_at_fork(after_in_child=_forget)

__all__ = [
    "DirectoryStore", "FsspecStore", "SharedEntries", "Store", "cache_stats", "flush_stores", "shared_entries",
]  # fmt: skip
