# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a gpu.module to the NVVM and LLVM dialects, and on to LLVM IR text."""

from __future__ import annotations

from shlo_disc.errors import CompilerError
from shlo_disc.lowering.codegen import data_layout, legalize_small_floats, to_llvm_ir
from shlo_disc.lowering.kernel_module import kernel_module_of
from shlo_disc.lowering_gpu.atomics import relax_atomics
from shlo_disc.lowering_gpu.hopper import MAP_WORDS
from shlo_disc.shape_dialect.mlir import ir, passmanager
from shlo_disc.shape_dialect.utils.regions import callee_of

# A memref of rank 0 is passed as a plain pointer. Functions of the math dialect become calls of libdevice in the
# conversion to NVVM; what has an instruction is left over for convert-math-to-llvm.
PIPELINE = (
    "builtin.module(gpu.module("
    "canonicalize{top-down=false},cse,"
    "convert-scf-to-cf,"
    "convert-nvgpu-to-nvvm,"
    "convert-vector-to-llvm,"
    "convert-gpu-to-nvvm{index-bitwidth=64 use-bare-ptr-memref-call-conv=true},"
    "convert-math-to-llvm,"
    "convert-nvvm-to-llvm,"
    "reconcile-unrealized-casts,"
    "canonicalize{top-down=false},cse"
    "))"
)


def device_module(module: ir.Module) -> ir.Module:
    """The kernels of a program in a module of their own."""
    device = ir.Module.create(ir.Location.unknown(module.context))
    device.operation.attributes["gpu.container_module"] = ir.UnitAttr.get(module.context)
    device.body.append(kernel_module_of(module).clone(ip=False))
    return device


def lower_to_nvvm(module: ir.Module) -> ir.Module:
    """Lower a module of kernels in place and return it.

    Raises `CompilerError` when a pass fails or an op is left that is neither of the LLVM nor of the NVVM dialect.
    """
    try:
        legalize_small_floats(module)
        passmanager.PassManager.parse(PIPELINE).run(module.operation)
        _use_exact_square_roots(module)
        for op in _operations(module):
            if op.name == "llvm.func":
                relax_atomics(op)
                _pass_by_value(op)
            if op.name == "llvm.mlir.global":
                _leave_size_to_launch(op)
    except ir.MLIRError as error:
        raise CompilerError(f"codegen: lowering to the NVVM dialect failed: {error}") from error
    for op in _operations(module):
        if op.name not in ("builtin.module", "gpu.module") and not op.name.startswith(("llvm.", "nvvm.")):
            raise CompilerError(f"codegen: {op.name} is left after lowering to the NVVM dialect (at {op.location})")
    return module


def _operations(module: ir.Module) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _pass_by_value(function: ir.Operation) -> None:
    """Tensor maps, the parameters that are pointers to no memory in particular, are in the parameters themselves."""
    entry = function.regions[0].blocks
    types = [str(a.type) for a in entry[0].arguments] if len(entry) else []
    if "!llvm.ptr" not in types:
        return
    map_ = ir.Attribute.parse(
        f"{{llvm.byval = !llvm.array<{MAP_WORDS} x i64>, llvm.align = 64 : i64, nvvm.grid_constant}}"
    )
    of_each = [map_ if type_ == "!llvm.ptr" else ir.DictAttr.get({}) for type_ in types]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(of_each)


def _leave_size_to_launch(variable: ir.Operation) -> None:
    """Shared memory that the launch asks for is no variable of the module's: only so is it no array of one byte."""
    if ir.StringAttr(variable.attributes["sym_name"]).value.startswith("__dynamic_shmem__"):
        variable.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<external>")


def _use_exact_square_roots(module: ir.Module) -> None:
    """libdevice's square root of an f32 is approximate unless the link answers its question about precision."""
    for op in [op for op in _operations(module) if _callee(op) in ("__nv_sqrtf", "__nv_sqrt")]:
        with ir.InsertionPoint(op), op.location:
            root = ir.Operation.create("llvm.intr.sqrt", results=[op.results[0].type], operands=list(op.operands))
        op.results[0].replace_all_uses_with(root.results[0])
        op.erase()


def _callee(op: ir.Operation) -> str | None:
    return callee_of(op) if op.name == "llvm.call" else None


def nvvm_to_llvm_ir(module: ir.Module) -> str:
    """The LLVM IR text of the kernels of `module`, which `lower_to_nvvm` has lowered.

    It is written for the GPU's layout of data: in LLVM's own an i64 is aligned to 4 bytes, and is loaded in halves.
    """
    plain = ir.Module.create(ir.Location.unknown(module.context))
    plain.operation.attributes["llvm.data_layout"] = ir.StringAttr.get(data_layout(), module.context)
    for op in module.body.operations:
        for inner in op.regions[0].blocks[0].operations:
            plain.body.append(inner.operation.clone(ip=False))
    return to_llvm_ir(plain)
