// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks of C = A B, strip by strip of B (strips.h): each strip is used by all rows of the block while it is in the
// first cache, and A's elements are copied first, as rows that lie whole pages apart displace each other there.
//
// for each `depth` of k: copy the rows of A; for each strip of columns: for each group of rows: sums += rows * strip
#pragma once

#include "gemm_blocks.h"
#include "strips.h"

#include <algorithm>

namespace disc::strips {

constexpr int64_t kBytesAhead = 512; // of a row of B, from a strip to the one whose lines are fetched

/// The sums of a block, dense rows `sums_step` apart, and memory for the copies.
template <typename T> struct Block {
  int64_t rows, columns, terms;
  T *sums;
  int64_t sums_step;
  T *rows_copy, *strip_copy;
};

/// A range of k, and for B of columns: `width` elements, whole vectors, of which B has `present`.
struct Range {
  int64_t k, depth, column = 0, width = 0, present = 0;
};

/// Writes the sums of a block. `operands.copy_rows(range, target)` copies the rows of A. B either has dense rows where
/// `operands.b` points to, `operands.b_step` elements apart, or `operands.b` is null and
/// `operands.copy_strip(range, target)` writes a strip, row by row, with zeros where B has no columns.
template <typename T, typename Operands>
void multiply(const Kernels<T> &kernels, const Block<T> &block, const Operands &operands) {
  using gemm::divide_up;
  using gemm::share;
  constexpr int64_t size = sizeof(T);
  int64_t lanes = kernels.lanes, vectors = divide_up(block.columns, lanes), parts = divide_up(block.rows, kernels.rows);
  int64_t widest = kernels.widest(divide_up(block.rows, parts));
  if (operands.b == nullptr || (kernels.copies && parts > 1))
    widest = std::min(widest, kCopyBytes / (kernels.depth * lanes * size));
  int64_t number = divide_up(vectors, widest);
  int64_t ahead = divide_up(kBytesAhead * number, block.columns * size);
  auto column = [&](int64_t i) { return share(vectors, number, i) * lanes; };
  for (int64_t k = 0; k < block.terms; k += kernels.depth) {
    Range range{k, std::min(kernels.depth, block.terms - k)};
    operands.copy_rows(range, block.rows_copy);
    for (int64_t i = 0; i < number; ++i) {
      range.column = column(i), range.width = column(i + 1) - range.column;
      range.present = std::min(block.columns - range.column, range.width);
      Strip<T> strip{};
      const T *later = nullptr; // the strip whose lines are fetched
      strip.copy = block.strip_copy, strip.depth = range.depth;
      strip.sums_step = block.sums_step, strip.adds = k > 0;
      if (operands.b != nullptr) {
        const T *rows = operands.b + k * operands.b_step;
        later = rows + (i + ahead < number ? column(i + ahead)
                                           : range.depth * operands.b_step + column((i + ahead - number) % number));
        strip.b = rows + range.column, strip.b_step = operands.b_step;
        strip.ahead_step = operands.b_step, strip.interval = parts;
        strip.last = range.present - (range.width - lanes);
      } else {
        operands.copy_strip(range, block.strip_copy);
        strip.b = block.strip_copy, strip.b_step = range.width, strip.last = lanes;
      }
      for (int64_t part = 0; part < parts; ++part) {
        int64_t row = share(block.rows, parts, part), rows = share(block.rows, parts, part + 1) - row;
        strip.a = block.rows_copy + row * range.depth;
        strip.sums = block.sums + range.column + row * block.sums_step;
        strip.ahead = later + share(range.depth, parts, part) * operands.b_step;
        const auto &kernel = operands.b == nullptr ? kernels.multiply
                             : parts == 1          ? kernels.fetching
                             : part == 0           ? kernels.copying
                                                   : kernels.fetching_some;
        kernel[static_cast<size_t>(rows - 1)][static_cast<size_t>(range.width / lanes - 1)](strip);
        if (kernels.copies)
          strip.b = block.strip_copy, strip.b_step = range.width, strip.last = lanes;
      }
    }
  }
}

} // namespace disc::strips
