// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "strided_copy.h"

#include <algorithm>
#include <cstring>
#include <emmintrin.h>

namespace disc {

namespace {

constexpr int64_t kAhead = 8; // rows fetched before they are copied: each may lie on a page of its own

template <typename T>
void copy_rows(const T *source, int64_t row_stride, T *target, int64_t target_step, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i) {
    const T *row = source + i * row_stride;
    if (i + kAhead < rows)
      for (int64_t j = 0; j < columns; j += 64 / static_cast<int64_t>(sizeof(T)))
        _mm_prefetch(reinterpret_cast<const char *>(row + kAhead * row_stride + j), _MM_HINT_T0);
    std::memcpy(target + i * target_step, row, static_cast<size_t>(columns) * sizeof(T));
  }
}

/// A square of `size` rows and columns, read along columns of the target.
void transpose_square(const char *source, int64_t step, float *target, int64_t target_step) {
  auto load = [&](int64_t i) { return _mm_loadu_ps(reinterpret_cast<const float *>(source + i * step)); };
  __m128 a = load(0), b = load(1), c = load(2), d = load(3);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(target, a);
  _mm_storeu_ps(target + target_step, b);
  _mm_storeu_ps(target + 2 * target_step, c);
  _mm_storeu_ps(target + 3 * target_step, d);
}

void transpose_square(const char *source, int64_t step, double *target, int64_t target_step) {
  auto load = [&](int64_t i) { return _mm_loadu_pd(reinterpret_cast<const double *>(source + i * step)); };
  __m128d a = load(0), b = load(1);
  _mm_storeu_pd(target, _mm_unpacklo_pd(a, b));
  _mm_storeu_pd(target + target_step, _mm_unpackhi_pd(a, b));
}

template <typename T> constexpr int64_t kSquare = 16 / sizeof(T);

/// The source is dense along the target's rows, whose elements are `column_step` bytes apart: squares are transposed in
/// registers.
template <typename T>
void transpose(const char *source, int64_t column_step, T *target, int64_t target_step, int64_t rows, int64_t columns) {
  constexpr int64_t square = kSquare<T>, size = sizeof(T);
  int64_t whole_rows = rows / square * square, whole_columns = columns / square * square;
  for (int64_t j = 0; j < whole_columns; j += square) {
    for (int64_t ahead = j + kAhead; ahead < std::min(j + kAhead + square, columns); ++ahead)
      for (int64_t i = 0; i < rows * size; i += 64)
        _mm_prefetch(source + ahead * column_step + i, _MM_HINT_T1);
    for (int64_t i = 0; i < whole_rows; i += square)
      transpose_square(source + j * column_step + i * size, column_step, target + i * target_step + j, target_step);
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      std::memcpy(target + i * target_step + j, source + j * column_step + i * size, sizeof(T));
}

} // namespace

template <typename T>
void copy_matrix(const T *source, int64_t row_stride, int64_t column_stride, T *target, int64_t target_step,
                 int64_t rows, int64_t columns) {
  if (column_stride == 1 || columns == 1)
    return copy_rows(source, row_stride, target, target_step, rows, columns);
  if (row_stride == 1 || rows == 1)
    return transpose(reinterpret_cast<const char *>(source), column_stride * static_cast<int64_t>(sizeof(T)), target,
                     target_step, rows, columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      target[i * target_step + j] = source[i * row_stride + j * column_stride];
}

void transpose_words(const void *source, int64_t column_step, void *target, int64_t target_step, int64_t rows,
                     int64_t columns) {
  transpose(static_cast<const char *>(source), column_step, static_cast<float *>(target), target_step, rows, columns);
}

template void copy_matrix(const float *, int64_t, int64_t, float *, int64_t, int64_t, int64_t);
template void copy_matrix(const double *, int64_t, int64_t, double *, int64_t, int64_t, int64_t);

} // namespace disc
