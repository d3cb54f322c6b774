// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops that are functions of libraries elsewhere: factorisations of matrices, Fourier transforms, and random bits, which
// are in files of their own.
#include "library.h"

#include "element_types.h"
#include "walk.h"

#include <cmath>
#include <limits>

namespace disc::interpreter {

namespace {

enum Transpose : int64_t { as_it_is = 1, transposed = 2, adjoint = 3 }; // numbers of VHLO

/// Whether an attribute that is a flag is set.
bool flag(const Op &op, std::string_view name) { return op.integer(name) != 0; }

template <typename T> T conjugate(T value) {
  if constexpr (is_complex<T>)
    return std::conj(value);
  else
    return value;
}

/// Calls `make` with an object of the type in which floats and complex numbers of a dtype are stored.
template <typename Make> Kernel with_float(DType dtype, Make make) {
  return with_type(dtype, [&](auto element) -> Kernel {
    using T = decltype(element);
    if constexpr (is_real_float<T> || is_complex<T>)
      return make(element);
    throw Unsupported("a matrix without floats");
  });
}

int64_t size_from_end(const Type &type, size_t axis) { return type.dims[type.dims.size() - axis]; }

/// The lower factor of a Hermitian matrix, of which only the elements element(i, j) with i >= j are read. Returns
/// whether the matrix is positive definite.
template <typename C, typename Element> bool factor(int64_t n, const Element &element, std::vector<C> &lower) {
  auto at = [&](int64_t i, int64_t j) -> C & { return lower[static_cast<size_t>(i * n + j)]; };
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      C sum = element(i, j);
      for (int64_t k = 0; k < j; ++k)
        sum -= at(i, k) * conjugate(at(j, k));
      if (i != j)
        at(i, j) = sum / at(j, j);
      else if (!(std::real(sum) > 0))
        return false;
      else
        at(i, i) = C(std::sqrt(std::real(sum)));
    }
  return true;
}

/// The factor of one matrix, with zeros in the other triangle; all NaN where there is none, as in XLA.
template <typename T> void cholesky_of(int64_t n, bool is_lower, const T *a, T *result) {
  using C = Computed<T>;
  std::vector<C> lower(static_cast<size_t>(n * n));
  bool is_definite = factor<C>(
      n, [&](int64_t i, int64_t j) { return is_lower ? C(a[i * n + j]) : conjugate(C(a[j * n + i])); }, lower);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      C value = is_lower ? lower[static_cast<size_t>(i * n + j)] : conjugate(lower[static_cast<size_t>(j * n + i)]);
      result[i * n + j] = is_definite ? T(value) : T(std::numeric_limits<float>::quiet_NaN());
    }
}

Kernel cholesky(const Op &op) {
  Op::require(op.operands.size() == 1 && op.results.size() == 1 && op.operand(0) == op.result());
  const Type &type = op.result();
  Op::require(type.rank() >= 2 && size_from_end(type, 1) == size_from_end(type, 2));
  int64_t n = size_from_end(type, 1), count = n == 0 ? 0 : type.count() / (n * n);
  bool is_lower = flag(op, "lower");
  return with_float(type.dtype, [&](auto element) -> Kernel {
    using T = decltype(element);
    return [=](Inputs inputs, Outputs outputs) {
      for (int64_t i = 0; i < count; ++i)
        cholesky_of(n, is_lower, static_cast<const T *>(inputs[0]) + i * n * n,
                    static_cast<T *>(outputs[0]) + i * n * n);
    };
  });
}

/// A system m x = b for several vectors b, which may be columns or rows of an array: a system x m = b is one of the
/// transposed matrix.
struct Triangle {
  int64_t n, vectors;
  int64_t row_step, column_step;    // of m
  int64_t element_step, vector_step; // of the vectors
  bool is_lower, has_unit_diagonal, is_conjugated;

  /// x holds b first.
  template <typename T, typename C> void solve(const T *m, C *x) const {
    for (int64_t place = 0; place < n; ++place) {
      int64_t i = is_lower ? place : n - 1 - place;
      int64_t first = is_lower ? 0 : i + 1, last = is_lower ? i : n;
      for (int64_t j = first; j < last; ++j) {
        C factor = element<C>(m, i, j);
        for (int64_t v = 0; v < vectors; ++v)
          x[v * vector_step + i * element_step] -= factor * x[v * vector_step + j * element_step];
      }
      C divisor = has_unit_diagonal ? C(1) : element<C>(m, i, i);
      for (int64_t v = 0; v < vectors && !has_unit_diagonal; ++v)
        x[v * vector_step + i * element_step] /= divisor;
    }
  }

private:
  template <typename C, typename T> C element(const T *m, int64_t i, int64_t j) const {
    C value = C(m[i * row_step + j * column_step]);
    return is_conjugated ? conjugate(value) : value;
  }
};

Triangle triangle_of(const Op &op, int64_t rows, int64_t columns) {
  int64_t transpose = op.integer("transpose_a");
  Op::require(transpose >= as_it_is && transpose <= adjoint);
  bool is_left = flag(op, "left_side"), is_flipped = (transpose != as_it_is) == is_left;
  int64_t n = is_left ? rows : columns;
  Triangle out;
  out.n = n;
  out.vectors = is_left ? columns : rows;
  out.row_step = is_flipped ? 1 : n;
  out.column_step = is_flipped ? n : 1;
  out.element_step = is_left ? columns : 1;
  out.vector_step = is_left ? 1 : columns;
  out.is_lower = flag(op, "lower") != is_flipped;
  out.has_unit_diagonal = flag(op, "unit_diagonal");
  out.is_conjugated = transpose == adjoint;
  return out;
}

Kernel triangular_solve(const Op &op) {
  Op::require(op.operands.size() == 2 && op.results.size() == 1 && op.operand(1) == op.result());
  const Type &a = op.operand(0), &b = op.operand(1);
  Op::require(a.dtype == b.dtype && a.rank() == b.rank() && b.rank() >= 2);
  Op::require(Dims(a.dims.begin(), a.dims.end() - 2) == Dims(b.dims.begin(), b.dims.end() - 2));
  int64_t rows = size_from_end(b, 2), columns = size_from_end(b, 1);
  Triangle triangle = triangle_of(op, rows, columns);
  Op::require(size_from_end(a, 1) == triangle.n && size_from_end(a, 2) == triangle.n);
  int64_t size = rows * columns, count = size == 0 ? 0 : b.count() / size;
  return with_float(b.dtype, [&](auto element) -> Kernel {
    using T = decltype(element);
    return [=](Inputs inputs, Outputs outputs) {
      std::vector<Computed<T>> x(static_cast<size_t>(size));
      for (int64_t i = 0; i < count; ++i) {
        const T *from = static_cast<const T *>(inputs[1]) + i * size;
        for (int64_t k = 0; k < size; ++k)
          x[static_cast<size_t>(k)] = from[k];
        triangle.solve(static_cast<const T *>(inputs[0]) + i * triangle.n * triangle.n, x.data());
        T *to = static_cast<T *>(outputs[0]) + i * size;
        for (int64_t k = 0; k < size; ++k)
          to[k] = T(x[static_cast<size_t>(k)]);
      }
    };
  });
}

} // namespace

const KernelTable &library_kernels() {
  static const KernelTable table = {
      {"cholesky", cholesky},
      {"fft", fourier_transform},
      {"rng_bit_generator", rng_bit_generator},
      {"triangular_solve", triangular_solve},
  };
  return table;
}

} // namespace disc::interpreter
