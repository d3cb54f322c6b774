// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the operands of products are packed. A packed form consists of words, each one element of k or a few neighbours
// that one instruction multiplies and adds up. Sums have the size of a word.
#pragma once

#include <cstdint>

namespace disc::gemm {

struct Format {
  int64_t element_bytes; // in memory
  int64_t word_bytes;
  int64_t elements; // of k in a word
  bool is_plain;    // words are elements as they lie in memory

  /// As the functions `pack_rows` and `pack_panel` of gemm_blocks.h; strides and `depth` count elements, and what the
  /// last word lacks is 0.
  void (*pack_rows)(const void *a, int64_t row_stride, int64_t k_stride, int64_t rows, int64_t depth, void *target);
  void (*pack_panel)(const void *b, int64_t k_stride, int64_t column_stride, int64_t depth, int64_t width,
                     int64_t columns, void *target);
  double (*load)(const void *base, int64_t index);

  /// Words along k.
  int64_t words(int64_t k) const { return (k + elements - 1) / elements; }
};

/// The formats in the order of lowering_cpu/gemm_format.py.
constexpr int64_t kFormats = 12;
const Format &format_of(int64_t number);

} // namespace disc::gemm
