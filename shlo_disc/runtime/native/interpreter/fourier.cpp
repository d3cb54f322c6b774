// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fourier transforms along the last axes, line by line, by the runtime's plans.
#include "element_types.h"
#include "kernels/fft_plan.h"
#include "library.h"

#include <algorithm>

namespace disc::interpreter {

namespace {

enum Kind : int64_t { forward = 0, inverse = 1, of_reals = 2, to_reals = 3 }; // numbers of VHLO

/// Lines along one axis of arrays that have the same sizes but along it: `outer` times `inner` of them.
struct Lines {
  int64_t length; // of the transform
  int64_t outer, inner;
};

/// Room for one line.
template <typename T> struct Line {
  explicit Line(const FftPlan<T> &plan)
      : values(static_cast<size_t>(2 * (plan.length() + plan.scratch_values()))), x{part(0), part(plan.length())},
        scratch{part(2 * plan.length()), part(2 * plan.length() + plan.scratch_values())} {}

  T *part(int64_t offset) { return values.data() + offset; }

  std::vector<T> values;
  Split<T> x, scratch;
};

/// A transform of all lines. `source_size` and `target_size` are how many elements a line has there; what a source of
/// fewer elements leaves out is conjugate to the others.
template <typename T, typename Source, typename Target>
void transform(const Lines &lines, bool is_inverse, const Source *source, int64_t source_size, Target *target,
               int64_t target_size) {
  std::shared_ptr<const FftPlan<T>> plan = fft_plan<T>(lines.length);
  Line<T> line(*plan);
  T scale = is_inverse ? T(1) / static_cast<T>(lines.length) : T(1);
  for (int64_t i = 0; i < lines.outer * lines.inner; ++i) {
    int64_t outer = i / lines.inner, inner = i % lines.inner;
    const Source *from = source + outer * source_size * lines.inner + inner;
    Target *to = target + outer * target_size * lines.inner + inner;
    for (int64_t k = 0; k < source_size; ++k) {
      line.x.re[k] = std::real(from[k * lines.inner]);
      line.x.im[k] = std::imag(from[k * lines.inner]);
    }
    if constexpr (!is_complex<Target>) { // of a real line's spectrum, these are real
      line.x.im[0] = 0;
      if (lines.length % 2 == 0)
        line.x.im[lines.length / 2] = 0;
    }
    for (int64_t k = source_size; k < lines.length; ++k) {
      line.x.re[k] = line.x.re[lines.length - k];
      line.x.im[k] = -line.x.im[lines.length - k];
    }
    plan->template run<T>(line.x, line.scratch, is_inverse);
    if constexpr (!is_complex<Source>) { // what sums of reals are
      line.x.im[0] = 0;
      if (lines.length % 2 == 0)
        line.x.im[lines.length / 2] = 0;
    }
    for (int64_t k = 0; k < target_size; ++k) {
      if constexpr (is_complex<Target>)
        to[k * lines.inner] = Target(line.x.re[k] * scale, line.x.im[k] * scale);
      else
        to[k * lines.inner] = line.x.re[k] * scale;
    }
  }
}

/// Of complex numbers in place, along the axes from `first` to before `last`.
template <typename T>
void transform_axes(const Dims &dims, size_t first, size_t last, bool is_inverse, std::complex<T> *values) {
  for (size_t axis = last; axis-- > first;) {
    Lines lines{dims[axis], 1, 1};
    for (size_t i = 0; i < dims.size(); ++i)
      (i < axis ? lines.outer : lines.inner) *= i == axis ? 1 : dims[i];
    transform<T>(lines, is_inverse, values, dims[axis], values, dims[axis]);
  }
}

/// The transform of an array that is not empty. Reals are along the last axis, which is the first one to be transformed
/// from reals, and the last one to reals.
template <typename T>
void transform_array(Kind kind, size_t axes, const Type &operand, const Type &result, const void *source,
                     void *target) {
  using C = std::complex<T>;
  size_t rank = result.dims.size(), first = rank - axes;
  int64_t from_size = operand.dims.back(), to_size = result.dims.back();
  const auto *from = static_cast<const C *>(source);
  auto *to = static_cast<C *>(target);
  if (kind == of_reals) {
    transform<T>({from_size, operand.count() / from_size, 1}, false, static_cast<const T *>(source), from_size, to,
                 to_size);
    transform_axes<T>(result.dims, first, rank - 1, false, to);
  } else if (kind == to_reals) {
    std::vector<C> spectrum(from, from + operand.count());
    transform_axes<T>(operand.dims, first, rank - 1, true, spectrum.data());
    transform<T>({to_size, result.count() / to_size, 1}, true, spectrum.data(), from_size, static_cast<T *>(target),
                 to_size);
  } else {
    std::copy_n(from, operand.count(), to);
    transform_axes<T>(result.dims, first, rank, kind == inverse, to);
  }
}

} // namespace

Kernel fourier_transform(const Op &op) {
  Op::require(op.operands.size() == 1 && op.results.size() == 1);
  Type operand = op.operand(0), result = op.result();
  auto kind = static_cast<Kind>(op.integer("fft_type"));
  const Dims &lengths = op.integers("fft_length");
  size_t axes = lengths.size(), rank = operand.dims.size();
  Op::require(kind >= forward && kind <= to_reals && axes >= 1 && axes <= 3 && rank >= axes);
  const Type &full = kind == to_reals ? result : operand, &other = kind == to_reals ? operand : result;
  Op::require(full.dims.size() == rank);
  Op::require(std::equal(lengths.begin(), lengths.end(), full.dims.end() - std::ssize(lengths)));
  Dims expected = full.dims;
  bool has_reals = kind == of_reals || kind == to_reals;
  if (has_reals)
    expected.back() = expected.back() / 2 + 1;
  Op::require(other.dims == expected && std::ranges::min(lengths) > 0);
  bool is_double = other.dtype == DType::c128;
  Op::require(is_double || other.dtype == DType::c64);
  Op::require(full.dtype == (!has_reals ? other.dtype : is_double ? DType::f64 : DType::f32));
  return [=](Inputs inputs, Outputs outputs) {
    if (result.count() == 0)
      return;
    auto run = is_double ? transform_array<double> : transform_array<float>;
    run(kind, axes, operand, result, inputs[0], outputs[0]);
  };
}

} // namespace disc::interpreter
