// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A part of a product with one matrix of narrow integers, by one thread.
//
// Few rows: integers become floats in registers (dequantized_kernels.h), or tiles of the first cache where weights are
// rounded (dequantized_tiles.h), and each is read once. More rows: strips of W are written as floats, for all rows of a
// block, while they are in the cache (dequantized_strips.h).
#pragma once

#include "core/bfloat16.h"
#include "dequantized_strips.h"
#include "dequantized_tiles.h"
#include "gemm_blocks.h"

#include <algorithm>
#include <cmath>

namespace disc::dequantized {

using gemm::divide_up;
using gemm::Scratch;

constexpr int64_t kFewRows = 32;          // of A, at most, for which integers become floats in registers
constexpr int64_t kFewRowsOfPairs = 16;   // the same where pairs of bf16 are multiplied
constexpr int64_t kDotColumns = 2048;     // of C, of few rows and dense columns
constexpr int64_t kFewestColumns = 64;    // of an item: the lines of the cache that its bytes lie in
constexpr int64_t kChunkTerms = 32 << 10; // of all rows of A together, which stay in the second cache
constexpr int64_t kLongestChunk = 4096;   // of each
constexpr int64_t kSpare = kWidest;
constexpr int64_t kRowsTerms = kChunkTerms + kFewRows * kSpare; // rows of A lie in other lines, too
constexpr int64_t kGroupsOfColumns = kMostColumns * (kLongestChunk / kFewestTerms + 2);
constexpr int64_t kBlockFloats = gemm::kBlockBytes / 4;

/// Rows and columns of C, by strips: the sums of a block fit a core's second cache. Where multiplying takes less time,
/// more rows share what is written of a weight.
struct BlockShape {
  int64_t rows, columns;

  constexpr int64_t step() const { return columns + kSpare; } // rows of sums lie in other lines of the cache
  constexpr int64_t sums_bytes() const { return rows * step() * 4; }
};
constexpr BlockShape kOfFloats{128, 512}, kOfPairs{256, 256};
static_assert(kOfFloats.sums_bytes() + kOfFloats.rows * strips::kDeepestBytes <= gemm::kBlockBytes);
static_assert(kOfPairs.sums_bytes() + kOfPairs.rows * strips::avx512::kDepthBytes <= gemm::kBlockBytes);
static_assert(kFewRows * (kDotColumns + kSpare) + kRowsTerms + 4 * kGroupsOfColumns <= kBlockFloats);

/// Columns of C, of few rows, whose sums and parameters of two halves the scratch holds beside rows of A. Long pieces of
/// rows of bytes let the processor read ahead.
constexpr int64_t most_row_columns(int64_t m) {
  return ((kBlockFloats - kRowsTerms) / (m + 4) - kSpare) / kFewestColumns * kFewestColumns;
}

/// Some rows and columns of C, and the rows of bytes that are summed there.
struct Part {
  int64_t row, rows, column, columns, begin, end;
};

inline float rounded(float weight, Rounding rounding) {
  if (rounding == Rounding::kBf16)
    return from_bf16(to_bf16(weight));
  return rounding == Rounding::kF16 ? static_cast<float>(static_cast<_Float16>(weight)) : weight;
}

inline float decoded(Code code, uint8_t byte, int64_t half, const Table &table) {
  if (is_place(code))
    return table[static_cast<size_t>(place_of(code, byte, half))];
  switch (code) {
  case Code::kE4M3:
    return decoded<Code::kE4M3>(byte, half);
  case Code::kE5M2:
    return decoded<Code::kE5M2>(byte, half);
  case Code::kI8:
    return decoded<Code::kI8>(byte, half);
  case Code::kU8:
    return decoded<Code::kU8>(byte, half);
  case Code::kI4:
  case Code::kI4Pairs:
    return decoded<Code::kI4Pairs>(byte, half);
  default:
    return decoded<Code::kU4Pairs>(byte, half);
  }
}

/// How all matrices of a call are multiplied.
struct Method {
  int64_t m; // rows of A for each matrix
  Rounding rounding;
  bool has_wide_zeros, plain, wide, pairs; // pairs: many rows multiply pairs of bf16
  bool is_few, by_rows, has_tiles = false; // has_tiles: few rows multiply weights as they are, by tiles
  int64_t row_columns; // of C, whose sums few rows have at a time
  const Kernels *kernels = nullptr;
  BlockShape block{};
  int64_t lanes = 0; // words that are read at a time; 0 where bytes are
  Table table{};

  /// `has_bf16`: bf16 has the elements of A and, as they are rounded, those of W.
  Method(const Weight &w, int64_t rows, Rounding rounds, bool has_bf16, int64_t vector_bits)
      : m(rows), rounding(rounds), has_wide_zeros(w.has_wide_zeros()),
        plain(vector_bits < 256 || !has_avx2() || w.divides() || has_wide_zeros),
        wide(vector_bits >= 512 && __builtin_cpu_supports("avx512f")),
        pairs(has_bf16 && wide && __builtin_cpu_supports("avx512bf16")),
        is_few(m <= (pairs ? kFewRowsOfPairs : kFewRows)), by_rows(is_few && !w.has_dense_columns),
        row_columns(std::min(divide_up(w.n, kFewestColumns) * kFewestColumns,
                             by_rows ? most_row_columns(m) : kDotColumns)),
        block(pairs ? kOfPairs : kOfFloats) {
    const float *zero = w.zero.number();
    bool is_in_table = wide && zero && is_of_4_bits(w.code) && !w.adds_zeros;
    if (w.table != nullptr)
      std::copy_n(w.table, table.size(), table.begin());
    else
      table = table_of(w.code, is_in_table ? *zero : 0);
    bool has_zeros = !is_in_table && !w.zero.is_nothing();
    Zeros zeros = !has_zeros ? Zeros::kNone : w.adds_zeros ? Zeros::kAfter : Zeros::kBefore;
    kernels = &(wide ? avx512::kKernels : avx2::kKernels)[static_cast<size_t>(w.code)][static_cast<size_t>(zeros)];
    has_tiles = rounding != Rounding::kNone || w.is_spread() || zeros == Zeros::kAfter;
    int64_t most = wide ? avx512::kMostRowsOfWords : avx2::kMostRowsOfWords;
    int64_t of_register = wide ? avx512::V::kLanes : avx2::V::kLanes;
    lanes = !has_tiles && m <= most && w.has_words(4 * of_register) ? of_register : 0;
  }
};

/// C = A W of one matrix: dense rows of A and of C.
class Product {
public:
  Product(const Method &method, const Weight &weight, const float *a, float *c)
      : how_(method), w_(weight), a_(a), c_(c) {}

  /// The sums of a part to rows of `target`, which are as those of C.
  void multiply(const Part &part, float *target) const {
    Scratch scratch;
    float *sums = scratch.block<float>();
    int64_t step = how_.is_few ? row_step() : how_.block.step();
    for (int64_t i = 0; how_.is_few && i < part.rows; ++i)
      std::fill_n(sums + i * step, part.columns + kSpare, 0.0F);
    if (!how_.is_few)
      multiply_strips(part, sums, scratch);
    else if (how_.has_tiles)
      add_tiles(part, sums, scratch);
    else
      w_.has_dense_columns ? add_columns(part, sums) : add_rows(part, sums);
    for (int64_t i = 0; i < part.rows; ++i)
      std::copy_n(sums + i * step, part.columns, target + (part.row + i) * w_.n + part.column);
  }

  /// Few rows multiply sums by scales, where the program multiplies weights, which may overflow otherwise. A row of A
  /// with NaN has NaN in either way.
  void mend_overflows(const Part &part) const {
    if (how_.has_tiles)
      return;
    auto is_finite = [](float number) { return std::isfinite(number); };
    auto is_nan = [](float number) { return std::isnan(number); };
    for (int64_t i = part.row; i < part.row + part.rows; ++i) {
      const float *sums = c_ + i * w_.n + part.column, *terms = a_ + i * w_.k;
      if (!std::all_of(sums, sums + part.columns, is_finite) && !std::any_of(terms, terms + w_.k, is_nan))
        multiply_plainly({i, 1, part.column, part.columns, part.begin, part.end});
    }
  }

  /// Without the kernels' instructions.
  void multiply_plainly(const Part &part) const {
    Scratch scratch;
    Parameters parameters{scratch.block<float>(), part.columns};
    float *weights = parameters.place(4);
    for (int64_t i = part.row; i < part.row + part.rows; ++i)
      std::fill_n(c_ + i * w_.n + part.column, part.columns, 0.0F);
    for (int64_t r = 0, past = 0; r < w_.bytes(); ++r) {
      if (is_by_rows() && r == past)
        parameters.find_row(w_, r, part.column, part.columns), past = r + w_.rest(r);
      for (int64_t h = 0, k = w_.row(r, 0); h < w_.halves(); ++h, k = w_.row(r, h)) {
        for (int64_t j = 0; j < part.columns; ++j) {
          int64_t column = part.column + j, half = w_.column_half != 0 ? static_cast<int64_t>(w_.half_of(column)) : h;
          float q = decoded(w_.code, w_.byte(r, column), half, how_.table);
          if (is_by_rows())
            weights[j] = weight(q, parameters.scale[h][j], w_.zero.is_nothing() ? 0 : parameters.zero[h][j]);
          else
            weights[j] = weight_at(q, k, column);
        }
        for (int64_t i = part.row; i < part.row + part.rows; ++i)
          for (int64_t j = 0; j < part.columns; ++j)
            c_[i * w_.n + part.column + j] += a_[i * w_.k + k] * weights[j];
      }
    }
  }

private:
  /// Whether weights need no more than scales and zero points of whole rows.
  bool is_by_rows() const { return !w_.is_spread() && !w_.divisor.is_tensor() && !how_.has_wide_zeros; }

  float weight(float q, float scale, float zero) const {
    if (w_.adds_zeros)
      return rounded(std::fma(q, scale, -0.0F) + zero, how_.rounding); // the product is rounded first
    return rounded((q - zero) * scale, how_.rounding);
  }
  float weight_at(float q, int64_t k, int64_t column) const {
    float integer = q, zero = w_.zero.at(k, column);
    if (!w_.adds_zeros)
      integer = how_.has_wide_zeros ? w_.difference(q, k, column) : q - zero;
    if (w_.divisor.is_tensor())
      return rounded(integer / w_.divisor.at(k, column), how_.rounding);
    return weight(integer, w_.scale.at(k, column), w_.adds_zeros ? zero : 0);
  }

  /// Rows of sums of few rows lie in other lines of the cache; behind them lie the rows of A, and what follows those.
  int64_t row_step() const { return how_.row_columns + kSpare; }
  float *behind_sums(float *sums) const { return sums + how_.m * row_step(); }
  static float *behind_rows(float *rows) { return rows + kRowsTerms; }

  /// Bytes of each column that are used together.
  int64_t chunk(int64_t rows) const {
    int64_t most = std::min(kLongestChunk, kChunkTerms / (rows * w_.halves()));
    return w_.group < most ? most / w_.group * w_.group : most;
  }

  /// All few rows of A.
  void add_tiles(const Part &part, float *sums, const Scratch &scratch) const {
    static_assert(kTileFloats * 4 <= gemm::kChunk * gemm::kWidestPanelBytes);
    static_assert(4 * (kTileTerms / kFewestTerms + 2) <= 4 * kGroupsOfColumns);
    const auto &strips = how_.wide ? strips::avx512::kKernels<float> : strips::avx2::kKernels<float>;
    const auto &by_tile = how_.wide ? avx512::kMultiplyTile : avx2::kMultiplyTile;
    float *left = behind_sums(sums), *parameters = behind_rows(left);
    Tiles tiles(w_, *how_.kernels, how_.rounding, how_.table.data(), strips, by_tile, a_, how_.m, sums, row_step(),
                scratch.panel<float>(), left, kChunkTerms / (how_.m * w_.halves()));
    if (w_.has_dense_columns)
      tiles.add_columns(part.column, part.columns, parameters);
    else
      tiles.add_rows(part.begin, part.end, part.column, part.columns, {parameters, row_step()});
  }

  void add_rows(const Part &part, float *sums) const {
    int64_t length = chunk(part.rows), shift = w_.halves() * length + kSpare;
    float *x = behind_sums(sums);
    Parameters parameters{behind_rows(x), row_step()};
    for (int64_t r = part.begin, past = r, first = r, behind = r; r < part.end;) {
      if (r == past)
        parameters.find_row(w_, r, part.column, part.columns), past = r + w_.rest(r);
      if (r == behind) {
        first = r, behind = std::min(part.end, r + length);
        copy_terms(w_, a_, part.rows, r, behind - r, x, shift);
      }
      int64_t at = r - first, count = behind - first;
      bool is_one = std::min(past, behind) - r < kStreams;
      Rows of{w_.q + r * w_.n + part.column, w_.n, {x + at, x + at + count}, shift,      parameters.scale,
              parameters.zero, how_.table.data(), sums, row_step(), part.columns};
      const auto &kernels = is_one ? how_.kernels->add_row : how_.kernels->add_streams;
      for (int64_t rows = part.rows, step; rows > 0; rows -= step) {
        step = rows_together(rows);
        kernels[static_cast<size_t>(step - 1)](of);
        of.x[0] += step * shift, of.x[1] += step * shift, of.sums += step * row_step();
      }
      r += is_one ? 1 : kStreams;
    }
  }

  void add_columns(const Part &part, float *sums) const {
    int64_t length = chunk(part.rows), shift = w_.halves() * length + kSpare;
    float *x = behind_sums(sums);
    Parameters parameters{behind_rows(x), kGroupsOfColumns};
    int64_t together = by_columns().columns_of(std::min(part.rows, kMostByColumns));
    for (int64_t r = 0, count; r < w_.bytes(); r += count) {
      count = std::min(length, w_.bytes() - r);
      if (how_.lanes != 0)
        copy_word_terms(w_, a_, part.rows, r, count, how_.lanes, x, shift);
      else
        copy_terms(w_, a_, part.rows, r, count, x, shift);
      int64_t groups = w_.groups(r, count);
      for (int64_t j = 0, columns; j < part.columns; j += columns) {
        columns = part.columns - j < together ? 1 : together;
        parameters.find_groups(w_, r, part.column + j, columns, groups);
        Columns of{w_.q + (part.column + j) * w_.bytes() + r, w_.bytes(), {x, x + count}, shift,
                   parameters.scale, parameters.zero, how_.table.data(), w_.scale.column_step(groups),
                   w_.zero.column_step(groups), w_.rest(r), w_.group, sums + j, row_step(), count};
        add_to_rows(of, part.rows, columns);
      }
    }
  }

  /// Rows of A that use another number of columns together, the last ones, go column by column.
  void add_to_rows(Columns of, int64_t rows, int64_t columns) const {
    const ByColumns &kernels = by_columns();
    for (int64_t step; rows > 0; rows -= step) {
      step = std::min(rows, kMostByColumns);
      auto number = static_cast<size_t>(step - 1);
      if (columns == kernels.columns_of(step))
        kernels.add_columns[number](of);
      else
        for (int64_t j = 0; j < columns; ++j)
          kernels.add_column[number] ? kernels.add_column[number](column_of(of, j)) : add_alone(column_of(of, j), step);
      of.x[0] += step * of.x_step, of.x[1] += step * of.x_step, of.sums += step * row_step();
    }
  }

  /// A column by a kernel of several, each of which it is.
  void add_alone(Columns of, int64_t rows) const {
    float sums[kMostByColumns * kMostColumns] = {}, *target = of.sums;
    of.q_step = of.scale_step = of.zero_step = 0;
    of.sums = sums, of.sums_step = kMostColumns;
    by_columns().add_columns[static_cast<size_t>(rows - 1)](of);
    for (int64_t i = 0; i < rows; ++i)
      target[i * row_step()] += sums[i * kMostColumns];
  }

  const ByColumns &by_columns() const { return how_.lanes != 0 ? how_.kernels->words : how_.kernels->columns; }

  Columns column_of(Columns of, int64_t number) const {
    of.q += number * of.q_step, of.sums += number;
    for (size_t h = 0; h < static_cast<size_t>(w_.halves()); ++h)
      of.scale[h] += number * of.scale_step, of.zero[h] += number * of.zero_step;
    return of;
  }

  /// The rows of bytes of a part, one behind the other in memory of this thread, as far as that has room. Strips read a
  /// line of each row at a time: of rows that lie pages apart, that takes longer than to copy them first.
  ByteRows rows_of(const Part &part) const {
    ByteRows rows = w_.byte_rows();
    auto *copy = reinterpret_cast<uint8_t *>(Scratch::slab());
    if (w_.has_dense_columns || w_.column_half != 0 || copy == nullptr || w_.bytes() * part.columns > gemm::kSlabBytes)
      return rows;
    for (int64_t r = 0; r < w_.bytes(); ++r)
      std::copy_n(rows.at(r, part.column), part.columns, copy + r * part.columns);
    return {copy, part.columns, part.column};
  }

  void multiply_strips(const Part &part, float *sums, const Scratch &scratch) const {
    ByteRows bytes = rows_of(part);
    float *rows_copy = sums + how_.block.sums_bytes() / 4, *row_panels = scratch.row_panels<float>();
    const float *a = a_ + part.row * w_.k;
    if (how_.pairs) {
      auto words = [](float *memory) { return reinterpret_cast<uint32_t *>(memory); };
      PairOperands operands(w_, bytes, *how_.kernels, how_.rounding, how_.table.data(), a, part.rows, part.column,
                            row_panels);
      strips::Block<uint32_t> block{part.rows, part.columns, PairOperands::terms(w_), words(sums), how_.block.step(),
                                    words(rows_copy), scratch.panel<uint32_t>()};
      return strips::multiply(strips::bf16_pairs::kKernels<uint32_t>, block, operands);
    }
    strips::Block<float> block{part.rows, part.columns, w_.k, sums, how_.block.step(), rows_copy,
                               scratch.panel<float>()};
    const auto &kernels = how_.wide ? strips::avx512::kKernels<float> : strips::avx2::kKernels<float>;
    strips::multiply(kernels, block,
                     Operands{w_, bytes, *how_.kernels, how_.rounding, how_.table.data(), a, part.rows, part.column,
                              scratch.sums<float>(), row_panels});
  }

  const Method &how_;
  Weight w_;
  const float *a_;
  float *c_;
};

} // namespace disc::dequantized
