# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime and OpenVINO on the ONNX file that `benchmarks.onnx_export` has written."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.backends import THREADS, Backend, Kernels
from benchmarks.data import leaves, load


class OnnxModel(Backend):
    """Inputs are NumPy arrays by name: "in0", "in1" and so on in the order of the leaves."""

    def load(self) -> None:
        """The weights are in the ONNX file."""

    def place(self, index: int) -> dict[str, np.ndarray]:
        """Named NumPy arrays; without those the exporter found unused."""
        values = {f"in{number}": array for number, array in enumerate(leaves(load(self.folder.inputs(index))))}
        return {name: values[name] for name in self.names}

    @property
    def names(self) -> list[str]:
        """The inputs' names."""
        raise NotImplementedError


class OnnxRuntime(OnnxModel):
    """ONNX Runtime's CPU provider with all its graph optimisations."""

    def prepare(self) -> dict[str, float]:
        """Reads and optimises the model."""
        import onnxruntime

        start = time.perf_counter()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(self.folder.onnx), options, ["CPUExecutionProvider"])
        return {"session": time.perf_counter() - start}

    @property
    def names(self) -> list[str]:
        """The inputs' names."""
        return [value.name for value in self.session.get_inputs()]

    def call(self, inputs: Any) -> Any:
        """Runs the session."""
        return self.session.run(None, inputs)

    def arrays(self, result: Any) -> Any:
        """They are NumPy arrays."""
        return result

    def kernels(self, index: int) -> Kernels:
        """The nodes of the optimised graph, by op; those of a loop's body count once."""
        import onnx
        import onnxruntime

        with tempfile.TemporaryDirectory() as folder:
            options = onnxruntime.SessionOptions()
            options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
            options.log_severity_level = 3
            options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights.bin")
            onnxruntime.InferenceSession(str(self.folder.onnx), options, ["CPUExecutionProvider"])
            graph = onnx.load(options.optimized_model_filepath, load_external_data=False).graph
        return dict(Counter(node.op_type for node in graph.node if node.op_type not in ("Shape", "Constant")))


class OpenVino(OnnxModel):
    """OpenVINO's CPU plugin, in float32 as the others."""

    def prepare(self) -> dict[str, float]:
        """Reads and compiles the model."""
        import openvino

        start = time.perf_counter()
        core = openvino.Core()
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": THREADS,
            "INFERENCE_PRECISION_HINT": "f32",
        }
        self.compiled = core.compile_model(core.read_model(self.folder.onnx), "CPU", settings)
        self.request = self.compiled.create_infer_request()
        return {"compile": time.perf_counter() - start}

    @property
    def names(self) -> list[str]:
        """The inputs' names."""
        return [next(name for name in value.names if name.startswith("in")) for value in self.compiled.inputs]

    def call(self, inputs: Any) -> Any:
        """Infers on the callers' memory."""
        return self.request.infer(inputs, share_inputs=True, share_outputs=True)

    def arrays(self, result: Any) -> Any:
        """Copies, as the request's memory is written again by the next call."""
        return [np.array(result[output]) for output in self.compiled.outputs]

    def kernels(self, index: int) -> Kernels:
        """The nodes of the compiled model, by layer type."""
        types = [op.get_rt_info()["layerType"].astype(str) for op in self.compiled.get_runtime_model().get_ops()]
        return dict(Counter(name for name in types if name not in ("Input", "Output", "Const", "ShapeOf")))
