// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The caller's tensors, checked.
#pragma once

#include "objects.h"

#include "core/array_view.h"

#include <span>

namespace disc::capi {

/// What an element type is to DLPack; one below 8 bits keeps its number of bits, though an element has a byte.
::DLDataType data_type(DType dtype);

/// Arguments from some index of the program's on. The tensors must outlive it.
class Tensors {
public:
  /// Checks devices, types, ranks and static sizes. Throws Error, which names the argument.
  Tensors(const Executable &executable, size_t first, std::span<const ::DLTensor> tensors);

  /// The sizes of all, one after the other.
  const std::vector<int64_t> &dims() const { return dims_; }

  /// The elements of the argument `index` (of these), in C order: where they lie, or in a copy that lives as long as
  /// this. Throws Error, AllocationFailure.
  void *elements(size_t index);

  /// A copy of them. Throws as `elements`.
  std::shared_ptr<Block> copy(size_t index, BlockKind kind) const;

  /// The argument with which a block of memory shares a byte; null where there is none.
  const ArraySpec *overlapped(const void *address, int64_t bytes) const;

private:
  struct Given {
    ArrayView view;
    size_t first_dim = 0;
    size_t rank = 0;
    const char *begin = nullptr, *end = nullptr; // of what strides reach
  };

  void add(const ArraySpec &spec, const ::DLTensor &tensor);
  const int64_t *shape(const Given &given) const { return dims_.data() + given.first_dim; }

  const Executable &executable_;
  size_t first_;
  std::vector<Given> given_;
  std::vector<int64_t> dims_;
  std::vector<std::shared_ptr<Block>> copies_;
};

/// The address of a result's memory, of a known type and sizes. Throws Error(type), Error(shape), Failure.
char *result_memory(const ArraySpec &spec, const int64_t *shape, const ::DLTensor &tensor);

} // namespace disc::capi
