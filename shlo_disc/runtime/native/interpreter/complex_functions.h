// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of complex numbers that the standard library lacks, or whose results for infinities and NaNs differ there
// from those of XLA and of compiled programs. Most compute in a wider type, so that sums that cancel keep their digits
// and squares do not overflow.
#pragma once

#include <cmath>
#include <complex>
#include <type_traits>

namespace disc::interpreter {

template <typename T> using Wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <typename T> std::complex<T> complex_exp(std::complex<T> z) {
  T nan = z.imag() - z.imag();
  return nan != 0 ? std::complex<T>(nan, nan) : std::exp(z);
}

template <typename T> std::complex<T> complex_sqrt(std::complex<T> z) {
  T nan = std::isnan(z.real()) ? z.real() : z.imag();
  return std::isnan(nan) ? std::complex<T>(nan, nan) : std::sqrt(z);
}

template <typename T> T complex_abs(std::complex<T> z) {
  return std::isnan(z.real()) || std::isnan(z.imag()) ? z.real() + z.imag() : std::abs(z);
}

template <typename T> std::complex<T> complex_cos(std::complex<T> z) {
  Wider<T> x = z.real(), y = z.imag();
  return {static_cast<T>(std::cos(x) * std::cosh(y)), static_cast<T>(-std::sin(x) * std::sinh(y))};
}

template <typename T> std::complex<T> complex_sin(std::complex<T> z) {
  Wider<T> x = z.real(), y = z.imag();
  return {static_cast<T>(std::sin(x) * std::cosh(y)), static_cast<T>(std::cos(x) * std::sinh(y))};
}

template <typename T> std::complex<T> complex_tanh(std::complex<T> z) {
  T nan = z.imag() - z.imag();
  return z.real() == 0 && nan != 0 ? std::complex<T>(nan, nan) : std::tanh(z);
}

template <typename T> std::complex<T> complex_tan(std::complex<T> z) {
  std::complex<T> turned = complex_tanh(std::complex<T>(-z.imag(), z.real()));
  return {turned.imag(), -turned.real()};
}

template <typename T> std::complex<T> complex_log1p(std::complex<T> z) {
  Wider<T> x = z.real(), y = z.imag();
  Wider<T> real = std::isinf(x) || std::isinf(y) ? HUGE_VALL : std::log1p(x * (2 + x) + y * y) / 2;
  return {static_cast<T>(real), static_cast<T>(std::atan2(y, 1 + x))};
}

template <typename T> std::complex<T> complex_expm1(std::complex<T> z) {
  Wider<T> x = z.real(), y = z.imag();
  if (y == 0)
    return {static_cast<T>(std::expm1(x)), z.imag()};
  Wider<T> grown = std::expm1(x), half = std::sin(y / 2);
  return {static_cast<T>(grown * std::cos(y) - 2 * half * half), static_cast<T>((grown + 1) * std::sin(y))};
}

template <typename T> std::complex<Wider<T>> widened(std::complex<T> z) { return z; }

/// Unlike the product in C++, it does not replace NaNs by infinities.
template <typename T> std::complex<T> complex_product(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <typename T> std::complex<T> complex_quotient(std::complex<T> a, std::complex<T> b) {
  return static_cast<std::complex<T>>(widened(a) / widened(b));
}

/// Computed from the length and the angle of the base, as in XLA: std::pow differs at 0 and at infinities.
template <typename T> std::complex<T> complex_power(std::complex<T> base, std::complex<T> exponent) {
  if (base == T(1) || exponent == T(0)) // even if the other is NaN
    return T(1);
  bool is_real = base.imag() == 0 && exponent.imag() == 0, is_positive = exponent.real() > 0;
  if (is_real && ((base.real() == 0 && is_positive) || (base.real() == HUGE_VAL && !std::isnan(exponent.real()))))
    return (base.real() == 0) == is_positive ? T(0) : T(HUGE_VAL);
  Wider<T> length = std::abs(widened(base)), angle = std::arg(widened(base)), x = exponent.real(), y = exponent.imag();
  Wider<T> size = std::pow(length, x) * std::exp(-y * angle), turn = x * angle + y * std::log(length);
  return {static_cast<T>(size * std::cos(turn)), static_cast<T>(size * std::sin(turn))};
}

template <typename T> std::complex<T> complex_sign(std::complex<T> z) {
  return z == T(0) ? z : static_cast<std::complex<T>>(widened(z) / std::abs(widened(z)));
}

template <typename T> std::complex<T> complex_logistic(std::complex<T> z) {
  constexpr Wider<T> one = 1;
  T nan = z.imag() - z.imag();
  return nan != 0 ? std::complex<T>(nan, nan) : static_cast<std::complex<T>>(one / (one + std::exp(-widened(z))));
}

template <typename T> std::complex<T> complex_rsqrt(std::complex<T> z) {
  constexpr Wider<T> one = 1;
  return static_cast<std::complex<T>>(one / std::sqrt(widened(z)));
}

} // namespace disc::interpreter
