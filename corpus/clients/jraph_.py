# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graph networks by Jraph: the number of nodes and that of edges change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jraph

from corpus.registry import integers, normal, program

Built = tuple[Callable[..., Any], tuple[Any, ...]]


def _graph(size: int) -> jraph.GraphsTuple:
    edges = 2 * size + 1
    return jraph.GraphsTuple(
        nodes=normal(size, 3), edges=normal(edges, 2), senders=integers(size, edges),
        receivers=integers(size, edges, seed=1), n_node=integers(1, 1) + size, n_edge=integers(1, 1) + edges,
        globals=normal(1, 2),
    )  # fmt: skip


def _dense(weights: Any) -> Callable[..., Any]:
    return lambda *parts: jnp.tanh(jnp.concatenate(parts, axis=-1) @ weights)


@program()
def graph_network(size: int) -> Built:
    def apply(graph: Any, edge: Any, node: Any, last: Any) -> Any:
        network = jraph.GraphNetwork(
            lambda e, s, r, g: _dense(edge)(e, s, r, g),
            lambda n, s, r, g: _dense(node)(n, s, r, g),
            lambda n, e, g: _dense(last)(n, e, g),
        )
        found = network(graph)
        return found.nodes, found.edges, found.globals

    return apply, (_graph(size), normal(10, 4), normal(13, 5), normal(11, 2))


@program()
def graph_convolution(size: int) -> Built:
    def apply(graph: Any, weights: Any) -> Any:
        return jraph.GraphConvolution(lambda n: n @ weights, add_self_edges=True)(graph).nodes

    return apply, (_graph(size), normal(3, 4))


@program()
def graph_attention(size: int) -> Built:
    def apply(graph: Any, query: Any, score: Any) -> Any:
        layer = jraph.GAT(
            lambda n: n @ query, lambda s, r, e: jnp.concatenate([s, r], -1) @ score, lambda n: jnp.mean(n, axis=1)
        )
        return layer(graph._replace(edges=None)).nodes

    return apply, (_graph(size), normal(3, 4), normal(8, 1))


@program()
def interaction_gradient(size: int) -> Built:
    def apply(graph: Any, edge: Any, node: Any) -> Any:
        def loss(weights: Any) -> Any:
            network = jraph.InteractionNetwork(
                lambda e, s, r: _dense(weights[0])(e, s, r), lambda n, r: _dense(weights[1])(n, r)
            )
            return jnp.sum(network(graph).nodes ** 2)

        return jax.grad(loss)((edge, node))

    return apply, (_graph(size), normal(8, 4), normal(7, 3))


@program()
def segment_softmax(size: int) -> Built:
    def apply(values: Any, segments: Any) -> Any:
        return jraph.segment_softmax(values, segments, 4), jraph.segment_max(values, segments, 4)

    return apply, (normal(size), integers(4, size))


@program()
def segment_moments(size: int) -> Built:
    def apply(values: Any, segments: Any) -> Any:
        return jraph.segment_mean(values, segments, 4), jraph.segment_normalize(values, segments, 4)

    return apply, (normal(2 * size), integers(4, 2 * size))
