# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small changes of a program, each of which may be the one that a pattern does not expect."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.fuzz.near.program import PIECES, SYMBOLS, Argument, Program, Rejected, Step, Type, infer

Change = Callable[[Program, random.Random], Program]


def mutated(program: Program, rng: random.Random, count: int) -> Program:
    """The program with so many changes; those that JAX does not take are tried anew. Raises Rejected."""
    made = 0
    for _ in range(12 * count):
        if made == count:
            break
        change = rng.choices([c for c, _ in CHANGES], [w for _, w in CHANGES])[0]
        try:
            changed = change(program, rng).live()
            changed.types()
        except (Rejected, IndexError):
            continue
        if changed != program:
            program, made = changed, made + 1
    return program


def _choose(rng: random.Random, options: Sequence[Any]) -> Any:
    if not options:
        raise Rejected("nothing to change")
    return rng.choice(list(options))


def _with_step(program: Program, number: int, *steps: Step) -> Program:
    return replace(program, steps=(*program.steps[:number], *steps, *program.steps[number + 1 :]))


def _types_at(program: Program) -> dict[int, Type]:
    return program.types()


# ---- in a step ------------------------------------------------------------------------------------------------------


def other_params(program: Program, rng: random.Random) -> Program:
    """Another axis, function, offset, order, fill, ...: what the piece says it might be."""
    types = _types_at(program)
    number = _choose(rng, range(len(program.steps)))
    step = program.steps[number]
    params = _choose(rng, PIECES[step.op].variants(step.params, [types[i] for i in step.inputs]))
    return _with_step(program, number, replace(step, params=params))


def inside(program: Program, rng: random.Random) -> Program:
    """A change in the body of a loop, branch or call."""
    found = [(n, k) for n, s in enumerate(program.steps) for k, v in s.params.items() if isinstance(v, Program)]
    number, key = _choose(rng, found)
    step = program.steps[number]
    body = mutated(step.params[key], rng, 1)
    before, after = (_result_types(p) for p in (step.params[key], body))
    if before != after:
        raise Rejected("the body gives something else")
    return _with_step(program, number, replace(step, params={**step.params, key: body}))


def _result_types(program: Program) -> list[tuple[Any, ...]]:
    types = program.types()
    return [(types[i].shape, types[i].dtype) for i in program.results]


def swap_operands(program: Program, rng: random.Random) -> Program:
    """Two operands in the other order."""
    number = _choose(rng, [n for n, s in enumerate(program.steps) if len(s.inputs) > 1])
    step = program.steps[number]
    i, j = rng.sample(range(len(step.inputs)), 2)
    inputs = list(step.inputs)
    inputs[i], inputs[j] = inputs[j], inputs[i]
    return _with_step(program, number, replace(step, inputs=tuple(inputs)))


def other_operand(program: Program, rng: random.Random) -> Program:
    """Another value of the same type in an operand's place."""
    types = _types_at(program)
    number = _choose(rng, range(len(program.steps)))
    step = program.steps[number]
    position = _choose(rng, range(len(step.inputs)))
    old = step.inputs[position]
    later = {i for s in program.steps[number:] for i in s.outputs}
    same = [
        i for i, t in types.items()
        if i != old and i not in later and (t.shape, t.dtype) == (types[old].shape, types[old].dtype)
    ]  # fmt: skip
    inputs = (*step.inputs[:position], _choose(rng, same), *step.inputs[position + 1 :])
    return _with_step(program, number, replace(step, inputs=inputs))


# ---- new steps ------------------------------------------------------------------------------------------------------

READERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("transpose", {"perm": [1, 0]}), ("transpose", {"perm": [0, 2, 1]}),
    ("reduce", {"f": "sum", "axis": 0, "keep": False}), ("reduce", {"f": "max", "axis": 1, "keep": False}),
    ("reduce", {"f": "sum", "axis": 1, "keep": True}),
    ("slice", {"axis": 0, "cut": [1, None, 1]}), ("slice", {"axis": 1, "cut": [0, 2, 1]}),
    ("index", {"axis": 0, "at": 0}), ("index", {"axis": 1, "at": -1}), ("unary", {"f": "tanh"}), ("flatten", {}),
    ("flip", {"axis": 0}), ("unary", {"f": "twice"}), ("cumulative", {"f": "sum", "axis": 0, "reverse": False}),
    ("convert", {"dtype": "bfloat16"}), ("along", {"f": "softmax", "axis": 1}), ("along", {"f": "center", "axis": 0}),
)  # fmt: skip


def reader(program: Program, rng: random.Random) -> Program:
    """One more reader of a value, which gives one more result."""
    types = _types_at(program)
    value = _choose(rng, list(types))
    op, params = rng.choice(READERS)
    step = Step(op, (value,), (program.fresh(),), dict(params))
    infer(step, [types[value]], program.dtype)
    return replace(program, steps=(*program.steps, step), results=(*program.results, step.outputs[0]))


def mixed_reader(program: Program, rng: random.Random) -> Program:
    """A result, or an operand of a step, is joined with another value of its type."""
    types = _types_at(program)
    value = _choose(rng, [i for s in program.steps for i in s.outputs])
    same = [
        i for i, t in types.items() if i != value and (t.shape, t.dtype) == (types[value].shape, types[value].dtype)
    ]
    f = rng.choice(("add", "mul", "sub", "max"))
    return _joined(program, value, "binary", (value, _choose(rng, same)), {"f": f, "lift": []}, rng)


def insertion(program: Program, rng: random.Random) -> Program:
    """An elementwise function, a conversion or two transposes on the way from a value to its readers."""
    types = _types_at(program)
    value = _choose(rng, list(types))
    op, params = rng.choice((
        ("unary", {"f": "tanh"}), ("unary", {"f": "neg"}), ("unary", {"f": "half"}), ("unary", {"f": "relu"}),
        ("unary", {"f": "plus1"}), ("convert", {"dtype": "bfloat16"}), ("convert", {"dtype": "float32"}),
        ("along", {"f": "softmax", "axis": 0}), ("along", {"f": "center", "axis": 1}), ("flip", {"axis": 0}),
        ("cumulative", {"f": "sum", "axis": 0, "reverse": False}), ("roll", {"axis": 0, "by": 1}),
    ))  # fmt: skip
    if types[value].dtype.name != program.dtype:
        raise Rejected("not floats")
    return _joined(program, value, op, (value,), dict(params), rng)


def _joined(program: Program, value: int, op: str, inputs: tuple[int, ...], params: dict[str, Any],
            rng: random.Random) -> Program:  # fmt: skip
    """A new step of `inputs`, placed as early as can be, which some readers of `value` read in its place."""
    made = program.fresh()
    step = Step(op, inputs, (made,), params)
    ready = max([n + 1 for n, s in enumerate(program.steps) if set(s.outputs) & set(inputs)], default=0)
    everyone = rng.random() < 0.5
    steps = list(program.steps[:ready]) + [step]
    for other in program.steps[ready:]:
        change = value in other.inputs and (everyone or rng.random() < 0.5)
        steps.append(replace(other, inputs=tuple(made if i == value and change else i for i in other.inputs)))
    results = tuple(made if i == value else i for i in program.results)
    if not any(made in s.inputs for s in steps) and made not in results:
        results = (*results, made)
    return replace(program, steps=tuple(steps), results=results)


def bypass(program: Program, rng: random.Random) -> Program:
    """A step is left out: its readers read an operand of the same type."""
    types = _types_at(program)
    found = [
        (s, i) for s in program.steps for i in s.inputs
        if len(s.outputs) == 1
        and (types[i].shape, types[i].dtype) == (types[s.outputs[0]].shape, types[s.outputs[0]].dtype)
    ]  # fmt: skip
    step, value = _choose(rng, found)
    old = step.outputs[0]
    steps = tuple(
        replace(s, inputs=tuple(value if i == old else i for i in s.inputs)) for s in program.steps if s is not step
    )
    return replace(program, steps=steps, results=tuple(value if i == old else i for i in program.results))


def twice(program: Program, rng: random.Random) -> Program:
    """A step is computed twice; some read the one, some the other."""
    number = _choose(rng, range(len(program.steps)))
    step = program.steps[number]
    first = program.fresh()
    copies = dict(zip(step.outputs, range(first, first + len(step.outputs)), strict=True))
    steps = [*program.steps[: number + 1], replace(step, outputs=tuple(copies.values()))]
    for other in program.steps[number + 1 :]:
        turn = rng.random() < 0.5
        steps.append(replace(other, inputs=tuple(copies.get(i, i) if turn else i for i in other.inputs)))
    results = (*program.results, copies[step.outputs[0]])
    return replace(program, steps=tuple(steps), results=results)


# ---- of the whole program -------------------------------------------------------------------------------------------


def output(program: Program, rng: random.Random) -> Program:
    """One more result: a value in between, or an argument."""
    inner = [i for s in program.steps for i in s.outputs if i not in program.results]
    pool = inner if inner and rng.random() < 0.75 else [a.id for a in program.arguments if a.id not in program.results]
    at = rng.randrange(len(program.results) + 1)
    return replace(program, results=(*program.results[:at], _choose(rng, pool), *program.results[at:]))


def less(program: Program, rng: random.Random) -> Program:
    """One result less, or two of them exchanged."""
    if len(program.results) < 2:
        raise Rejected("one result")
    results = list(program.results)
    if rng.random() < 0.5:
        rng.shuffle(results)
    else:
        del results[rng.randrange(len(results))]
    return replace(program, results=tuple(results))


def alias(program: Program, rng: random.Random) -> Program:
    """Two arguments become one."""
    pairs = [
        (a, c) for a in program.arguments for c in program.arguments
        if a.id != c.id and (a.dims, a.dtype) == (c.dims, c.dtype) and ":" not in a.fill + c.fill
    ]  # fmt: skip
    a, c = _choose(rng, pairs)
    return _renamed(program, {c.id: a.id}, [x for x in program.arguments if x is not c])


def _renamed(program: Program, names: dict[int, int], arguments: Sequence[Argument]) -> Program:
    steps = tuple(replace(s, inputs=tuple(names.get(i, i) for i in s.inputs)) for s in program.steps)
    return replace(
        program, arguments=tuple(arguments), steps=steps, results=tuple(names.get(i, i) for i in program.results)
    )


def size(program: Program, rng: random.Random) -> Program:
    """A symbol becomes another one, or a number; or a number a symbol."""
    used = sorted({d for a in program.arguments for d in a.dims})
    old = _choose(rng, used)
    new = rng.choice((*SYMBOLS, "1", "1", "2", "3", "4", "8", "16", "17"))
    return resized(program, {old: new})


def resized(program: Program, sizes: dict[str, str]) -> Program:
    """The program with other sizes in the place of some, in bodies as well."""

    def renamed(text: str) -> str:
        return sizes.get(text, text)

    arguments = tuple(
        replace(a, dims=tuple(map(renamed, a.dims)), fill=_refilled(a.fill, sizes)) for a in program.arguments
    )
    steps = []
    for step in program.steps:
        params = {k: resized(v, sizes) if isinstance(v, Program) else v for k, v in step.params.items()}
        for key in ("trip", "length"):
            if key in params:
                params[key] = renamed(str(params[key]))
        steps.append(replace(step, params=params))
    return replace(program, arguments=arguments, steps=tuple(steps))


def _refilled(fill: str, sizes: dict[str, str]) -> str:
    kind, _, limit = fill.partition(":")
    return f"{kind}:{sizes.get(limit, limit)}" if limit else fill


def dtype(program: Program, rng: random.Random) -> Program:
    """Other floats; or integers, where all steps take them."""
    own = rng.choice([d for d in ("float32", "float64", "bfloat16", "float16") if d != program.dtype])
    return with_dtype(program, own)


def with_dtype(program: Program, own: str) -> Program:
    """The program in floats of another type."""
    steps = []
    for step in program.steps:
        params = {k: with_dtype(v, own) if isinstance(v, Program) else v for k, v in step.params.items()}
        steps.append(replace(step, params=params))
    return replace(program, steps=tuple(steps), dtype=own)


def fill(program: Program, rng: random.Random) -> Program:
    """Integers with ties, or positive numbers, in an argument."""
    number = _choose(rng, [n for n, a in enumerate(program.arguments) if a.dtype == "float"])
    arguments = list(program.arguments)
    arguments[number] = replace(arguments[number], fill=rng.choice(("normal", "ints", "positive", "distinct")))
    return replace(program, arguments=tuple(arguments))


def order(program: Program, rng: random.Random) -> Program:
    """The steps in another order that keeps what is read before its readers."""
    ready = {a.id for a in program.arguments}
    waiting, steps = list(program.steps), []
    while waiting:
        free = [s for s in waiting if set(s.inputs) <= ready]
        step = rng.choice(free)
        waiting.remove(step)
        steps.append(step)
        ready |= set(step.outputs)
    return replace(program, steps=tuple(steps))


def wrapped(program: Program, rng: random.Random) -> Program:
    """The whole program in a function, a branch or a loop of its own."""
    how = rng.choice(("jit", "remat", "cond", "fori", "scan", "vmap", "while"))
    return wrap(program, how, rng)


def wrap(program: Program, how: str, rng: random.Random) -> Program:
    """The program as the body of a piece. Raises Rejected."""
    arguments = list(program.arguments)
    ids = [a.id for a in arguments]
    fresh = program.fresh()
    types = program.types()
    given = {a.id: (types[a.id].shape, types[a.id].dtype) for a in arguments}
    made = [(types[i].shape, types[i].dtype) for i in program.results]
    outputs = tuple(range(fresh, fresh + len(made)))
    if how in ("jit", "remat"):
        step = Step("call", tuple(ids), outputs, {"body": program, "how": how})
        return replace(program, steps=(step,), results=outputs)
    if how == "cond":
        choice = Argument(fresh + len(made), (), "bool")
        other = _other_branch(program, types)
        step = Step("cond", (choice.id, *ids), outputs, {"then": program, "else": other})
        return replace(program, arguments=(*arguments, choice), steps=(step,), results=outputs)
    if how == "vmap":
        extra = rng.choice((2, 3, "t"))
        taken = [rng.random() < 0.6 for _ in arguments]
        taken[rng.randrange(len(taken))] = True
        outer = [replace(a, dims=(str(extra), *a.dims)) if t else a for a, t in zip(arguments, taken, strict=True)]
        axes = [0 if t else None for t in taken]
        step = Step("vmap", tuple(ids), outputs, {"body": program, "axes": axes, "out": 0})
        return replace(program, arguments=tuple(outer), steps=(step,), results=outputs)
    return _looped(program, how, given, made, rng)


def _other_branch(program: Program, types: dict[int, Type]) -> Program:
    """A branch with results of the same types: the same values, those of floats turned around."""
    fresh = program.fresh()
    steps, results = list(program.steps), []
    for number, i in enumerate(program.results):
        if types[i].dtype == bool:
            results.append(i)
            continue
        steps.append(Step("unary", (i,), (fresh + number,), {"f": "neg"}))
        results.append(fresh + number)
    return replace(program, steps=tuple(steps), results=tuple(results))


def _looped(program: Program, how: str, given: dict[int, Any], made: list[Any], rng: random.Random) -> Program:
    """A loop that carries each result in the place of the first argument of its type; scans give the others."""
    free = dict(given)
    carried: list[tuple[int, int]] = []
    for result, type_ in zip(program.results, made, strict=True):
        match = next((i for i, t in free.items() if t == type_), None)
        if match is not None:
            del free[match]
            carried.append((match, result))
    if not carried:
        raise Rejected("no loop carries this")
    starts = [a for a, _ in carried]
    stacked = [r for r in program.results if r not in [r for _, r in carried]] if how == "scan" else []
    fixed = [i for i in given if i not in starts]
    results = (*(r for _, r in carried), *stacked)
    fresh = program.fresh()
    outputs = tuple(range(fresh + 1, fresh + 1 + len(results)))
    by_id = {a.id: a for a in program.arguments}
    inner = [by_id[i] for i in (*starts, *fixed)]
    trip = rng.choice((2, 3, 1, "t"))
    if how == "scan":
        params = {"body": replace(program, arguments=tuple(inner), results=results), "carry": len(starts), "xs": 0,
                  "length": trip, "reverse": False}  # fmt: skip
        step = Step("scan", (*starts, *fixed), outputs, params)
        return _with_symbol(replace(program, steps=(step,), results=outputs), trip)
    counter = Argument(fresh, (), "int32")
    body = replace(program, arguments=(counter, *inner), results=results)
    if how == "fori":
        params = {"body": body, "carry": len(starts), "start": 0, "trip": trip}
        step = Step("fori", (*starts, *fixed), outputs, params)
        return _with_symbol(replace(program, steps=(step,), results=outputs), trip)
    limit = Argument(fresh + len(results) + 1, (), "int32", "count:3")
    step = Step("while", (limit.id, *starts, *fixed), outputs, {"body": body, "carry": len(starts)})
    return replace(program, arguments=(*program.arguments, limit), steps=(step,), results=outputs)


def _with_symbol(program: Program, trip: int | str) -> Program:
    """A program whose arguments determine a symbol."""
    if isinstance(trip, int) or any(trip in a.dims for a in program.arguments):
        return program
    extra = Argument(program.fresh(), (trip,))
    return replace(program, arguments=(*program.arguments, extra), results=(*program.results, extra.id))


def with_gradient(program: Program, rng: random.Random) -> Program:
    """The gradients of what the program computes, with respect to some of its arguments. Raises Rejected."""
    floats = [n for n, a in enumerate(program.arguments) if a.dtype == "float"]
    if not floats:
        raise Rejected("nothing to differentiate by")
    wrt = sorted(rng.sample(floats, rng.randint(1, len(floats))))
    value = rng.random() < 0.3
    fresh = program.fresh()
    outputs = tuple(range(fresh, fresh + len(wrt) + value))
    params = {"body": program, "wrt": wrt, "loss": rng.choice(("sum", "mean", "square", "weighted")), "value": value}
    step = Step("grad", tuple(a.id for a in program.arguments), outputs, params)
    made = replace(program, steps=(step,), results=outputs)
    made.types()
    return made


CHANGES: tuple[tuple[Change, float], ...] = (
    (other_params, 9), (inside, 6), (swap_operands, 3), (other_operand, 4), (reader, 6), (mixed_reader, 4),
    (insertion, 5), (bypass, 2), (twice, 1), (output, 4), (less, 2), (alias, 3), (size, 5), (dtype, 2), (fill, 1),
    (order, 4), (wrapped, 2),
)  # fmt: skip
"""Changes and how often each is drawn."""


__all__ = ["CHANGES", "mutated", "resized", "with_dtype", "with_gradient", "wrap"]
