// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of rows of B times elements of A: a few whole rows at a time, whose factors stay in registers.
#pragma once

#include "vectors.h"

#include <array>

namespace disc::row_sums {

constexpr int64_t kMostRows = 3; // of A

/// How many rows of B are added together: their factors fit the registers.
constexpr int64_t streams_of(int64_t rows) { return rows == 1 ? 8 : rows == 2 ? 6 : 4; }

/// Some neighbouring elements of rows of B, those of A that they are multiplied by, and dense sums.
template <typename T> struct Stream {
  const T *a;
  int64_t a_m, a_k;
  const T *b;
  int64_t b_step;
  T *sums;
  int64_t sums_step, count;
};

template <typename T, int64_t rows, int64_t streams> DISC_AVX2 void add(const Stream<T> &stream) {
  using V = Vector256<T>;
  typename V::Type factors[rows][streams];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < streams; ++k)
      factors[i][k] = V::repeat(stream.a[i * stream.a_m + k * stream.a_k]);
  int64_t j = 0;
  for (; j + V::kLanes <= stream.count; j += V::kLanes) {
    typename V::Type sums[rows];
#pragma GCC unroll 4
    for (int64_t i = 0; i < rows; ++i)
      sums[i] = V::load(stream.sums + i * stream.sums_step + j);
#pragma GCC unroll 8
    for (int64_t k = 0; k < streams; ++k) {
      typename V::Type right = V::load(stream.b + k * stream.b_step + j);
      DISC_IN_REGISTER(right);
#pragma GCC unroll 4
      for (int64_t i = 0; i < rows; ++i)
        sums[i] = V::add_product(factors[i][k], right, sums[i]);
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < rows; ++i)
      V::store(stream.sums + i * stream.sums_step + j, sums[i]);
  }
  for (; j < stream.count; ++j)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < streams; ++k)
        stream.sums[i * stream.sums_step + j] +=
            stream.a[i * stream.a_m + k * stream.a_k] * stream.b[k * stream.b_step + j];
}

/// By the number of rows, less one: as many rows of B together as `streams_of` says, and one alone.
template <typename T>
constexpr std::array<void (*)(const Stream<T> &), kMostRows> kAdd = {
    add<T, 1, streams_of(1)>, add<T, 2, streams_of(2)>, add<T, 3, streams_of(3)>};
template <typename T>
constexpr std::array<void (*)(const Stream<T> &), kMostRows> kAddOne = {add<T, 1, 1>, add<T, 2, 1>, add<T, 3, 1>};

} // namespace disc::row_sums
