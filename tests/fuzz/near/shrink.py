# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Making a failing case small: one call, fewer results, fewer pieces, simpler ones, smaller sizes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.near.case import Case, Sizes
from tests.fuzz.near.mutate import resized
from tests.fuzz.near.program import Argument, Program, Rejected, Step, Type

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, budget: int = 120, seconds: float = 180.0) -> Case:
    """The smallest case found for which `fails` still holds, after so many trials, or so many seconds."""
    end = time.monotonic() + seconds
    changed = True
    while changed:
        changed, place = False, 0
        while True:
            # Behind a success it goes on where it stands: what was tried before hardly succeeds at once again.
            candidate = next(itertools.islice(_smaller(case), place, None), None)
            if candidate is None:
                break
            if budget <= 0 or time.monotonic() > end:
                return case
            budget -= 1
            if fails(candidate):
                case, changed = candidate, True
            else:
                place += 1
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Cases with one thing less, the largest steps first; those that JAX does not take are left out."""
    if len(case.sizes) > 1:
        for sizes in case.sizes:
            yield replace(case, sizes=(sizes,))
    if case.options:
        yield replace(case, options={})
    seen = set()
    for program in _smaller_programs(case.program):
        text = program.text()
        if text in seen or text == case.program.text() or not _is_valid(program):
            continue
        seen.add(text)
        yield replace(case, program=program)
    yield from _smaller_sizes(case)


def _is_valid(program: Program) -> bool:
    try:
        program.types()
    except Rejected:
        return False
    return bool(program.results)


def _smaller_programs(program: Program) -> Iterator[Program]:
    types = program.types()
    if len(program.results) > 1:
        yield from (replace(program, results=(r,)).live() for r in program.results)
        yield from (
            replace(program, results=tuple(q for q in program.results if q != r)).live() for r in program.results
        )
    yield from _opened(program)
    middle = len(program.steps) // 2
    for number in sorted(range(len(program.steps) - 1), key=lambda n: abs(n - middle)):
        yield replace(program, results=program.steps[number].outputs).live()
    for number, step in reversed(list(enumerate(program.steps))):
        yield from _without(program, number, step, types)
    for number, step in enumerate(program.steps):
        yield from _simpler_step(program, number, step)
    yield from _simpler_arguments(program)


def _opened(program: Program) -> Iterator[Program]:
    """A program that is one call of a body: the body."""
    if len(program.steps) != 1:
        return
    (step,) = program.steps
    for key in ("body", "then", "else"):
        body = step.params.get(key)
        if not isinstance(body, Program):
            continue
        by_id = {a.id: a for a in program.arguments}
        if len(step.inputs) == len(body.arguments):
            outer = [by_id.get(i) for i in step.inputs]
            arguments = tuple(
                a if o is None or o.dims != a.dims else replace(a, fill=o.fill)
                for o, a in zip(outer, body.arguments, strict=True)
            )
            yield replace(body, arguments=arguments)
        yield body


def _without(program: Program, number: int, step: Step, types: dict[int, Type]) -> Iterator[Program]:
    """A step less: its results become arguments, or are an operand of the same type, or nobody needs them."""
    if any(i in program.results for i in step.outputs):
        kept = tuple(i for i in program.results if i not in step.outputs)
        yield replace(program, results=kept + tuple(i for i in step.inputs if i not in kept)).live()
    for value in step.inputs:
        for old in step.outputs:
            if (types[value].shape, types[value].dtype) == (types[old].shape, types[old].dtype):
                names = {old: value}
                steps = tuple(
                    replace(s, inputs=tuple(names.get(i, i) for i in s.inputs))
                    for n, s in enumerate(program.steps) if n != number
                )  # fmt: skip
                results = tuple(names.get(i, i) for i in program.results)
                if len(step.outputs) == 1:
                    yield replace(program, steps=steps, results=results).live()
    made = tuple(Argument(i, tuple(map(str, types[i].shape)), _name(types[i], program)) for i in step.outputs)
    if all(_is_plain(a) for a in made):
        steps = tuple(s for n, s in enumerate(program.steps) if n != number)
        yield replace(program, arguments=(*program.arguments, *made), steps=steps).live()


def _is_plain(argument: Argument) -> bool:
    return all(d.isdigit() or d.isidentifier() for d in argument.dims) and argument.dtype != "int32"


def _name(type_: Type, program: Program) -> str:
    return "float" if type_.dtype.name == program.dtype else str(type_.dtype.name)


_SIMPLE = {"unary": {"f": "tanh"}, "binary": {"f": "add"}, "reduce": {"f": "sum"}, "along": {"f": "center"}}


def _simpler_step(program: Program, number: int, step: Step) -> Iterator[Program]:
    def put(params: dict[str, object]) -> Program:
        steps = (*program.steps[:number], replace(step, params=params), *program.steps[number + 1 :])
        return replace(program, steps=steps)

    simple = _SIMPLE.get(step.op, {})
    if any(step.params.get(k) != v for k, v in simple.items()):
        yield put({**step.params, **simple})
    for key in ("keep", "reverse", "descending", "value", "places"):
        if step.params.get(key) is True:
            yield put({**step.params, key: False})
    for key, body in step.params.items():
        if isinstance(body, Program):
            for smaller in _smaller_bodies(body):
                yield put({**step.params, key: smaller})


def _smaller_bodies(body: Program) -> Iterator[Program]:
    """Bodies with the same arguments and results."""
    try:
        types = body.types()
    except Rejected:
        return
    for smaller in _smaller_programs(body):
        if len(smaller.results) != len(body.results):
            continue
        known = {a.id for a in smaller.arguments}
        if not known <= {a.id for a in body.arguments}:
            continue
        whole = replace(smaller, arguments=body.arguments)
        try:
            now = whole.types()
        except Rejected:
            continue
        if all(
            (now[a].shape, now[a].dtype) == (types[b].shape, types[b].dtype)
            for a, b in zip(whole.results, body.results, strict=True)
        ):
            yield whole


def _simpler_arguments(program: Program) -> Iterator[Program]:
    for size in sorted({d for a in program.arguments for d in a.dims}):
        for smaller in ("1", "2", "4"):
            if size.isidentifier() or (size.isdigit() and int(size) > int(smaller)):
                yield resized(program, {size: smaller})
    for number, argument in enumerate(program.arguments):
        if argument.fill in ("weight", "positive", "distinct"):
            arguments = list(program.arguments)
            arguments[number] = replace(argument, fill="normal")
            yield replace(program, arguments=tuple(arguments))
    if program.dtype != "float32":
        from tests.fuzz.near.mutate import with_dtype

        yield with_dtype(program, "float32")


def _smaller_sizes(case: Case) -> Iterator[Case]:
    for sizes in case.sizes:
        for name, size in sizes.items():
            for smaller in sorted({1, 2, 3, size // 2, size - 1}):
                if 0 < smaller < size:
                    changed: Sizes = {**sizes, name: smaller}
                    yield replace(case, sizes=(changed,))
