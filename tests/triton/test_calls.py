# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Requests to the backend for Triton: numbers, batches, errors of one among several, threads, and what is released."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shlo_disc import numpy as dnp
from tests.triton.conftest import ATTEND_OUTPUTS, Save, attend
from tests.triton.server import GPU, TYPES, Answer, Given, Server, library, statistics

INVALID, UNAVAILABLE = 3, 4


@pytest.fixture(scope="module")
def batched(attending: Path) -> Iterator[Server]:
    with Server(attending, {"max_batch_size": 64}, instances=4) as server:
        yield server


def drawn(rows: int, columns: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([rows, columns, seed])
    return {name: rng.standard_normal((rows, columns), np.float32) for name in ("x", "mask")}


def check(answer: Answer, request: dict[str, np.ndarray]) -> None:
    assert answer.code == -1, answer.error
    for name, wanted in jax.jit(attend)(**request).items():
        found = answer.outputs[f"result['{name}']"]
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


SHAPES = [(1, 1), (2, 15), (1, 16), (3, 17), (16, 512), (7, 131)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_request(attending: Path, shape: tuple[int, int]) -> None:
    request = drawn(*shape)
    with Server(attending) as server:
        statistics()
        check(server.execute(request, outputs=ATTEND_OUTPUTS)[0], request)
        assert statistics() == [1, 0, 1, 1]


def test_requests_are_joined_by_their_sizes(batched: Server) -> None:
    requests = [drawn(1, 5), drawn(3, 9), drawn(2, 5, 1), drawn(1, 9), drawn(1, 6), drawn(4, 5)]
    statistics()
    answers = batched.execute(*requests, outputs=ATTEND_OUTPUTS)
    for answer, request in zip(answers, requests, strict=True):
        check(answer, request)
    assert statistics() == [6, 0, 3, 12]  # a call for each number of columns


def test_joined_rows_are_those_of_calls_alone(batched: Server) -> None:
    requests = [drawn(1 + i % 3, 33, i) for i in range(5)]
    together = batched.execute(*requests, outputs=ATTEND_OUTPUTS)
    for answer, request in zip(together, requests, strict=True):
        alone = batched.execute(request, outputs=ATTEND_OUTPUTS)[0]
        for name in ATTEND_OUTPUTS:
            np.testing.assert_allclose(answer.outputs[name], alone.outputs[name], rtol=2e-6, atol=2e-6)


def test_wrong_requests_do_not_disturb_others(batched: Server) -> None:
    good, wide = drawn(2, 7), drawn(2, 513)
    crossed = {"x": drawn(2, 7)["x"], "mask": drawn(3, 7)["mask"]}
    other = {"x": drawn(3, 7)["x"], "mask": drawn(2, 7)["mask"]}  # joined with the last one, both would fit
    unequal = {"x": drawn(2, 7)["x"], "mask": drawn(2, 8)["mask"]}
    missing = {"x": good["x"]}
    typed = {**good, "x": good["x"].astype(np.float64)}
    flat = {**good, "x": good["x"].reshape(-1)}
    short = {**good, "x": Given(good["x"], shape=(2, 8))}
    on_gpu = {**good, "mask": Given(good["mask"], memory=GPU)}
    wrong = [wide, crossed, other, unequal, missing, typed, flat, short, on_gpu]
    statistics()
    answers = batched.execute(good, *wrong, drawn(1, 7), outputs=ATTEND_OUTPUTS)
    check(answers[0], good)
    check(answers[-1], drawn(1, 7))
    assert statistics() == [2, 9, 1, 3]
    texts = [answer.error for answer in answers[1:-1]]
    assert [answer.code for answer in answers[1:-1]] == [INVALID] * 9
    for text, words in zip(
        texts,
        ["s <= 512", "'mask' has a batch of 3, and 'x' one of 2", "'mask' has a batch of 2, and 'x' one of 3",
         "(args[1] is 'mask')", "unknown request input 'mask'", "'x' is of another data type than TYPE_FP32",
         "'x' has the sizes [14], and the program takes [b, s]", "'x' has 56 bytes, and the sizes [2, 8] take 64",
         "'mask' lies in the memory of a GPU"],
        strict=True,
    ):  # fmt: skip
        assert words in text


def test_a_batch_that_is_too_large_is_run_in_its_parts(batched: Server) -> None:
    """The program takes 16 rows."""
    requests = [drawn(9, 4), drawn(9, 4, 1), drawn(17, 4)]
    statistics()
    answers = batched.execute(*requests, outputs=ATTEND_OUTPUTS)
    check(answers[0], requests[0])
    check(answers[1], requests[1])
    assert answers[2].code == INVALID and "b <= 16" in answers[2].error
    assert statistics() == [2, 1, 2, 18]


def test_requests_without_rows(batched: Server) -> None:
    requests = [drawn(2, 5), drawn(0, 5), drawn(1, 5)]
    answers = batched.execute(*requests, outputs=ATTEND_OUTPUTS)
    check(answers[0], requests[0])
    check(answers[2], requests[2])
    assert answers[1].code == INVALID and "b has to be >= 1" in answers[1].error


@pytest.mark.parametrize("pieces", [(), (4,), (1, 2, 3), (0, 0, 30), tuple(range(1, 60, 7))], ids=str)
def test_inputs_in_pieces(batched: Server, pieces: tuple[int, ...]) -> None:
    requests = [drawn(2, 13), drawn(1, 13)]
    given = [{name: Given(array, pieces=pieces) for name, array in request.items()} for request in requests]
    for answer, request in zip(batched.execute(*given, outputs=ATTEND_OUTPUTS), requests, strict=True):
        check(answer, request)
    check(batched.execute(given[0], outputs=ATTEND_OUTPUTS)[0], requests[0])


def test_outputs_that_are_wanted(batched: Server) -> None:
    answers = batched.execute(drawn(1, 3), drawn(1, 3), outputs=["result['sums']"])
    assert [list(answer.outputs) for answer in answers] == [["result['sums']"]] * 2


def test_failing_allocations_of_outputs(batched: Server) -> None:
    requests = [drawn(1, 3), drawn(2, 3), drawn(3, 3)]
    library().fake_fail(1, 0)
    answers = batched.execute(*requests, outputs=ATTEND_OUTPUTS)
    assert (answers[0].code, answers[0].error) == (UNAVAILABLE, "there is no memory for the output")
    check(answers[1], requests[1])
    check(answers[2], requests[2])


def test_failing_responses(batched: Server) -> None:
    library().fake_fail(0, 1)
    statistics()
    answers = batched.execute(drawn(1, 3), drawn(2, 3), outputs=ATTEND_OUTPUTS)
    assert answers[0].code == -2 and statistics() == [1, 1, 1, 3]
    check(answers[1], drawn(2, 3))
    assert b"there are no responses" in library().fake_log()


def test_instances_in_threads(batched: Server) -> None:
    def serve(instance: int) -> None:
        for turn in range(20):
            requests = [drawn(1 + turn % 3, 3 + (turn + i) % 5, instance) for i in range(4)]
            for answer, request in zip(
                batched.execute(*requests, outputs=ATTEND_OUTPUTS, instance=instance), requests, strict=True
            ):
                check(answer, request)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(serve, range(4)))


@pytest.mark.parametrize("dtype", TYPES)
def test_data_types(save: Save, dtype: str) -> None:
    with jax.enable_x64(True):
        folder = save(lambda x: x[::-1], ("n", dtype))
    sent = np.arange(7).astype(jnp.dtype(dtype))
    with Server(folder) as server:
        found = server(x=sent).outputs["result"]
    np.testing.assert_array_equal(found, (sent.view(np.uint16) if dtype == "bfloat16" else sent)[::-1])


TWICE = b"""
func.func @main(%x: tensor<?x?xf32>, %y: tensor<f32>) -> (tensor<?x?xf32>, tensor<f32>) {
  %0 = stablehlo.add %x, %x : tensor<?x?xf32>
  %1 = stablehlo.add %y, %y : tensor<f32>
  return %0, %1 : tensor<?x?xf32>, tensor<f32>
}
"""


def test_arrays_of_no_elements_and_scalars(save: Save) -> None:
    with Server(save(TWICE)) as server:
        x, y = (row["name"] for row in server.completed["input"])
        for shape in [(0, 3), (2, 0), (2, 3)]:
            array, scalar = np.ones(shape, np.float32), np.full((), 3, np.float32)
            answer = server(("result[0]", "result[1]"), **{x: array, y: scalar})
            np.testing.assert_array_equal(answer.outputs["result[0]"], 2 * array)
            assert answer.outputs["result[1]"].shape == () and answer.outputs["result[1]"] == 6


def test_results_of_sizes_in_data(save: Save) -> None:
    folder = save(lambda x: dnp.nonzero(x)[0], ("n", "float32"))
    with Server(folder) as server:
        for x in (np.zeros(5, np.float32), np.float32([0, 2, 0, 3]), np.ones(33, np.float32)):
            np.testing.assert_array_equal(server(x=x).outputs["result"], np.nonzero(x)[0])


def test_memory_that_the_program_may_take(save: Save) -> None:
    """A call of two requests that does not fit is run in two that do."""
    folder = save(lambda x: jnp.sort(x, axis=1), ("b, s", "float32"))
    limit = {"parameters": {"memory_limit": {"string_value": str(1 << 20)}}, "max_batch_size": 64}
    x = np.random.default_rng(0).standard_normal((1, 100_000), np.float32)
    with Server(folder, limit) as server:
        answers = server.execute({"x": x}, {"x": -x}, {"x": np.ones((4, 100_000), np.float32)})
    np.testing.assert_array_equal(answers[0].outputs["result"], np.sort(x))
    np.testing.assert_array_equal(answers[1].outputs["result"], np.sort(-x))
    assert answers[2].code == UNAVAILABLE and answers[2].error.startswith("DISC-M101")
