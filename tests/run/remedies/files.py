# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in files, and across processes."""

from __future__ import annotations

import os
import pickle
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shlo_disc
from shlo_disc import Options
from shlo_disc.errors import ArgumentTypeError, ArtifactError, OptionError, ProgramError

from .case import (
    LAYER_ARGS,
    Case,
    CommandFailed,
    Numbers,
    W,
    X,
    add_one,
    command,
    compiled_layer,
    exported_for,
    run_add_one,
    run_layer,
    value_of,
)


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
    remedy = r"there is no folder '(models)': create it first: '(models/layer\.disc)'"

    def provoke(self) -> Any:
        return compiled_layer().save("models/layer.disc")

    def follow(self, found: re.Match[str]) -> Numbers:
        Path(found[1]).mkdir()
        compiled_layer().save(found[2])
        return run_layer(shlo_disc.load(found[2], trust=True))


class EndingOfAnotherFormat(Case):
    error = OptionError
    remedy = r"'layer\.npz' has the ending of an \.npz file .* is a program of shlo_disc: write '(layer\.disc)'"

    def provoke(self) -> Any:
        return compiled_layer().save("layer.npz")

    def follow(self, found: re.Match[str]) -> Numbers:
        compiled_layer().save(found[1])
        return run_layer(shlo_disc.load(found[1], trust=True))


class WeightsOfDict(Case):
    """A file of the entries of one argument, which is a dict."""

    error = ArgumentTypeError
    remedy = r"entries of params, a dict: write (bind\(.*\)), or (bind\(weights=\{'params': .*\}\))"
    params = {"w": W}

    def provoke(self) -> Any:
        np.savez("weights.npz", **self.params)
        return self.program().bind(weights="weights.npz")

    def follow(self, found: re.Match[str]) -> Numbers:
        bound = [
            eval(f"program.{text}", {"program": self.program(), "numpy": np, "file": "weights.npz"})  # noqa: S307
            for text in found.groups()
        ]
        np.testing.assert_array_equal(bound[0](X), bound[1](X))
        return bound[0](X), X @ W

    @staticmethod
    def program() -> Any:
        return shlo_disc.compile(lambda params, x: x @ params["w"], args=({"w": LAYER_ARGS[1]}, LAYER_ARGS[0]))


class WeightsOfDictByPosition(WeightsOfDict):
    remedy = r"not files: write (bind\(dict\(numpy\.load\(file\)\)\)) for a (dict) of the arrays"

    def provoke(self) -> Any:
        np.savez("weights.npz", **self.params)
        return self.program().bind("weights.npz")

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.program().bind(dict(np.load("weights.npz")))(X), X @ W


class WeightsOfNestedDict(Case):
    error = ArgumentTypeError
    remedy = r"params is a dict of arrays, which is given whole, as in bind\(weights=\{'(params)': params\}\)"
    params = {"layer": {"w": W}}

    def provoke(self) -> Any:
        return self.program().bind(weights={"layer.w": W})

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.program().bind(weights={found[1]: self.params})(X), X @ W

    @staticmethod
    def program() -> Any:
        args = ({"layer": {"w": LAYER_ARGS[1]}}, LAYER_ARGS[0])
        return shlo_disc.compile(lambda params, x: x @ params["layer"]["w"], args=args)


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


class ReportIntoMissingFolder(FolderThatIsMissing):
    remedy = r"there is no folder '(models)': create it first: '(models/layer\.\w+)'"

    def provoke(self) -> Any:
        return self.write("models/layer.html")

    def follow(self, found: re.Match[str]) -> Numbers:
        Path(found[1]).mkdir()
        self.write(found[2])
        return Path(found[2]).stat().st_size > 100, True

    @staticmethod
    def write(path: str) -> Any:
        return compiled_layer().report(path)


class TraceIntoMissingFolder(ReportIntoMissingFolder):
    @staticmethod
    def write(path: str) -> Any:
        return compiled_layer().trace(path)


class LibraryIntoMissingFolder(ReportIntoMissingFolder):
    @staticmethod
    def write(path: str) -> Any:
        return compiled_layer().export_library(path)


class LoadedIntoMissingFolder(ReportIntoMissingFolder):
    @staticmethod
    def write(path: str) -> Any:
        compiled_layer().save("layer.disc")
        return shlo_disc.load("layer.disc", trust=True).save(path)


class ScheduleIntoMissingFolder(ReportIntoMissingFolder):
    remedy = r"there is no folder '(models)': create it first: '(models/fast\.schedule)'"

    def provoke(self) -> Any:
        return shlo_disc.Schedule().save("models/fast.schedule")

    def follow(self, found: re.Match[str]) -> Numbers:
        Path(found[1]).mkdir()
        shlo_disc.Schedule().save(found[2])
        return shlo_disc.Schedule.load(found[2]) == shlo_disc.Schedule(), True


class FileThatIsMissing(Case):
    """A file that has nearly that name is found by each of those that read files."""

    error = FileNotFoundError
    remedy = r"did you mean '(layer\.disc)'\?: 'layers\.disc'"

    def provoke(self) -> Any:
        compiled_layer().save("layer.disc")
        for command_line in (("run", "layers.disc"), ("inspect", "layers.disc"), ("explain", "layers.disc")):
            with pytest.raises(CommandFailed, match=r"layers\.disc.*; did you mean 'layer\.disc'\?"):
                command(*command_line)
        with pytest.raises(ProgramError, match=r"'layers\.disc': No such .*; did you mean 'layer\.disc'\?"):
            shlo_disc.compile("layers.disc")
        return shlo_disc.load("layers.disc", trust=True)

    def follow(self, found: re.Match[str]) -> Numbers:
        return run_layer(shlo_disc.load(found[1], trust=True))


class FileOfNoLikeness(Case):
    error = FileNotFoundError
    remedy = r"compiled files are written by `(save)` of an executable, and by `python -m shlo_disc (compile)`"

    def provoke(self) -> Any:
        return shlo_disc.load("layer.disc")

    def follow(self, found: re.Match[str]) -> Numbers:
        getattr(compiled_layer(), found[1])("layer.disc")
        Path("program.mlir").write_bytes(exported_for(None).serialize())
        command(found[2], "program.mlir", "-o", "other.disc")
        assert Path("other.disc").is_file()
        return run_layer(shlo_disc.load("layer.disc", trust=True))


class FolderInPlaceOfFile(Case):
    error = IsADirectoryError
    remedy = r"it is a folder: name a file in it: '(\.)'"

    def provoke(self) -> Any:
        return compiled_layer().save(".")

    def follow(self, found: re.Match[str]) -> Numbers:
        compiled_layer().save(f"{found[1]}/layer.disc")
        return run_layer(shlo_disc.load("layer.disc", trust=True))


class EndingOfTheOutputOfCommand(Case):
    """The ending is looked at before a program is compiled: this one cannot be."""

    error = CommandFailed
    remedy = r"is a program of shlo_disc: write '(add\.disc)'"

    def provoke(self) -> Any:
        Path("wrong.mlir").write_text("no program")
        return command("compile", "wrong.mlir", "-o", "add.onnx")

    def follow(self, found: re.Match[str]) -> Numbers:
        Path("add.mlir").write_bytes(exported_for(None).serialize())
        return command("compile", "add.mlir", "-o", found[1]).startswith("add.disc: "), True


class OutputOfCommand(Case):
    """The folder is looked for before a program is compiled: this one cannot be."""

    error = CommandFailed
    remedy = r"models/add\.\w+: there is no folder '(models)': create it first"

    def provoke(self) -> Any:
        Path("wrong.mlir").write_text("no program")
        for words in (("compile", "-o"), ("report", "-o"), ("run", "--outputs"), ("opt", "-o")):
            with pytest.raises(CommandFailed, match=self.remedy):
                command(words[0], "wrong.mlir", words[1], "models/add.out")
        return command("report", "wrong.mlir", "-o", "add.html", "--trace", "models/add.json")

    def follow(self, found: re.Match[str]) -> Numbers:
        Path(found[1]).mkdir()
        Path("add.mlir").write_bytes(exported_for(None).serialize())
        return command("compile", "add.mlir", "-o", "models/add.disc").startswith("models/add.disc: "), True


class ProgramInMemory(Case):
    error = OptionError
    remedy = r"for a program in memory write shlo_disc\.runtime\.(Client)\(\)\.load\(data, (trust)=(True)\)"

    def provoke(self) -> Any:
        return shlo_disc.load(compiled_layer().artifact.serialize(), trust=True)  # type: ignore[arg-type]

    def follow(self, found: re.Match[str]) -> Numbers:
        client = getattr(shlo_disc.runtime, found[1])()
        data = compiled_layer().artifact.serialize()
        return run_layer(client.load(data, **{found[2]: value_of(found[3])}))


class OpenFile(ProgramInMemory):
    remedy = r"write shlo_disc\.runtime\.(Client)\(\)\.load\(file\.read\(\), (trust)=(True)\)"

    def provoke(self) -> Any:
        compiled_layer().save("layer.disc")
        with Path("layer.disc").open("rb") as file:
            return shlo_disc.load(file, trust=True)  # type: ignore[arg-type]


class NothingBound(Case):
    error = ArgumentTypeError
    remedy = (
        r"bind\(\) fixes nothing: give the first arguments of 'layer', as in bind\((x)\) or bind\(weights={'(x)': x}\)"
    )

    def provoke(self) -> Any:
        return compiled_layer().bind()

    def follow(self, found: re.Match[str]) -> Numbers:
        return [compiled_layer().bind(X)(W), compiled_layer().bind(weights={found[2]: X})(W)], [X @ W, X @ W]
