# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A fuzzer of programs near to the compiler's patterns: `python -m tests.fuzz --near`.

| module | what |
|--|--|
| `program`, `pieces` | programs as data, and the lines of JAX that they are made of |
| `families`, `mutate`, `composite` | programs that match a pattern, small changes of them, mixtures |
| `reference` | an interpreter in float64 that bounds the error of right answers |
| `case`, `examine`, `compare` | sizes and options, compiling and calling, whose fault it is |
| `worker`, `run`, `shrink` | processes that may die, the loop over seeds, small findings |
"""
