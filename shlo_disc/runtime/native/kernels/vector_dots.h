// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dot products of some dense rows of A with some dense columns of B, whose sums stay in registers.
#pragma once

#include "vectors.h"

#include <array>

namespace disc::dots {

constexpr int64_t kRows = 4;     // of A, together
constexpr int64_t kColumns = 12; // of B, which stay in the cache for all rows of A
constexpr int64_t kRegisters = 16;
constexpr int64_t kLineBytes = 64; // of the cache

/// How many columns are used together with so many rows: sums for each pair, and a row, fit the registers.
constexpr int64_t columns_of(int64_t rows) { return rows == kRows ? 3 : 4; }

/// Some rows of A, some columns of B, and where their results are; distances in elements.
template <typename T> struct Block {
  const T *a;
  int64_t a_step;
  const T *b;
  int64_t b_step;
  T *c;
  int64_t c_m, c_n, k;
  bool adds; // to what is in C
};

/// fetches: the columns to come are fetched into the second cache.
template <typename T, int64_t rows, int64_t columns, bool fetches> DISC_AVX2 void multiply(const Block<T> &block) {
  using V = Vector256<T>;
  constexpr int64_t lanes = V::kLanes, line = kLineBytes / static_cast<int64_t>(sizeof(T));
  typename V::Type sums[rows][columns] = {};
  int64_t k = 0;
  for (; k + lanes <= block.k; k += lanes) {
    if constexpr (fetches)
      if (k % line == 0)
#pragma GCC unroll 4
        for (int64_t j = columns; j < 2 * columns; ++j)
          __builtin_prefetch(block.b + j * block.b_step + k, 0, 2);
    typename V::Type right[columns];
#pragma GCC unroll 4
    for (int64_t j = 0; j < columns; ++j) {
      right[j] = V::load(block.b + j * block.b_step + k);
      if constexpr (rows * columns + columns < kRegisters)
        DISC_IN_REGISTER(right[j]);
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < rows; ++i) {
      typename V::Type left = V::load(block.a + i * block.a_step + k);
#pragma GCC unroll 4
      for (int64_t j = 0; j < columns; ++j)
        sums[i][j] = V::add_product(left, right[j], sums[i][j]);
    }
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int64_t j = 0; j < columns; ++j) {
      T sum = 0;
      for (int64_t rest = k; rest < block.k; ++rest)
        sum += block.a[i * block.a_step + rest] * block.b[j * block.b_step + rest];
      T &result = block.c[i * block.c_m + j * block.c_n];
      sum += V::total(sums[i][j]);
      result = block.adds ? result + sum : sum;
    }
}

/// `count` columns, as many together as the registers allow.
template <typename T, int64_t rows, bool fetches> void multiply_columns(Block<T> block, int64_t count) {
  constexpr int64_t together = columns_of(rows);
  for (int64_t step; count > 0; count -= step, block.b += step * block.b_step, block.c += step * block.c_n) {
    step = count >= together ? together : 1;
    step == together ? multiply<T, rows, together, fetches>(block) : multiply<T, rows, 1, fetches>(block);
  }
}

/// By the number of rows, less one.
template <typename T, bool fetches>
constexpr std::array<void (*)(Block<T>, int64_t), kRows> kMultiply = {
    multiply_columns<T, 1, fetches>, multiply_columns<T, 2, fetches>, multiply_columns<T, 3, fetches>,
    multiply_columns<T, 4, fetches>};

} // namespace disc::dots
