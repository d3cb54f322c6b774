// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of rows of B times elements of A: a few whole rows at a time, whose factors stay in registers.
#pragma once

#include "vectors.h"

#include <array>

namespace disc::row_sums {

constexpr int64_t kMostRows = 3;   // of A
constexpr int64_t kLineBytes = 64; // of the cache

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

/// The factors of a stream, as registers hold them.
template <typename T, int64_t rows, int64_t streams> using Factors = typename Vector256<T>::Type[rows][streams];

/// Adds to a vector of each sum.
template <typename T, int64_t rows, int64_t streams>
DISC_AVX2 inline void add_vector(const Stream<T> &stream, const Factors<T, rows, streams> &factors, int64_t j) {
  using V = Vector256<T>;
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

/// fetches: the lines of the rows to come are fetched into the second cache.
template <typename T, int64_t rows, int64_t streams, bool fetches> DISC_AVX2 void add(const Stream<T> &stream) {
  using V = Vector256<T>;
  Factors<T, rows, streams> factors;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < streams; ++k)
      factors[i][k] = V::repeat(stream.a[i * stream.a_m + k * stream.a_k]);
  int64_t j = 0;
  if constexpr (fetches)
    for (constexpr int64_t line = kLineBytes / static_cast<int64_t>(sizeof(T)); j + line <= stream.count; j += line) {
#pragma GCC unroll 8
      for (int64_t k = streams; k < 2 * streams; ++k)
        __builtin_prefetch(stream.b + k * stream.b_step + j, 0, 2);
#pragma GCC unroll 2
      for (int64_t first = 0; first < line; first += V::kLanes)
        add_vector<T, rows, streams>(stream, factors, j + first);
    }
  for (; j + V::kLanes <= stream.count; j += V::kLanes)
    add_vector<T, rows, streams>(stream, factors, j);
  for (; j < stream.count; ++j)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < streams; ++k)
        stream.sums[i * stream.sums_step + j] +=
            stream.a[i * stream.a_m + k * stream.a_k] * stream.b[k * stream.b_step + j];
}

template <typename T> using Add = void (*)(const Stream<T> &);

/// By the number of rows, less one: as many rows of B together as `streams_of` says, and one alone.
template <typename T, bool fetches>
constexpr std::array<Add<T>, kMostRows> kAdd = {
    add<T, 1, streams_of(1), fetches>, add<T, 2, streams_of(2), fetches>, add<T, 3, streams_of(3), fetches>};
template <typename T>
constexpr std::array<Add<T>, kMostRows> kAddOne = {add<T, 1, 1, false>, add<T, 2, 1, false>, add<T, 3, 1, false>};

} // namespace disc::row_sums
