// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reducers.h"

#include <complex>
#include <type_traits>

namespace disc {

namespace {

template <typename T> struct Wrapping {
  using type = T;
};
template <std::signed_integral T> struct Wrapping<T> {
  using type = std::make_unsigned_t<T>;
};

struct Add {
  template <typename T> T operator()(T a, T b) const { return a + b; }
};
struct Multiply {
  template <typename T> T operator()(T a, T b) const { return a * b; }
};
/// NaN wins.
struct Maximum {
  template <typename T> T operator()(T a, T b) const { return a > b || a != a ? a : b; }
};
struct Minimum {
  template <typename T> T operator()(T a, T b) const { return a < b || a != a ? a : b; }
};
struct And {
  template <typename T> T operator()(T a, T b) const { return a & b; }
};
struct Or {
  template <typename T> T operator()(T a, T b) const { return a | b; }
};
struct Xor {
  template <typename T> T operator()(T a, T b) const { return a ^ b; }
};

template <typename T, typename Op> void combine(void *target, const void *source, int64_t count) {
  auto *to = static_cast<T *>(target);
  auto *from = static_cast<const T *>(source);
  for (int64_t i = 0; i < count; ++i)
    to[i] = Op()(to[i], from[i]);
}

/// Sums and products wrap around.
template <typename T> Reducer reducer(Reduction reduction) {
  using U = typename Wrapping<T>::type;
  if (reduction == Reduction::add)
    return combine<U, Add>;
  if (reduction == Reduction::multiply)
    return combine<U, Multiply>;
  if constexpr (std::is_arithmetic_v<T>) {
    if (reduction == Reduction::maximum)
      return combine<T, Maximum>;
    if (reduction == Reduction::minimum)
      return combine<T, Minimum>;
  }
  if constexpr (std::is_integral_v<T>) {
    if (reduction == Reduction::bit_and)
      return combine<T, And>;
    if (reduction == Reduction::bit_or)
      return combine<T, Or>;
    if (reduction == Reduction::bit_xor)
      return combine<T, Xor>;
  }
  return nullptr;
}

} // namespace

Reducer reducer_of(Reduction reduction, DType dtype) {
  switch (dtype) {
  case DType::f32:
    return reducer<float>(reduction);
  case DType::f64:
    return reducer<double>(reduction);
  case DType::i32:
    return reducer<int32_t>(reduction);
  case DType::i64:
    return reducer<int64_t>(reduction);
  case DType::u32:
    return reducer<uint32_t>(reduction);
  case DType::u64:
    return reducer<uint64_t>(reduction);
  case DType::c64:
    return reducer<std::complex<float>>(reduction);
  case DType::c128:
    return reducer<std::complex<double>>(reduction);
  default:
    return nullptr;
  }
}

} // namespace disc
