# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in files, and across processes."""

from __future__ import annotations

import os
import pickle
import re
import shlex
from pathlib import Path
from typing import Any

import shlo_disc
from shlo_disc import Options
from shlo_disc.errors import ArtifactError, OptionError, ProgramError

from .case import Case, Numbers, add_one, command, compiled_layer, exported_for, run_add_one, run_layer, value_of


class Untrusted(Case):
    error = ArtifactError
    remedy = r"pass (trust)=(True) if you know who made it"

    def provoke(self) -> Any:
        compiled_layer().save("layer.shlodisc")
        return shlo_disc.load("layer.shlodisc")

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_layer(shlo_disc.load("layer.shlodisc", **{found[1]: value_of(found[2])}))


class FolderThatIsMissing(Case):
    error = FileNotFoundError
    remedy = r"there is no folder '(models)', and save creates none: '(models/layer\.disc)'"

    def provoke(self) -> Any:
        return compiled_layer().save("models/layer.disc")

    def follow(self, found: re.Match[str]) -> Numbers:
        Path(found[1]).mkdir()
        compiled_layer().save(found[2])
        return run_layer(shlo_disc.load(found[2], trust=True))


class PickledLoaded(Case):
    error = TypeError
    remedy = r"pickle its artifact, which is to be trusted anew, or the (\w+), which is compiled anew"

    def provoke(self) -> Any:
        return pickle.dumps(compiled_layer().loaded)

    def follow(self, found: re.Match[str]) -> Numbers:
        executable = compiled_layer()
        assert type(executable).__name__ == found[1]
        return run_layer(pickle.loads(pickle.dumps(executable)))  # noqa: S301 - written here


class CacheForOthers(Case):
    error = OptionError
    remedy = r"other users may write to '(.*?)': chmod (go-w)"

    def provoke(self) -> Any:
        Path("cache").mkdir()
        os.chmod("cache", 0o777)  # noqa: S103 - which is refused
        return self.compiled()

    def follow(self, found: re.Match[str]) -> Numbers:
        os.chmod(found[1], os.stat(found[1]).st_mode & ~0o022)
        return run_add_one(self.compiled(), 3)

    @staticmethod
    def compiled() -> Any:
        return shlo_disc.compile(add_one, args=(("b", "float32"),), options=Options(cache_dir="cache"))


class OtherLevel(Case):
    error = OptionError
    remedy = r"cpu must be 'host', one of \('(.*?)'"

    def provoke(self) -> Any:
        return Options(cpu="zen4")

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(shlo_disc.compile(add_one, args=(("b", "float32"),), options=Options(cpu=found[1])), 3)


class ArtifactForProgram(Case):
    error = ProgramError
    remedy = r"call shlo_disc\.(load)\('(.*?)', (trust)=(True)\), or use `python -m shlo_disc (.*?)` or"

    def provoke(self) -> Any:
        compiled_layer().save("my layer.shlodisc")
        return shlo_disc.compile("my layer.shlodisc")

    def follow(self, found: re.Match[str]) -> Numbers:
        assert "f32[b, 4]" in command(*shlex.split(found[5]))
        return run_layer(getattr(shlo_disc, found[1])(found[2], **{found[3]: value_of(found[4])}))


class ArtifactAsBytes(Case):
    error = ProgramError
    remedy = r"write the bytes to a file, and call shlo_disc\.(load)\(file, trust=True\)"

    def provoke(self) -> Any:
        return shlo_disc.compile(compiled_layer().artifact.serialize())

    def follow(self, found: re.Match[str]) -> Numbers:
        Path("file").write_bytes(compiled_layer().artifact.serialize())
        return run_layer(getattr(shlo_disc, found[1])("file", trust=True))


class ProgramForArtifact(Case):
    error = ArtifactError
    remedy = r"a program of jax\.export, which is not compiled yet: compile the program by shlo_disc\.(compile)"

    def provoke(self) -> Any:
        Path("layer.bin").write_bytes(exported_for(None).serialize())
        return shlo_disc.load("layer.bin", trust=True)

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_add_one(getattr(shlo_disc, found[1])("layer.bin"), 3)
