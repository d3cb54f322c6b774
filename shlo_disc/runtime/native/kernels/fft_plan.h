// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Discrete Fourier transforms of one length: mixed radix (Stockham's autosort) and, for large primes, Bluestein's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace disc {

/// Where there are several lines, this many are transformed together, one in each lane of a vector.
constexpr int kLanes = 8;
template <typename T> struct LanesOf {
  using Type __attribute__((vector_size(kLanes * sizeof(T)))) = T;
};
template <typename T> using Lanes = typename LanesOf<T>::Type;

/// Complex values with their parts in arrays of their own.
template <typename V> struct Split {
  V *re;
  V *im;
  Split swapped() const { return {im, re}; }
};

/// A transform of length `n` with elements of type T. Immutable; any number of threads may run it.
template <typename T> class FftPlan {
public:
  /// Throws std::bad_alloc.
  explicit FftPlan(int64_t n);

  int64_t length() const { return n_; }
  int64_t bytes() const; // of tables

  /// How many values of each part `run` needs as scratch.
  int64_t scratch_values() const { return convolution_ ? 2 * convolution_->length() : n_; }

  /// Transforms x[0 .. n) in place: sums of x[j] exp(-2 pi i j k / n), or +2 pi i for the inverse, without a factor.
  /// V is T, or Lanes<T> for as many lines at once.
  template <typename V> void run(Split<V> x, Split<V> scratch, bool inverse) const;

  /// The transform of a line of 2n reals, whose neighbours are the parts of x[0 .. n): leaves the first n + 1 values.
  template <typename V> void run_from_reals(Split<V> x, Split<V> scratch) const;

  /// The inverse, from n + 1 values, of which the first and the last one are real.
  template <typename V> void run_to_reals(Split<V> x, Split<V> scratch) const;

private:
  struct Stage {
    int64_t radix;
    int64_t groups; // length of what is left after this stage
    std::vector<T> cosines, sines;             // groups * (radix - 1)
    std::vector<T> radix_cosines, radix_sines; // of 2 pi k / radix
  };

  /// cos and sin of pi k / n for all k < 2n.
  struct Roots {
    std::vector<T> cosines, sines;
  };

  void make_stages(const std::vector<int64_t> &factors, const Roots &roots);
  void make_convolution(int64_t length, const Roots &roots);
  template <typename V> void run_stages(Split<V> x, Split<V> scratch) const;
  template <typename V> void run_convolution(Split<V> x, Split<V> scratch) const;

  int64_t n_;
  std::vector<T> cosines_, sines_; // of pi k / n, k <= n / 2
  std::vector<Stage> stages_;
  // Bluestein: y = chirp * (convolution of x * chirp with conj(chirp)).
  std::unique_ptr<FftPlan> convolution_;
  std::vector<T> chirp_re_, chirp_im_;   // n
  std::vector<T> filter_re_, filter_im_; // the transform of conj(chirp), divided by the convolution's length
};

/// The smallest number of the form 2^a 3^b 5^c that is at least `n`.
int64_t smooth_length(int64_t n);

/// Whether a transform of length `n` goes through a convolution of length smooth_length(2n - 1).
bool needs_convolution(int64_t n);

/// The process's plan for a length; plans are kept, up to a number of bytes. Thread-safe. Throws std::bad_alloc.
template <typename T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n);

} // namespace disc
