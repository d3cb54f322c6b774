# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules for the dialect in a module: references, types, and what attributes say of what they stand on.

MLIR checks an op of ours by itself whenever it verifies (`LOCAL`). What goes beyond one op is checked here, after each
stage and on what is read: names against declarations, encodings against types, attributes against functions.
"""

from __future__ import annotations

from shlo_disc.errors import ProgramError
from shlo_disc.shape_dialect.dialect import fusion as kinds
from shlo_disc.shape_dialect.dialect.attribute_rules import ATTRIBUTES
from shlo_disc.shape_dialect.dialect.declarations import symbols_in
from shlo_disc.shape_dialect.dialect.host import DYNAMIC_DIMS, RUNTIME_SIZE
from shlo_disc.shape_dialect.dialect.host_rules import check_kernel_function, check_program, runtime_size_of
from shlo_disc.shape_dialect.dialect.names import STAGE
from shlo_disc.shape_dialect.dialect.op_rules import RULES
from shlo_disc.shape_dialect.dialect.records import Malformed
from shlo_disc.shape_dialect.dialect.scope import ORDER, Scope, is_private
from shlo_disc.shape_dialect.mlir import ir
from shlo_disc.shape_dialect.ops.legality import LEGAL

_KERNEL_MODULES = ("builtin.module", "gpu.module")

_ATTRIBUTED = frozenset(name for use in ATTRIBUTES.values() for name in use.ops)


def verify_dialect(
    module: ir.Module, thorough: bool = True, has_new_fusions: bool = True, is_between: bool = False
) -> None:
    """Check a module. Raises Malformed with the first thing that is wrong, and the op and place where it stands.

    thorough: look for attributes of ours on all ops, and not only where they may stand. has_new_fusions: check
    fusions, which have not been checked before. is_between: some passes of the next stage have run.
    """
    Verifier(module, thorough, has_new_fusions, is_between).run()


class Verifier:
    """One module."""

    def __init__(self, module: ir.Module, thorough: bool, has_new_fusions: bool, is_between: bool):
        self.module = module
        self.thorough = thorough
        self.has_new_fusions = has_new_fusions
        self.is_between = is_between
        self.scope = Scope(module)
        self.legal = self._legal()
        self.at = module.operation

    def _legal(self) -> frozenset[str] | None:
        """The ops that there may be, those of the next stage as well where some of its passes have run."""
        if self.scope.stage not in LEGAL:
            return None
        position = ORDER.index(self.scope.stage)
        return frozenset().union(*(LEGAL[stage] for stage in ORDER[position : position + 1 + self.is_between]))

    def run(self) -> None:
        """All checks. What one of them raises says which op it was of."""
        try:
            self._run()
        except (Malformed, ProgramError) as error:
            raise Malformed(f"{_title(self.at)}: {error}") from None

    def _run(self) -> None:
        self._check_module(self.module.operation)
        ops = [op.operation for op in self.module.body.operations]
        for kernels in (op for op in ops if op.name in _KERNEL_MODULES):
            self._kernels(kernels)
        for op in (op for op in ops if op.name not in _KERNEL_MODULES):
            is_known = not self.has_new_fusions and op.name == "func.func" and is_private(op.opview)
            if not is_known:
                self._op(op)
        functions = [function.operation for function in self.scope.functions.values()]
        self.at = self.module.operation
        if self.scope.has_run("host"):
            check_program(self.scope, functions)
        elif self.scope.has_run("fuse"):
            for function in functions:
                self.at = function
                _check_function(function)

    def _kernels(self, kernels: ir.Operation) -> None:
        """Take up the names of the kernels, which have no attributes of ours but two."""
        for op in kernels.regions[0].blocks[0].operations:
            name = ir.StringAttr(op.attributes["sym_name"]).value
            if DYNAMIC_DIMS in op.attributes:
                self.at = op.operation
                check_kernel_function(self.at)
                types = list(ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value).inputs)
                buffers = sum(isinstance(type_, ir.MemRefType) for type_ in types)
                self.scope.kernels[name] = (buffers, len(types) - buffers - 2)
                if RUNTIME_SIZE in op.attributes:
                    self.scope.runtime_sizes[name] = runtime_size_of(self.at, len(types) - buffers - 2)
            elif op.operation.name == "gpu.func":
                self.scope.kernels[name] = None

    def _check_module(self, op: ir.Operation) -> None:
        ATTRIBUTES[STAGE].check(self.scope, op)
        declared = symbols_in(self.module)
        self.scope.symbols = set(declared)
        if len(declared) != sum(op.operation.name == "disc.symbol" for op in self.module.body.operations):
            raise Malformed("two symbols have one name")
        self._attributes(op, "")

    # ---- ops --------------------------------------------------------------------------------------------------------

    def _op(self, op: ir.Operation) -> None:
        """Check an op and those in it, which come after all that is said of the op itself."""
        self.at = op
        self._check(op)
        blocks = [block for region in op.regions for block in region.blocks]
        for block in blocks:
            for argument in block.arguments:
                self.scope.check_type(argument.type)
        for block in blocks:
            for inner in block.operations:
                self._op(inner.operation)

    def _check(self, op: ir.Operation) -> None:
        name = op.name
        if self.legal is not None and name not in self.legal:
            raise Malformed(f"there is no {name} after the stage {self.scope.stage}")
        rule = RULES.get(name)
        if rule is not None:
            rule(self.scope, op)
        if self.thorough or name in _ATTRIBUTED:
            self._attributes(op, name)
        for result in op.results:
            self.scope.check_type(result.type)

    def _attributes(self, op: ir.Operation, name: str) -> None:
        for key in op.attributes:
            if not key.startswith("disc."):
                continue
            use = ATTRIBUTES.get(key)
            if use is None:
                raise Malformed(f"there is no attribute {key}; there are {', '.join(sorted(ATTRIBUTES))}")
            if name not in use.ops:
                raise Malformed(f"{key} stands on {' or '.join(use.ops) or 'a module'}")
            if self.scope.stage and not self.scope.has_run(use.stage, self.is_between):
                raise Malformed(f"{key} is of the stage {use.stage}, which has not run")
            use.check(self.scope, op)


def _title(op: ir.Operation) -> str:
    names = [op.attributes[key] for key in ("name", "sym_name", "callee") if key in op.attributes]
    place = str(op.location).removeprefix("loc(").removesuffix(")")
    return " ".join([op.name, *map(str, names), *([f"at {place}"] if "unknown" not in place else [])])


def _check_function(op: ir.Operation) -> None:
    if is_private(op.opview) != kinds.is_fusion(op.opview):
        name = ir.StringAttr(op.attributes["sym_name"]).value
        raise Malformed(f"@{name} is {'a private function' if is_private(op.opview) else 'a fusion'} and not both")
