// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers that several of NVIDIA's libraries take, as NVIDIA documents them.
#pragma once

#include <cstdint>

namespace disc::cuda {

// cudaDataType_t
enum class DataType : int32_t { r32f = 0, r64f = 1, r16f = 2, r8i = 3, c32f = 4, c64f = 5, r32i = 10, r16bf = 14 };

// cublasOperation_t
enum class Operation : int32_t { none = 0, transpose = 1, adjoint = 2 };

// cublasFillMode_t
enum class Triangle : int32_t { lower = 0, upper = 1 };

// cublasSideMode_t
enum class Side : int32_t { left = 0, right = 1 };

// cublasDiagType_t
enum class Diagonal : int32_t { any = 0, ones = 1 };

// cusolverEigMode_t
enum class Vectors : int32_t { none = 0, all = 1 };

} // namespace disc::cuda
