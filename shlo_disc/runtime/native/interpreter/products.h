// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix products and convolutions. Terms are multiplied and added in one type, which is rounded to the result's once:
// f32 for floats of up to 32 bits, f64, integers that wrap around, or complex numbers.
#pragma once

#include "elementwise.h"
#include "walk.h"

namespace disc::interpreter {

Kernel convolution_kernel(const Op &op); // convolution.cpp

/// What terms of a result of type T are computed as; integers without a sign wrap around.
template <typename T>
using Term = std::conditional_t<is_int<T>, uint64_t, std::conditional_t<is_half<T>, float, T>>;

/// Whether elements of an operand become terms of that type: floats without a loss, integers rounded to floats.
template <typename Operand, typename To> constexpr bool becomes() {
  if constexpr (is_bool<Operand> || is_bool<To>)
    return false;
  else if constexpr (is_complex<To>)
    return std::is_same_v<Operand, To>;
  else if constexpr (is_int<To>)
    return is_int<Operand>;
  else if constexpr (std::is_same_v<Operand, double>)
    return std::is_same_v<To, double>;
  else
    return is_real_float<Operand> || is_int<Operand>;
}

using Pack = void (*)(const Walk<1> &walk, const void *from, void *to);

template <typename T, typename To> void pack(const Walk<1> &walk, const void *from, void *to) {
  auto *next = static_cast<To *>(to);
  walk.run({0}, [&](const Walk<1>::Offsets &offsets, const Axis<1> &row) {
    const T *element = static_cast<const T *>(from) + offsets[0];
    for (int64_t i = 0; i < row.size; ++i, element += row.steps[0])
      *next++ = static_cast<To>(static_cast<Computed<T>>(*element));
  });
}

template <typename To> Pack pack_for(DType dtype) {
  return with_type(dtype, []<typename T>(T) -> Pack {
    if constexpr (becomes<T, To>())
      return &pack<T, To>;
    throw Unsupported("a product of elements of this type");
  });
}

/// An operand's axes in the order in which it is packed.
inline Walk<1> packed_walk(const Type &type, const std::vector<const Dims *> &order) {
  Dims strides = strides_of(type.dims);
  Axes<1> axes;
  for (const Dims *group : order)
    for (int64_t axis : *group)
      axes.push_back({type.dims[static_cast<size_t>(axis)], {strides[static_cast<size_t>(axis)]}});
  return Walk<1>(axes);
}

/// The kernel of a product for the C++ type of its result. Throws Unsupported for booleans.
template <typename Make> Kernel with_result(const Op &op, const Make &make) {
  return with_type(op.result().dtype, [&]<typename T>(T element) -> Kernel {
    if constexpr (is_bool<T>)
      throw Unsupported("a product of booleans");
    else
      return make(element);
  });
}

} // namespace disc::interpreter
