// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs code that is written with vectors of GCC by the widest registers that the processor has.
#pragma once

#include "vectors.h"

/// For all functions that such code calls: they take the instructions of their caller.
#define DISC_INLINE __attribute__((always_inline)) inline

namespace disc {

enum class Registers { baseline, avx2, avx512 };

inline Registers widest_registers() {
  static const Registers widest =
      !has_avx2() ? Registers::baseline
      : __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") ? Registers::avx512
                                                                                 : Registers::avx2;
  return widest;
}

template <typename Body> __attribute__((noinline)) void run_baseline(const Body &body) { body(); }
template <typename Body> __attribute__((noinline, target("avx2,fma"))) void run_avx2(const Body &body) { body(); }
template <typename Body> __attribute__((noinline, target("avx512f,avx512vl,fma"))) void run_avx512(const Body &body) {
  body();
}

/// `body` is a lambda that is always inlined: `[&]() __attribute__((always_inline)) { ... }`.
template <typename Body> void by_widest_registers(const Body &body) {
  switch (widest_registers()) {
  case Registers::baseline:
    return run_baseline(body);
  case Registers::avx2:
    return run_avx2(body);
  case Registers::avx512:
    return run_avx512(body);
  }
}

} // namespace disc
