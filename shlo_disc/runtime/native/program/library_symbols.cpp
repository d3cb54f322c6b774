// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "library_symbols.h"

#include <cmath>
#include <cstring>
#include <unordered_map>

namespace disc {

namespace {

using Table = std::unordered_map<std::string_view, uint64_t>;

template <typename Function> uint64_t address(Function *function) { return reinterpret_cast<uint64_t>(function); }

void add_unary(Table &table, std::string_view name, std::string_view name_f32, double (*f64)(double),
               float (*f32)(float)) {
  table.emplace(name, address(f64));
  table.emplace(name_f32, address(f32));
}

void add_binary(Table &table, std::string_view name, std::string_view name_f32, double (*f64)(double, double),
                float (*f32)(float, float)) {
  table.emplace(name, address(f64));
  table.emplace(name_f32, address(f32));
}

void add_memory(Table &table) {
  table.emplace("memcpy", address(static_cast<void *(*)(void *, const void *, size_t)>(::memcpy)));
  table.emplace("memmove", address(static_cast<void *(*)(void *, const void *, size_t)>(::memmove)));
  table.emplace("memset", address(static_cast<void *(*)(void *, int, size_t)>(::memset)));
  table.emplace("memcmp", address(static_cast<int (*)(const void *, const void *, size_t)>(::memcmp)));
}

void add_exponential(Table &table) {
  add_unary(table, "exp", "expf", ::exp, ::expf);
  add_unary(table, "exp2", "exp2f", ::exp2, ::exp2f);
  add_unary(table, "expm1", "expm1f", ::expm1, ::expm1f);
  add_unary(table, "log", "logf", ::log, ::logf);
  add_unary(table, "log2", "log2f", ::log2, ::log2f);
  add_unary(table, "log10", "log10f", ::log10, ::log10f);
  add_unary(table, "log1p", "log1pf", ::log1p, ::log1pf);
  add_unary(table, "sqrt", "sqrtf", ::sqrt, ::sqrtf);
  add_unary(table, "cbrt", "cbrtf", ::cbrt, ::cbrtf);
  add_unary(table, "erf", "erff", ::erf, ::erff);
  add_unary(table, "erfc", "erfcf", ::erfc, ::erfcf);
  add_unary(table, "lgamma", "lgammaf", ::lgamma, ::lgammaf);
  add_unary(table, "tgamma", "tgammaf", ::tgamma, ::tgammaf);
  add_binary(table, "pow", "powf", ::pow, ::powf);
}

void add_trigonometric(Table &table) {
  add_unary(table, "sin", "sinf", ::sin, ::sinf);
  add_unary(table, "cos", "cosf", ::cos, ::cosf);
  add_unary(table, "tan", "tanf", ::tan, ::tanf);
  add_unary(table, "asin", "asinf", ::asin, ::asinf);
  add_unary(table, "acos", "acosf", ::acos, ::acosf);
  add_unary(table, "atan", "atanf", ::atan, ::atanf);
  add_unary(table, "sinh", "sinhf", ::sinh, ::sinhf);
  add_unary(table, "cosh", "coshf", ::cosh, ::coshf);
  add_unary(table, "tanh", "tanhf", ::tanh, ::tanhf);
  add_unary(table, "asinh", "asinhf", ::asinh, ::asinhf);
  add_unary(table, "acosh", "acoshf", ::acosh, ::acoshf);
  add_unary(table, "atanh", "atanhf", ::atanh, ::atanhf);
  add_binary(table, "atan2", "atan2f", ::atan2, ::atan2f);
}

void add_rounding(Table &table) {
  add_unary(table, "floor", "floorf", ::floor, ::floorf);
  add_unary(table, "ceil", "ceilf", ::ceil, ::ceilf);
  add_unary(table, "trunc", "truncf", ::trunc, ::truncf);
  add_unary(table, "round", "roundf", ::round, ::roundf);
  add_unary(table, "rint", "rintf", ::rint, ::rintf);
  add_unary(table, "nearbyint", "nearbyintf", ::nearbyint, ::nearbyintf);
  add_unary(table, "fabs", "fabsf", ::fabs, ::fabsf);
  add_binary(table, "fmod", "fmodf", ::fmod, ::fmodf);
  add_binary(table, "fmin", "fminf", ::fmin, ::fminf);
  add_binary(table, "fmax", "fmaxf", ::fmax, ::fmaxf);
  add_binary(table, "copysign", "copysignf", ::copysign, ::copysignf);
  table.emplace("fma", address(static_cast<double (*)(double, double, double)>(::fma)));
  table.emplace("fmaf", address(static_cast<float (*)(float, float, float)>(::fmaf)));
}

Table make_table() {
  Table table;
  add_memory(table);
  add_exponential(table);
  add_trigonometric(table);
  add_rounding(table);
  return table;
}

} // namespace

uint64_t library_symbol(std::string_view name) {
  static const Table table = make_table();
  auto found = table.find(name);
  return found == table.end() ? 0 : found->second;
}

} // namespace disc
