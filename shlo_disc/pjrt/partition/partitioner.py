# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The walk over a program that builds what each device runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from . import hlo_text
from .control import CONTROL_RULES
from .meshes import Meshes, unsupported
from .resharding import Placed, Resharder, bindings, element_of, group_attributes, shape_of
from .rules import RULES, Rule
from .sharding import Axes, Sharding
from .sums import TAKING, add_parts, is_used_inside, kept, lay

_SHARDY, _HLO = "sdy.sharding", "mhlo.sharding"


def partition(module: Any, devices: int) -> None:
    """Make a module what each of several devices runs. It then says how arguments and results lie, in HLO's form.

    Shardings come in Shardy's or HLO's form. Raises UnsupportedError naming what cannot be partitioned.
    """
    Partitioner(module, devices).run()
    module.operation.verify()


class Partitioner:
    """Takes a module to the one that each device runs, in place."""

    def __init__(self, module: Any, devices: int):
        self.module = module
        self.devices = devices
        self.meshes = Meshes(module)
        self.resharder = Resharder(devices)
        self._functions = _functions_of(module)
        self._placed: dict[Any, Placed] = {}
        self._manual = 0  # manual computations around the ops at hand

    def run(self) -> None:
        """Rebuild `@main`, and say on the module how arguments and results lie."""
        main = self._functions["main"]
        block = main.regions[0].blocks[0]
        entries = _entries(main, "arg_attrs", len(block.arguments))
        if foreign := [str(a.type) for a in block.arguments if not _is_tensor(a)]:
            raise unsupported("func.func", f"an argument of type {foreign[0]}")
        shardings = [self._stated(entry, a, self._wanted(a)) for entry, a in zip(entries, block.arguments, strict=True)]
        for argument, sharding in zip(block.arguments, shardings, strict=True):
            if not sharding.fits(shape_of(argument)):
                raise unsupported("func.func", f"an argument of shape {shape_of(argument)} in uneven parts")
        arguments, results = self._rebuild(main, block, shardings, [self._sums(entry) for entry in entries])
        attributes = self.module.operation.attributes
        ir = bindings()
        texts = [self.text_of(placed) for placed in arguments]
        attributes["mhlo.spmd_parameters_shardings"] = ir.ArrayAttr.get([ir.StringAttr.get(t) for t in texts])
        shown = [self.text_of(placed) for placed in results]
        together = f"{{{', '.join(shown)}}}" if len(shown) > 1 else shown[0] if shown else "{replicated}"
        attributes["mhlo.spmd_output_sharding"] = ir.StringAttr.get(together)
        self._erase_unused()

    def _rebuild(
        self, main: Any, block: Any, shardings: Sequence[Sharding], sums: Sequence[Axes]
    ) -> tuple[list[Placed], list[Placed]]:
        """Build what a device runs; returns how its arguments and its results lie."""
        ir = bindings()
        types = [self.local_type(a, s) for a, s in zip(block.arguments, shardings, strict=True)]
        built = main.regions[0].blocks[0].create_after(*types)
        arguments = [Placed(*row) for row in zip(built.arguments, shardings, sums, strict=True)]
        terminator = block.operations[len(block.operations) - 1]
        returned = list(terminator.operands)
        entries = _entries(main, "res_attrs", len(returned))
        with ir.InsertionPoint(built):
            for argument, placed in zip(block.arguments, arguments, strict=True):
                self.place(argument, placed)
            walked = self.walk(block)
            targets = [
                self._stated(entry, v, p.sharding) for entry, v, p in zip(entries, returned, walked, strict=True)
            ]
            for target, value in zip(targets, returned, strict=True):
                if not target.fits(shape_of(value)):
                    raise unsupported("func.func", f"a result of shape {shape_of(value)} in uneven parts")
            results = [
                lay(self, p, target, self._sums(entry) if _SHARDY in entry else p.sums)
                for entry, p, target in zip(entries, walked, targets, strict=True)
            ]
            values = [placed.value for placed in results]
            ir.Operation.create("func.return", operands=values)
        self._replace_body(main, block, built, values)
        return arguments, results

    def _replace_body(self, main: Any, old: Any, built: Any, values: Sequence[Any]) -> None:
        ir = bindings()
        for op in reversed(list(old.operations)):
            op.operation.erase()
        kinds = ir.FunctionType.get([a.type for a in built.arguments], [v.type for v in values])
        kept = [key for key in ("arg_attrs", "res_attrs") if key in main.attributes]
        function = ir.Operation.create(
            "func.func",
            regions=1,
            attributes={
                "sym_name": ir.StringAttr.get("main"),
                "function_type": ir.TypeAttr.get(kinds),
                **{key: _without_shardings(main.attributes[key]) for key in kept},
            },
            ip=ir.InsertionPoint(main),
        )
        built.append_to(function.regions[0])
        main.operation.erase()

    # ---- what rules use ---------------------------------------------------------------------------------------------

    def place(self, value: Any, placed: Placed) -> None:
        """Say what a device has of a value of the program. A sum that is used in regions is made before these."""
        if placed.sums and is_used_inside(value):
            placed = lay(self, placed, placed.sharding)
        self._placed[value] = placed

    def add_parts(self, placed: Placed, axes: Axes, result: Any) -> Placed:
        """The sum of what devices along `axes` have of a result, which may be left to the uses of the result."""
        return add_parts(self, placed, axes, result)

    def placed(self, value: Any) -> Placed:
        """The part of a value on a device."""
        return self._placed[value]

    def sharded(self, value: Any, sharding: Sharding) -> Any:
        """A device's part of a value under a sharding."""
        return self.resharder.reshard(self._placed[value], sharding)

    def whole(self, value: Any) -> Any:
        """All of a value, on each device."""
        if not _is_tensor(value):
            return self._placed[value].value
        return self.sharded(value, Sharding.replicated(len(shape_of(value))))

    def local_type(self, value: Any, sharding: Sharding) -> Any:
        """The type of a device's part."""
        if not _is_tensor(value):
            return value.type
        return bindings().RankedTensorType.get(sharding.local(shape_of(value)), element_of(value))

    @property
    def is_automatic(self) -> bool:
        """Tells whether the ops at hand are for all devices together, and not for each as in a manual computation."""
        return self._manual == 0 and self.meshes.are_stated

    @contextmanager
    def inside_manual(self) -> Iterator[None]:
        """While the body of a manual computation is built."""
        self._manual += 1
        try:
            yield
        finally:
            self._manual -= 1

    @contextmanager
    def inside_module(self, module: Any, meshes: Meshes) -> Iterator[None]:
        """While the body of a function is built that stands in another module, as a program for each device."""
        outer = self._functions, self.meshes
        self._functions, self.meshes = _functions_of(module), meshes
        try:
            with self.inside_manual():
                yield
        finally:
            self._functions, self.meshes = outer

    def clone(self, op: Any, operands: Sequence[Any], shardings: Sequence[Sharding]) -> list[Placed]:
        """The op on parts: its results have these shardings."""
        ir = bindings()
        copy = op.operation.clone(ip=ir.InsertionPoint.current)
        for i, operand in enumerate(operands):
            copy.operands[i] = operand
        for result, original, sharding in zip(copy.results, op.results, shardings, strict=True):
            result.set_type(self.local_type(original, sharding))
        for name in [n for n in copy.attributes if _is_annotation(n)]:
            del copy.attributes[name]
        if "replica_groups" in copy.attributes:
            axes = self.meshes.named_axes(copy.attributes["replica_groups"])
            if axes is not None:
                copy.attributes["replica_groups"] = group_attributes(axes, self.devices)["replica_groups"]
        self._map_captured(copy)
        return [Placed(r, s) for r, s in zip(copy.results, shardings, strict=True)]

    def walk(self, block: Any) -> list[Placed]:
        """Build the ops of a block; returns what its terminator passes on."""
        *inner, terminator = list(block.operations)
        for op in inner:
            with op.operation.location:
                for result, placed in zip(op.results, self._partition(op), strict=True):
                    self.place(result, placed)
        return [self.placed(v) for v in terminator.operands]

    def walk_function(self, name: str, operands: Iterable[Placed]) -> list[Placed]:
        """Build the body of a function for these arguments."""
        block = self._functions[name].regions[0].blocks[0]
        for argument, placed in zip(block.arguments, operands, strict=True):
            self.place(argument, placed)
        return self.walk(block)

    def stated(self, op: Any) -> Sharding:
        """The sharding that an annotation of HLO states. Raises UnsupportedError when it is not known."""
        return _read(_text(op.attributes[_HLO]), op.operation.name, op.results[0])

    def is_manual(self, op: Any) -> bool:
        """Tells whether an annotation of HLO says that a value is one device's own."""
        return _text(op.attributes[_HLO]) == "{manual}"

    def trial(self, block: Any, arguments: Sequence[Placed]) -> list[Sharding]:
        """The shardings of what a block returns, where its arguments lie as these do, whatever their values."""
        ir = bindings()
        types = [self.local_type(a, x.sharding) for a, x in zip(block.arguments, arguments, strict=True)]
        holder = ir.Operation.create("stablehlo.case", [], [_index()], regions=1)
        built = ir.Block.create_at_start(holder.regions[0], types)
        with ir.InsertionPoint(built):
            for argument, new, placed in zip(block.arguments, built.arguments, arguments, strict=True):
                self.place(argument, placed._replace(value=new))
            found = [placed.sharding for placed in self.walk(block)]
        holder.erase()
        return found

    # -----------------------------------------------------------------------------------------------------------------

    def _partition(self, op: Any) -> list[Placed]:
        _check_static(op)
        if op.operation.name not in CONTROL_RULES:
            _without_constraints(op)
        rule: Rule | Callable[..., Any] | None = CONTROL_RULES.get(op.operation.name) or RULES.get(op.operation.name)
        sums = () if op.operation.name in TAKING else self._make_sums(op)
        found = rule(cast(Any, self), op) if rule else None
        placed = self.on_each(op) if found is None else found
        return [one._replace(sums=sums) for one in placed] if sums else placed

    def _make_sums(self, op: Any) -> Axes:
        """Make the sums that an op's operands still are, unless its result may remain one: along the axes returned."""
        if not any(self._placed[v].sums for v in op.operands):
            return ()
        axes = kept(self, op)
        for value in op.operands:
            placed = self._placed[value]
            if not axes and placed.sums:
                self._placed[value] = lay(self, placed, placed.sharding)  # all uses are in this block
        return axes

    def on_each(self, op: Any) -> list[Placed]:
        """Every device computes all of an op."""
        shardings = [Sharding.replicated(len(shape_of(r)) if _is_tensor(r) else 0) for r in op.results]
        return self.clone(op, [self.whole(v) for v in op.operands], shardings)

    def _map_captured(self, op: Any) -> None:
        """Values from outside that the regions of a copied op use."""
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    for i, operand in enumerate(inner.operation.operands):
                        if operand in self._placed:
                            inner.operation.operands[i] = self._placed[operand].value
                    self._map_captured(inner.operation)

    def _stated(self, entry: Any, value: Any, otherwise: Sharding) -> Sharding:
        """The sharding that the attributes of an argument or result state; what they leave open is as `otherwise`."""
        if _SHARDY in entry:
            return self.meshes.open_sharding(entry[_SHARDY], otherwise, shape_of(value))
        return _read(_text(entry[_HLO]), "func.func", value) if _HLO in entry else otherwise

    def _sums(self, entry: Any) -> Axes:
        """The axes along which the attributes of an argument or result state that it is unreduced."""
        return self.meshes.unreduced_axes(entry[_SHARDY]) if _SHARDY in entry else ()

    def _wanted(self, argument: Any) -> Sharding:
        """The sharding of an argument that states none: that which its only use states."""
        uses = [use.owner for use in argument.uses]
        rank = len(shape_of(argument))
        if len(uses) == 1:
            op = uses[0]
            if op.name == "sdy.manual_computation":
                position = list(op.operands).index(argument)
                return self.meshes.sharding(self.meshes.each(op.attributes["in_shardings"])[position])
            if op.name == "stablehlo.custom_call" and _text(op.attributes["call_target_name"]) == "Sharding":
                return self.stated(op)
        return Sharding.replicated(rank)

    def text_of(self, placed: Placed) -> str:
        """The sharding of an array in HLO's form. Raises UnsupportedError if that has none."""
        text = hlo_text.write(placed.sharding, self.devices, placed.sums)
        if text is None:
            raise unsupported("func.func", "a sharding that mixes meshes of different sizes")
        return text

    def _erase_unused(self) -> None:
        """Meshes, and functions that were built into others."""
        used = {"main"}
        _add_called(self._find_main(), used)
        for op in list(self.module.body.operations):
            if op.operation.name == "sdy.mesh" or _text(op.attributes["sym_name"]) not in used:
                op.operation.erase()

    def _find_main(self) -> Any:
        functions = (op for op in self.module.body.operations if op.operation.name == "func.func")
        return next(f for f in functions if _text(f.attributes["sym_name"]) == "main")


def _functions_of(module: Any) -> dict[str, Any]:
    functions = (op for op in module.body.operations if op.operation.name == "func.func")
    return {_text(op.attributes["sym_name"]): op for op in functions}


def _text(attribute: Any) -> str:
    return str(bindings().StringAttr(attribute).value)


def _read(text: str, name: str, value: Any) -> Sharding:
    found = hlo_text.read(text, len(shape_of(value)))
    if found is None:
        raise unsupported(name, f"the sharding {text}")
    return found


def _index() -> Any:
    ir = bindings()
    scalar = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    zero = ir.DenseElementsAttr.get_splat(scalar, ir.IntegerAttr.get(scalar.element_type, 0))
    return ir.Operation.create("stablehlo.constant", results=[scalar], attributes={"value": zero}).results[0]


def _is_tensor(value: Any) -> bool:
    return isinstance(value.type, bindings().RankedTensorType)


def _entries(function: Any, key: str, count: int) -> list[Any]:
    ir = bindings()
    if key not in function.attributes:
        return [{}] * count
    return [ir.DictAttr(entry) for entry in ir.ArrayAttr(function.attributes[key])]


def _check_static(op: Any) -> None:
    for value in (*op.operands, *op.results):
        if _is_tensor(value) and not bindings().RankedTensorType(value.type).has_static_shape:
            raise unsupported(op.operation.name, "an array whose sizes are not known")


def _without_constraints(op: Any) -> None:
    """The bodies of reductions and the like work on numbers: what they say of shardings says nothing."""
    for region in op.regions:
        for block in region.blocks:
            for inner in list(block.operations):
                if inner.operation.name == "sdy.sharding_constraint":
                    inner.results[0].replace_all_uses_with(inner.operands[0])
                    inner.operation.erase()


def _is_annotation(name: Any) -> bool:
    text = str(getattr(name, "name", name))
    return text.startswith("sdy.") or text == _HLO


def _add_called(op: Any, names: set[str]) -> None:
    """The functions that an op's regions name as bodies of custom calls."""
    ir = bindings()
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if "called_computations" in inner.attributes:
                    called = ir.ArrayAttr(inner.attributes["called_computations"])
                    names.update(ir.FlatSymbolRefAttr(name).value for name in called)
                _add_called(inner, names)


def _without_shardings(attributes: Any) -> Any:
    ir = bindings()
    kept = [{a.name: a.attr for a in ir.DictAttr(entry) if str(a.name) not in (_SHARDY, _HLO)} for entry in attributes]
    return ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in kept])


__all__ = ["Partitioner", "partition"]
