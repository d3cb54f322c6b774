# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of other people's libraries, run at several sizes through the plugin and the front ends.

| module | what it has |
|--|--|
| `registry` | what an entry is, and which there are |
| `clients` | a file for each client of JAX: its entries |
| `torch_models` | models of PyTorch, each of which is several entries |
| `trial` | runs one entry in a process of its own, against XLA's CPU |
| `torch_trial` | runs a model, against eager PyTorch |
| `outcomes` | the table, how it is written and how two are compared |
| `__main__` | `python -m corpus` |

`make corpus` installs the clients, which are pinned in `requirements.txt`, runs all entries, and compares the outcomes
with `outcomes.csv`. A change of that file is reviewed as that of a golden file is.
"""
