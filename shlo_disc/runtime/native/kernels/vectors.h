// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Registers of floats: of 256 bits (AVX2) and of 512 (AVX-512). The processor is asked which of them it has.
#pragma once

#include <cstdint>
#include <immintrin.h>

#define DISC_AVX2 __attribute__((target("avx2,fma,f16c")))
#define DISC_AVX512 __attribute__((target("avx512f")))
#define DISC_AVX512_BF16 __attribute__((target("avx512f,avx512bf16")))

/// Keeps what was loaded in a register: GCC would load it again for each product, and loads would take longest.
#define DISC_IN_REGISTER(vector) __asm__("" : "+v"(vector))

namespace disc {

/// Whether the processor has the instructions of DISC_AVX2.
inline bool has_avx2() {
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  return has;
}

/// `first(count)` is the mask of the first elements, 1 to all.
template <typename T> struct Vector256;
template <> struct Vector256<float> {
  using Type = __m256;
  using Mask = __m256i;
  static constexpr int64_t kLanes = 8;
  DISC_AVX2 static Mask first(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  DISC_AVX2 static Type load(const float *from) { return _mm256_loadu_ps(from); }
  /// Zeros where the mask has none; nothing is read there.
  DISC_AVX2 static Type load(Mask lanes, const float *from) { return _mm256_maskload_ps(from, lanes); }
  DISC_AVX2 static Type repeat(float value) { return _mm256_set1_ps(value); }
  DISC_AVX2 static void store(float *to, Type value) { _mm256_storeu_ps(to, value); }
  DISC_AVX2 static Type add_product(Type a, Type b, Type sum) { return _mm256_fmadd_ps(a, b, sum); }
  /// The sum of the elements: of halves, then of their halves.
  DISC_AVX2 static float total(Type value) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    __m128 quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
  }
};
template <> struct Vector256<double> {
  using Type = __m256d;
  using Mask = __m256i;
  static constexpr int64_t kLanes = 4;
  DISC_AVX2 static Mask first(int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  DISC_AVX2 static Type load(const double *from) { return _mm256_loadu_pd(from); }
  DISC_AVX2 static Type load(Mask lanes, const double *from) { return _mm256_maskload_pd(from, lanes); }
  DISC_AVX2 static Type repeat(double value) { return _mm256_set1_pd(value); }
  DISC_AVX2 static void store(double *to, Type value) { _mm256_storeu_pd(to, value); }
  DISC_AVX2 static Type add_product(Type a, Type b, Type sum) { return _mm256_fmadd_pd(a, b, sum); }
  DISC_AVX2 static double total(Type value) {
    __m128d half = _mm_add_pd(_mm256_castpd256_pd128(value), _mm256_extractf128_pd(value, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
  }
};

template <typename T> struct Vector512;
template <> struct Vector512<float> {
  using Type = __m512;
  using Mask = __mmask16;
  static constexpr int64_t kLanes = 16;
  DISC_AVX512 static Mask first(int64_t count) { return static_cast<Mask>((1U << count) - 1); }
  DISC_AVX512 static Type load(const float *from) { return _mm512_loadu_ps(from); }
  DISC_AVX512 static Type load(Mask lanes, const float *from) { return _mm512_maskz_loadu_ps(lanes, from); }
  DISC_AVX512 static Type repeat(float value) { return _mm512_set1_ps(value); }
  DISC_AVX512 static void store(float *to, Type value) { _mm512_storeu_ps(to, value); }
  DISC_AVX512 static Type add_product(Type a, Type b, Type sum) { return _mm512_fmadd_ps(a, b, sum); }
};
template <> struct Vector512<double> {
  using Type = __m512d;
  using Mask = __mmask8;
  static constexpr int64_t kLanes = 8;
  DISC_AVX512 static Mask first(int64_t count) { return static_cast<Mask>((1U << count) - 1); }
  DISC_AVX512 static Type load(const double *from) { return _mm512_loadu_pd(from); }
  DISC_AVX512 static Type load(Mask lanes, const double *from) { return _mm512_maskz_loadu_pd(lanes, from); }
  DISC_AVX512 static Type repeat(double value) { return _mm512_set1_pd(value); }
  DISC_AVX512 static void store(double *to, Type value) { _mm512_storeu_pd(to, value); }
  DISC_AVX512 static Type add_product(Type a, Type b, Type sum) { return _mm512_fmadd_pd(a, b, sum); }
};

/// Sums of floats, and pairs of bf16 in lanes of 32 bits, which one instruction multiplies and adds: the lower half of a
/// lane is the first of its pair.
struct Bf16Pairs512 {
  using Type = __m512;
  using Mask = __mmask16;
  static constexpr int64_t kLanes = 16;
  DISC_AVX512 static Mask first(int64_t count) { return Vector512<float>::first(count); }
  DISC_AVX512 static Type load(const uint32_t *from) { return _mm512_castsi512_ps(_mm512_loadu_si512(from)); }
  DISC_AVX512 static Type load(Mask lanes, const uint32_t *from) {
    return _mm512_castsi512_ps(_mm512_maskz_loadu_epi32(lanes, from));
  }
  DISC_AVX512 static Type repeat(uint32_t pair) {
    return _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(pair)));
  }
  DISC_AVX512 static void store(uint32_t *to, Type value) { _mm512_storeu_si512(to, _mm512_castps_si512(value)); }
  DISC_AVX512_BF16 static Type add_product(Type a, Type b, Type sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

} // namespace disc
