// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The stages of a Fourier transform in Stockham's order: butterflies of one radix on values in registers.
#pragma once

#include "fft_plan.h"
#include "widest_registers.h"

#include <utility>

namespace disc {

constexpr int64_t kLargestRadix = 61; // larger prime factors always go through a convolution

/// Calls `body` with each index, as a constant.
template <typename Body, int... i>
DISC_INLINE void for_indices(std::integer_sequence<int, i...>, const Body &body) {
  (body(std::integral_constant<int, i>{}), ...);
}
template <int count, typename Body> DISC_INLINE void for_each_index(const Body &body) {
  for_indices(std::make_integer_sequence<int, count>{}, body);
}

#define DISC_EACH(k) [&](auto k) __attribute__((always_inline))

/// A transform of `radix` values in place.
template <typename T, typename V, int radix> struct Butterfly;

template <typename T, typename V> struct Butterfly<T, V, 2> {
  DISC_INLINE static void run(V *re, V *im, const T *, const T *) {
    V br = re[1], bi = im[1];
    re[1] = re[0] - br, im[1] = im[0] - bi;
    re[0] = re[0] + br, im[0] = im[0] + bi;
  }
};

template <typename T, typename V> struct Butterfly<T, V, 3> {
  DISC_INLINE static void run(V *re, V *im, const T *, const T *) {
    constexpr T half = T(0.5), root = T(0.866025403784438646763723170752936183L);
    V sr = re[1] + re[2], si = im[1] + im[2], dr = (re[1] - re[2]) * root, di = (im[1] - im[2]) * root;
    V mr = re[0] - sr * half, mi = im[0] - si * half;
    re[0] = re[0] + sr, im[0] = im[0] + si;
    re[1] = mr + di, im[1] = mi - dr;
    re[2] = mr - di, im[2] = mi + dr;
  }
};

template <typename T, typename V> struct Butterfly<T, V, 4> {
  DISC_INLINE static void run(V *re, V *im, const T *, const T *) {
    V acr = re[0] + re[2], aci = im[0] + im[2], amr = re[0] - re[2], ami = im[0] - im[2];
    V bdr = re[1] + re[3], bdi = im[1] + im[3], bmr = re[1] - re[3], bmi = im[1] - im[3];
    re[0] = acr + bdr, im[0] = aci + bdi;
    re[1] = amr + bmi, im[1] = ami - bmr;
    re[2] = acr - bdr, im[2] = aci - bdi;
    re[3] = amr - bmi, im[3] = ami + bmr;
  }
};

/// Two transforms of 4, of the even and of the odd values.
template <typename T, typename V> struct Butterfly<T, V, 8> {
  DISC_INLINE static void run(V *re, V *im, const T *, const T *) {
    constexpr T root = T(0.707106781186547524400844362104849039L);
    V er[4] = {re[0], re[2], re[4], re[6]}, ei[4] = {im[0], im[2], im[4], im[6]};
    V odr[4] = {re[1], re[3], re[5], re[7]}, odi[4] = {im[1], im[3], im[5], im[7]};
    Butterfly<T, V, 4>::run(er, ei, nullptr, nullptr);
    Butterfly<T, V, 4>::run(odr, odi, nullptr, nullptr);
    V ar = (odr[1] + odi[1]) * root, ai = (odi[1] - odr[1]) * root;
    V br = (odi[3] - odr[3]) * root, bi = (odr[3] + odi[3]) * root;
    re[0] = er[0] + odr[0], im[0] = ei[0] + odi[0];
    re[4] = er[0] - odr[0], im[4] = ei[0] - odi[0];
    re[1] = er[1] + ar, im[1] = ei[1] + ai;
    re[5] = er[1] - ar, im[5] = ei[1] - ai;
    re[2] = er[2] + odi[2], im[2] = ei[2] - odr[2];
    re[6] = er[2] - odi[2], im[6] = ei[2] + odr[2];
    re[3] = er[3] + br, im[3] = ei[3] - bi;
    re[7] = er[3] - br, im[7] = ei[3] + bi;
  }
};

/// An odd radix. Pairs x[j], x[radix - j] share their products: their sum has the cosines, their difference the sines.
template <typename T, typename V, int radix> struct Butterfly {
  DISC_INLINE static void run(V *re, V *im, const T *cosines, const T *sines) {
    constexpr int half = (radix - 1) / 2;
    V sr[half], si[half], dr[half], di[half], ar = re[0], ai = im[0];
    for_each_index<half>(DISC_EACH(j) {
      sr[j] = re[j + 1] + re[radix - 1 - j], si[j] = im[j + 1] + im[radix - 1 - j];
      dr[j] = re[j + 1] - re[radix - 1 - j], di[j] = im[j + 1] - im[radix - 1 - j];
      re[0] = re[0] + sr[j], im[0] = im[0] + si[j];
    });
    for_each_index<half>(DISC_EACH(i) {
      constexpr int k = i + 1;
      V cr = ar + sr[0] * cosines[k], ci = ai + si[0] * cosines[k];
      V er = di[0] * sines[k], ei = dr[0] * sines[k];
      for_each_index<half - 1>(DISC_EACH(j) {
        constexpr int turn = k * (j + 2) % radix;
        cr = cr + sr[j + 1] * cosines[turn], ci = ci + si[j + 1] * cosines[turn];
        er = er + di[j + 1] * sines[turn], ei = ei + dr[j + 1] * sines[turn];
      });
      re[k] = cr + er, im[k] = ci - ei;
      re[radix - k] = cr - er, im[radix - k] = ci + ei;
    });
  }
};

/// One stage: `groups` butterflies, each on `stride` independent values.
template <typename T> struct Butterflies {
  int64_t radix, groups, stride;
  const T *cosines, *sines;
  const T *radix_cosines, *radix_sines;

  /// Those of group p. Only those of group 0 have no `turns`: y[k] = value * exp(-2 pi i p k / (groups * radix)).
  template <typename V, int size, bool turns> DISC_INLINE void group(Split<V> x, Split<V> y, int64_t p) const {
    T c[size], s[size], rc[size], rs[size];
    for_each_index<size>(DISC_EACH(k) {
      rc[k] = radix_cosines[k], rs[k] = radix_sines[k];
      if constexpr (turns && k > 0)
        c[k] = cosines[p * (size - 1) + k - 1], s[k] = sines[p * (size - 1) + k - 1];
    });
    int64_t step = stride * groups;
    const V *from_re = x.re + stride * p, *from_im = x.im + stride * p;
    V *to_re = y.re + stride * size * p, *to_im = y.im + stride * size * p;
    for (int64_t q = 0; q < stride; ++q) {
      V re[size], im[size];
      for_each_index<size>(DISC_EACH(k) { re[k] = from_re[q + k * step], im[k] = from_im[q + k * step]; });
      Butterfly<T, V, size>::run(re, im, rc, rs);
      for_each_index<size>(DISC_EACH(k) {
        if constexpr (turns && k > 0) {
          to_re[q + k * stride] = re[k] * c[k] + im[k] * s[k];
          to_im[q + k * stride] = im[k] * c[k] - re[k] * s[k];
        } else {
          to_re[q + k * stride] = re[k], to_im[q + k * stride] = im[k];
        }
      });
    }
  }

  template <typename V, int size> DISC_INLINE void fixed(Split<V> x, Split<V> y) const {
    group<V, size, false>(x, y, 0);
    for (int64_t p = 1; p < groups; ++p)
      group<V, size, true>(x, y, p);
  }

  /// y[k] of group p.
  template <typename V> DISC_INLINE void store(Split<V> y, int64_t p, int64_t k, int64_t q, const V &re, const V &im) const {
    int64_t to = q + stride * (radix * p + k);
    if (k == 0 || p == 0) {
      y.re[to] = re, y.im[to] = im;
      return;
    }
    T c = cosines[p * (radix - 1) + k - 1], s = sines[p * (radix - 1) + k - 1];
    y.re[to] = re * c + im * s;
    y.im[to] = im * c - re * s;
  }

  /// Of any odd radix.
  template <typename V> DISC_INLINE void odd(Split<V> x, Split<V> y) const {
    int64_t step = stride * groups, half = (radix - 1) / 2;
    V sr[kLargestRadix / 2], si[kLargestRadix / 2], dr[kLargestRadix / 2], di[kLargestRadix / 2];
    for (int64_t p = 0; p < groups; ++p)
      for (int64_t q = 0; q < stride; ++q) {
        int64_t at = q + stride * p;
        V ar = x.re[at], ai = x.im[at], tr = ar, ti = ai;
        for (int64_t j = 0; j < half; ++j) {
          int64_t first = at + (j + 1) * step, last = at + (radix - 1 - j) * step;
          sr[j] = x.re[first] + x.re[last], si[j] = x.im[first] + x.im[last];
          dr[j] = x.re[first] - x.re[last], di[j] = x.im[first] - x.im[last];
          tr = tr + sr[j], ti = ti + si[j];
        }
        store<V>(y, p, 0, q, tr, ti);
        for (int64_t k = 1; k <= half; ++k) {
          V cr = ar, ci = ai, er{}, ei{};
          for (int64_t j = 0, turn = k; j < half; ++j) {
            T c = radix_cosines[turn], s = radix_sines[turn];
            cr = cr + sr[j] * c, ci = ci + si[j] * c;
            er = er + di[j] * s, ei = ei + dr[j] * s;
            turn = turn + k < radix ? turn + k : turn + k - radix;
          }
          store<V>(y, p, k, q, cr + er, ci - ei);
          store<V>(y, p, radix - k, q, cr - er, ci + ei);
        }
      }
  }

  template <typename V> DISC_INLINE void run(Split<V> x, Split<V> y) const {
    switch (radix) {
    case 2:
      return fixed<V, 2>(x, y);
    case 3:
      return fixed<V, 3>(x, y);
    case 4:
      return fixed<V, 4>(x, y);
    case 5:
      return fixed<V, 5>(x, y);
    case 7:
      return fixed<V, 7>(x, y);
    case 8:
      return fixed<V, 8>(x, y);
    default:
      return odd<V>(x, y);
    }
  }
};

} // namespace disc
