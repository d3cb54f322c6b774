# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The directory of the compile cache: what is kept, what is refused, what goes first."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from shlo_disc.driver.cache import CacheWarning, CompileCache, open_cache
from shlo_disc.errors import OptionError
from shlo_disc.options import Options
from shlo_disc.runtime import Artifact

LIMIT = 1 << 20


def artifact(name: str = "one", size: int = 100) -> Artifact:
    """An artifact that is told apart by its name."""
    return Artifact.of({"name": name}, b"code" * 10, bytes(size))


def cache_in(path: Path, limit: int = LIMIT) -> CompileCache:
    """A prepared cache."""
    cache = CompileCache(path / "cache", limit)
    cache.prepare()
    return cache


def name_of(found: Artifact | None) -> str | None:
    """The name of the artifact that was found."""
    return None if found is None else found.header["name"]


def test_what_was_stored_is_loaded(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    assert cache.load("a") is None
    cache.store("a", artifact("one"))
    cache.store("b", artifact("two"))
    assert name_of(cache.load("a")) == "one"
    assert name_of(CompileCache(cache.directory, LIMIT).load("b")) == "two"
    found = cache.load("a")
    assert found is not None and found.trusted and found.serialize() == artifact("one").serialize()
    cache.store("a", artifact("three"))
    assert name_of(cache.load("a")) == "three"
    assert sorted(os.listdir(cache.directory)) == ["a.shlodisc", "b.shlodisc"]


def test_only_the_user_may_write(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    cache.store("a", artifact())
    assert cache.directory.stat().st_mode & 0o777 == 0o700
    assert (cache.directory / "a.shlodisc").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_directory_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    cache = cache_in(tmp_path)
    cache.directory.chmod(mode)
    with pytest.raises(OptionError, match="other users may write"):
        open_cache(Options(cache_dir=cache.directory))
    with pytest.raises(OptionError, match="other users may write"):
        cache.load("a")


def test_a_file_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    cache.store("a", artifact())
    (cache.directory / "a.shlodisc").chmod(0o666)
    with pytest.raises(OptionError, match="other users may write"):
        cache.load("a")


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = cache_in(tmp_path)
    if cache.directory.stat().st_uid == 0:
        os.chown(cache.directory, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(OptionError, match="belongs to another user"):
        cache.load("a")


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OptionError, match="cannot be used"):
            open_cache(Options(cache_dir=path))


def test_links_are_not_followed(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    (tmp_path / "elsewhere").write_bytes(artifact().serialize())
    (cache.directory / "a.shlodisc").symlink_to(tmp_path / "elsewhere")
    with pytest.warns(CacheWarning, match="cannot be read"):
        assert cache.load("a") is None


def test_damage_is_found_and_removed(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    whole = artifact().serialize()
    for position in (0, 20, 100, len(whole) // 2, len(whole) - 1):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        for data in (bytes(damaged), whole[:position]):
            (cache.directory / "a.shlodisc").write_bytes(data)
            (cache.directory / "a.shlodisc").chmod(0o600)
            with pytest.warns(CacheWarning, match="is damaged"):
                assert cache.load("a") is None
            assert os.listdir(cache.directory) == []


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    size = len(artifact("x").serialize())
    cache = cache_in(tmp_path, limit=3 * size)
    for age, key in enumerate("cba"):
        cache.store(key, artifact("x"))
        os.utime(cache.directory / f"{key}.shlodisc", (0, age + 1))
    assert cache.load("c") is not None  # the oldest until here
    cache.store("d", artifact("x"))
    assert sorted(os.listdir(cache.directory)) == ["a.shlodisc", "c.shlodisc", "d.shlodisc"]


def test_what_is_larger_than_the_limit_is_not_kept(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, limit=1000)
    cache.store("a", artifact())
    cache.store("b", artifact(size=2000))
    assert os.listdir(cache.directory) == ["a.shlodisc"]


def test_what_dead_processes_left_is_removed(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    for name, age in (("a.shlodisc.1.x.unfinished", 7200), ("a.shlodisc.2.x.unfinished", 60), ("notes", 7200)):
        (cache.directory / name).write_text("")
        os.utime(cache.directory / name, (0, time.time() - age))
    cache.store("b", artifact())
    assert sorted(os.listdir(cache.directory)) == ["a.shlodisc.2.x.unfinished", "b.shlodisc", "notes"]


def test_a_directory_that_vanished_is_a_miss(tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    cache.directory.rmdir()
    with pytest.warns(CacheWarning, match="cannot be read"):
        assert cache.load("a") is None
    with pytest.warns(CacheWarning, match="cannot be written"):
        cache.store("a", artifact())
    cache.discard("a")


def test_many_at_once(tmp_path: Path) -> None:
    """Writers, readers and evictions at once: a reader sees a whole artifact or none."""
    size = len(artifact("0").serialize())
    cache = cache_in(tmp_path, limit=3 * size)
    faults: list[object] = []

    def work(seed: int) -> None:
        try:
            for step in range(60):
                key = str((seed + step) % 5)
                cache.store(key, artifact(key))
                found = name_of(cache.load(str(step % 5)))
                if found not in (None, str(step % 5)):
                    faults.append(found)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(os.listdir(cache.directory)) <= 3


def test_the_environment_names_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHLO_DISC_CACHE_DIR", raising=False)
    assert open_cache(Options()) is None
    monkeypatch.setenv("SHLO_DISC_CACHE_DIR", str(tmp_path / "environment"))
    found, chosen = open_cache(Options()), open_cache(Options(cache_dir=tmp_path / "option"))
    assert found is not None and found.directory == tmp_path / "environment"
    assert chosen is not None and chosen.directory == tmp_path / "option"
    assert open_cache(Options(cache_dir="")) is None
    with pytest.raises(OptionError, match="cache_dir"):
        Options(cache_dir=3)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="cache_bytes"):
        Options(cache_bytes=-1)
