# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX: kernels with and without libdevice, for two architectures, through ptxas where it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from shlo_disc.errors import CompilerError, DiscError
from shlo_disc.lowering.codegen import cuda_toolkit
from shlo_disc.lowering.codegen.llvm_text import rewrite_float_literals
from shlo_disc.lowering.codegen.ptx import assemble, compile_to_ptx

PLAIN = rewrite_float_literals("""
define ptx_kernel void @scale(ptr addrspace(1) %x, i32 %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %inside = icmp slt i32 %t, %n
  br i1 %inside, label %work, label %done
work:
  %p = getelementptr float, ptr addrspace(1) %x, i32 %t
  %v = load float, ptr addrspace(1) %p
  %w = fmul float %v, 1.000000e-01
  store float %w, ptr addrspace(1) %p
  br label %done
done:
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
""")
LIBDEVICE = """
define ptx_kernel void @apply(ptr addrspace(1) %x) {
  %v = load float, ptr addrspace(1) %x
  %w = call float @helper(float %v)
  store float %w, ptr addrspace(1) %x
  ret void
}
define float @helper(float %v) {
  %a = call float @__nv_expf(float %v)
  %b = call float @__nv_erff(float %a)
  %c = call float @__nv_fdiv_rn(float %a, float %b)
  ret float %c
}
declare float @__nv_expf(float)
declare float @__nv_erff(float)
declare float @__nv_fdiv_rn(float, float)
"""


def available(find) -> bool:
    try:
        find()
    except DiscError:
        return False
    return True


needs_libdevice = pytest.mark.skipif(not available(cuda_toolkit.find_libdevice), reason="pip install nvidia-nvvm")
needs_ptxas = pytest.mark.skipif(not available(cuda_toolkit.find_ptxas), reason="pip install nvidia-cuda-nvcc")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_plain_kernel(arch: str) -> None:
    ptx = compile_to_ptx(PLAIN, arch)
    assert ".visible .entry scale(" in ptx and f".target {arch}" in ptx


@needs_libdevice
def test_libdevice_is_inlined_and_reflection_answered() -> None:
    exact, flushed = compile_to_ptx(LIBDEVICE), compile_to_ptx(LIBDEVICE, flush_subnormals=True)
    for ptx in (exact, flushed):
        assert "call" not in ptx and "__nv" not in ptx and ptx.count(".func") == 0
    assert "ex2.approx.ftz" in flushed and ".ftz" in flushed
    assert flushed != exact


@needs_ptxas
@needs_libdevice
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("text", [PLAIN, LIBDEVICE])
def test_assembles(text: str, arch: str) -> None:
    assert assemble(compile_to_ptx(text, arch), arch)[:4] == b"\x7fELF"


@needs_ptxas
def test_ptxas_messages_are_in_the_error() -> None:
    with pytest.raises(CompilerError, match="ptxas refuses"):
        assemble(".version 8.0\n.target sm_80\n.address_size 64\nnonsense\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define void @f() {\n  ret void\n}\n", "no function of calling convention"),
        (PLAIN.replace("call i32 @llvm.nvvm.read.ptx.sreg.tid.x", "call i32 @mystery")
         + "declare i32 @mystery()\n", "mystery"),
        ("define ptx_kernel void @f(double %x) {\n  %y = call double @llvm.sin.f64(double %x)\n  ret void\n}\n"
         "declare double @llvm.sin.f64(double)\n", "llvm.sin.f64"),
        ("define ptx_kernel void @f() {\n  ret i32 0\n}\n", "LLVM rejects"),
    ],
)  # fmt: skip
def test_bad_modules_are_errors(text: str, message: str) -> None:
    with pytest.raises(CompilerError, match=message):
        compile_to_ptx(text)


@pytest.mark.parametrize("arch", ["sm_60", "x86", "sm_80; rm", ""])
def test_unknown_architectures_are_errors(arch: str) -> None:
    with pytest.raises(CompilerError, match="architecture"):
        compile_to_ptx(PLAIN, arch)


@needs_libdevice
def test_a_function_unknown_to_libdevice_is_named() -> None:
    with pytest.raises(CompilerError, match="__nv_nothing"):
        compile_to_ptx(LIBDEVICE.replace("__nv_expf", "__nv_nothing"))


def test_absent_toolkit_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cuda_toolkit, "_roots", lambda: iter([tmp_path]))
    monkeypatch.setattr(cuda_toolkit, "_libdevice_by_pathfinder", lambda: None)
    with pytest.raises(DiscError, match="pip install nvidia-nvvm"):
        cuda_toolkit.find_libdevice()
    with pytest.raises(DiscError, match="pip install nvidia-cuda-nvcc"):
        cuda_toolkit.find_ptxas()


def test_cuda_home_is_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = tmp_path / "nvvm" / "libdevice" / "libdevice.10.bc"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"BC")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(cuda_toolkit, "_libdevice_by_pathfinder", lambda: None)
    monkeypatch.setattr(cuda_toolkit.sysconfig, "get_path", lambda name: str(tmp_path / "none"))
    assert cuda_toolkit.find_libdevice() == place
