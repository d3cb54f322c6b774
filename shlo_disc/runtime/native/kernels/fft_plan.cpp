// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fft_plan.h"

#include "core/forks.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <numbers>

namespace disc {

namespace {

constexpr int64_t kLargestRadix = 61; // larger prime factors always go through a convolution
constexpr int64_t kCachedBytes = 32 << 20;

/// Radices of 4 first, then the prime factors in ascending order.
std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> factors;
  while (n % 4 == 0) {
    factors.push_back(4);
    n /= 4;
  }
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p)
      factors.push_back(p);
  if (n > 1)
    factors.push_back(n);
  return factors;
}

/// Rough operations a value for stages of these radices.
double cost_of(const std::vector<int64_t> &factors) {
  double cost = 0;
  for (int64_t factor : factors)
    cost += factor <= 5 ? static_cast<double>(factor) : 1.5 * static_cast<double>(factor);
  return cost;
}

/// cos and sin of 2 pi k / n for all k < n, from two short tables: each is right to the last place of T.
template <typename T> void fill_roots(int64_t n, std::vector<T> &cosines, std::vector<T> &sines) {
  using Wide = long double;
  auto step = static_cast<int64_t>(std::sqrt(static_cast<double>(n))) + 1;
  auto table = [&](int64_t count, int64_t stride) {
    std::vector<std::pair<Wide, Wide>> roots;
    for (int64_t k = 0; k < count; ++k) {
      Wide angle = 2 * std::numbers::pi_v<Wide> * static_cast<Wide>(k * stride) / static_cast<Wide>(n);
      roots.emplace_back(std::cos(angle), std::sin(angle));
    }
    return roots;
  };
  auto fine = table(step, 1), coarse = table(n / step + 1, step);
  cosines.resize(static_cast<size_t>(n));
  sines.resize(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    auto [a, b] = coarse[static_cast<size_t>(k / step)];
    auto [c, d] = fine[static_cast<size_t>(k % step)];
    cosines[static_cast<size_t>(k)] = static_cast<T>(a * c - b * d);
    sines[static_cast<size_t>(k)] = static_cast<T>(a * d + b * c);
  }
}

/// One stage of a transform: `groups` butterflies, each on `stride` independent values.
template <typename T> struct Butterflies {
  int64_t radix, groups, stride;
  const T *cosines, *sines;
  const T *radix_cosines, *radix_sines;

  /// y[k] = value * exp(-2 pi i p k / (groups * radix))
  template <typename V> void store(Split<V> y, int64_t p, int64_t k, int64_t q, const V &re, const V &im) const {
    int64_t to = q + stride * (radix * p + k);
    if (k == 0) {
      y.re[to] = re, y.im[to] = im;
      return;
    }
    T c = cosines[p * (radix - 1) + k - 1], s = sines[p * (radix - 1) + k - 1];
    y.re[to] = re * c + im * s;
    y.im[to] = im * c - re * s;
  }

  template <typename V> void two(Split<V> x, Split<V> y) const {
    int64_t step = stride * groups;
    for (int64_t p = 0; p < groups; ++p)
      for (int64_t q = 0; q < stride; ++q) {
        int64_t at = q + stride * p;
        V ar = x.re[at], ai = x.im[at], br = x.re[at + step], bi = x.im[at + step];
        store<V>(y, p, 0, q, ar + br, ai + bi);
        store<V>(y, p, 1, q, ar - br, ai - bi);
      }
  }

  template <typename V> void three(Split<V> x, Split<V> y) const {
    constexpr T half = T(0.5), root = T(0.866025403784438646763723170752936183L);
    int64_t step = stride * groups;
    for (int64_t p = 0; p < groups; ++p)
      for (int64_t q = 0; q < stride; ++q) {
        int64_t at = q + stride * p;
        V ar = x.re[at], ai = x.im[at], br = x.re[at + step], bi = x.im[at + step];
        V cr = x.re[at + 2 * step], ci = x.im[at + 2 * step];
        V sr = br + cr, si = bi + ci, dr = (br - cr) * root, di = (bi - ci) * root;
        V mr = ar - sr * half, mi = ai - si * half;
        store<V>(y, p, 0, q, ar + sr, ai + si);
        store<V>(y, p, 1, q, mr + di, mi - dr);
        store<V>(y, p, 2, q, mr - di, mi + dr);
      }
  }

  template <typename V> void four(Split<V> x, Split<V> y) const {
    int64_t step = stride * groups;
    for (int64_t p = 0; p < groups; ++p)
      for (int64_t q = 0; q < stride; ++q) {
        int64_t at = q + stride * p;
        V ar = x.re[at], ai = x.im[at], br = x.re[at + step], bi = x.im[at + step];
        V cr = x.re[at + 2 * step], ci = x.im[at + 2 * step], dr = x.re[at + 3 * step], di = x.im[at + 3 * step];
        V acr = ar + cr, aci = ai + ci, amr = ar - cr, ami = ai - ci;
        V bdr = br + dr, bdi = bi + di, bmr = br - dr, bmi = bi - di;
        store<V>(y, p, 0, q, acr + bdr, aci + bdi);
        store<V>(y, p, 1, q, amr + bmi, ami - bmr);
        store<V>(y, p, 2, q, acr - bdr, aci - bdi);
        store<V>(y, p, 3, q, amr - bmi, ami + bmr);
      }
  }

  /// Pairs x[j], x[radix - j] share their products: their sum has the cosines, their difference the sines.
  template <typename V> void odd(Split<V> x, Split<V> y) const {
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
          V cr = ar, ci = ai, er = sr[0] * T(0), ei = er;
          for (int64_t j = 0; j < half; ++j) {
            int64_t turn = k * (j + 1) % radix;
            T c = radix_cosines[turn], s = radix_sines[turn];
            cr = cr + sr[j] * c, ci = ci + si[j] * c;
            er = er + di[j] * s, ei = ei + dr[j] * s;
          }
          store<V>(y, p, k, q, cr + er, ci - ei);
          store<V>(y, p, radix - k, q, cr - er, ci + ei);
        }
      }
  }

  template <typename V> void run(Split<V> x, Split<V> y) const {
    switch (radix) {
    case 2:
      return two<V>(x, y);
    case 3:
      return three<V>(x, y);
    case 4:
      return four<V>(x, y);
    default:
      return odd<V>(x, y);
    }
  }
};

} // namespace

int64_t smooth_length(int64_t n) {
  int64_t best = 1;
  while (best < n)
    best *= 2;
  for (int64_t fives = 1; fives < best; fives *= 5)
    for (int64_t threes = fives; threes < best; threes *= 3) {
      int64_t length = threes;
      while (length < n)
        length *= 2;
      best = std::min(best, length);
    }
  return best;
}

bool needs_convolution(int64_t n) {
  std::vector<int64_t> factors = factors_of(n);
  if (factors.empty() || *std::max_element(factors.begin(), factors.end()) <= 11)
    return false;
  if (*std::max_element(factors.begin(), factors.end()) > kLargestRadix)
    return true;
  int64_t length = smooth_length(2 * n - 1);
  double convolution = 2 * cost_of(factors_of(length)) * static_cast<double>(length) / static_cast<double>(n);
  return convolution < cost_of(factors);
}

template <typename T> FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  fill_roots(n, cosines_, sines_);
  if (needs_convolution(n))
    make_convolution(smooth_length(2 * n - 1));
  else
    make_stages(factors_of(n));
}

template <typename T> void FftPlan<T>::make_stages(const std::vector<int64_t> &factors) {
  int64_t left = n_, stride = 1;
  for (int64_t radix : factors) {
    left /= radix;
    Stage stage{radix, left, {}, {}, {}, {}};
    for (int64_t p = 0; p < left; ++p)
      for (int64_t k = 1; k < radix; ++k) {
        stage.cosines.push_back(cosine(p * k * stride));
        stage.sines.push_back(sine(p * k * stride));
      }
    for (int64_t k = 0; k < radix; ++k) {
      stage.radix_cosines.push_back(cosine(k * (n_ / radix)));
      stage.radix_sines.push_back(sine(k * (n_ / radix)));
    }
    stages_.push_back(std::move(stage));
    stride *= radix;
  }
}

template <typename T> void FftPlan<T>::make_convolution(int64_t length) {
  convolution_ = std::make_unique<FftPlan>(length);
  std::vector<T> cosines, sines;
  fill_roots(2 * n_, cosines, sines);
  auto size = static_cast<size_t>(length);
  filter_re_.assign(size, T(0));
  filter_im_.assign(size, T(0));
  for (int64_t k = 0; k < n_; ++k) {
    auto turn = static_cast<size_t>(static_cast<__int128>(k) * k % (2 * n_));
    chirp_re_.push_back(cosines[turn]);
    chirp_im_.push_back(-sines[turn]);
    for (int64_t place : {k, (length - k) % length}) {
      filter_re_[static_cast<size_t>(place)] = cosines[turn] / static_cast<T>(length);
      filter_im_[static_cast<size_t>(place)] = sines[turn] / static_cast<T>(length);
    }
  }
  std::vector<T> scratch(2 * size);
  convolution_->template run<T>({filter_re_.data(), filter_im_.data()}, {scratch.data(), scratch.data() + size}, false);
}

template <typename T> int64_t FftPlan<T>::bytes() const {
  size_t values = 2 * cosines_.size() + 2 * chirp_re_.size() + 2 * filter_re_.size();
  for (const Stage &stage : stages_)
    values += 2 * stage.cosines.size() + 2 * stage.radix_cosines.size();
  return static_cast<int64_t>(values * sizeof(T)) + (convolution_ ? convolution_->bytes() : 0);
}

template <typename T> template <typename V> void FftPlan<T>::run(Split<V> x, Split<V> scratch, bool inverse) const {
  // Exchanging the parts of a complex number turns one direction into the other.
  if (inverse)
    return run(x.swapped(), scratch.swapped(), false);
  if (convolution_)
    run_convolution(x, scratch);
  else
    run_stages(x, scratch);
}

template <typename T> template <typename V> void FftPlan<T>::run_stages(Split<V> x, Split<V> scratch) const {
  Split<V> from = x, to = scratch;
  int64_t stride = 1;
  for (const Stage &stage : stages_) {
    Butterflies<T> butterflies{stage.radix,          stage.groups,        stride, stage.cosines.data(), stage.sines.data(),
                               stage.radix_cosines.data(), stage.radix_sines.data()};
    butterflies.template run<V>(from, to);
    std::swap(from, to);
    stride *= stage.radix;
  }
  if (from.re != x.re) {
    std::copy(from.re, from.re + n_, x.re);
    std::copy(from.im, from.im + n_, x.im);
  }
}

template <typename T> template <typename V> void FftPlan<T>::run_convolution(Split<V> x, Split<V> scratch) const {
  int64_t length = convolution_->length();
  Split<V> padded = scratch, rest{scratch.re + length, scratch.im + length};
  for (int64_t k = 0; k < n_; ++k) {
    T c = chirp_re_[static_cast<size_t>(k)], s = chirp_im_[static_cast<size_t>(k)];
    padded.re[k] = x.re[k] * c - x.im[k] * s;
    padded.im[k] = x.re[k] * s + x.im[k] * c;
  }
  std::fill(padded.re + n_, padded.re + length, V{});
  std::fill(padded.im + n_, padded.im + length, V{});
  convolution_->run(padded, rest, false);
  for (int64_t k = 0; k < length; ++k) {
    T c = filter_re_[static_cast<size_t>(k)], s = filter_im_[static_cast<size_t>(k)];
    V re = padded.re[k] * c - padded.im[k] * s;
    padded.im[k] = padded.re[k] * s + padded.im[k] * c;
    padded.re[k] = re;
  }
  convolution_->run(padded, rest, true);
  for (int64_t k = 0; k < n_; ++k) {
    T c = chirp_re_[static_cast<size_t>(k)], s = chirp_im_[static_cast<size_t>(k)];
    x.re[k] = padded.re[k] * c - padded.im[k] * s;
    x.im[k] = padded.re[k] * s + padded.im[k] * c;
  }
}

template <typename T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n) {
  using Entry = std::shared_ptr<const FftPlan<T>>;
  struct Cache {
    ForkMutex mutex;
    std::list<Entry> plans; // most recent first
  };
  static auto *cache = new Cache; // worker threads may outlive static destructors
  auto find = [&]() -> Entry {
    auto found = std::find_if(cache->plans.begin(), cache->plans.end(), [n](const Entry &p) { return p->length() == n; });
    if (found == cache->plans.end())
      return nullptr;
    cache->plans.splice(cache->plans.begin(), cache->plans, found);
    return *found;
  };
  {
    std::lock_guard lock(cache->mutex);
    if (Entry known = find())
      return known;
  }
  auto made = std::make_shared<const FftPlan<T>>(n);
  std::lock_guard lock(cache->mutex);
  if (Entry known = find())
    return known;
  cache->plans.push_front(made);
  int64_t bytes = 0;
  for (auto plan = cache->plans.begin(); plan != cache->plans.end(); ++plan) {
    bytes += (*plan)->bytes();
    if (bytes > kCachedBytes && plan != cache->plans.begin()) {
      cache->plans.erase(plan, cache->plans.end());
      break;
    }
  }
  return made;
}

template class FftPlan<float>;
template class FftPlan<double>;
template void FftPlan<float>::run<float>(Split<float>, Split<float>, bool) const;
template void FftPlan<double>::run<double>(Split<double>, Split<double>, bool) const;
template void FftPlan<float>::run<Lanes<float>>(Split<Lanes<float>>, Split<Lanes<float>>, bool) const;
template void FftPlan<double>::run<Lanes<double>>(Split<Lanes<double>>, Split<Lanes<double>>, bool) const;
template std::shared_ptr<const FftPlan<float>> fft_plan<float>(int64_t);
template std::shared_ptr<const FftPlan<double>> fft_plan<double>(int64_t);

} // namespace disc
