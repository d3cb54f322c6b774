// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "array_view.h"

#include <algorithm>
#include <cstring>

namespace disc {

namespace {

template <size_t Bytes> struct Element {
  char bytes[Bytes];
};

template <size_t Bytes> void copy_row(const char *source, int64_t stride, int64_t count, char *destination) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(destination + i * static_cast<int64_t>(Bytes), source + i * stride, sizeof(Element<Bytes>));
}

void copy_row(const char *source, int64_t stride, int64_t count, int64_t element_bytes, char *destination) {
  if (stride == element_bytes) {
    std::memcpy(destination, source, static_cast<size_t>(count * element_bytes));
    return;
  }
  switch (element_bytes) {
  case 1:
    return copy_row<1>(source, stride, count, destination);
  case 2:
    return copy_row<2>(source, stride, count, destination);
  case 4:
    return copy_row<4>(source, stride, count, destination);
  case 16:
    return copy_row<16>(source, stride, count, destination);
  default:
    return copy_row<8>(source, stride, count, destination);
  }
}

void swap_bytes(char *data, int64_t bytes, int64_t element_bytes) {
  for (int64_t i = 0; i < bytes; i += element_bytes)
    std::reverse(data + i, data + i + element_bytes);
}

struct StridedSource {
  const int64_t *shape;
  const int64_t *strides;
  size_t rank;
  int64_t element_bytes;
};

/// Returns the end of what was written.
char *copy_dims(const StridedSource &source, size_t dim, const char *data, char *destination) {
  if (dim + 1 == source.rank) {
    copy_row(data, source.strides[dim], source.shape[dim], source.element_bytes, destination);
    return destination + source.shape[dim] * source.element_bytes;
  }
  for (int64_t i = 0; i < source.shape[dim]; ++i)
    destination = copy_dims(source, dim + 1, data + i * source.strides[dim], destination);
  return destination;
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

void copy_contiguous(const ArrayView &view, const int64_t *shape, size_t rank, char *destination) {
  int64_t element_bytes = info(view.dtype).size;
  int64_t bytes = byte_count(shape, rank, element_bytes);
  if (bytes <= 0)
    return;
  if (view.contiguous || rank == 0)
    std::memcpy(destination, view.data, static_cast<size_t>(bytes));
  else
    copy_dims({shape, view.strides.data(), rank, element_bytes}, 0, view.data, destination);
  if (view.byte_swapped)
    swap_bytes(destination, bytes, info(view.dtype).alignment());
}

} // namespace disc
