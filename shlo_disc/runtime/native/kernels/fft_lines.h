// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moves lines of a tensor into the lanes of vectors and back, by blocks that are transposed in registers.
#pragma once

#include "fft_plan.h"
#include "widest_registers.h"

#include <cstring>
#include <utility>

namespace disc {

/// As many values as registers of 256 bits have.
template <typename T> constexpr int kBlock = 32 / sizeof(T);
template <typename T> struct BlockOf {
  using Type __attribute__((vector_size(32))) = T;
};
template <typename T> using Block = typename BlockOf<T>::Type;

template <typename T> DISC_INLINE void load_block(const T *from, Block<T> &block) {
  std::memcpy(&block, from, sizeof(block));
}
template <typename T> DISC_INLINE void store_block(T *to, const Block<T> &block) {
  std::memcpy(to, &block, sizeof(block));
}

/// Two rounds of exchanges within halves of 128 bits, and one between them.
DISC_INLINE void transpose(Block<float> (&x)[8]) {
  Block<float> y[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    y[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 4) {
    x[i] = __builtin_shufflevector(y[i], y[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    x[i + 1] = __builtin_shufflevector(y[i], y[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    x[i + 2] = __builtin_shufflevector(y[i + 1], y[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    x[i + 3] = __builtin_shufflevector(y[i + 1], y[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    Block<float> low = x[i], high = x[i + 4];
    x[i] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11);
    x[i + 4] = __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

DISC_INLINE void transpose(Block<double> (&x)[4]) {
  Block<double> y[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i += 2) {
    y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 4, 2, 6);
    y[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 1, 5, 3, 7);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 2; ++i) {
    x[i] = __builtin_shufflevector(y[i], y[i + 2], 0, 1, 4, 5);
    x[i + 2] = __builtin_shufflevector(y[i], y[i + 2], 2, 3, 6, 7);
  }
}

/// Even and odd places of two blocks: real and imaginary parts.
DISC_INLINE void part(const Block<float> &a, const Block<float> &b, Block<float> &re, Block<float> &im) {
  re = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
  im = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
DISC_INLINE void part(const Block<double> &a, const Block<double> &b, Block<double> &re, Block<double> &im) {
  re = __builtin_shufflevector(a, b, 0, 2, 4, 6);
  im = __builtin_shufflevector(a, b, 1, 3, 5, 7);
}

/// The reverse of `part`.
DISC_INLINE void join(const Block<float> &re, const Block<float> &im, Block<float> &a, Block<float> &b) {
  a = __builtin_shufflevector(re, im, 0, 8, 1, 9, 2, 10, 3, 11);
  b = __builtin_shufflevector(re, im, 4, 12, 5, 13, 6, 14, 7, 15);
}
DISC_INLINE void join(const Block<double> &re, const Block<double> &im, Block<double> &a, Block<double> &b) {
  a = __builtin_shufflevector(re, im, 0, 4, 1, 5);
  b = __builtin_shufflevector(re, im, 2, 6, 3, 7);
}

/// `count` complex numbers of each of the kLanes lines that lie `line_step` numbers apart, each of them contiguous.
template <typename T> void load_rows(const T *source, int64_t line_step, int64_t count, Split<T> x) {
  constexpr int size = kBlock<T>;
  constexpr int64_t pairs = size / 2;
  by_widest_registers([&]() __attribute__((always_inline)) {
    for (int64_t lane = 0; lane < kLanes; lane += size) {
      const T *from = source + 2 * lane * line_step;
      int64_t k = 0;
      for (; k + pairs <= count; k += pairs) {
        Block<T> block[size];
#pragma GCC unroll 8
        for (int i = 0; i < size; ++i)
          load_block(from + 2 * (i * line_step + k), block[i]);
        transpose(block);
#pragma GCC unroll 8
        for (int i = 0; i < size; i += 2) {
          store_block(x.re + (k + i / 2) * kLanes + lane, block[i]);
          store_block(x.im + (k + i / 2) * kLanes + lane, block[i + 1]);
        }
      }
      for (; k < count; ++k)
        for (int64_t i = 0; i < size; ++i) {
          x.re[k * kLanes + lane + i] = from[2 * (i * line_step + k)];
          x.im[k * kLanes + lane + i] = from[2 * (i * line_step + k) + 1];
        }
    }
  });
}

/// The reverse of `load_rows`, with a factor.
template <typename T> void store_rows(Split<T> x, T scale, int64_t line_step, int64_t count, T *target) {
  constexpr int size = kBlock<T>;
  constexpr int64_t pairs = size / 2;
  by_widest_registers([&]() __attribute__((always_inline)) {
    for (int64_t lane = 0; lane < kLanes; lane += size) {
      T *to = target + 2 * lane * line_step;
      int64_t k = 0;
      for (; k + pairs <= count; k += pairs) {
        Block<T> block[size];
#pragma GCC unroll 8
        for (int i = 0; i < size; i += 2) {
          load_block(x.re + (k + i / 2) * kLanes + lane, block[i]);
          load_block(x.im + (k + i / 2) * kLanes + lane, block[i + 1]);
          block[i] = block[i] * scale, block[i + 1] = block[i + 1] * scale;
        }
        transpose(block);
#pragma GCC unroll 8
        for (int i = 0; i < size; ++i)
          store_block(to + 2 * (i * line_step + k), block[i]);
      }
      for (; k < count; ++k)
        for (int64_t i = 0; i < size; ++i) {
          to[2 * (i * line_step + k)] = x.re[k * kLanes + lane + i] * scale;
          to[2 * (i * line_step + k) + 1] = x.im[k * kLanes + lane + i] * scale;
        }
    }
  });
}

/// `count` complex numbers of each of kLanes lines that are neighbours; `step` numbers lie between those of a line.
template <typename T> void load_columns(const T *source, int64_t step, int64_t count, Split<T> x) {
  constexpr int size = kBlock<T>;
  by_widest_registers([&]() __attribute__((always_inline)) {
    for (int64_t k = 0; k < count; ++k)
#pragma GCC unroll 2
      for (int64_t lane = 0; lane < kLanes; lane += size) {
        const T *from = source + 2 * (k * step + lane);
        Block<T> a, b, re, im;
        load_block(from, a);
        load_block(from + size, b);
        part(a, b, re, im);
        store_block(x.re + k * kLanes + lane, re);
        store_block(x.im + k * kLanes + lane, im);
      }
  });
}

/// The reverse of `load_columns`, with a factor.
template <typename T> void store_columns(Split<T> x, T scale, int64_t step, int64_t count, T *target) {
  constexpr int size = kBlock<T>;
  by_widest_registers([&]() __attribute__((always_inline)) {
    for (int64_t k = 0; k < count; ++k)
#pragma GCC unroll 2
      for (int64_t lane = 0; lane < kLanes; lane += size) {
        T *to = target + 2 * (k * step + lane);
        Block<T> re, im, a, b;
        load_block(x.re + k * kLanes + lane, re);
        load_block(x.im + k * kLanes + lane, im);
        re = re * scale, im = im * scale;
        join(re, im, a, b);
        store_block(to, a);
        store_block(to + size, b);
      }
  });
}

} // namespace disc
