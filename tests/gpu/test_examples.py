# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example models for GPUs, over the mock driver and the emulator, against XLA."""

from __future__ import annotations

import importlib
from typing import Any

import jax
import pytest

import shlo_disc
from examples.model import function
from shlo_disc.runtime import Client
from tests.gpu.emulated import loaded
from tests.gpu.marks import needs_mock_driver
from tests.ir.gpu_cases import EXACT, assert_close

pytestmark = needs_mock_driver

MODELS = (
    "asr", "bert", "crnn", "dien", "gpt2", "gpt2_decode", "mlp_mixer", "resnet50", "seq2seq", "transformer_train",
    "vit",
)  # fmt: skip
EVERY_TIME = ("asr", "resnet50")

SIZES = ((1, 1, 1), (2, 3, 5), (3, 2, 4))
"""Values of the symbols of a model, which are as many as it has, and none larger than it admits."""


def _marked(name: str) -> Any:
    return pytest.param(name, marks=() if name in EVERY_TIME else pytest.mark.slow)


@pytest.mark.parametrize("name", map(_marked, MODELS))
def test_one_program_serves_every_size(client: Client, name: str) -> None:
    model = importlib.import_module(f"examples.{name}")
    config, weights = model.SMALL, model.init(model.SMALL)
    run = loaded(shlo_disc.compile(model.export(config), target="cuda:sm_90", options=EXACT), client)
    wanted = jax.jit(function(model, config))
    for sizes in SIZES:
        inputs = model.make_inputs(config, *(min(pair) for pair in zip(sizes, model.limits(config), strict=False)))
        assert_close(run(weights, *inputs), wanted(weights, *inputs), 1e-5)
