// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that compute each element of their result from the elements at the same place.
// Such an op is a struct whose static functions `of` take elements as they are computed. Element types for which it has
// no such function are unsupported.
#pragma once

#include "complex_functions.h"
#include "element_types.h"

#include <cmath>
#include <concepts>
#include <cstddef>
#include <utility>

namespace disc::interpreter {

template <typename T> concept Boolean = std::same_as<T, bool>;
template <typename T> concept Integer = std::integral<T> && !Boolean<T>;
template <typename T> concept Unsigned = Integer<T> && std::unsigned_integral<T>;
template <typename T> concept Real = std::floating_point<T>;
template <typename T> concept Complex = is_complex<T>;
template <typename T> concept Floating = Real<T> || Complex<T>;

/// The functions of each file, by the names of ops.
const KernelTable &unary_kernels();      // unary.cpp
const KernelTable &binary_kernels();     // binary.cpp
const KernelTable &conversion_kernels(); // conversions.cpp

/// Computes as many elements as `count` says.
using Loop = void (*)(Inputs inputs, void *output, int64_t count);

/// For all elements of an op's result.
Kernel kernel_of(Loop loop, const Op &op);

/// Requires operands of one type, and one result of their shape.
void check_alike(const Op &op, size_t arity);

[[noreturn]] void refuse_type();

/// A struct that computes signed integers as it does unsigned ones has a member `wraps`: its loops are shared.
template <typename Function, typename T> struct LoopType {
  using type = T;
};
template <typename Function, typename T>
  requires(is_int<T> && requires { Function::wraps; })
struct LoopType<Function, T> {
  using type = std::make_unsigned_t<T>;
};

/// What a result is stored as where operands are of type T.
template <typename T, typename Result>
using Stored = std::conditional_t<std::is_same_v<Result, Computed<T>>, T,
                                  std::conditional_t<std::is_same_v<Result, bool>, Bool, Result>>;

template <typename T, typename Result> DType result_dtype(DType operands) {
  if constexpr (std::is_same_v<Result, T>)
    return operands;
  else if constexpr (is_bool<Result>)
    return DType::i1;
  else if constexpr (is_complex<Result>)
    return sizeof(Result) == 8 ? DType::c64 : DType::c128;
  else
    return sizeof(Result) == 4 ? DType::f32 : DType::f64;
}

template <typename Function, typename T, typename Result, size_t... operand>
void map_elements(Inputs inputs, void *output, int64_t count) {
  const T *from[] = {static_cast<const T *>(inputs[operand])...};
  Result *__restrict to = static_cast<Result *>(output);
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<Result>(Function::of(static_cast<Computed<T>>(from[operand][i])...));
}

template <typename Function, typename Operand, size_t... operand>
Loop map_loop(DType operands, DType result, std::index_sequence<operand...>) {
  using T = typename LoopType<Function, Operand>::type;
  if constexpr (requires(Computed<T> x) { Function::of((static_cast<void>(operand), x)...); }) {
    using Result = Stored<T, decltype(Function::of((static_cast<void>(operand), Computed<T>{})...))>;
    if (result == result_dtype<T, Result>(operands))
      return map_elements<Function, T, Result, operand...>;
  }
  refuse_type();
}

/// The kernel of a function of `arity` operands.
template <typename Function, size_t arity> Kernel map_kernel(const Op &op) {
  check_alike(op, arity);
  DType operands = op.operands[0].dtype, result = op.results[0].dtype;
  Loop loop = with_type(operands, [&]<typename T>(T) {
    return map_loop<Function, T>(operands, result, std::make_index_sequence<arity>{});
  });
  return kernel_of(loop, op);
}

/// Promoteds of narrow unsigned integers are those of int, and would overflow it.
template <typename T> using Promoted = std::common_type_t<T, unsigned>;

struct Add {
  static constexpr bool wraps = true;
  template <Boolean T> static T of(T a, T b) { return a || b; }
  template <Unsigned T> static T of(T a, T b) { return static_cast<T>(a + b); }
  template <Floating T> static T of(T a, T b) { return a + b; }
};

struct Multiply {
  static constexpr bool wraps = true;
  template <Boolean T> static T of(T a, T b) { return a && b; }
  template <Unsigned T> static T of(T a, T b) { return static_cast<T>(Promoted<T>(a) * b); }
  template <Real T> static T of(T a, T b) { return a * b; }
  template <Complex T> static T of(T a, T b) { return complex_product(a, b); }
};

struct And {
  static constexpr bool wraps = true;
  template <Boolean T> static T of(T a, T b) { return a && b; }
  template <Unsigned T> static T of(T a, T b) { return a & b; }
};

struct Or {
  static constexpr bool wraps = true;
  template <Boolean T> static T of(T a, T b) { return a || b; }
  template <Unsigned T> static T of(T a, T b) { return a | b; }
};

/// The larger and the smaller of two elements: NaNs win, and 0 is larger than -0.
struct Maximum {
  template <Boolean T> static T of(T a, T b) { return a || b; }
  template <Integer T> static T of(T a, T b) { return a > b ? a : b; }
  template <Real T> static T of(T a, T b) {
    return a != a || a > b || (a == b && !std::signbit(a)) ? a : b;
  }
};

struct Minimum {
  template <Boolean T> static T of(T a, T b) { return a && b; }
  template <Integer T> static T of(T a, T b) { return a < b ? a : b; }
  template <Real T> static T of(T a, T b) {
    return a != a || a < b || (a == b && std::signbit(a)) ? a : b;
  }
};

} // namespace disc::interpreter
