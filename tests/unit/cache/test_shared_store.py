# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A store that machines share: signatures, implementations, and what a store that fails costs."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from shlo_disc import OptionError, Options, cache_stats
from shlo_disc.driver.cache import CompileCache, TunedMachine, TuningRecord, TuningRecords, open_code_cache, shared
from shlo_disc.driver.cache.shared import DirectoryStore, FsspecStore, Store, client, shared_entries
from shlo_disc.driver.cache.shared.client import StoreClient
from shlo_disc.driver.cache.shared.signatures import EXTRA_BYTES, checked, read_key, signed
from shlo_disc.driver.cache.shared.stores import open_store, visible
from shlo_disc.options import KernelSchedule
from shlo_disc.runtime import Artifact

KEY = bytes(range(32))
NAMES = ("hits", "misses", "refused", "written", "failed")


class DictStore:
    """A store in memory. error: raised by each request. seconds: that each takes."""

    def __init__(self, error: Exception | None = None, seconds: float = 0.0):
        self.entries: dict[str, bytes] = {}
        self.error, self.seconds, self.requests = error, seconds, 0

    def _request(self) -> None:
        self.requests += 1
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error

    def get(self, name: str, limit: int) -> bytes | None:
        self._request()
        found = self.entries.get(name)
        return None if found is None else found[:limit]

    def put(self, name: str, data: bytes) -> None:
        self._request()
        self.entries[name] = data


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    path.chmod(0o400)
    monkeypatch.setenv("SHLO_DISC_CACHE_KEY_FILE", str(path))
    monkeypatch.delenv("SHLO_DISC_CACHE_STORE", raising=False)
    return path


def counts(found: StoreClient) -> list[int]:
    return [found.counts[name] for name in NAMES]


# ---- signatures ------------------------------------------------------------------------------------------------------


def test_only_what_was_signed_is_taken() -> None:
    entry = signed(KEY, "a", b"code")
    assert checked(KEY, "a", entry) == b"code" and len(entry) == EXTRA_BYTES + 4
    assert checked(KEY, "a", signed(KEY, "a", b"")) == b""
    assert checked(KEY, "b", entry) is None  # an entry of another key
    assert checked(KEY[::-1], "a", entry) is None
    assert checked(KEY, "ac", signed(KEY, "a", b"code")) is None is checked(KEY, "a", signed(KEY, "ac", b"ode"))


def test_damage_of_any_kind_is_refused() -> None:
    generator, entry = random.Random(3), signed(KEY, "a", bytes(range(256)))
    for end in (0, 1, 17, 18, EXTRA_BYTES - 1, EXTRA_BYTES, len(entry) - 1):
        assert checked(KEY, "a", entry[:end]) is None
    for _ in range(500):
        damaged = bytearray(entry)
        for _ in range(generator.randint(1, 4)):
            match generator.randrange(3):
                case 0:
                    damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
                case 1:
                    del damaged[generator.randrange(len(damaged))]
                case _:
                    damaged.insert(generator.randrange(len(damaged)), generator.randrange(256))
        if damaged != entry:
            assert checked(KEY, "a", bytes(damaged)) is None


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o640])
def test_a_key_that_others_cannot_read_is_taken(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    assert read_key(str(key_file)) == KEY


@pytest.mark.parametrize("mode", [0o444, 0o604, 0o402, 0o460, 0o401])
def test_a_key_that_others_can_read_or_change_is_refused(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    with pytest.raises(OptionError, match="is open to other users: chmod 400"):
        read_key(str(key_file))


def test_keys_that_are_none(key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size, words in ((31, "from 32 to 4096 bytes"), (0, "from 32"), (4097, "from 32")):
        key_file.chmod(0o600)
        key_file.write_bytes(bytes(size))
        with pytest.raises(OptionError, match=words):
            read_key(str(key_file))
    with pytest.raises(OptionError, match=r"'.*nowhere' cannot be read: No such file.*DISC-O112"):
        read_key(str(tmp_path / "nowhere"))
    with pytest.raises(OptionError, match="cannot be read|is not a file"):
        read_key(str(tmp_path))
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(OptionError, match="is not a file"):
        read_key(str(tmp_path / "pipe"))
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    if key_file.stat().st_uid == 0:
        os.chown(key_file, 54321, -1)
    with pytest.raises(OptionError, match="belongs to another user"):
        read_key(str(key_file))


# ---- options ---------------------------------------------------------------------------------------------------------


def test_a_store_without_a_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHLO_DISC_CACHE_KEY_FILE", raising=False)
    options = Options(cache_store=tmp_path / "store", cache_dir=tmp_path / "cache")
    with pytest.raises(OptionError, match=r"openssl rand -hex 32 .* SHLO_DISC_CACHE_KEY_FILE .*DISC-O112"):
        shared_entries(options)
    monkeypatch.setenv("SHLO_DISC_CODE_CACHE_DIR", str(tmp_path / "code"))
    with pytest.raises(OptionError, match="so its entries are signed"):
        open_code_cache(options)
    assert shared_entries(Options(cache_store=tmp_path / "store", cache_dir="")) is None


def test_the_environment_names_a_store(key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_entries(Options()) is None
    monkeypatch.setenv("SHLO_DISC_CACHE_STORE", str(tmp_path / "store"))
    found = shared_entries(Options(cpu="x86-64-v3"))
    assert found is not None and found.level == "x86-64-v3"
    assert shared_entries(Options(cpu="x86-64-v3")) == found != shared_entries(Options(cpu="x86-64-v4"))
    assert shared_entries(Options(cache_store="")) is None
    with pytest.raises(OptionError, match="cache_store must be"):
        Options(cache_store=3)  # type: ignore[arg-type]


def test_a_store_brings_a_directory(key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shlo_disc.driver.cache import open_cache

    monkeypatch.delenv("SHLO_DISC_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = open_cache(Options(cache_store=tmp_path / "store"))
    assert found is not None and found.directory == tmp_path / "shlo_disc" / "programs"
    monkeypatch.setenv("SHLO_DISC_CACHE_DIR", "")
    assert open_cache(Options(cache_store=tmp_path / "store")) is None


def test_urls(tmp_path: Path) -> None:
    for url in (str(tmp_path), f"file://{tmp_path}"):
        store = open_store(url)
        assert isinstance(store, DirectoryStore) and store.directory == tmp_path
    with pytest.raises(OptionError, match=r"must be an absolute path or a URL .*O112"):
        open_store("cache/store")
    assert visible("sftp://me:secret@host/path@1") == "sftp://host/path@1"
    assert visible("s3://bucket/a") == "s3://bucket/a" and visible("/mnt/a@b") == "/mnt/a@b"


def test_an_unknown_url() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(OptionError, match=r"'nothing://x' cannot be opened: Protocol not known"):
        open_store("nothing://x")


# ---- implementations -------------------------------------------------------------------------------------------------


@pytest.fixture(params=["directory", "memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "directory":
        return DirectoryStore(tmp_path / "store")
    pytest.importorskip("fsspec")
    (tmp_path / "local").mkdir()
    url = f"memory://{tmp_path.name}" if request.param == "memory" else f"local://{tmp_path}/local"
    return FsspecStore(url)


def test_what_was_put_is_got(store: Store) -> None:
    assert store.get("a", 10) is None
    for data in (b"one", b"", b"another one"):
        store.put("a", data)
        assert store.get("a", 100) == data
        assert store.get("a", 2) == data[:2]
    assert store.get("b", 10) is None


def test_concurrent_writers(store: Store) -> None:
    """A reader of signed entries sees one writer's data, or refuses what is half written."""
    faults: list[Any] = []
    allowed = {bytes([n]) * 50_000 for n in range(4)}

    def work(number: int) -> None:
        own = StoreClient(store, KEY, "store")
        for _ in range(10):
            own.store("a", bytes([number]) * 50_000)
            found = own.load("a", 100_000)
            if found is not None and found not in allowed:
                faults.append(found[:10])
        own.flush()
        if own.counts["failed"] or (own.counts["refused"] and isinstance(store, DirectoryStore)):
            faults.append(own.counts)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert StoreClient(store, KEY, "store").load("a", 100_000) in allowed


def test_a_directory_that_cannot_be_reached(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "unmounted" / "store")
    for request in (lambda: store.get("a", 1), lambda: store.put("a", b"")):
        with pytest.raises(FileNotFoundError):
            request()


def test_links_and_pipes_are_not_read(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert store.get("pipe", 10) == b""
    (tmp_path / "file").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OSError, match="symbolic"):
        store.get("link", 10)


# ---- failures --------------------------------------------------------------------------------------------------------


def test_counts_and_refusals(caplog: pytest.LogCaptureFixture) -> None:
    store = DictStore()
    found = StoreClient(store, KEY, "store")
    assert found.load("a", 10) is None
    found.store("a", b"code")
    assert found.flush() and found.load("a", 10) == b"code"
    store.entries["b"] = store.entries["a"]
    assert found.load("b", 10) is None and "entry b is refused" in caplog.text
    assert found.load("a", 3) is None  # larger than asked for
    assert counts(found) == [1, 1, 2, 1, 0]
    assert StoreClient(store, KEY[::-1], "store").load("a", 10) is None


@pytest.mark.parametrize("error", [OSError("no route"), ValueError("of another library"), PermissionError("denied")])
def test_a_store_that_is_down_costs_one_warning(
    error: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DictStore(error)
    found = StoreClient(store, KEY, "store")
    for _ in range(5):
        assert found.load("a", 10) is None
        found.store("a", b"code")
    assert found.flush()
    assert store.requests == 1
    monkeypatch.setattr(client, "SECONDS_LEFT_ALONE", 0.0)
    found._left_alone_until = 0.0
    assert found.load("a", 10) is None and store.requests == 2
    assert [record.levelno for record in caplog.records if record.levelno >= logging.WARNING] == [logging.WARNING]
    store.error = None
    found.store("a", b"code")
    assert found.flush() and found.load("a", 10) == b"code"


def test_a_slow_store_is_not_waited_for(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SECONDS_TO_READ", 0.05)
    monkeypatch.setattr(client, "SECONDS_TO_WRITE", 0.05)
    found = StoreClient(DictStore(seconds=1.0), KEY, "store")
    start = time.monotonic()
    assert found.load("a", 10) is None and found.load("b", 10) is None
    found.store("a", b"code")
    assert found.flush(1) and time.monotonic() - start < 0.9
    assert "no answer within 0.05 seconds" in caplog.text
    found._left_alone_until = 0.0
    found.store("a", b"code")
    assert not found.flush(0.01) and found.flush(1)
    assert counts(found)[3:] == [0, 3]


def test_entries_that_cannot_be_written_in_time_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_PENDING", 2)
    found = StoreClient(DictStore(seconds=0.1), KEY, "store")
    for number in range(10):
        found.store(str(number), b"code")
    assert found.flush()
    assert found.counts["failed"] >= 7 and found.counts["written"] + found.counts["failed"] == 10


def test_the_key_of_a_store_is_examined() -> None:
    store = DictStore()
    assert StoreClient(store, KEY, "s").examine() == "s: no entries; it can be read and written"
    assert StoreClient(store, KEY, "s").examine() == "s: entries of this key; it can be read and written"
    with pytest.raises(OptionError, match=r"s has entries of another key .*O112"):
        StoreClient(store, KEY[::-1], "s").examine()
    writer = StoreClient(other := DictStore(), KEY, "s")
    writer.store("a", b"code")
    assert writer.flush() and sorted(other.entries) == ["a", "key.check"]
    with pytest.raises(OptionError, match="s cannot be reached: no route"):
        StoreClient(DictStore(OSError("no route")), KEY, "s").examine()


# ---- caches ----------------------------------------------------------------------------------------------------------


def cache_in(path: Path, store: Path) -> CompileCache:
    entries = shared_entries(Options(cache_store=store, cpu="x86-64-v3"))
    found = CompileCache(path, 1 << 20, entries)
    found.prepare()
    return found


def test_a_directory_has_what_others_have_written(key_file: Path, tmp_path: Path) -> None:
    before, artifact = cache_stats(), Artifact.of({"name": "one"}, b"code")
    first, second = (cache_in(tmp_path / name, tmp_path / "store") for name in ("first", "second"))
    assert second.load("a") is None
    first.store("a", artifact)
    shared.flush_stores()
    for _ in range(2):
        found = second.load("a")
        assert found is not None and found.serialize() == artifact.serialize()
    assert [path.name for path in second.directory.iterdir()] == ["a.shlodisc"]
    assert [cache_stats()[name] - before[name] for name in NAMES] == [1, 1, 0, 1, 0]
    (entry,) = (tmp_path / "store").glob("*-x86-64-v3-a.shlodisc")
    entry.rename(entry.with_name(entry.name.replace("-a.", "-b.")))
    assert second.load("b") is None and cache_stats()["refused"] == before["refused"] + 1


RECORD = TuningRecord("loop", 1e-3, KernelSchedule(unroll=4))
SLOWER = TuningRecord("loop", 2e-3, KernelSchedule(unroll=2))


def test_schedules_of_other_machines(key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, options = TunedMachine("a processor", "x86-64-v3", 2), Options(cache_store=tmp_path / "store")

    def records(name: str) -> TuningRecords:
        monkeypatch.setenv("SHLO_DISC_TUNING_DIR", str(tmp_path / name))
        found = TuningRecords.here(options)
        assert found is not None
        return found

    records("first").store(machine, {"k": RECORD, "l": RECORD})
    shared.flush_stores()
    assert records("second").load(machine) == {"k": RECORD, "l": RECORD}
    assert records("second").load(machine._replace(threads=3)) == {}
    records("second").store(machine, {"l": SLOWER, "m": RECORD})
    shared.flush_stores()
    assert records("first").load(machine) == {"k": RECORD, "l": RECORD, "m": RECORD}  # its own take precedence
    assert records("third").load(machine) == {"k": RECORD, "l": SLOWER, "m": RECORD}
