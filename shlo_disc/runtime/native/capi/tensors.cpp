// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tensors.h"

#include "errors.h"
#include "program/argument_checks.h"

#include <algorithm>
#include <utility>

namespace disc::capi {

namespace {

constexpr int32_t kMostDims = 64;

/// The element type of a tensor; none where programs do not have it.
const DTypeInfo *dtype_of(const ::DLDataType &type) {
  for (const DTypeInfo &entry : kDTypes) {
    ::DLDataType known = data_type(entry.dtype);
    if (type.code == known.code && type.bits == known.bits && type.lanes == known.lanes)
      return &entry;
  }
  return nullptr;
}

/// remedy: for a tensor on another device.
void check_type(const ArraySpec &spec, const ::DLTensor &tensor, const char *remedy) {
  if (tensor.device.device_type != disc::kDLCPU)
    throw Error(ErrorKind::type, spec.path + " is on a device of DLPack's kind " +
                                     std::to_string(tensor.device.device_type) +
                                     ", and the program runs on the CPU: " + remedy);
  if (tensor.device.device_id != 0)
    throw Error(ErrorKind::type, spec.path + " has the device_id " + std::to_string(tensor.device.device_id) +
                                     ": the host's memory is kDLCPU with the device_id 0");
  const DTypeInfo *actual = dtype_of(tensor.dtype);
  if (actual == nullptr)
    fail_dtype(spec, "DLPack's type code " + std::to_string(tensor.dtype.code) + " of " +
                         std::to_string(tensor.dtype.bits) + " bits and " + std::to_string(tensor.dtype.lanes) + " lanes");
  if (actual->dtype != spec.dtype)
    fail_dtype(spec, std::string(actual->numpy));
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr))
    throw Error(ErrorKind::type, spec.path + " has no sizes");
  if (tensor.ndim > kMostDims) // more than anybody has; who knows whether there are so many sizes
    throw Error(ErrorKind::shape, "Rank mismatch for " + spec.path + ": expected " + spec.shape_text() +
                                      " and called with the rank " + std::to_string(tensor.ndim));
}

/// Bytes of an array. Throws Error(shape).
int64_t checked_bytes(const ArraySpec &spec, const int64_t *shape, size_t rank) {
  for (size_t i = 0; i < rank; ++i)
    if (shape[i] < 0)
      throw Error(ErrorKind::shape, "The size of dimension " + std::to_string(i) + " of " + spec.path +
                                        " is negative (" + std::to_string(shape[i]) + ").");
  int64_t bytes = byte_count(shape, rank, info(spec.dtype).size);
  if (bytes < 0)
    throw Error(ErrorKind::shape, "The bytes of " + spec.path + " do not fit 64 bits.");
  return bytes;
}

char *data_of(const ArraySpec &spec, const ::DLTensor &tensor, int64_t bytes) {
  if (tensor.data == nullptr && bytes > 0)
    throw Error(ErrorKind::type, spec.path + " has no data: its pointer is NULL, and it is to have " +
                                     std::to_string(bytes) + " bytes");
  if (tensor.data == nullptr)
    return nullptr;
  uintptr_t end = 0;
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(tensor.data), tensor.byte_offset, &end) ||
      __builtin_add_overflow(end, bytes, &end))
    throw Error(ErrorKind::shape, "The byte_offset of " + spec.path + " is " + std::to_string(tensor.byte_offset) +
                                      ": the addresses of the elements do not fit 64 bits.");
  return static_cast<char *>(tensor.data) + tensor.byte_offset;
}

std::vector<int64_t> byte_strides(const ArraySpec &spec, const ::DLTensor &tensor, size_t rank) {
  std::vector<int64_t> strides(tensor.strides, tensor.strides + rank);
  for (int64_t &stride : strides)
    if (__builtin_mul_overflow(stride, info(spec.dtype).size, &stride))
      throw Error(ErrorKind::shape, "The strides of " + spec.path + " do not fit 64 bits.");
  return strides;
}

/// The first byte of a strided array that is not empty, and the one behind its last, from its first element on.
std::pair<int64_t, int64_t> reach(const ArraySpec &spec, const int64_t *shape, const std::vector<int64_t> &strides) {
  int64_t low = 0, high = info(spec.dtype).size;
  for (size_t i = 0; i < strides.size(); ++i) {
    int64_t extent = 0, &end = strides[i] < 0 ? low : high;
    if (__builtin_mul_overflow(strides[i], shape[i] - 1, &extent) || __builtin_add_overflow(end, extent, &end))
      throw Error(ErrorKind::shape, "The strides of " + spec.path + " do not fit 64 bits.");
  }
  return {low, high};
}

alignas(64) char no_elements[64]; // where empty arrays without data are

/// What result_memory gives.
char *checked_memory(const ArraySpec &spec, const int64_t *shape, const ::DLTensor &tensor) {
  check_type(spec, tensor, "give memory of the host for it, and copy the result to the device afterwards");
  size_t rank = spec.shape.size();
  if (static_cast<size_t>(tensor.ndim) != rank)
    fail_rank(spec, tensor.shape, static_cast<size_t>(tensor.ndim));
  for (size_t i = 0; i < rank; ++i)
    if (tensor.shape[i] != shape[i])
      throw Error(ErrorKind::shape, "Shape mismatch for " + spec.path + ".shape[" + std::to_string(i) + "]: the plan has " +
                                        std::to_string(shape[i]) + " and the tensor " + std::to_string(tensor.shape[i]));
  int64_t bytes = checked_bytes(spec, shape, rank);
  if (tensor.strides != nullptr && rank > 0 && bytes > 0)
    if (!is_contiguous(shape, byte_strides(spec, tensor, rank).data(), rank, info(spec.dtype).size))
      bad_value(spec.path + " is to be written without gaps, in row-major order: set strides to NULL, and copy the "
                            "result afterwards");
  char *data = data_of(spec, tensor, bytes);
  return data != nullptr ? data : no_elements;
}

} // namespace

::DLDataType data_type(DType dtype) {
  const DTypeInfo &entry = info(dtype);
  return {static_cast<uint8_t>(entry.code), static_cast<uint8_t>(dtype == DType::i1 ? 8 : entry.bits), 1};
}

Tensors::Tensors(const Executable &executable, size_t first, std::span<const ::DLTensor> tensors)
    : executable_(executable), first_(first) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ArraySpec &spec = executable.program().arguments[first + i];
    try {
      add(spec, tensors[i]);
    } catch (Error &error) {
      error.argument = spec.path;
      throw;
    }
  }
}

void Tensors::add(const ArraySpec &spec, const ::DLTensor &tensor) {
  check_type(spec, tensor, "copy it to the host");
  auto rank = static_cast<size_t>(tensor.ndim);
  check_shape(spec, tensor.shape, rank);
  int64_t bytes = checked_bytes(spec, tensor.shape, rank);
  Given given;
  given.first_dim = dims_.size(), given.rank = rank;
  dims_.insert(dims_.end(), tensor.shape, tensor.shape + rank);
  char *data = data_of(spec, tensor, bytes);
  given.view.data = data != nullptr ? data : no_elements;
  given.view.dtype = spec.dtype;
  given.begin = given.view.data, given.end = given.begin + bytes;
  if (tensor.strides != nullptr && rank > 0 && bytes > 0) {
    std::vector<int64_t> strides = byte_strides(spec, tensor, rank);
    given.view.contiguous = is_contiguous(tensor.shape, strides.data(), rank, info(spec.dtype).size);
    if (!given.view.contiguous) {
      auto [low, high] = reach(spec, tensor.shape, strides);
      auto address = reinterpret_cast<uintptr_t>(given.view.data);
      if (uintptr_t end = 0; __builtin_add_overflow(address, low, &end) || __builtin_add_overflow(address, high, &end))
        throw Error(ErrorKind::shape, "The strides of " + spec.path + " lead to addresses that do not fit 64 bits.");
      given.begin = given.view.data + low, given.end = given.view.data + high;
      given.view.strides = std::move(strides);
    }
  }
  given_.push_back(std::move(given));
}

void *Tensors::elements(size_t index) {
  if (given_[index].view.usable_in_place())
    return const_cast<char *>(given_[index].view.data);
  copies_.push_back(copy(index, BlockKind::argument));
  return copies_.back()->address();
}

std::shared_ptr<Block> Tensors::copy(size_t index, BlockKind kind) const {
  const Given &given = given_[index];
  int64_t bytes = checked_bytes(executable_.program().arguments[first_ + index], shape(given), given.rank);
  auto block = std::make_shared<Block>(executable_.allocator(), bytes, kind);
  if (bytes > 0)
    copy_contiguous(given.view, shape(given), given.rank, static_cast<char *>(block->address()));
  return block;
}

const ArraySpec *Tensors::overlapped(const void *address, int64_t bytes) const {
  const auto *begin = static_cast<const char *>(address);
  if (bytes <= 0)
    return nullptr;
  auto found = std::ranges::find_if(given_, [&](const Given &given) {
    return given.begin < given.end && given.begin < begin + bytes && begin < given.end;
  });
  auto index = static_cast<size_t>(found - given_.begin());
  return found != given_.end() ? &executable_.program().arguments[first_ + index] : nullptr;
}

char *result_memory(const ArraySpec &spec, const int64_t *shape, const ::DLTensor &tensor) {
  try {
    return checked_memory(spec, shape, tensor);
  } catch (Error &error) {
    error.argument = spec.path;
    throw;
  } catch (Failure &failure) {
    failure.argument = spec.path;
    throw;
  }
}

} // namespace disc::capi
