// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops about the types of elements, and iota.
#include "elementwise.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace disc::interpreter {

namespace {

/// Towards 0, and to the nearest integer of the type where that is none: 0 for NaN.
template <Integer To, Real From> To to_integer(From x) {
  constexpr From end = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2; // a power of two, thus exact
  if (x >= end)
    return std::numeric_limits<To>::max();
  if (x <= static_cast<From>(std::numeric_limits<To>::min()))
    return std::numeric_limits<To>::min();
  return x == x ? static_cast<To>(x) : To(0);
}

/// Returns a float that rounds to the same 16-bit float as the number does. Where no float is equal to the number, this
/// is the one with an odd last bit of the two next to it.
float to_odd(double x) {
  float nearest = static_cast<float>(x);
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (nearest == x || x != x || bits % 2 != 0)
    return nearest;
  return std::bit_cast<float>(std::abs(static_cast<double>(nearest)) > std::abs(x) ? bits - 1 : bits + 1);
}

template <typename To, typename From> To converted(From x) {
  if constexpr (Complex<From> && !is_complex<To>)
    return converted<To>(x.real());
  else if constexpr (Complex<From>)
    return {static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag())};
  else if constexpr (is_complex<To>)
    return To(converted<typename To::value_type>(x));
  else if constexpr (is_bool<To>)
    return x != 0;
  else if constexpr (is_half<To> && std::is_same_v<From, double>)
    return To(to_odd(x));
  else if constexpr (is_int<To> && Real<From>)
    return to_integer<To>(x);
  else if constexpr (is_half<To>)
    return To(static_cast<float>(x));
  else
    return static_cast<To>(x);
}

template <typename To, typename From> void convert_elements(Inputs inputs, void *output, int64_t count) {
  const From *from = static_cast<const From *>(inputs[0]);
  To *__restrict to = static_cast<To *>(output);
  for (int64_t i = 0; i < count; ++i)
    to[i] = converted<To>(static_cast<Computed<From>>(from[i]));
}

/// Equal conversions share a loop: a byte of i1 is 0 or 1, and signed integers are cut off as unsigned ones are.
template <typename To, typename From> constexpr Loop conversion() {
  if constexpr (is_bool<From>)
    return conversion<To, uint8_t>();
  else if constexpr (is_int<To> && is_int<From>)
    return convert_elements<std::make_unsigned_t<To>, From>;
  else
    return convert_elements<To, From>;
}

Kernel copy_kernel(int64_t bytes) {
  return [count = static_cast<size_t>(bytes)](Inputs inputs, Outputs outputs) {
    if (count != 0)
      std::memcpy(outputs[0], inputs[0], count);
  };
}

Kernel convert_kernel(const Op &op) {
  check_alike(op, 1);
  DType from = op.operand(0).dtype, to = op.result().dtype;
  if (from == to)
    return copy_kernel(op.result().bytes());
  Loop loop = with_type(from, [to]<typename From>(From) {
    return with_type(to, []<typename To>(To) { return conversion<To, From>(); });
  });
  return kernel_of(loop, op);
}

/// An element's first byte is its least significant one, so the parts of a wide element are in order in memory.
Kernel bitcast_kernel(const Op &op) {
  Op::require(op.operands.size() == 1 && op.results.size() == 1);
  const Type &from = op.operand(0), &to = op.result();
  if (from == to)
    return copy_kernel(to.bytes());
  for (const DTypeInfo &type : {info(from.dtype), info(to.dtype)})
    if (type.bits % 8 != 0 || type.code == DLCode::complex)
      throw Unsupported("a bitcast of elements of less than a byte, or of complex numbers");
  const Type &narrow = from.element_bytes() < to.element_bytes() ? from : to, &wide = &narrow == &from ? to : from;
  Dims expected = wide.dims;
  if (narrow.element_bytes() != wide.element_bytes())
    expected.push_back(wide.element_bytes() / narrow.element_bytes());
  Op::require(narrow.dims == expected);
  return copy_kernel(to.bytes());
}

/// Gives a float fewer bits of exponent and mantissa. It rounds to the nearest, and to the even one of two. Numbers
/// that are too large become infinite, and those that would be subnormal become 0.
template <typename Bits, int mantissa> struct Reduction {
  static constexpr int exponent = static_cast<int>(sizeof(Bits)) * 8 - 1 - mantissa;
  static constexpr Bits infinity = ((Bits(1) << exponent) - 1) << mantissa, sign = Bits(1) << (exponent + mantissa);
  int dropped;        // bits of the mantissa
  bool is_narrower;   // fewer bits of the exponent
  Bits largest, zero; // the exponents of the largest numbers, and of those that become 0

  Reduction(int64_t exponent_bits, int64_t mantissa_bits)
      : dropped(static_cast<int>(mantissa - std::min<int64_t>(mantissa_bits, mantissa))),
        is_narrower(exponent_bits < exponent) {
    constexpr Bits bias = (Bits(1) << (exponent - 1)) - 1;
    Bits reduced = is_narrower ? (Bits(1) << (exponent_bits - 1)) - 1 : bias;
    largest = static_cast<Bits>((bias + reduced) << mantissa);
    zero = static_cast<Bits>((bias - reduced) << mantissa);
  }

  Bits operator()(Bits bits) const {
    if (Bits(bits & ~sign) > infinity) // NaN
      return bits;
    if (dropped > 0) {
      Bits last = Bits(1) << dropped;
      bits = static_cast<Bits>((bits + (last >> 1) - 1 + (bits >> dropped & 1)) & ~(last - 1));
    }
    Bits size = bits & infinity;
    if (is_narrower && size > largest)
      return (bits & sign) | infinity;
    return is_narrower && size <= zero ? bits & sign : bits;
  }
};

template <typename Bits, int mantissa> Kernel reduction_kernel(const Op &op) {
  Reduction<Bits, mantissa> reduce(op.integer("exponent_bits"), op.integer("mantissa_bits"));
  return [reduce, count = op.result().count()](Inputs inputs, Outputs outputs) {
    const Bits *from = static_cast<const Bits *>(inputs[0]);
    Bits *__restrict to = static_cast<Bits *>(outputs[0]);
    for (int64_t i = 0; i < count; ++i)
      to[i] = reduce(from[i]);
  };
}

Kernel reduce_precision_kernel(const Op &op) {
  check_alike(op, 1);
  Op::require(op.operand(0) == op.result() && op.integer("exponent_bits") >= 1 && op.integer("mantissa_bits") >= 0);
  switch (op.result().dtype) {
  case DType::f16: return reduction_kernel<uint16_t, 10>(op);
  case DType::bf16: return reduction_kernel<uint16_t, 7>(op);
  case DType::f32: return reduction_kernel<uint32_t, 23>(op);
  case DType::f64: return reduction_kernel<uint64_t, 52>(op);
  default: throw Unsupported("a precision of what is no float");
  }
}

/// Counts along an axis of `size` elements. `before` and `behind` are the element counts of the axes around it.
using CountLoop = void (*)(void *output, int64_t before, int64_t size, int64_t behind);

template <typename T> void count_elements(void *output, int64_t before, int64_t size, int64_t behind) {
  T *to = static_cast<T *>(output);
  for (int64_t i = 0; i < before; ++i)
    for (int64_t j = 0; j < size; ++j, to += behind)
      std::fill_n(to, behind, converted<T>(j));
}

Kernel iota_kernel(const Op &op) {
  Op::require(op.operands.empty() && op.results.size() == 1);
  const Dims &dims = op.result().dims;
  int64_t axis = op.integer("iota_dimension"), before = 1, behind = 1;
  Op::require(axis >= 0 && axis < op.result().rank());
  for (int64_t i = 0; i < op.result().rank(); ++i)
    (i < axis ? before : behind) *= i == axis ? 1 : dims[static_cast<size_t>(i)];
  CountLoop loop = with_type(op.result().dtype, []<typename T>(T) -> CountLoop {
    if constexpr (is_bool<T>)
      refuse_type();
    else
      return count_elements<T>;
  });
  int64_t size = dims[static_cast<size_t>(axis)];
  return [=](Inputs, Outputs outputs) { loop(outputs[0], before, size, behind); };
}

} // namespace

const KernelTable &conversion_kernels() {
  static const KernelTable table = {
      {"bitcast_convert", bitcast_kernel},
      {"convert", convert_kernel},
      {"iota", iota_kernel},
      {"reduce_precision", reduce_precision_kernel},
  };
  return table;
}

} // namespace disc::interpreter
