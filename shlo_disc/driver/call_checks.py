# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The checks of a call's sizes, and the messages of the errors, in jax.export's words."""

from __future__ import annotations

from shlo_disc.driver.compilation import Compilation, made
from shlo_disc.driver.stage_text import result_bytes
from shlo_disc.runtime.words_of_torch import ASSUMED
from shlo_disc.shape_dialect.dialect.buffers import arenas_of
from shlo_disc.shape_dialect.dialect.declarations import Constraint
from shlo_disc.shape_dialect.dialect.host import Check
from shlo_disc.shape_dialect.dialect.names import MEMORY_LIMIT
from shlo_disc.shape_dialect.dialect.records import read_integer
from shlo_disc.shape_dialect.dialect.types import Dims
from shlo_disc.shape_dialect.symbolic.expr import Expr
from shlo_disc.shape_dialect.symbolic.facts import Relation

_ADVICE = "Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details."


def checks_of(c: Compilation) -> list[Check]:
    """The conditions on a call's sizes, in the order in which they are checked, with jax.export's wording."""
    declared = c.signature.least
    checks = [_minimum(c, position, declared) for position in range(len(c.signature.symbols))]
    data = set(c.facts.data_symbols)
    for constraint in c.constraints:
        if not data.isdisjoint(constraint.relation.symbols()):
            checks.append(Check("data", constraint.relation, *_data_message(c, constraint)))
        elif constraint.message:
            checks.append(Check("constraint", constraint.relation, constraint.message, constraint.operands))
        else:
            text = f"Expected {constraint.relation}, which {constraint.origin} requires."
            checks.append(Check("equal", constraint.relation, *size_message(c, text)))
    checks += _memory(c)
    # What the facts add to the declarations follows from the constraints, or from a symbol that was replaced.
    known = c.facts.symbols
    for position, source in enumerate(c.signature.symbols):
        low = known[source.name].min
        if low is not None and low > declared:
            checks.append(_minimum(c, position, low))
    return checks


def _memory(c: Compilation) -> list[Check]:
    """The condition that a call of some variant fits the limit of memory, if there is one."""
    module = made(c.module)
    if MEMORY_LIMIT not in module.operation.attributes:
        return []
    limit = read_integer(module.operation.attributes[MEMORY_LIMIT])
    shared, *variants = arenas_of(module.operation)
    least = shared + Expr.minimum(*variants) if variants else shared
    total = least + result_bytes(c)
    text = f"Expected a call that allocates at most {limit} bytes, the memory_limit; it needs {{0}} bytes."
    return [Check("constraint", Relation.le(total, limit), text, (total,))]


def _minimum(c: Compilation, position: int, low: int) -> Check:
    name = c.signature.symbols[position].name
    text = f"Expected value >= {low} for dimension variable '{name}'."
    return Check("min", Relation.ge(Expr.symbol(name), low), *size_message(c, text, position + 1))


def size_message(c: Compilation, finding: str, solved: int | None = None) -> tuple[str, Dims]:
    """A message in jax.export's form and its operands; `{i}` stands for the value of operand i.

    `solved`: how many of the symbols have their values when the condition is checked, all by default.
    """
    specifications = ",".join(
        f"{a.path}.shape = ({', '.join(map(str, a.dims))}{',' if len(a.dims) == 1 else ''})"
        for a in c.signature.arguments
        if any(d.constant is None for d in a.dims)
    )
    operands: list[Expr] = []
    obtained = ""
    for source in c.signature.symbols[:solved]:
        argument = c.signature.arguments[source.argument]
        size = argument.dims[source.dim]
        obtained += (
            f"'{source.name}' = {{{len(operands)}}} from specification '{size}' "
            f"for dimension {argument.path}.shape[{source.dim}] (= {{{len(operands) + 1}}}), "
        )
        operands += [Expr.symbol(source.name), size]
    text = (
        f"Input shapes do not match the polymorphic shapes specification. {finding} "
        f"Using the following polymorphic shapes specifications: {specifications}. "
        f"Obtained dimension variables: {obtained}. {_ADVICE}"
    )
    return text, tuple(operands)


def _data_message(c: Compilation, constraint: Constraint) -> tuple[str, Dims]:
    """The message for a constraint on sizes that were read from data: that of PyTorch's programs has the values.

    Rounded sizes, such as int(0.7 * n), are read as data is, and what PyTorch assumed of them is about sizes.
    """
    if constraint.message.startswith(ASSUMED):
        return constraint.message, constraint.operands
    if constraint.message.startswith("Expected ") and constraint.operands:
        return data_message(c, constraint.message)[0], constraint.operands
    text = f"Expected {constraint.relation}, which {constraint.origin} requires."
    return data_message(c, text, constraint.relation)


def data_message(c: Compilation, finding: str, relation: Relation | None = None) -> tuple[str, Dims]:
    """A message about sizes that were read from data, and its operands: the sizes that `relation` names."""
    names = sorted(relation.symbols()) if relation else []
    values = ", ".join(f"{name} = {{{position}}}" for position, name in enumerate(names))
    text = f"A size that the program reads from data does not fit. {finding}" + (f" Here {values}." if values else "")
    return text, tuple(Expr.symbol(name) for name in names)
