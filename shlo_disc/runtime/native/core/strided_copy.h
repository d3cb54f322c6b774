// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies of strided matrices into dense rows.
#pragma once

#include <cstdint>

namespace disc {

/// target[i * target_step + j] = source[i * row_stride + j * column_stride] for `rows` x `columns` elements.
template <typename T>
void copy_matrix(const T *source, int64_t row_stride, int64_t column_stride, T *target, int64_t target_step,
                 int64_t rows, int64_t columns);

/// Words of 4 bytes, dense along columns of the source, which are `column_step` bytes apart at any address:
/// target[i * target_step + j] is word i of column j.
void transpose_words(const void *source, int64_t column_step, void *target, int64_t target_step, int64_t rows,
                     int64_t columns);

} // namespace disc
