// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `fft_f32`, `fft_f64`: Fourier transforms along the last axes of a tensor, line by line.
#include "fft_lines.h"
#include "fft_plan.h"
#include "library_call.h"

#include <algorithm>
#include <cmath>

namespace disc {

namespace {

enum Kind : int64_t { complex_to_complex = 0, real_to_complex = 1, complex_to_real = 2 };

constexpr uintptr_t kAlignment = 64; // of the widest vector, Lanes<double>
constexpr int64_t kLanesLimit = 1 << 16; // values of a group of lines; the compiler plans the workspace by it

/// A transform along one axis: `outer` x `inner` lines, from `source` to `target`, which may be the same.
template <typename T> struct Pass {
  Kind kind;
  bool inverse;
  int64_t length, inner, lines;
  const T *source;
  T *target;
  const FftPlan<T> &plan; // of half the length where `pairs`

  /// Whether a real line is read or written as complex numbers, half as many.
  static bool pairs(Kind kind, int64_t length, int64_t inner) {
    return kind != complex_to_complex && length % 2 == 0 && inner == 1;
  }

  bool in_pairs() const { return pairs(kind, length, inner); }
  bool is_complex() const { return kind == complex_to_complex || in_pairs(); }
  int64_t spectrum() const { return length / 2 + 1; }
  int64_t reals() const { return in_pairs() ? length / 2 : length; }
  int64_t source_length() const { return kind == complex_to_real ? spectrum() : reals(); }
  int64_t target_length() const { return kind == real_to_complex ? spectrum() : reals(); }
  T scale() const { return inverse ? T(1) / static_cast<T>(length) : T(1); }
  /// The index of a line's first element in a tensor that has `size` elements along the axis.
  int64_t start(int64_t line, int64_t size) const { return line / inner * size * inner + line % inner; }
  /// Whether the lines from `first` on, one in each lane, are neighbours.
  bool are_columns(int64_t first) const { return first % inner + kLanes <= inner; }

  template <typename V> void run(int64_t first, char *memory) const;
  template <typename V> void transform(Split<V> line, Split<V> scratch) const;
  void load(int64_t line, T *re, T *im, int64_t step) const;
  void store(int64_t line, const T *re, const T *im, int64_t step) const;
  bool load_vectors(int64_t first, Split<T> x) const;
  bool store_vectors(int64_t first, Split<T> x) const;
};

/// One line into every `step`-th value of re and im. What Hermitian symmetry leaves out is filled in.
template <typename T> void Pass<T>::load(int64_t line, T *re, T *im, int64_t step) const {
  int64_t from = start(line, source_length());
  if (kind == real_to_complex && !in_pairs()) {
    for (int64_t k = 0; k < length; ++k) {
      re[k * step] = source[from + k * inner];
      im[k * step] = 0;
    }
    return;
  }
  for (int64_t k = 0; k < source_length(); ++k) {
    re[k * step] = source[2 * (from + k * inner)];
    im[k * step] = source[2 * (from + k * inner) + 1];
  }
  if (is_complex())
    return;
  im[0] = 0;
  if (length % 2 == 0)
    im[length / 2 * step] = 0;
  for (int64_t k = spectrum(); k < length; ++k) {
    re[k * step] = re[(length - k) * step];
    im[k * step] = -im[(length - k) * step];
  }
}

template <typename T> void Pass<T>::store(int64_t line, const T *re, const T *im, int64_t step) const {
  int64_t to = start(line, target_length());
  T factor = scale();
  for (int64_t k = 0; k < target_length(); ++k) {
    if (kind == complex_to_real && !in_pairs()) {
      target[to + k * inner] = re[k * step] * factor;
      continue;
    }
    target[2 * (to + k * inner)] = re[k * step] * factor;
    target[2 * (to + k * inner) + 1] = im[k * step] * factor;
  }
}

/// Lines from `first` on into all lanes, by vectors. Returns false where they lie in no order that this is for.
template <typename T> bool Pass<T>::load_vectors(int64_t first, Split<T> x) const {
  const T *from = source + 2 * start(first, source_length());
  if (is_complex() && inner == 1)
    load_rows<T>(from, source_length(), source_length(), x);
  else if (is_complex() && are_columns(first))
    load_columns<T>(from, inner, length, x);
  else
    return false;
  return true;
}

template <typename T> bool Pass<T>::store_vectors(int64_t first, Split<T> x) const {
  T *to = target + 2 * start(first, target_length());
  if (is_complex() && inner == 1)
    store_rows<T>(x, scale(), target_length(), target_length(), to);
  else if (is_complex() && are_columns(first))
    store_columns<T>(x, scale(), inner, length, to);
  else
    return false;
  return true;
}

/// The sums of a real line for the first element, and for the middle one, are real.
template <typename T> template <typename V> void Pass<T>::transform(Split<V> line, Split<V> scratch) const {
  if (in_pairs())
    return kind == real_to_complex ? plan.run_from_reals(line, scratch) : plan.run_to_reals(line, scratch);
  plan.run(line, scratch, inverse);
  if (kind == real_to_complex) {
    line.im[0] = V{};
    if (length % 2 == 0)
      line.im[length / 2] = V{};
  }
}

/// As many lines as V has lanes, from `first` on.
template <typename T> template <typename V> void Pass<T>::run(int64_t first, char *memory) const {
  constexpr int64_t lanes = sizeof(V) / sizeof(T);
  void *aligned = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(memory) + kAlignment - 1) & -kAlignment);
  auto *values = static_cast<V *>(aligned);
  Split<V> line{values, values + length}, scratch{values + 2 * length, values + 2 * length + plan.scratch_values()};
  T *re = reinterpret_cast<T *>(line.re), *im = reinterpret_cast<T *>(line.im);
  int64_t count = std::min(lanes, lines - first);
  bool full = lanes == kLanes && count == lanes;
  if (count < lanes)
    std::fill(re, re + 2 * length * lanes, T(0));
  if (!full || !load_vectors(first, {re, im}))
    for (int64_t lane = 0; lane < count; ++lane)
      load(first + lane, re + lane, im + lane, lanes);
  if (kind == complex_to_real && in_pairs())
    line.im[0] = line.im[length / 2] = V{};
  transform<V>(line, scratch);
  if (!full || !store_vectors(first, {re, im}))
    for (int64_t lane = 0; lane < count; ++lane)
      store(first + lane, re + lane, im + lane, lanes);
}

template <typename T> void run_pass(const Call &call, const Pass<T> &pass) {
  bool together = pass.lines > 1 && pass.length * kLanes <= kLanesLimit;
  int64_t lanes = together ? kLanes : 1;
  auto length = static_cast<double>(pass.length);
  double work = 5 * length * std::log2(length + 1) * static_cast<double>(lanes);
  auto body = [&](int64_t group, char *memory) {
    if (together)
      pass.template run<Lanes<T>>(group * kLanes, memory);
    else
      pass.template run<T>(group, memory);
  };
  call.for_each_entry((pass.lines + lanes - 1) / lanes, work, body);
}

template <typename T> void run_axes(const Call &call, const CallTensor &source, const CallTensor &target) {
  auto kind = static_cast<Kind>(call.spec.attribute("kind"));
  bool inverse = call.spec.attribute("inverse") != 0;
  int64_t last = target.rank - call.spec.attribute("skip"), first = last - call.spec.attribute("rank");
  const CallTensor &lengths = kind == real_to_complex ? source : target;
  const T *from = source.as<T>();
  for (int64_t axis = last - 1; axis >= first; --axis) {
    int64_t inner = 1;
    for (int64_t i = axis + 1; i < target.rank; ++i)
      inner *= target.dims[i];
    int64_t length = lengths.dims[axis], lines = target.elements() / target.dims[axis];
    auto plan = fft_plan<T>(Pass<T>::pairs(kind, length, inner) ? length / 2 : length);
    run_pass<T>(call, {kind, inverse, length, inner, lines, from, target.as<T>(), *plan});
    from = target.as<T>();
  }
}

/// (x) -> (its transform). Attributes: kind; inverse; rank, the number of axes; skip, the number of axes after those.
/// Throws std::bad_alloc without memory for the tables.
template <typename T> void fft(const Call &call) {
  const CallTensor &target = call.results[0];
  if (target.elements() == 0 || call.operands[0].elements() == 0)
    return;
  run_axes<T>(call, call.operands[0], target);
}

} // namespace

const Builtin *fft_builtin(std::string_view target) {
  static const Builtin single{fft<float>, 1, 1}, twofold{fft<double>, 1, 1};
  return target == "fft_f32" ? &single : target == "fft_f64" ? &twofold : nullptr;
}

} // namespace disc
