# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of a process, by their programs: for JAX_SHLO_DISC_EXPLAIN, SHLO_DISC_MAX_PROGRAMS and `watch`.

| module | what it does |
|--|--|
| `identity` | finds the function and the arguments of a program, in the locations that the program has |
| `differences` | the first op at which two programs part |
| `book` | the programs of each function, why there is more than one, and when there are too many |
| `document` | the same as data |
| `watching` | takes that from a watched process to the one that started it |
| `page` | shows it |
"""
