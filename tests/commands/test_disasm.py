# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`disasm`: the code of each kernel, of a program and of an artifact alike."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import shlo_disc
from shlo_disc.report.function_texts import functions_in
from shlo_disc.report.listing.object_code import _functions
from shlo_disc.tools.cli import main

from .executable import BEFORE

needs_objdump = pytest.mark.skipif(
    not (shutil.which("objdump") or shutil.which("llvm-objdump")), reason="there is no objdump on the PATH"
)


def disasm(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    assert main(["disasm", "--json", *map(str, arguments)]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)["kernels"]}


def test_a_program_at_its_kernels_and_assembly(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = disasm(capsys, program)
    epilogue = kernels["epilogue_tanh_subtract"]
    assert list(epilogue["code"]) == ["kernels", "asm"]
    assert epilogue["code"]["kernels"].startswith("func.func private @epilogue_tanh_subtract")
    assert "epilogue_tanh_subtract_entry:" in epilogue["code"]["asm"] and "ret" in epilogue["code"]["asm"]
    assert (epilogue["kind"], epilogue["launches"], kernels["disc_run"]["kind"]) == ("dot", 1, "host")
    lines = BEFORE.splitlines()
    shown = [(source["location"], source["text"]) for source in epilogue["sources"]]
    assert shown == [(f"{program}:{n}", lines[n - 1].strip()) for n in (3, 5, 4)]
    assert "gemm_f32_1:" in kernels["gemm_f32"]["code"]["asm"] and "gemm_f32_1" not in kernels


def test_stages_and_kernels_are_chosen(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = disasm(capsys, program, "--stage", "llvm,optimized-llvm", "--kernel", "epi*")
    assert list(kernels) == ["epilogue_tanh_subtract"]
    code = kernels["epilogue_tanh_subtract"]["code"]
    assert list(code) == ["llvm", "optimized-llvm"] and all(text.startswith("define ") for text in code.values())
    assert main(["disasm", str(program), "--stage", "ptx"]) == 2
    assert "no code at 'ptx'; there is kernels, llvm, optimized-llvm, asm" in capsys.readouterr().err


def test_the_text_names_kernels_and_lines(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disasm", str(program), "--kernel", "epi*"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["// main for cpu", "", "// ===== epilogue_tanh_subtract (dot, 1 command)"]
    assert f"// {program}:4: %1 = stablehlo.tanh %0 : tensor<?x8xf32>" in lines
    assert "// ----- kernels" in lines and "// ----- asm" in lines


@needs_objdump
def test_an_artifact_has_the_same_functions(program: Path, artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = disasm(capsys, artifact), disasm(capsys, program, "--stage", "asm")
    assert set(ours) == set(theirs)
    for name in ours:
        assert ours[name]["code"]["asm"].count(" call") == theirs[name]["code"]["asm"].count("\tcall"), name
    assert ours["disc_run"]["kind"] == "host" and "call memcpy" in ours["disc_run"]["code"]["asm"]


@needs_objdump
def test_an_artifact_has_no_ir(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disasm", str(artifact), "--stage", "llvm"]) == 2
    assert "this artifact has no 'llvm', only asm; others need the program" in capsys.readouterr().err
    assert main(["disasm", str(artifact), "--kernel", "nobody"]) == 2
    assert "no kernel 'nobody'; there are " in capsys.readouterr().err


def test_a_level_of_processors(
    program: Path, artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("disasm", "info", "inspect", "run", "diff"):
        files = (str(artifact),) * (2 if command == "diff" else 1)
        more = ("--trust", "--dims", "arg0_d0=5") if command == "run" else ()
        assert main([command, *files, *more, "--cpu", "x86-64-v3"]) == (2 if command == "diff" else 1)
        text = "error[DISC-A103]: made for the processor that compiled it, and not for 'x86-64-v3': load it without cpu"
        assert text in capsys.readouterr().err
    assert main(["info", str(artifact), "--cpu", "x86-64-v3,x86-64-v4"]) == 2
    assert "--cpu names one level" in capsys.readouterr().err
    path = tmp_path / "levels.disc"
    shlo_disc.compile(program, options=shlo_disc.Options(cpu=("x86-64-v3", "x86-64-v4"))).save(path)
    for level, register in (("x86-64-v3", "%ymm"), ("x86-64-v4", "%zmm")):
        assert main(["inspect", str(path), "--cpu", level]) == 0
        assert f"-linux-gnu, the level {level}; this one" in capsys.readouterr().out
        if shutil.which("objdump") or shutil.which("llvm-objdump"):
            code = disasm(capsys, path, "--cpu", level)["gemm_f32"]["code"]["asm"]
            assert register in code and ("%zmm" in code) == (level == "x86-64-v4")


def test_without_a_disassembler(
    artifact: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["disasm", str(artifact)]) == 1
    assert "install binutils, or LLVM" in capsys.readouterr().err


@pytest.mark.slow
def test_kernels_of_gpus(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gpu.disc"
    shlo_disc.compile(program, target="cuda:sm_90").save(path)
    of_program = disasm(capsys, program, "--target", "cuda:sm_90")
    of_artifact = disasm(capsys, path)
    for name, kernel in of_artifact.items():
        assert f".entry {name}(" in kernel["code"]["ptx"]
        assert of_program[name]["code"]["ptx"] == kernel["code"]["ptx"]
        assert "gpu.func" in of_program[name]["code"]["kernels"]
        assert kernel["sources"][0]["location"].startswith("line ")


OBJDUMP = """
x.o:     file format elf64-x86-64

Disassembly of section .text:

0000000000000010 <f>:
      10:	test   %rdi,%rdi
      13:	je     1c <f+0xc>
      15:	call   1a <f+0xa>
			16: R_X86_64_PLT32	memcpy-0x4
      1a:	jmp    10 <f>
      1c:	vmovss 0x0(%rip),%xmm0        # 24 <f+0x14>
			20: R_X86_64_PC32	.rodata+0x1c
      24:	lea    -0x31f(%rip),%rax        # 40 <g>
      2b:	call   48 <g+0x8>

0000000000000040 <g>:
      40:	ret
"""


def test_jumps_have_labels_and_addresses_names() -> None:
    assert _functions(OBJDUMP) == {
        "f": "f:\n.L0:\n        test %rdi,%rdi\n        je .Lc\n        call memcpy\n        jmp .L0\n.Lc:\n"
        "        vmovss (%rip),%xmm0 # .rodata+0x1c\n        lea (%rip),%rax # g\n        call g+0x8",
        "g": "g:\n        ret",
    }


def test_functions_in_texts() -> None:
    external, inner = "declare void @g()", 'define internal i64 @"f-1"(ptr %0) #0 {\n  ret i64 0\n}'
    outer = "define void @h() {\n  ret void\n}"
    assert functions_in(f"{external}\n{inner}\n\n{outer}", "optimized-llvm") == {"f-1": inner, "h": outer}
    help, kernel = ".func  (.param .b32 r) help(\n)\n{\n ret;\n}", ".visible .entry k(\n)\n{\n}"
    assert functions_in(f".version 8\n{help}\n\t// text\n{kernel}", "ptx") == {"help": help, "k": kernel}
