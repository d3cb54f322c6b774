# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sources that the key of the compile cache covers."""

from __future__ import annotations

from pathlib import Path

import shlo_disc
from shlo_disc.driver.cache import key


def test_all_sources_of_the_package_count(tmp_path: Path) -> None:
    files = {"__init__.py": "", "transforms/fusion.py": "x = 1\n", "lowering/cpu/loop.py": "y = 2\n"}
    seen = set()
    for i, changed in enumerate(("", *files)):
        package = tmp_path / str(i)
        for name, text in files.items():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text(text + "#" if name == changed else text)
        seen.add(key.package_digest(package))
    assert len(seen) == 1 + len(files)


def test_names_and_texts_do_not_run_into_each_other(tmp_path: Path) -> None:
    for i, (name, text) in enumerate((("ab.py", "c"), ("a.py", "bc"))):
        (tmp_path / str(i)).mkdir()
        (tmp_path / str(i) / name).write_text(text)
    assert key.package_digest(tmp_path / "0") != key.package_digest(tmp_path / "1")


def test_the_package_is_this_one() -> None:
    assert Path(shlo_disc.__file__).resolve().parent == key._PACKAGE
