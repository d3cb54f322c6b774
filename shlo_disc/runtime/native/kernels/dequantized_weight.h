// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A matrix of narrow integers, with their scales and zero points, as `dequantized_dot` is given it.
#pragma once

#include "dequantized_kernels.h"
#include "gemm_blocks.h"
#include "library_call.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace disc::dequantized {

constexpr int64_t kFewestTerms = 4; // bytes of a group, as the compiler sees to

/// Scales, or zero points, as floats: element k / group * step_k + n * step_n of a tensor, or one number.
class Parameter {
public:
  Parameter(const CallTensor &tensor, const std::string &dtype, int64_t group, int64_t step_k, int64_t step_n)
      : data_(tensor.data), dtype_(dtype), group_(group), step_k_(step_k), step_n_(step_n),
        elements_(tensor.elements()) {}
  explicit Parameter(float number) : number_(number) {}

  /// Those of row k, from `column` on: where they lie as floats, or copied to `memory`.
  const float *row(int64_t k, int64_t column, int64_t count, float *memory) const {
    return found(k / group_ * step_k_ + column * step_n_, step_n_, count, memory);
  }
  /// Those of a column, of the group that row k is in and of those that follow.
  const float *groups(int64_t k, int64_t column, int64_t count, float *memory) const {
    return found(k / group_ * step_k_ + column * step_n_, step_k_, count, memory);
  }
  /// The distance of columns of `count` groups each.
  int64_t column_step(int64_t count) const { return is_in_place(step_k_) ? step_n_ : count; }
  bool is_same(int64_t k, int64_t other) const { return k / group_ == other / group_; }

  /// Whether the tensor has an element for each column of each group.
  bool fits(int64_t k, int64_t n) const {
    bool goes_forward = step_k_ >= 0 && step_n_ >= 0;
    return data_ == nullptr ||
           (goes_forward && (gemm::divide_up(k, group_) - 1) * step_k_ + (n - 1) * step_n_ < elements_);
  }
  bool is_nothing() const { return data_ == nullptr && number_ == 0; }
  /// What it is everywhere, if that is known.
  const float *number() const { return data_ == nullptr ? &number_ : nullptr; }

private:
  bool is_in_place(int64_t step) const { return data_ != nullptr && dtype_ == "f32" && step == 1; }

  const float *found(int64_t first, int64_t step, int64_t count, float *memory) const {
    if (is_in_place(step))
      return static_cast<const float *>(data_) + first;
    if (data_ == nullptr)
      std::fill_n(memory, is_nothing() ? 0 : count, number_);
    else if (dtype_ == "f32")
      copy_as<float>(first, step, count, memory);
    else if (dtype_ == "i32")
      copy_as<int32_t>(first, step, count, memory);
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
    static const bool has_vectors = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool is_signed = dtype_ == "i8";
    if (step == 1 && has_vectors) {
      static const float one = 1, zero = 0;
      const auto &kernels = avx2::kKernels[static_cast<size_t>(is_signed ? Code::kI8 : Code::kU8)][0];
      const auto *bytes = static_cast<const uint8_t *>(data_) + first;
      Columns column{bytes, 0, {}, 0, {&one, &one}, {&zero, &zero}, nullptr, 0, 0, count, count, nullptr, 0, count};
      return kernels.dequantise_column[0](column, {target, target});
    }
    is_signed ? copy_as<int8_t>(first, step, count, target) : copy_as<uint8_t>(first, step, count, target);
  }

  const void *data_ = nullptr;
  std::string_view dtype_;
  int64_t group_ = 1, step_k_ = 0, step_n_ = 0, elements_ = 0;
  float number_ = 0;
};

/// Rows of bytes, `step` apart, from `column` on.
struct ByteRows {
  const uint8_t *q;
  int64_t step, column;

  const uint8_t *at(int64_t r, int64_t n) const { return q + r * step + (n - column); }
};

/// W. Rows of bytes hold an element of a row each, or of two: element h of byte row r is in row r * step + h * half.
struct Weight {
  const uint8_t *q;
  int64_t k, n;
  bool has_dense_columns; // else rows
  Code code;
  int64_t step, half;
  int64_t group; // of bytes along k
  Parameter scale, zero;

  int64_t halves() const { return halves_of(code); }
  int64_t bytes() const { return k / halves(); } // along k
  int64_t row(int64_t r, int64_t h) const { return r * step + h * half; }
  /// Bytes of the group of r from r on.
  int64_t rest(int64_t r) const { return group - r % group; }
  /// Groups of the bytes from r on.
  int64_t groups(int64_t r, int64_t count) const {
    return count <= rest(r) ? 1 : 1 + gemm::divide_up(count - rest(r), group);
  }
  int64_t column_step() const { return has_dense_columns ? bytes() : 1; }
  int64_t row_step() const { return has_dense_columns ? 1 : n; }

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
