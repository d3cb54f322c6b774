// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of one element.
#include "complex_functions.h"
#include "elementwise.h"

namespace disc::interpreter {

namespace {

struct Abs {
  template <Integer T> static T of(T x) {
    return x < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x)) : x;
  }
  template <Real T> static T of(T x) { return std::abs(x); }
  template <Complex T> static auto of(T x) { return complex_abs(x); }
};

struct Negate {
  static constexpr bool wraps = true;
  template <Unsigned T> static T of(T x) { return static_cast<T>(0 - x); }
  template <Floating T> static T of(T x) { return -x; }
};

struct Not {
  static constexpr bool wraps = true;
  template <Boolean T> static T of(T x) { return !x; }
  template <Unsigned T> static T of(T x) { return static_cast<T>(~x); }
};

struct Sign {
  template <Integer T> static T of(T x) { return static_cast<T>((x > 0) - (x < 0)); }
  template <Real T> static T of(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x; } // NaN, 0 and -0 as they are
  template <Complex T> static T of(T x) { return complex_sign(x); }
};

struct CountLeadingZeros {
  static constexpr bool wraps = true;
  template <Unsigned T> static T of(T x) { return static_cast<T>(std::countl_zero(x)); }
};

struct PopulationCount {
  static constexpr bool wraps = true;
  template <Unsigned T> static T of(T x) { return static_cast<T>(std::popcount(x)); }
};

struct RealPart {
  template <Real T> static T of(T x) { return x; }
  template <Complex T> static auto of(T x) { return x.real(); }
};

struct ImaginaryPart {
  template <Real T> static T of(T) { return 0; }
  template <Complex T> static auto of(T x) { return x.imag(); }
};

struct IsFinite {
  template <Real T> static bool of(T x) { return std::isfinite(x); }
};

struct Logistic {
  template <Real T> static T of(T x) { return 1 / (1 + std::exp(-x)); }
  template <Complex T> static T of(T x) { return complex_logistic(x); }
};

struct ReciprocalRoot {
  template <Real T> static T of(T x) { return 1 / std::sqrt(x); }
  template <Complex T> static T of(T x) { return complex_rsqrt(x); }
};

struct ExponentialMinusOne {
  template <Real T> static T of(T x) { return std::expm1(x); }
  template <Complex T> static T of(T x) { return complex_expm1(x); }
};

struct LogPlusOne {
  template <Real T> static T of(T x) { return std::log1p(x); }
  template <Complex T> static T of(T x) { return complex_log1p(x); }
};

struct Cosine {
  template <Real T> static T of(T x) { return std::cos(x); }
  template <Complex T> static T of(T x) { return complex_cos(x); }
};

struct Sine {
  template <Real T> static T of(T x) { return std::sin(x); }
  template <Complex T> static T of(T x) { return complex_sin(x); }
};

struct Tan {
  template <Real T> static T of(T x) { return std::tan(x); }
  template <Complex T> static T of(T x) { return complex_tan(x); }
};

struct Tanh {
  template <Real T> static T of(T x) { return std::tanh(x); }
  template <Complex T> static T of(T x) { return complex_tanh(x); }
};

// clang-format off
struct Cbrt { template <Real T> static T of(T x) { return std::cbrt(x); } };
struct Ceil { template <Real T> static T of(T x) { return std::ceil(x); } };
struct Floor { template <Real T> static T of(T x) { return std::floor(x); } };
struct RoundAwayFromZero { template <Real T> static T of(T x) { return std::round(x); } };
struct RoundToEven { template <Real T> static T of(T x) { return std::rint(x); } };
struct Exponential {
  template <Real T> static T of(T x) { return std::exp(x); }
  template <Complex T> static T of(T x) { return complex_exp(x); }
};
struct Log { template <Floating T> static T of(T x) { return std::log(x); } };
struct Sqrt {
  template <Real T> static T of(T x) { return std::sqrt(x); }
  template <Complex T> static T of(T x) { return complex_sqrt(x); }
};
// clang-format on

} // namespace

const KernelTable &unary_kernels() {
  static const KernelTable table = {
      {"abs", map_kernel<Abs, 1>},
      {"cbrt", map_kernel<Cbrt, 1>},
      {"ceil", map_kernel<Ceil, 1>},
      {"cosine", map_kernel<Cosine, 1>},
      {"count_leading_zeros", map_kernel<CountLeadingZeros, 1>},
      {"exponential", map_kernel<Exponential, 1>},
      {"exponential_minus_one", map_kernel<ExponentialMinusOne, 1>},
      {"floor", map_kernel<Floor, 1>},
      {"imag", map_kernel<ImaginaryPart, 1>},
      {"is_finite", map_kernel<IsFinite, 1>},
      {"log", map_kernel<Log, 1>},
      {"log_plus_one", map_kernel<LogPlusOne, 1>},
      {"logistic", map_kernel<Logistic, 1>},
      {"negate", map_kernel<Negate, 1>},
      {"not", map_kernel<Not, 1>},
      {"popcnt", map_kernel<PopulationCount, 1>},
      {"real", map_kernel<RealPart, 1>},
      {"round_nearest_afz", map_kernel<RoundAwayFromZero, 1>},
      {"round_nearest_even", map_kernel<RoundToEven, 1>},
      {"rsqrt", map_kernel<ReciprocalRoot, 1>},
      {"sign", map_kernel<Sign, 1>},
      {"sine", map_kernel<Sine, 1>},
      {"sqrt", map_kernel<Sqrt, 1>},
      {"tan", map_kernel<Tan, 1>},
      {"tanh", map_kernel<Tanh, 1>},
  };
  return table;
}

} // namespace disc::interpreter
