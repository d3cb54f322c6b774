# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command lines."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np

import shlo_disc

from .case import Case, CommandFailed, Numbers, add_one, command

TEXT = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}"""


class CommandCase(Case):
    """A command on `add.mlir`, or on `add.shlodisc`, which is that compiled."""

    error = CommandFailed
    words: ClassVar[tuple[str, ...]]

    def provoke(self) -> Any:
        Path("add.mlir").write_text(TEXT)
        command("compile", "add.mlir", "-o", "add.shlodisc")
        np.savez("x.npz", np.arange(3, dtype=np.float32))
        return command(*self.words)

    @staticmethod
    def ran(*words: str) -> Numbers:
        """`run`, with the sums that it has written."""
        command("run", *words, "--outputs", "y.npz")
        with np.load("y.npz") as results:
            return results["arr_0"], np.arange(3) * 2


class SizesNotGiven(CommandCase):
    remedy = r"needs (--dims) with (\w+)=\.\.\."
    words = ("run", "add.mlir")

    def follow(self, found: re.Match[str]) -> Numbers:
        printed = command("run", "add.mlir", found[1], f"{found[2]}=3", "--json")
        return json.loads(printed)["results"][0]["shape"], [3]


class SizesOfExplain(CommandCase):
    remedy = r"or (--dims) (\w+=1)"
    words = ("explain", "add.mlir")

    def follow(self, found: re.Match[str]) -> Numbers:
        return ("loop_add" in command("explain", "add.mlir", found[1], found[2])), True


class UntrustedFile(CommandCase):
    remedy = r"pass (--trust) if you know who made it"
    words = ("run", "add.shlodisc", "--inputs", "x.npz")

    def follow(self, found: re.Match[str]) -> Numbers:
        return self.ran("add.shlodisc", "--inputs", "x.npz", found[1])


class UnknownStage(CommandCase):
    remedy = r"no stage 'fusion'; stages are .*\b(fuse)\b"
    words = ("opt", "add.mlir", "--stage", "fusion")

    def follow(self, found: re.Match[str]) -> Numbers:
        assert "func.func @main" in command("opt", "add.mlir", "--stage", found[1])
        return self.ran("add.mlir", "--inputs", "x.npz")


class AllStages(CommandCase):
    remedy = r"--stage all needs (--dump) DIR"
    words = ("opt", "add.mlir", "--stage", "all")

    def follow(self, found: re.Match[str]) -> Numbers:
        command(*self.words, found[1], "stages")
        return len(list(Path("stages").iterdir())) > 5, True


class StagesOfArtifact(CommandCase):
    remedy = r"is an artifact, which has no stages; compare the program that was compiled"
    words = ("diff", "add.shlodisc", "--stages", "fuse", "plan")

    def follow(self, found: re.Match[str]) -> Numbers:
        try:
            text = command("diff", "add.mlir", "--stages", "fuse", "plan")
        except CommandFailed as differ:  # status 1: they do
            text = str(differ) or "differ"
        return bool(text), True


class UnknownCode(CommandCase):
    remedy = r"no error has the code 'Z9'; `python -m shlo_disc (why)` prints all codes"
    words = ("why", "Z9")

    def follow(self, found: re.Match[str]) -> Numbers:
        return "DISC-S101" in command(found[1]), True


class FormOfDims(CommandCase):
    remedy = r"'b:3' is not of the form b(=)2,s=16"
    words = ("run", "add.mlir", "--dims", "b:3")

    def follow(self, found: re.Match[str]) -> Numbers:
        printed = command("run", "add.mlir", "--dims", f"arg0_d0{found[1]}3", "--json")
        return json.loads(printed)["results"][0]["shape"], [3]


class OptionOfStage(CommandCase):
    remedy = r"fuse has no option 'max-fusion'; it has (max-fusions)"
    words = ("opt", "add.mlir", "--pass-pipeline=annotate,simplify,fuse{max-fusion=3}")

    def follow(self, found: re.Match[str]) -> Numbers:
        text = command("opt", "add.mlir", f"--pass-pipeline=annotate,simplify,fuse{{{found[1]}=3}}")
        return "func.func @main" in text, True


class UnknownKernel(CommandCase):
    remedy = r"no kernel 'sum'; there are (\w+)"
    words = ("disasm", "add.mlir", "--kernel", "sum")

    def follow(self, found: re.Match[str]) -> Numbers:
        assert found[1] in command("disasm", "add.mlir", "--kernel", found[1])
        x = np.arange(3, dtype=np.float32)
        return shlo_disc.compile("add.mlir")(x), x * 2


class PrintedArtifact(CommandCase):
    remedy = r"is a compiled artifact.*`python -m shlo_disc (run add\.shlodisc --trust --dims) \.\.\.`"
    words = ("opt", "add.shlodisc")

    def follow(self, found: re.Match[str]) -> Numbers:
        printed = command(*found[1].split(), "arg0_d0=3", "--json")
        return json.loads(printed)["results"][0]["shape"], [3]


class CompiledArtifact(PrintedArtifact):
    words = ("compile", "add.shlodisc", "-o", "twice.shlodisc")


class ReducedArtifact(PrintedArtifact):
    words = ("reduce", "add.shlodisc")


class UnknownCommand(CommandCase):
    remedy = r"invalid choice: 'explian' .*; did you mean (explain)\?"
    words = ("explian", "add.mlir", "--dims", "arg0_d0=3")

    def follow(self, found: re.Match[str]) -> Numbers:
        return ("loop_add" in command(found[1], *self.words[1:])), True


class PythonScript(CommandCase):
    remedy = r"'script\.py' is a Python script, .* jax\.export\.(export)\(\.\.\.\)\(\.\.\.\)\.(serialize)\(\) to a file"
    words = ("explain", "script.py")

    def provoke(self) -> Any:
        Path("script.py").write_text("#!/usr/bin/env python\n# A comment.\n\nfrom jax import numpy\n")
        return command(*self.words)

    def follow(self, found: re.Match[str]) -> Numbers:
        exported = getattr(jax.export, found[1])(jax.jit(add_one))(jax.ShapeDtypeStruct((3,), np.float32))
        Path("add.bin").write_bytes(getattr(exported, found[2])())
        return "loop_add" in command("explain", "add.bin"), True


class ExplainOfArtifact(CommandCase):
    remedy = (
        r"as in `python -m shlo_disc (.*?)`\. Of .*, `python -m shlo_disc (bench .*?)` measures .*"
        r"`python -m shlo_disc (disasm .*?)` .* `python -m shlo_disc (inspect .*?)` its sizes"
    )
    words = ("explain", "add.shlodisc")

    def follow(self, found: re.Match[str]) -> Numbers:
        Path("add.mlir").rename("program.mlir")
        printed = [command(*shlex.split(words)) for words in found.groups()]
        return ["loop_add" in printed[0], "median us" in printed[1], "disc_run" in printed[3]], [True] * 3


class ReportOfArtifact(ExplainOfArtifact):
    words = ("report", "add.shlodisc", "-o", "add.html")

    def follow(self, found: re.Match[str]) -> Numbers:
        Path("add.mlir").rename("program.mlir")
        printed = command(*shlex.split(found[1]), "-o", "add.html")
        return printed.startswith("add.html: "), True


class ExplainOfPackage(Case):
    error = AttributeError
    remedy = r"compile returns, as in shlo_disc\.(compile)\(program\)\.(explain)\(\.\.\.\); a loaded .* (profile)\("

    def provoke(self) -> Any:
        return shlo_disc.explain("add.disc")  # type: ignore[attr-defined]

    def follow(self, found: re.Match[str]) -> Numbers:
        executable = getattr(shlo_disc, found[1])(TEXT)
        executable.save("add.disc")
        loaded = shlo_disc.load("add.disc", trust=True)
        times = getattr(loaded, found[3])([np.ones(3, np.float32)])
        return ["loop_add" in str(getattr(executable, found[2])(arg0_d0=3)), len(times) > 0], [True] * 2


class SaveOfPackage(Case):
    error = AttributeError
    remedy = r"load return, as in shlo_disc\.(load)\(path\)\.(memory)\(\.\.\.\)"

    def provoke(self) -> Any:
        return shlo_disc.memory("add.disc", arg0_d0=3)  # type: ignore[attr-defined]

    def follow(self, found: re.Match[str]) -> Numbers:
        shlo_disc.compile(TEXT).save("add.disc")
        loaded = getattr(shlo_disc, found[1])("add.disc", trust=True)
        return getattr(loaded, found[2])(arg0_d0=3) == loaded.memory(arg0_d0=3), True


class LowerOfPackage(Case):
    error = AttributeError
    remedy = r"jit returns, as in shlo_disc\.(jit)\(function\)\.(lower)\(\.\.\.\)"

    def provoke(self) -> Any:
        return shlo_disc.lower(add_one)  # type: ignore[attr-defined]

    def follow(self, found: re.Match[str]) -> Numbers:
        lowered = getattr(getattr(shlo_disc, found[1])(add_one), found[2])(np.ones(3, np.float32))
        return lowered.compile()(np.ones(3, np.float32)), np.full(3, 2)
