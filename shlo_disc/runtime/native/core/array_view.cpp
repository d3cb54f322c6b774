// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "array_view.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace disc {

namespace {

constexpr int64_t kBlockRows = 64, kBlockColumns = 8; // of what is copied at a time

/// Two dims of an array: how many elements, and how far apart they are in the source and in the destination.
struct Plane {
  int64_t rows, columns;
  int64_t source_row, source_column;
  int64_t destination_row;
};

/// Copies row by row, or where the source goes by columns, block by block, so that each line of cache is read once. The
/// elements of a row of the destination follow each other.
template <size_t Bytes> void copy_plane(const Plane &plane, const char *source, char *destination) {
  bool by_rows = std::abs(plane.source_column) <= std::abs(plane.source_row);
  int64_t most_rows = by_rows ? 1 : kBlockRows, most_columns = by_rows ? plane.columns : kBlockColumns;
  for (int64_t first_row = 0; first_row < plane.rows; first_row += most_rows) {
    for (int64_t first = 0; first < plane.columns; first += most_columns) {
      int64_t rows = std::min(plane.rows, first_row + most_rows);
      int64_t columns = std::min(plane.columns, first + most_columns);
      for (int64_t i = first_row; i < rows; ++i)
        for (int64_t j = first; j < columns; ++j)
          std::memcpy(destination + i * plane.destination_row + j * static_cast<int64_t>(Bytes),
                      source + i * plane.source_row + j * plane.source_column, Bytes);
    }
  }
}

void copy_plane(const Plane &plane, const char *source, int64_t element_bytes, char *destination) {
  if (plane.source_column == element_bytes) {
    for (int64_t i = 0; i < plane.rows; ++i)
      std::memcpy(destination + i * plane.destination_row, source + i * plane.source_row,
                  static_cast<size_t>(plane.columns * element_bytes));
    return;
  }
  switch (element_bytes) {
  case 1:
    return copy_plane<1>(plane, source, destination);
  case 2:
    return copy_plane<2>(plane, source, destination);
  case 4:
    return copy_plane<4>(plane, source, destination);
  case 16:
    return copy_plane<16>(plane, source, destination);
  default:
    return copy_plane<8>(plane, source, destination);
  }
}

void swap_bytes(char *data, int64_t bytes, int64_t element_bytes) {
  for (int64_t i = 0; i < bytes; i += element_bytes)
    std::reverse(data + i, data + i + element_bytes);
}

/// A copy into C order. `row` is the dim, other than the last one, whose elements lie closest in the source.
struct StridedCopy {
  const int64_t *shape;
  const int64_t *strides;
  std::vector<int64_t> destination_strides;
  size_t rank;
  int64_t element_bytes;
  size_t row;
};

StridedCopy strided_copy(const int64_t *shape, const int64_t *strides, size_t rank, int64_t element_bytes) {
  StridedCopy copy{shape, strides, std::vector<int64_t>(rank, element_bytes), rank, element_bytes, 0};
  for (size_t dim = rank - 1; dim-- > 0;) {
    copy.destination_strides[dim] = copy.destination_strides[dim + 1] * shape[dim + 1];
    if (shape[dim] > 1 && (shape[copy.row] == 1 || std::abs(strides[dim]) < std::abs(strides[copy.row])))
      copy.row = dim;
  }
  return copy;
}

void copy_dims(const StridedCopy &copy, size_t dim, const char *source, char *destination) {
  size_t last = copy.rank - 1;
  if (dim == copy.row)
    return copy_dims(copy, dim + 1, source, destination);
  if (dim < last) {
    for (int64_t i = 0; i < copy.shape[dim]; ++i)
      copy_dims(copy, dim + 1, source + i * copy.strides[dim], destination + i * copy.destination_strides[dim]);
    return;
  }
  Plane plane{1, copy.shape[last], 0, copy.strides[last], 0};
  if (copy.row < last)
    plane = {copy.shape[copy.row], copy.shape[last], copy.strides[copy.row], copy.strides[last],
             copy.destination_strides[copy.row]};
  copy_plane(plane, source, copy.element_bytes, destination);
}

} // namespace

int64_t byte_count(const int64_t *shape, size_t rank, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  bool overflow = false;
  for (size_t i = 0; i < rank; ++i) {
    if (shape[i] == 0)
      return 0;
    overflow |= __builtin_mul_overflow(bytes, shape[i], &bytes);
  }
  return overflow ? -1 : bytes;
}

bool is_contiguous(const int64_t *shape, const int64_t *strides, size_t rank, int64_t element_bytes) {
  int64_t expected = element_bytes;
  bool ordered = true;
  for (size_t i = rank; i-- > 0;) {
    if (shape[i] == 0)
      return true;
    ordered &= shape[i] == 1 || strides[i] == expected;
    // Sizes that overflow come with strides of zero; further dimensions may still be empty.
    if (__builtin_mul_overflow(expected, shape[i], &expected))
      ordered = false;
  }
  return ordered;
}

std::optional<Rows> rows_of(const ArrayView &view, const int64_t *shape, size_t rank) {
  int64_t element = info(view.dtype).size, bytes = byte_count(shape, rank, element);
  if (view.byte_swapped || bytes < 0)
    return std::nullopt;
  if (view.contiguous || bytes == 0)
    return Rows{1, bytes, bytes};
  Rows rows{1, element, 0};
  for (size_t dim = rank; dim-- > 0;) {
    if (shape[dim] == 1)
      continue;
    if (rows.count == 1 && view.strides[dim] == rows.bytes) {
      rows.bytes *= shape[dim];
      continue;
    }
    if (rows.count == 1)
      rows.step = view.strides[dim];
    else if (view.strides[dim] != rows.count * rows.step)
      return std::nullopt;
    rows.count *= shape[dim];
  }
  return rows.step < rows.bytes ? std::nullopt : std::optional(rows);
}

void copy_contiguous(const ArrayView &view, const int64_t *shape, size_t rank, char *destination) {
  int64_t element_bytes = info(view.dtype).size;
  int64_t bytes = byte_count(shape, rank, element_bytes);
  if (bytes <= 0)
    return;
  if (view.contiguous || rank == 0)
    std::memcpy(destination, view.data, static_cast<size_t>(bytes));
  else
    copy_dims(strided_copy(shape, view.strides.data(), rank, element_bytes), 0, view.data, destination);
  if (view.byte_swapped)
    swap_bytes(destination, bytes, info(view.dtype).alignment());
}

} // namespace disc
