// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Few rows of A with weights that are rounded once they are scaled, so that integers cannot be summed first: a tile of
// weights is written as floats in the first cache, and multiplied there.
#pragma once

#include "dequantized_weight.h"
#include "strips.h"

#include <algorithm>

namespace disc::dequantized {

constexpr int64_t kTileColumns = 256; // of rows of bytes
constexpr int64_t kTileTerms = 1024;  // bytes of dense columns, at most
static_assert(kTileTerms <= Pieces::kMost && kTileColumns <= Pieces::kMost);
constexpr int64_t kTileFloats = 2 * std::max(kStreams * kTileColumns, kTileColumnsTogether * kTileTerms);

using ByTile = std::array<std::array<MultiplyTile, 2>, kMostByColumns>;

/// Adds products to dense sums, `sums_step` apart, whose rows have whole vectors.
class Tiles {
public:
  /// `tile`: memory of kTileFloats. `left`: of `terms` bytes' halves for each row, of at least kStreams.
  Tiles(const Weight &w, const Kernels &kernels, Rounding rounding, const float *table,
        const strips::Kernels<float> &strips, const ByTile &by_tile, const float *a, int64_t rows, float *sums,
        int64_t sums_step, float *tile, float *left, int64_t terms)
      : w_(w), pieces_{w, kernels, rounding, table}, dequantise_(kernels.dequantise[static_cast<size_t>(rounding)]),
        dequantise_column_(kernels.dequantise_column[static_cast<size_t>(rounding)]), table_(table), strips_(strips),
        by_tile_(by_tile), a_(a), rows_(rows), sums_(sums), sums_step_(sums_step), tile_(tile), left_(left),
        terms_(std::min(terms, kTileTerms)) {}

  /// Rows [begin, end) of bytes, of the columns from `column` on. `parameters` has memory for `columns`.
  void add_rows(int64_t begin, int64_t end, int64_t column, int64_t columns, Parameters parameters) const {
    for (int64_t r = begin, past = begin, count; r < end; r += count) {
      if (w_.is_spread())
        past = end;
      else if (r == past)
        parameters.find_row(w_, r, column, columns), past = r + w_.rest(r);
      count = std::min({kStreams, past - r, end - r});
      copy_terms(w_, a_, rows_, r, count, left_, w_.halves() * count);
      for (int64_t j = 0; j < columns; j += kTileColumns)
        add_tile(r, count, column, j, std::min(kTileColumns, columns - j), parameters);
    }
  }

  /// All bytes of the columns from `column` on. `memory`: parameters of a column.
  void add_columns(int64_t column, int64_t columns, float *memory) const {
    for (int64_t r = 0, count; r < w_.bytes(); r += count) {
      count = std::min(terms_, w_.bytes() - r);
      int64_t terms = w_.halves() * count;
      copy_terms(w_, a_, rows_, r, count, left_, terms);
      int64_t j = 0;
      for (; pieces_.has_column_pairs() && j + 2 * kTileColumnsTogether <= columns; j += 2 * kTileColumnsTogether) {
        for (int64_t i = 0; i < 2 * kTileColumnsTogether; i += 2) {
          float *target = tile_ + i * terms;
          prefetch_column(r, count, column + j + i + 2 * kTileColumnsTogether);
          pieces_.write_columns(r, count, column + j + i, memory, kTileTerms, {target, target + terms});
        }
        multiply_columns(j, kTileColumnsTogether, terms, tile_);
        multiply_columns(j + kTileColumnsTogether, kTileColumnsTogether, terms, tile_ + kTileColumnsTogether * terms);
      }
      for (int64_t together; j < columns; j += together) {
        together = columns - j < kTileColumnsTogether ? 1 : kTileColumnsTogether;
        for (int64_t i = 0; i < together; ++i)
          write_column(r, count, column + j + i, memory, tile_ + i * terms);
        multiply_columns(j, together, terms, tile_);
      }
    }
  }

private:
  void add_tile(int64_t r, int64_t count, int64_t first, int64_t j, int64_t columns, const Parameters &of) const {
    Pair scale{}, zero{};
    for (size_t h = 0; !w_.is_spread() && h < static_cast<size_t>(w_.halves()); ++h)
      scale[h] = of.scale[h] + j, zero[h] = of.zero[h] + j;
    const Pieces::Span span = pieces_.span(first + j, columns);
    for (int64_t s = 0; s < count; ++s) {
      const uint8_t *q = w_.q + (r + s) * w_.byte_columns() + w_.byte_column(first + j);
      for (int64_t line = 0; line < columns; line += kLineBytes)
        __builtin_prefetch(q + kStreams * w_.byte_columns() + line, 0, 2); // into the second cache
      float *row = tile_ + s * kTileColumns;
      if (w_.is_spread())
        pieces_.write_row(q, r + s, span, of.memory, of.length, row);
      else
        dequantise_(q, scale, zero, table_, columns, {row, row + count * kTileColumns});
    }
    int64_t depth = w_.halves() * count;
    for (int64_t i = 0, step; i < rows_; i += step) {
      step = std::min(strips_.rows, rows_ - i);
      for (int64_t at = 0, width; at < columns; at += width) {
        width = std::min(columns - at, strips_.widest(step) * strips_.lanes);
        int64_t vectors = gemm::divide_up(width, strips_.lanes);
        strips::Strip<float> strip{};
        strip.a = left_ + i * depth, strip.depth = depth;
        strip.b = tile_ + at, strip.b_step = kTileColumns, strip.last = width - (vectors - 1) * strips_.lanes;
        strip.sums = sums_ + i * sums_step_ + j + at, strip.sums_step = sums_step_, strip.adds = true;
        strips_.multiply[static_cast<size_t>(step - 1)][static_cast<size_t>(vectors - 1)](strip);
      }
    }
  }

  /// Of one column, or of kTileColumnsTogether.
  void multiply_columns(int64_t j, int64_t together, int64_t terms, const float *weights) const {
    for (int64_t i = 0, step; i < rows_; i += step) {
      step = std::min(kMostByColumns, rows_ - i);
      Tile tile{left_ + i * terms, terms, weights, terms, terms, sums_ + i * sums_step_ + j, sums_step_};
      by_tile_[static_cast<size_t>(step - 1)][together > 1](tile);
    }
  }

  /// Into the second cache.
  void prefetch_column(int64_t r, int64_t count, int64_t column) const {
    const uint8_t *q = w_.q + w_.byte_column(column) * w_.bytes() + r;
    for (int64_t line = 0; line < count; line += kLineBytes)
      __builtin_prefetch(q + line, 0, 2);
  }

  void write_column(int64_t r, int64_t count, int64_t column, float *memory, float *target) const {
    prefetch_column(r, count, column + kTileColumnsTogether);
    if (w_.is_spread())
      return pieces_.write_column(r, count, column, memory, kTileTerms, target);
    int64_t groups = w_.groups(r, count);
    Parameters of{memory, groups};
    of.find_groups(w_, r, column, 1, groups);
    for (int64_t group = 0; group < groups; group += kLineBytes / 4)
      __builtin_prefetch(of.scale[0] + kTileColumnsTogether * w_.scale.column_step(groups) + group, 0, 2);
    dequantise_column_(w_.column(r, count, column, of.scale, of.zero, table_), {target, target + count});
  }

  const Weight &w_;
  Pieces pieces_;
  Dequantise dequantise_;
  DequantiseColumn dequantise_column_;
  const float *table_;
  const strips::Kernels<float> &strips_;
  const ByTile &by_tile_;
  const float *a_;
  int64_t rows_;
  float *sums_;
  int64_t sums_step_;
  float *tile_, *left_;
  int64_t terms_;
};

} // namespace disc::dequantized
