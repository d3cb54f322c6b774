# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs self-checking StableHLO modules: `python -m shlo_disc check FILE.mlir...`.

A module states its inputs and what it expects, in either format of the openxla/stablehlo repository: functions with
`check.expect_eq` and its like, several in a file between lines of `// -----`; or a function that takes its inputs from
`@inputs`, its expectation from `@expected` and calls `@check.expect_close`.

| module | what it does |
|--|--|
| `modules` | a checked function becomes a program: inputs are arguments, compared values are results |
| `text` | ops of the `check` dialect become custom calls |
| `comparison` | what each check accepts |
| `worker` | one process that compiles and runs cases as they come |
| `runner` | spreads the cases over workers, and replaces one that dies or hangs |
| `report` | the summary by reason and by op |
"""
