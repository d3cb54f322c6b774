// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of two elements, and comparisons.
#include "elementwise.h"

#include <limits>

namespace disc::interpreter {

namespace {

struct Subtract {
  static constexpr bool wraps = true;
  template <Unsigned T> static T of(T a, T b) { return static_cast<T>(a - b); }
  template <Floating T> static T of(T a, T b) { return a - b; }
};

/// A division that the processor refuses to do: by 0, or with a quotient that is too large.
template <Integer T> bool is_refused(T a, T b) {
  return b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min());
}

struct Divide {
  template <Integer T> static T of(T a, T b) {
    return is_refused(a, b) ? static_cast<T>(b == 0 ? -1 : a) : static_cast<T>(a / b);
  }
  template <Real T> static T of(T a, T b) { return a / b; }
  template <Complex T> static T of(T a, T b) { return complex_quotient(a, b); }
};

struct Remainder {
  template <Integer T> static T of(T a, T b) {
    return is_refused(a, b) ? static_cast<T>(b == 0 ? a : 0) : static_cast<T>(a % b);
  }
  template <Real T> static T of(T a, T b) { return std::fmod(a, b); }
};

struct Xor {
  static constexpr bool wraps = true;
  template <Boolean T> static T of(T a, T b) { return a != b; }
  template <Unsigned T> static T of(T a, T b) { return a ^ b; }
};

/// Negative distances are as large ones.
template <Integer T> bool is_within(T distance) {
  return static_cast<std::make_unsigned_t<T>>(distance) < sizeof(T) * 8;
}

struct ShiftLeft {
  static constexpr bool wraps = true;
  template <Unsigned T> static T of(T a, T b) { return is_within(b) ? static_cast<T>(Promoted<T>(a) << b) : T(0); }
};

struct ShiftRightLogical {
  static constexpr bool wraps = true;
  template <Unsigned T> static T of(T a, T b) { return is_within(b) ? static_cast<T>(a >> b) : T(0); }
};

struct ShiftRightArithmetic {
  template <Integer T> static T of(T a, T b) {
    auto number = static_cast<std::make_signed_t<T>>(a);
    return static_cast<T>(number >> (is_within(b) ? b : static_cast<T>(sizeof(T) * 8 - 1)));
  }
};

struct Power {
  template <Integer T> static T of(T base, T exponent) {
    if (exponent < 0) // a fraction, towards 0, but for 1 and -1
      return base == 1 || base == static_cast<T>(-1) ? (exponent % 2 == 0 ? T(1) : base) : T(0);
    Promoted<std::make_unsigned_t<T>> power = 1, square = static_cast<std::make_unsigned_t<T>>(base);
    for (; exponent != 0; exponent /= 2, square *= square)
      if (exponent % 2 != 0)
        power *= square;
    return static_cast<T>(power);
  }
  template <Real T> static T of(T a, T b) { return std::pow(a, b); }
  template <Complex T> static T of(T a, T b) { return complex_power(a, b); }
};

struct Atan2 {
  template <Real T> static T of(T a, T b) { return std::atan2(a, b); }
};

struct MakeComplex {
  template <Real T> static std::complex<T> of(T a, T b) { return {a, b}; }
};

template <typename T> concept Ordered = !Complex<T>;

struct Equal {
  static constexpr bool wraps = true;
  template <typename T> static bool of(T a, T b) { return a == b; }
};

struct Unequal {
  static constexpr bool wraps = true;
  template <typename T> static bool of(T a, T b) { return a != b; }
};

// clang-format off
struct GreaterEqual { template <Ordered T> static bool of(T a, T b) { return a >= b; } };
struct Greater { template <Ordered T> static bool of(T a, T b) { return a > b; } };
struct LessEqual { template <Ordered T> static bool of(T a, T b) { return a <= b; } };
struct Less { template <Ordered T> static bool of(T a, T b) { return a < b; } };
// clang-format on

/// -NaN < -inf < -0 < 0 < inf < NaN: floats by their bits, as numbers with a sign.
template <typename Comparison> struct TotalOrder {
  template <Integer T> static T number_of(T bits) {
    return bits < 0 ? static_cast<T>(bits ^ std::numeric_limits<T>::max()) : bits;
  }
  template <Integer T> static bool of(T a, T b) { return Comparison::of(number_of(a), number_of(b)); }
};

template <typename Comparison> Kernel total_order_kernel(const Op &op) {
  check_alike(op, 2);
  Op::require(op.result().dtype == DType::i1);
  switch (op.operand(0).element_bytes()) {
  case 2: return kernel_of(map_elements<TotalOrder<Comparison>, int16_t, Bool, 0, 1>, op);
  case 4: return kernel_of(map_elements<TotalOrder<Comparison>, int32_t, Bool, 0, 1>, op);
  default: return kernel_of(map_elements<TotalOrder<Comparison>, int64_t, Bool, 0, 1>, op);
  }
}

template <typename Comparison> Kernel comparison_kernel(const Op &op) {
  constexpr int64_t total_order = 2;
  if (op.integer("compare_type") == total_order && is_floating(op.operand(0).dtype))
    return total_order_kernel<Comparison>(op);
  return map_kernel<Comparison, 2>(op);
}

Kernel compare_kernel(const Op &op) {
  static constexpr KernelMaker makers[] = {comparison_kernel<Equal>,        comparison_kernel<Unequal>,
                                           comparison_kernel<GreaterEqual>, comparison_kernel<Greater>,
                                           comparison_kernel<LessEqual>,    comparison_kernel<Less>};
  int64_t direction = op.integer("comparison_direction");
  Op::require(direction >= 0 && direction < static_cast<int64_t>(std::size(makers)));
  return makers[direction](op);
}

} // namespace

const KernelTable &binary_kernels() {
  static const KernelTable table = {
      {"add", map_kernel<Add, 2>},
      {"and", map_kernel<And, 2>},
      {"atan2", map_kernel<Atan2, 2>},
      {"compare", compare_kernel},
      {"complex", map_kernel<MakeComplex, 2>},
      {"divide", map_kernel<Divide, 2>},
      {"maximum", map_kernel<Maximum, 2>},
      {"minimum", map_kernel<Minimum, 2>},
      {"multiply", map_kernel<Multiply, 2>},
      {"or", map_kernel<Or, 2>},
      {"power", map_kernel<Power, 2>},
      {"remainder", map_kernel<Remainder, 2>},
      {"shift_left", map_kernel<ShiftLeft, 2>},
      {"shift_right_arithmetic", map_kernel<ShiftRightArithmetic, 2>},
      {"shift_right_logical", map_kernel<ShiftRightLogical, 2>},
      {"subtract", map_kernel<Subtract, 2>},
      {"xor", map_kernel<Xor, 2>},
  };
  return table;
}

} // namespace disc::interpreter
