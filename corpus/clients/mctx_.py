# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tree search by Mctx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from corpus.registry import normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _recurrent(params: Any, key: Any, action: Any, embedding: Any) -> Any:
    embedding = jnp.tanh(embedding @ params["step"] + action[:, None] * 0.1)
    output = mctx.RecurrentFnOutput(
        reward=embedding[:, 0],
        discount=jnp.full_like(embedding[:, 0], 0.9),
        prior_logits=embedding @ params["policy"],
        value=embedding @ params["value"],
    )
    return output, embedding


def _root(params: Any, x: Any) -> Any:
    return mctx.RootFnOutput(prior_logits=x @ params["policy"], value=x @ params["value"], embedding=x)


def _params() -> Any:
    return {"step": normal(8, 8), "policy": normal(8, 4, seed=1), "value": normal(8, seed=2)}


@program()
def muzero(size: int) -> Built:
    """A batch of the size, 6 simulations."""

    def search(params: Any, x: Any) -> Any:
        found = mctx.muzero_policy(params, jax.random.key(0), _root(params, x), _recurrent, num_simulations=6)
        return found.action, found.action_weights

    return search, (_params(), normal(size, 8))


@program()
def gumbel_muzero(size: int) -> Built:
    def search(params: Any, x: Any) -> Any:
        found = mctx.gumbel_muzero_policy(
            params, jax.random.key(0), _root(params, x), _recurrent, num_simulations=5, max_num_considered_actions=3
        )
        return found.action, found.action_weights

    return search, (_params(), normal(size, 8))
