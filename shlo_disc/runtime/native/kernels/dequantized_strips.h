// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Strips of a matrix of narrow integers as floats, or as pairs of bf16, for many rows of A (strip_products.h).
#pragma once

#include "core/strided_copy.h"
#include "dequantized_weight.h"
#include "strip_products.h"

#include <algorithm>
#include <bit>

namespace disc::dequantized {

/// The operands of strips::multiply. Its terms are bytes, and of each range of them the halves one behind the other.
struct Operands {
  const Weight &w;
  ByteRows bytes; // where W has no dense columns
  const Kernels &kernels;
  Rounding rounding;
  const float *table;
  const float *a;
  int64_t rows, column;
  float *parameters_memory;
  float *columns_copy;
  const float *b = nullptr;
  int64_t b_step = 0;

  void copy_rows(const strips::Range &range, float *target) const {
    copy_terms(w, a, rows, range.k / w.halves(), range.depth / w.halves(), target, range.depth);
  }

  void copy_strip(const strips::Range &range, float *target) const {
    int64_t first = column + range.column;
    w.has_dense_columns ? copy_columns(range, first, target) : copy_dense_rows(range, first, target);
    for (int64_t i = 0; range.present < range.width && i < range.depth; ++i)
      std::fill_n(target + i * range.width + range.present, range.width - range.present, 0.0F);
  }

  void copy_dense_rows(const strips::Range &range, int64_t first, float *target) const {
    int64_t begin = range.k / w.halves(), count = range.depth / w.halves();
    Parameters parameters{parameters_memory, range.width};
    Pieces pieces{w, kernels, rounding, table};
    Dequantise dequantise = kernels.dequantise[static_cast<size_t>(rounding)];
    const Pieces::Span span = pieces.span(first, range.present);
    for (int64_t r = 0, past = 0; r < count; ++r) {
      if (w.is_spread()) {
        const uint8_t *q = w.column_half == 1 ? w.row_of_pairs(begin + r, first) : bytes.at(begin + r, first);
        pieces.write_row(q, begin + r, span, parameters_memory, range.width, target + r * range.width);
        continue;
      }
      if (r == past)
        parameters.find_row(w, begin + r, first, range.present), past = r + w.rest(begin + r);
      std::array<float *, 2> rows_of = {target + r * range.width, target + (count + r) * range.width};
      dequantise(bytes.at(begin + r, first), parameters.scale, parameters.zero, table, range.present, rows_of);
    }
  }

  void copy_columns(const strips::Range &range, int64_t first, float *target) const {
    int64_t begin = range.k / w.halves(), count = range.depth / w.halves();
    int64_t groups = w.groups(begin, count);
    Parameters parameters{parameters_memory, groups};
    Pieces pieces{w, kernels, rounding, table};
    for (int64_t j = 0; j < range.present; ++j) {
      if (w.is_spread()) {
        float *target = columns_copy + j * range.depth;
        std::array<float *, 2> targets = {target, target + range.depth};
        if (pieces.has_column_pairs() && j + 1 < range.present)
          pieces.write_columns(begin, count, first + j++, parameters_memory, range.depth, targets);
        else
          pieces.write_column(begin, count, first + j, parameters_memory, range.depth, target);
        continue;
      }
      parameters.find_groups(w, begin, first + j, 1, groups);
      float *place = columns_copy + j * range.depth;
      kernels.dequantise_column[static_cast<size_t>(rounding)](
          w.column(begin, count, first + j, parameters.scale, parameters.zero, table), {place, place + count});
    }
    copy_matrix(columns_copy, 1, range.depth, target, range.width, range.depth, range.present);
  }
};

/// The same for elements of A and of W that bf16 has: a term is a pair of them, both halves of a byte or two bytes.
class PairOperands {
public:
  const uint32_t *b = nullptr; // as strips::multiply wants it
  int64_t b_step = 0;

  /// `columns_copy`: memory of a strip.
  PairOperands(const Weight &w, const ByteRows &bytes, const Kernels &kernels, Rounding rounding, const float *table,
               const float *a, int64_t rows, int64_t column, float *columns_copy)
      : w_(w), bytes_(bytes), pieces_{w, kernels, rounding, table},
        dequantise_(kernels.dequantise[static_cast<size_t>(rounding)]),
        dequantise_column_(kernels.dequantise_column[static_cast<size_t>(rounding)]), table_(table), a_(a), rows_(rows),
        column_(column), columns_copy_(columns_copy) {}

  static int64_t terms(const Weight &w) { return gemm::divide_up(w.k, 2); }

  void copy_rows(const strips::Range &range, uint32_t *target) const {
    auto [first, second] = rows_of(range.k);
    int64_t present = w_.k / 2 - range.k; // of which both elements are there
    int64_t whole = std::min(range.depth, present) / kWidest * kWidest;
    for (int64_t i = 0; i < rows_; ++i) {
      const float *row = a_ + i * w_.k;
      uint32_t *pairs = target + i * range.depth;
      if (second == first + 1)
        pair_neighbours(row + first, whole, pairs);
      else
        pair_up(row + first, row + second, whole, pairs);
      for (int64_t p = whole; p < range.depth; ++p) {
        auto [k, other] = rows_of(range.k + p);
        pairs[p] = pair(row[k], other < w_.k ? row[other] : 0);
      }
    }
  }

  void copy_strip(const strips::Range &range, uint32_t *target) const {
    w_.has_dense_columns ? copy_columns(range, target) : copy_dense_rows(range, target);
  }

private:
  static constexpr int64_t kMostColumns = strips::kMostVectors * kWidest;
  static constexpr int64_t kMostTerms = strips::avx512::kDepthBytes / 2; // of a strip
  static_assert(2 * kMostTerms >= 4 * (kMostTerms / kFewestTerms + 2)); // memory for scales and zero points

  static uint32_t pair(float first, float second) {
    return std::bit_cast<uint32_t>(first) >> 16 | (std::bit_cast<uint32_t>(second) & 0xFFFF0000U);
  }
  std::array<int64_t, 2> rows_of(int64_t p) const {
    return w_.halves() == 2 ? std::array{w_.row(p, 0), w_.row(p, 1)} : std::array{2 * p, 2 * p + 1};
  }

  /// `count` pairs, a multiple of the lanes.
  DISC_AVX512 static void pair_up(const float *first, const float *second, int64_t count, uint32_t *target) {
    const __m512i upper = _mm512_set1_epi32(-0x10000);
    for (int64_t i = 0; i < count; i += kWidest) {
      __m512i low = _mm512_maskz_srli_epi32(0xFFFF, _mm512_loadu_si512(first + i), 16);
      _mm512_storeu_si512(target + i, _mm512_or_si512(low, _mm512_and_si512(_mm512_loadu_si512(second + i), upper)));
    }
  }
  /// The same for neighbours.
  DISC_AVX512 static void pair_neighbours(const float *from, int64_t count, uint32_t *target) {
    const __m512i lower = _mm512_set1_epi64(0xFFFF), upper = _mm512_set1_epi64(0xFFFF0000);
    for (int64_t i = 0; i < count; i += kWidest / 2) {
      __m512i both = _mm512_loadu_si512(from + 2 * i);
      __m512i low = _mm512_and_si512(_mm512_maskz_srli_epi64(0xFF, both, 16), lower);
      __m512i high = _mm512_and_si512(_mm512_maskz_srli_epi64(0xFF, both, 32), upper);
      __m256i pairs = _mm512_maskz_cvtepi64_epi32(0xFF, _mm512_or_si512(low, high));
      _mm256_storeu_si256(reinterpret_cast<__m256i *>(target + i), pairs);
    }
  }

  void copy_dense_rows(const strips::Range &range, uint32_t *target) const {
    float memory[4 * kMostColumns], weights[2][kMostColumns] = {};
    Parameters parameters{memory, range.width};
    int64_t first = column_ + range.column, step = w_.halves() == 2 ? 1 : 2;
    const Pieces::Span span = pieces_.span(first, range.present);
    for (int64_t p = 0, past = 0; p < range.depth; ++p) {
      for (int64_t r = (range.k + p) * step, of = 0; of < step; ++r, ++of) {
        if (r == w_.bytes()) {
          std::fill_n(weights[of], range.present, 0.0F);
          continue;
        }
        if (w_.is_spread()) {
          const uint8_t *q = w_.column_half == 1 ? w_.row_of_pairs(r, first) : bytes_.at(r, first);
          pieces_.write_row(q, r, span, memory, kMostColumns, weights[of]);
          continue;
        }
        if (r >= past)
          parameters.find_row(w_, r, first, range.present), past = r + w_.rest(r);
        dequantise_(bytes_.at(r, first), parameters.scale, parameters.zero, table_, range.present,
                    {weights[of], weights[1]});
      }
      pair_up(weights[0], weights[1], range.width, target + p * range.width);
    }
  }

  void copy_columns(const strips::Range &range, uint32_t *target) const {
    float memory[2 * kMostTerms], weights[2][kMostTerms + 1] = {};
    auto *pairs = reinterpret_cast<uint32_t *>(columns_copy_);
    int64_t step = w_.halves() == 2 ? 1 : 2, r = range.k * step, count = std::min(range.depth * step, w_.bytes() - r);
    int64_t groups = w_.groups(r, count), depth = gemm::divide_up(range.depth, kWidest) * kWidest;
    Parameters parameters{memory, groups};
    for (int64_t j = 0; j < range.present; ++j) {
      int64_t column = column_ + range.column + j;
      weights[0][count] = 0; // beside the last one, where their number is odd
      if (w_.is_spread()) {
        pieces_.write_column(r, count, column, memory, kMostTerms, weights[0]);
      } else {
        parameters.find_groups(w_, r, column, 1, groups);
        dequantise_column_(w_.column(r, count, column, parameters.scale, parameters.zero, table_),
                           {weights[0], weights[1]});
      }
      if (step == 1)
        pair_up(weights[0], weights[1], depth, pairs + j * depth);
      else
        pair_neighbours(weights[0], depth, pairs + j * depth);
    }
    for (int64_t p = 0; range.present < range.width && p < range.depth; ++p)
      std::fill_n(target + p * range.width + range.present, range.width - range.present, 0U);
    copy_matrix(columns_copy_, 1, depth, reinterpret_cast<float *>(target), range.width, range.depth, range.present);
  }

  const Weight &w_;
  ByteRows bytes_;
  Pieces pieces_;
  Dequantise dequantise_;
  DequantiseColumn dequantise_column_;
  const float *table_;
  const float *a_;
  int64_t rows_, column_;
  float *columns_copy_;
};

} // namespace disc::dequantized
