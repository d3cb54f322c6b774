// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of some rows of A with a strip of B, some registers wide: the sums stay in registers. Where these are wide,
// each row of the strip is several whole lines of the cache, which processors fetch faster than one or two.
#pragma once

#include "vectors.h"

#include <array>
#include <utility>

namespace disc::strips {

constexpr int64_t kMostVectors = 8;      // of a strip
constexpr int64_t kMostRows = 8;         // of A, together
constexpr int64_t kDeepestBytes = 768;   // of a row of A
constexpr int64_t kLineBytes = 64;       // of the cache
constexpr int64_t kCopyBytes = 48 << 10; // of a strip, at most: strips that are copied are no wider

/// Some dense rows of A of `depth` elements, a strip of B's rows, and the dense sums; distances in elements.
template <typename T> struct Strip {
  const T *a;
  const T *b;
  int64_t b_step;
  T *sums; // whole vectors
  int64_t sums_step, depth;
  int64_t last;        // elements of the last vector that B has
  const T *ahead;      // rows of a strip to come, whose lines are fetched into the second cache
  int64_t ahead_step;  // elements between them
  int64_t interval;    // rows of this strip for one of these
  T *copy;             // of the strip's rows, one behind the other
  bool adds;           // to what is in the sums
};

template <typename T> using Multiply = void (*)(const Strip<T> &);

/// What a kernel does besides: fetch a row of a strip to come with each row, or with some, or that and copy the strip.
enum class Extra { kNone, kFetch, kFetchSome, kFetchSomeAndCopy };

/// Fetches the lines of `count` elements into the second cache.
template <typename T, int64_t count> inline void fetch(const T *first) {
#pragma GCC unroll 8
  for (int64_t i = 0; i < count; i += kLineBytes / static_cast<int64_t>(sizeof(T)))
    __builtin_prefetch(first + i, 0, 2);
  __asm__ volatile(""); // not among the multiplications
}

/// Kernels by rows, less one, and vectors, less one.
template <typename T> using ByShape = std::array<std::array<Multiply<T>, kMostVectors>, kMostRows>;

/// The kernels for one width of registers.
template <typename T> struct Kernels {
  int64_t lanes;              // of a vector
  int64_t rows;               // of A, at most
  int64_t depth;              // rows of strips that are used together
  int64_t (*widest)(int64_t); // vectors of a strip for so many rows: the sums and the strip's row fit the registers
  bool copies;                // where several groups of rows use a strip
  ByShape<T> multiply, fetching, fetching_some, copying;
};

namespace avx2 {

constexpr int64_t kRows = 4, kDepthBytes = 768;
constexpr int64_t widest(int64_t rows) { return rows == 1 ? 7 : rows == 2 ? 4 : rows <= 4 ? 3 : 2; }
constexpr bool kCopies = true; // rows that lie whole pages apart displace each other in the first cache
template <typename T> using Vector = Vector256<T>;
#define DISC_TARGET DISC_AVX2
#include "strip_kernels.inc"
#undef DISC_TARGET

static_assert(kDepthBytes <= kDeepestBytes);

} // namespace avx2

namespace avx512 {

constexpr int64_t kRows = 8, kDepthBytes = 512;
constexpr int64_t widest(int64_t rows) { return rows <= 3 ? 8 : rows <= 6 ? 4 : 3; }
constexpr bool kCopies = false; // takes longer than reading the strip again
template <typename T> using Vector = Vector512<T>;
#define DISC_TARGET DISC_AVX512
#include "strip_kernels.inc"
#undef DISC_TARGET

static_assert(kDepthBytes <= kDeepestBytes);

} // namespace avx512

/// Strips of pairs of bf16, along the terms; the sums are floats.
namespace bf16_pairs {

using avx512::kCopies, avx512::kDepthBytes, avx512::kRows, avx512::widest;
template <typename> using Vector = Bf16Pairs512;
#define DISC_TARGET DISC_AVX512_BF16
#include "strip_kernels.inc"
#undef DISC_TARGET

} // namespace bf16_pairs

} // namespace disc::strips
