// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A matrix of narrow integers, with their scales and zero points, as `dequantized_dot` is given it.
#pragma once

#include "dequantized_kernels.h"
#include "gemm_blocks.h"
#include "library_call.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

namespace disc::dequantized {

constexpr int64_t kFewestTerms = 4; // bytes of a group, as the compiler sees to

/// The distances in memory of scales or zero points: element matrix * step_matrix + k / group * step_k +
/// n / columns * step_n of a tensor.
struct Steps {
  int64_t group, columns, k, n, matrix;
};

/// Scales, or zero points, as floats: those of a tensor, or one number.
class Parameter {
public:
  Parameter(const CallTensor &tensor, const std::string &dtype, const Steps &steps)
      : data_(tensor.data), dtype_(dtype), is_f32_(dtype == "f32"), steps_(steps), elements_(tensor.elements()) {}
  explicit Parameter(float number) : number_(number) {}

  /// Those of another matrix.
  Parameter matrix(int64_t number) const {
    Parameter of = *this;
    of.first_ = number * steps_.matrix;
    return of;
  }

  /// Whether products with these, which are floats, differ by rounding alone from quotients by `divisors`, whose
  /// reciprocals they are: all are normal, or those of 0, infinities and NaNs.
  bool are_as_good_as(const Parameter &divisors) const {
    const auto *of = static_cast<const float *>(divisors.data_), *own = static_cast<const float *>(data_);
    for (int64_t i = 0; i < elements_; ++i)
      if (!std::isnormal(own[i]) && of[i] != 0 && std::isfinite(of[i]))
        return false;
    return true;
  }
  /// Whether floats have all integers of a tensor.
  bool are_exact() const {
    for (int64_t i = 0; i < elements_; ++i)
      if (int64_t number = integer(i); number > kLargestExact || number < -kLargestExact)
        return false;
    return true;
  }
  /// That of an element of the weight, as an integer.
  int64_t integer_at(int64_t k, int64_t column) const { return integer(place(k, column)); }
  bool is_tensor() const { return data_ != nullptr; }
  int64_t elements() const { return elements_; }

  /// That of an element of the weight.
  float at(int64_t k, int64_t column) const {
    float number = number_;
    return data_ == nullptr ? number : *found(place(k, column), 0, 1, &number);
  }
  /// Where those of a column are in a row.
  int64_t offset_of(int64_t column) const { return column / steps_.columns * steps_.n; }
  /// Those of row k, of every `step`-th group of columns from an offset on.
  const float *row_at(int64_t k, int64_t offset, int64_t step, int64_t count, float *memory) const {
    int64_t first = first_ + group_of(k) * steps_.k + offset;
    if (count == 1 && is_f32_)
      return static_cast<const float *>(data_) + first;
    return found(first, step * steps_.n, count, memory);
  }
  /// Those of row k, from `column` on: where they lie as floats, or copied to `memory`.
  const float *row(int64_t k, int64_t column, int64_t count, float *memory) const {
    return found(place(k, column), steps_.n, count, memory);
  }
  /// Those of a column, of the group that row k is in and of those that follow.
  const float *groups(int64_t k, int64_t column, int64_t count, float *memory) const {
    return found(place(k, column), steps_.k, count, memory);
  }
  /// The distance of columns of `count` groups each.
  int64_t column_step(int64_t count) const { return is_in_place(steps_.k) ? steps_.n : count; }
  bool is_same(int64_t k, int64_t other) const { return k / steps_.group == other / steps_.group; }

  /// Whether the tensor has an element for each column of each group of each matrix.
  bool fits(int64_t matrices, int64_t k, int64_t n) const {
    bool goes_forward = steps_.k >= 0 && steps_.n >= 0 && steps_.matrix >= 0;
    return data_ == nullptr || (goes_forward && (matrices - 1) * steps_.matrix + place(k - 1, n - 1) < elements_);
  }
  bool is_nothing() const { return data_ == nullptr && number_ == 0; }
  /// What it is everywhere, if that is known.
  const float *number() const { return data_ == nullptr ? &number_ : nullptr; }

private:
  static constexpr int64_t kLargestExact = 1 << 24;

  int64_t integer(int64_t at) const {
    if (dtype_ == "i64")
      return static_cast<const int64_t *>(data_)[at];
    return dtype_ == "i32" ? static_cast<const int32_t *>(data_)[at] : 0; // those of 8 bits are exact
  }
  int64_t group_of(int64_t k) const { return steps_.group == 1 ? k : k / steps_.group; }
  int64_t place(int64_t k, int64_t column) const { 
    return first_ + group_of(k) * steps_.k + offset_of(column);
  }
  bool is_in_place(int64_t step) const { return is_f32_ && step == 1; }

  const float *found(int64_t first, int64_t step, int64_t count, float *memory) const {
    if (is_in_place(step))
      return static_cast<const float *>(data_) + first;
    if (data_ == nullptr)
      std::fill_n(memory, is_nothing() ? 0 : count, number_);
    else if (is_f32_)
      copy_as<float>(first, step, count, memory);
    else if (dtype_ == "i32")
      copy_as<int32_t>(first, step, count, memory);
    else if (dtype_ == "i64")
      copy_as<int64_t>(first, step, count, memory);
    else
      copy_bytes(first, step, count, memory);
    return memory;
  }

  template <typename T> void copy_as(int64_t first, int64_t step, int64_t count, float *target) const {
    const T *source = static_cast<const T *>(data_) + first;
    for (int64_t i = 0; i < count; ++i)
      target[i] = static_cast<float>(source[i * step]);
  }

  void copy_bytes(int64_t first, int64_t step, int64_t count, float *target) const {
    bool is_signed = dtype_ == "i8";
    if (step == 1 && has_avx2()) {
      static const float one = 1, zero = 0;
      static const Table none{};
      const auto &kernels = avx2::kKernels[static_cast<size_t>(is_signed ? Code::kI8 : Code::kU8)][0];
      const auto *bytes = static_cast<const uint8_t *>(data_) + first;
      Columns column{bytes, 0, {}, 0, {&one, &one}, {&zero, &zero}, none.data(), 0, 0, count, count, nullptr, 0, count};
      return kernels.dequantise_column[0](column, {target, target});
    }
    is_signed ? copy_as<int8_t>(first, step, count, target) : copy_as<uint8_t>(first, step, count, target);
  }

  const void *data_ = nullptr;
  std::string_view dtype_;
  bool is_f32_ = false;
  Steps steps_{1, 1, 0, 0, 0};
  int64_t elements_ = 0, first_ = 0;
  float number_ = 0;
};

/// Rows of bytes, `step` apart, from `column` on.
struct ByteRows {
  const uint8_t *q;
  int64_t step, column;

  const uint8_t *at(int64_t r, int64_t n) const { return q + r * step + (n - column); }
};

/// W. Rows of bytes hold an element of a row each, or of two: element h of byte row r is in row r * step + h * half. Or
/// bytes hold elements of two columns, `column_half` apart: of neighbours, or of both halves of the columns.
struct Weight {
  const uint8_t *q;
  int64_t k, n;
  bool has_dense_columns; // else rows
  Code code;
  int64_t step, half;
  int64_t group; // of bytes along k
  int64_t columns; // of a group, of which there are several only where `is_spread`
  int64_t matrix_step;
  Parameter scale, zero;
  Parameter divisor; // a tensor where scales are its reciprocals
  bool adds_zeros; // q * scale + zero
  int64_t difference_bits; // of the integers that zero points are taken off as, or 0
  int64_t column_half; // 0 where bytes do not hold elements of two columns
  const float *table; // of the program, or null

  Weight matrix(int64_t number) const {
    Weight of = *this;
    of.q += number * matrix_step, of.scale = scale.matrix(number), of.zero = zero.matrix(number);
    of.divisor = divisor.matrix(number);
    return of;
  }

  /// Whether integers less zero points, which may wrap, have to be computed as integers.
  bool has_wide_zeros() const { return difference_bits != 0 && zero.is_tensor() && !zero.are_exact(); }
  float difference(float integer, int64_t k, int64_t column) const {
    auto wide = static_cast<uint64_t>(static_cast<int64_t>(integer));
    wide -= static_cast<uint64_t>(zero.integer_at(k, column));
    return difference_bits == 32 ? static_cast<float>(static_cast<int32_t>(wide))
                                 : static_cast<float>(static_cast<int64_t>(wide));
  }
  /// Whether quotients have to be computed as such.
  bool divides() const { return divisor.is_tensor() && !scale.are_as_good_as(divisor); }
  /// Whether a scale belongs to a row, or to several columns: kernels that sum products with integers know of neither.
  bool is_spread() const { return columns > 1 || (group < kFewestTerms && group < bytes()) || column_half != 0; }

  int64_t halves() const { return column_half != 0 ? 1 : halves_of(code); } // of rows
  /// Columns of bytes, and which of them a column is in, as which half.
  int64_t byte_columns() const { return column_half != 0 ? n / 2 : n; }
  int64_t byte_column(int64_t column) const {
    return column_half == 0 ? column : column_half == 1 ? column / 2 : column % column_half;
  }
  size_t half_of(int64_t column) const {
    return static_cast<size_t>(column_half == 1 ? column % 2 : column / column_half);
  }
  uint8_t byte(int64_t r, int64_t column) const {
    int64_t at = byte_column(column);
    return q[has_dense_columns ? at * bytes() + r : r * byte_columns() + at];
  }
  int64_t bytes() const { return k / halves(); } // along k
  int64_t row(int64_t r, int64_t h) const { return r * step + h * half; }
  /// Bytes of the group of r from r on.
  int64_t rest(int64_t r) const { return group - r % group; }
  /// Groups of the bytes from r on.
  int64_t groups(int64_t r, int64_t count) const {
    return count <= rest(r) ? 1 : 1 + gemm::divide_up(count - rest(r), group);
  }
  const uint8_t *row_of_pairs(int64_t r, int64_t column) const { return q + r * byte_columns() + column / 2; }
  ByteRows byte_rows() const { return {q, n, 0}; }

  /// Bytes of a dense column, from r on, for what makes floats of them.
  Columns column(int64_t r, int64_t count, int64_t number, const Pair &scale, const Pair &zero,
                 const float *table) const {
    return {q + number * bytes() + r, 0, {}, 0, scale, zero, table, 0, 0, rest(r), group, nullptr, 0, count};
  }

  /// Whether dense columns of neighbouring pairs are words of whole groups, `word_bytes` in a register: the halves of a
  /// byte are then of one group.
  bool has_words(int64_t word_bytes) const {
    bool is_whole = group >= bytes() || group % word_bytes == 0 || word_bytes % group == 0;
    return has_dense_columns && halves() == 2 && step == 2 && is_whole;
  }
};

/// Scales and zero points of each half, where they lie or in `memory`, which has rows of `length` for each.
struct Parameters {
  float *memory;
  int64_t length;
  Pair scale{}, zero{};

  float *place(int64_t number) const { return memory + number * length; }

  /// Those of a row of bytes, from `column` on.
  void find_row(const Weight &w, int64_t r, int64_t column, int64_t count) {
    for (int64_t h = 0; h < w.halves(); ++h) {
      bool is_same = h == 1 && w.scale.is_same(w.row(r, 0), w.row(r, 1)); // as is the zero point's group
      scale[h] = is_same ? scale[0] : w.scale.row(w.row(r, h), column, count, place(2 * h));
      zero[h] = is_same ? zero[0] : w.zero.row(w.row(r, h), column, count, place(2 * h + 1));
    }
  }
  /// Those of `columns` columns, of the group of r and of those that follow.
  void find_groups(const Weight &w, int64_t r, int64_t column, int64_t columns, int64_t count) {
    for (int64_t h = 0; h < w.halves(); ++h)
      for (int64_t j = columns - 1; j >= 0; --j) {
        scale[h] = w.scale.groups(w.row(r, h), column + j, count, place(2 * h) + j * count);
        zero[h] = w.zero.groups(w.row(r, h), column + j, count, place(2 * h + 1) + j * count);
      }
  }
};

/// Writes pieces of a weight whose scales are spread as floats, as the program has them.
struct Pieces {
  static constexpr int64_t kMost = 1024; // floats

  const Weight &w;
  const Kernels &kernels;
  Rounding rounding;
  const float *table;

  /// Columns of a row from `column` on, with what is the same in each row: of every `step`-th of them, how many bytes
  /// belong to the first group and to others, and where their scales and zero points are.
  struct Span {
    int64_t column, count, step, first, group, groups, scale, zero;
  };

  Span span(int64_t column, int64_t count) const {
    int64_t step = w.column_half == 1 ? 2 : 1, bytes = count / step, first = 1, group = 1, groups = bytes;
    if (w.columns > 1) {
      first = (w.columns - column % w.columns) / step, group = w.columns / step;
      groups = bytes <= first ? 1 : 1 + gemm::divide_up(bytes - first, group);
    }
    return {column, count, step, first, group, groups, w.scale.offset_of(column), w.zero.offset_of(column)};
  }

  /// Bytes q of the columns of row `row`. `memory` has four rows of `length`.
  void write_row(const uint8_t *q, int64_t row, const Span &span, float *memory, int64_t length, float *target) const {
    if (w.column_half > 1)
      return write_halves(row, span, memory, length, target);
    Piece low = piece_of_row(row, span, memory, length);
    if (w.column_half == 0)
      return write(q, low, {low.scale, low.scale}, {low.zero, low.zero}, span.count, {target, target});
    float halves[2][kMost];
    int64_t bytes = span.count / 2;
    Piece high = low;
    if (w.columns == 1)
      high = piece_of_row(row, this->span(span.column + 1, span.count), memory + 2 * length, length);
    write(q, low, {low.scale, high.scale}, {low.zero, high.zero}, bytes, {halves[0], halves[1]});
    for (int64_t i = 0; i < bytes; ++i)
      target[2 * i] = halves[0][i], target[2 * i + 1] = halves[1][i];
  }

  /// Whether columns are written by twos, from an even one on.
  bool has_column_pairs() const { return w.column_half == 1; }

  /// Bytes of dense column `column`, from r on.
  void write_column(int64_t r, int64_t count, int64_t column, float *memory, int64_t length, float *target) const {
    const uint8_t *q = w.q + w.byte_column(column) * w.bytes() + r;
    Piece piece = piece_of_column(r, count, column, memory, length);
    if (w.column_half == 0)
      return write(q, piece, {piece.scale, piece.scale}, {piece.zero, piece.zero}, count, {target, target});
    write_one(q, piece, w.half_of(column), count, target);
  }

  /// The same of two columns that share their bytes.
  void write_columns(int64_t r, int64_t count, int64_t column, float *memory, int64_t length,
                     const std::array<float *, 2> &targets) const {
    Piece low = piece_of_column(r, count, column, memory, length);
    Piece high = piece_of_column(r, count, column + 1, memory + 2 * length, length);
    write(w.q + w.byte_column(column) * w.bytes() + r, low, {low.scale, high.scale}, {low.zero, high.zero}, count,
          targets);
  }

private:
  /// Scales and zero points of neighbouring bytes: of each, or of `first` and then of groups.
  struct Piece {
    const float *scale, *zero;
    int64_t first, group;
  };

  Piece piece_of_column(int64_t r, int64_t count, int64_t column, float *memory, int64_t length) const {
    int64_t groups = w.group == 1 ? count : w.groups(r, count);
    const float *zero = kernels.has_zeros ? w.zero.groups(r, column, groups, memory + length) : memory;
    return {w.scale.groups(r, column, groups, memory), zero, w.rest(r), w.group};
  }

  Piece piece_of_row(int64_t row, const Span &of, float *memory, int64_t length) const {
    int64_t step = w.columns == 1 ? of.step : 1;
    const float *zero = kernels.has_zeros ? w.zero.row_at(row, of.zero, step, of.groups, memory + length) : memory;
    return {w.scale.row_at(row, of.scale, step, of.groups, memory), zero, of.first, of.group};
  }

  void write(const uint8_t *q, const Piece &piece, const Pair &scale, const Pair &zero, int64_t count,
             const std::array<float *, 2> &target) const {
    auto number = static_cast<size_t>(rounding);
    if (piece.group == 1)
      return kernels.dequantise[number](q, scale, zero, table, count, target);
    Columns of{q, 0, {}, 0, scale, zero, table, 0, 0, piece.first, piece.group, nullptr, 0, count};
    kernels.dequantise_column[number](of, target);
  }

  /// One of the halves of bytes.
  void write_one(const uint8_t *q, const Piece &piece, size_t half, int64_t count, float *target) const {
    float other[kMost];
    std::array<float *, 2> targets = {other, other};
    targets[half] = target;
    write(q, piece, {piece.scale, piece.scale}, {piece.zero, piece.zero}, count, targets);
  }

  /// Columns in the first half of bytes, and in the second.
  void write_halves(int64_t row, const Span &of, float *memory, int64_t length, float *target) const {
    int64_t before = std::clamp<int64_t>(w.column_half - of.column, 0, of.count);
    write_half(row, of.column, before, memory, length, target);
    write_half(row, of.column + before, of.count - before, memory, length, target + before);
  }

  void write_half(int64_t row, int64_t column, int64_t count, float *memory, int64_t length, float *target) const {
    const uint8_t *q = w.q + row * w.byte_columns() + w.byte_column(column);
    if (count > 0)
      write_one(q, piece_of_row(row, span(column, count), memory, length), w.half_of(column), count, target);
  }
};

/// Element h of bytes [r, r + count) belongs to term h * count + i of these rows of A.
inline void copy_terms(const Weight &w, const float *a, int64_t rows, int64_t r, int64_t count, float *target, int64_t step) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t h = 0; h < w.halves(); ++h)
      if (const float *row = a + i * w.k; w.step == 1)
        std::copy_n(row + w.row(r, h), count, target + i * step + h * count);
      else
        for (int64_t j = 0; j < count; ++j)
          target[i * step + h * count + j] = row[w.row(r + j, h)];
}

/// The same terms of pairs that are read as words, `lanes` of them at a time: the first elements of all words, then the
/// second ones. Behind the last byte there are zeros.
inline void copy_word_terms(const Weight &w, const float *a, int64_t rows, int64_t r, int64_t count, int64_t lanes,
                            float *target, int64_t step) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t word = 0; word * 4 < count; word += lanes)
      for (int64_t number = 0; number < kNibbles; ++number)
        for (int64_t lane = 0; lane < lanes; ++lane) {
          int64_t byte = 4 * (word + lane) + number / 2;
          target[i * step + word * kNibbles + number * lanes + lane] =
              byte < count ? a[i * w.k + w.row(r + byte, number % 2)] : 0;
        }
}

} // namespace disc::dequantized
