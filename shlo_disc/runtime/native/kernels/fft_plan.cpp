// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fft_plan.h"

#include "core/forks.h"
#include "fft_stages.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <numbers>

namespace disc {

namespace {

constexpr int64_t kCachedBytes = 32 << 20;

/// Radices of 8 and 4 first, then the prime factors in ascending order.
std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> factors;
  while (n % 8 == 0 && n % 32 != 16) { // 16 is 4 times 4
    factors.push_back(8);
    n /= 8;
  }
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
    cost += factor == 8 ? 6 : factor <= 5 ? static_cast<double>(factor) : 1.5 * static_cast<double>(factor);
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
  Roots roots;
  fill_roots(2 * n, roots.cosines, roots.sines);
  cosines_.assign(roots.cosines.begin(), roots.cosines.begin() + n / 2 + 1);
  sines_.assign(roots.sines.begin(), roots.sines.begin() + n / 2 + 1);
  if (needs_convolution(n))
    make_convolution(smooth_length(2 * n - 1), roots);
  else
    make_stages(factors_of(n), roots);
}

template <typename T> void FftPlan<T>::make_stages(const std::vector<int64_t> &factors, const Roots &roots) {
  auto cosine = [&](int64_t k) { return roots.cosines[static_cast<size_t>(2 * k)]; };
  auto sine = [&](int64_t k) { return roots.sines[static_cast<size_t>(2 * k)]; };
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

template <typename T> void FftPlan<T>::make_convolution(int64_t length, const Roots &roots) {
  convolution_ = std::make_unique<FftPlan>(length);
  const auto &[cosines, sines] = roots;
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

namespace {

/// Whether arrays of T can be read as vectors.
template <typename T> bool is_aligned(Split<T> x) {
  return (reinterpret_cast<uintptr_t>(x.re) | reinterpret_cast<uintptr_t>(x.im)) % sizeof(Lanes<T>) == 0;
}

template <typename T> Split<Lanes<T>> as_lanes(Split<T> x) {
  return {reinterpret_cast<Lanes<T> *>(x.re), reinterpret_cast<Lanes<T> *>(x.im)};
}

template <typename T, int bytes> struct PieceOf {
  using Type __attribute__((vector_size(bytes))) = T;
};

/// Values in pieces of as many bytes: GCC keeps vectors that are wider than registers in memory.
template <typename T, int bytes, typename V> auto in_pieces(Split<V> x) {
  using Piece = typename PieceOf<T, bytes>::Type;
  return Split<Piece>{reinterpret_cast<Piece *>(x.re), reinterpret_cast<Piece *>(x.im)};
}

/// One stage, by registers of so many bytes.
template <int bytes, typename T, typename V> void run_narrow(Butterflies<T> stage, Split<V> x, Split<V> y) {
  using Piece = typename PieceOf<T, bytes>::Type;
  stage.stride *= sizeof(V) / bytes;
  auto from = in_pieces<T, bytes>(x), to = in_pieces<T, bytes>(y);
  by_widest_registers([&]() __attribute__((always_inline)) { stage.template run<Piece>(from, to); });
}

/// One stage. The independent values of a single line are lanes, too.
template <typename T, typename V> void run_stage(const Butterflies<T> &stage, Split<V> x, Split<V> y) {
  if constexpr (std::is_same_v<T, V>)
    if (stage.stride % kLanes == 0 && is_aligned(x) && is_aligned(y)) {
      Butterflies<T> lanes = stage;
      lanes.stride /= kLanes;
      return run_stage<T, Lanes<T>>(lanes, as_lanes(x), as_lanes(y));
    }
  if constexpr (sizeof(V) > 32)
    if (widest_registers() == Registers::avx2)
      return run_narrow<32>(stage, x, y);
  if constexpr (sizeof(V) > 16)
    if (widest_registers() == Registers::baseline)
      return run_narrow<16>(stage, x, y);
  by_widest_registers([&]() __attribute__((always_inline)) { stage.template run<V>(x, y); });
}

/// y = x * factor, for complex numbers. `pieces` neighbours have the same factor.
template <typename T, typename V>
DISC_INLINE void multiply_pieces(Split<V> x, const T *cosines, const T *sines, int64_t count, int64_t pieces,
                                 Split<V> y) {
  for (int64_t k = 0; k < count; ++k)
    for (int64_t at = k * pieces; at < (k + 1) * pieces; ++at) {
      V re = x.re[at] * cosines[k] - x.im[at] * sines[k];
      y.im[at] = x.re[at] * sines[k] + x.im[at] * cosines[k];
      y.re[at] = re;
    }
}

template <typename T, typename V>
void multiply(Split<V> x, const std::vector<T> &factor_re, const std::vector<T> &factor_im, Split<V> y) {
  const T *cosines = factor_re.data(), *sines = factor_im.data();
  auto count = static_cast<int64_t>(factor_re.size());
  if constexpr (sizeof(V) > 32)
    if (widest_registers() == Registers::avx2) {
      auto from = in_pieces<T, 32>(x), to = in_pieces<T, 32>(y);
      return by_widest_registers(
          [&]() __attribute__((always_inline)) { multiply_pieces<T>(from, cosines, sines, count, sizeof(V) / 32, to); });
    }
  by_widest_registers([&]() __attribute__((always_inline)) { multiply_pieces<T>(x, cosines, sines, count, 1, y); });
}

} // namespace

template <typename T> template <typename V> void FftPlan<T>::run_stages(Split<V> x, Split<V> scratch) const {
  Split<V> from = x, to = scratch;
  int64_t stride = 1;
  for (const Stage &stage : stages_) {
    Butterflies<T> butterflies{stage.radix,          stage.groups,        stride, stage.cosines.data(), stage.sines.data(),
                               stage.radix_cosines.data(), stage.radix_sines.data()};
    run_stage<T, V>(butterflies, from, to);
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
  multiply<T, V>(x, chirp_re_, chirp_im_, padded);
  std::fill(padded.re + n_, padded.re + length, V{});
  std::fill(padded.im + n_, padded.im + length, V{});
  convolution_->run(padded, rest, false);
  multiply<T, V>(padded, filter_re_, filter_im_, padded);
  convolution_->run(padded, rest, true);
  multiply<T, V>(padded, chirp_re_, chirp_im_, x);
}

// The even and the odd ones of the reals are the parts of one complex line (Cooley, Lewis and Welch 1970). With z its
// transform, a = z[k] and b = conj(z[n - k]), the transforms of both are (a + b) / 2 and (a - b) / 2i.
template <typename T>
template <typename V>
void FftPlan<T>::run_from_reals(Split<V> x, Split<V> scratch) const {
  run(x, scratch, false);
  const T *cosines = cosines_.data(), *sines = sines_.data();
  by_widest_registers([&]() __attribute__((always_inline)) {
    V first = x.re[0], second = x.im[0];
    x.re[0] = first + second, x.im[0] = V{};
    x.re[n_] = first - second, x.im[n_] = V{};
    for (int64_t k = 1; k <= n_ / 2; ++k) {
      T c = cosines[k] / 2, s = sines[k] / 2;
      V ar = x.re[k], ai = x.im[k], br = x.re[n_ - k], bi = x.im[n_ - k];
      V er = (ar + br) * T(0.5), ei = (ai - bi) * T(0.5), dr = ar - br, di = ai + bi;
      V tr = di * c - dr * s, ti = dr * c + di * s;
      x.re[k] = er + tr, x.im[k] = ei - ti;
      x.re[n_ - k] = er - tr, x.im[n_ - k] = -ei - ti;
    }
  });
}

template <typename T>
template <typename V>
void FftPlan<T>::run_to_reals(Split<V> x, Split<V> scratch) const {
  const T *cosines = cosines_.data(), *sines = sines_.data();
  by_widest_registers([&]() __attribute__((always_inline)) {
    V first = x.re[0], last = x.re[n_];
    x.re[0] = first + last, x.im[0] = first - last;
    for (int64_t k = 1; k <= n_ / 2; ++k) {
      T c = cosines[k], s = sines[k];
      V ar = x.re[k], ai = x.im[k], br = x.re[n_ - k], bi = x.im[n_ - k];
      V er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
      V tr = dr * c - di * s, ti = dr * s + di * c;
      x.re[k] = er - ti, x.im[k] = ei + tr;
      x.re[n_ - k] = er + ti, x.im[n_ - k] = tr - ei;
    }
  });
  run(x, scratch, true);
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
#define DISC_INSTANTIATE(T, V)                                                                                             \
  template void FftPlan<T>::run<V>(Split<V>, Split<V>, bool) const;                                                        \
  template void FftPlan<T>::run_from_reals<V>(Split<V>, Split<V>) const;                                                   \
  template void FftPlan<T>::run_to_reals<V>(Split<V>, Split<V>) const;
DISC_INSTANTIATE(float, float)
DISC_INSTANTIATE(double, double)
DISC_INSTANTIATE(float, Lanes<float>)
DISC_INSTANTIATE(double, Lanes<double>)
template std::shared_ptr<const FftPlan<float>> fft_plan<float>(int64_t);
template std::shared_ptr<const FftPlan<double>> fft_plan<double>(int64_t);

} // namespace disc
