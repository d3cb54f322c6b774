// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Eigenvalues, singular values and Schur forms. "Column-major" as in lapack_factor.cpp; the singular value
// decompositions take row-major matrices: a row-major matrix is the transposed one, whose factors u and vt are those of
// the original transposed and exchanged, which as row-major matrices they are again.
#include "lapack.h"

#include <algorithm>
#include <cmath>

namespace disc {

namespace {

constexpr int kNotFinite = -4; // what JAX expects as info for a matrix with NaN or infinities

double cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

template <typename T> bool all_finite(const T *values, int64_t count) {
  return std::all_of(values, values + count, [](const T &value) {
    if constexpr (Scalar<T>::is_complex)
      return std::isfinite(value.real()) && std::isfinite(value.imag());
    else
      return std::isfinite(value);
  });
}

/// (a [.., m, n]) -> (a destroyed, s, u, vt, info). Attribute mode: 'A' all, 'S' the first min(m, n), 'N' no vectors.
template <typename T> struct SingularValues {
  const Call &call;
  int64_t rows = call.operands[0].size(-2), columns = call.operands[0].size(-1), values = call.results[1].size(-1);
  int64_t u_columns = call.results[2].size(-1), vt_rows = call.results[3].size(-2);
  int64_t entries = Call::batch(call.operands[0], 2);
  char mode = static_cast<char>(call.spec.attribute("mode"));
  int m = as_int(columns), n = as_int(rows), lda = leading(columns), ldu = leading(columns), ldvt = leading(u_columns);

  T *matrix(int64_t entry) const { return call.results[0].as<T>() + entry * rows * columns; }
  RealOf<T> *s(int64_t entry) const { return call.results[1].as<RealOf<T>>() + entry * values; }
  T *left(int64_t entry) const { return call.results[3].as<T>() + entry * vt_rows * columns; }
  T *right(int64_t entry) const { return call.results[2].as<T>() + entry * rows * u_columns; }
  int *info(int64_t entry) const { return call.results[4].as<int>() + entry; }
  double work() const { return 10 * static_cast<double>(rows) * static_cast<double>(columns * values); }
};

template <typename T> void gesdd(const Call &call) {
  SingularValues<T> svd{call};
  Fortran<T> decompose("gesdd");
  auto body = [&](int64_t entry, char *memory) {
    copy_entry<T>(call.operands[0], call.results[0], entry, svd.rows * svd.columns);
    Scratch scratch(memory, call.scratch_bytes(svd.entries));
    int *iwork = scratch.take<int>(8 * svd.values);
    int64_t large = std::max(svd.rows, svd.columns), small = svd.values;
    int64_t reals = Scalar<T>::is_complex ? 5 * small * small + 5 * small + 2 * large * small + 2 * small * small : 0;
    auto *rwork = scratch.take<RealOf<T>>(reals);
    char mode = svd.mode;
    int m = svd.m, n = svd.n, lda = svd.lda, ldu = svd.ldu, ldvt = svd.ldvt, lwork = scratch.left<T>();
    if constexpr (Scalar<T>::is_complex)
      decompose(&mode, &m, &n, svd.matrix(entry), &lda, svd.s(entry), svd.left(entry), &ldu, svd.right(entry), &ldvt,
                scratch.take<T>(0), &lwork, rwork, iwork, svd.info(entry));
    else
      decompose(&mode, &m, &n, svd.matrix(entry), &lda, svd.s(entry), svd.left(entry), &ldu, svd.right(entry), &ldvt,
                scratch.take<T>(0), &lwork, iwork, svd.info(entry));
  };
  call.for_each_entry(svd.entries, svd.work(), body);
}

template <typename T> void gesvd(const Call &call) {
  SingularValues<T> svd{call};
  Fortran<T> decompose("gesvd");
  auto body = [&](int64_t entry, char *memory) {
    copy_entry<T>(call.operands[0], call.results[0], entry, svd.rows * svd.columns);
    Scratch scratch(memory, call.scratch_bytes(svd.entries));
    auto *rwork = scratch.take<RealOf<T>>(Scalar<T>::is_complex ? 5 * svd.values : 0);
    char mode = svd.mode;
    int m = svd.m, n = svd.n, lda = svd.lda, ldu = svd.ldu, ldvt = svd.ldvt, lwork = scratch.left<T>();
    if constexpr (Scalar<T>::is_complex)
      decompose(&mode, &mode, &m, &n, svd.matrix(entry), &lda, svd.s(entry), svd.left(entry), &ldu, svd.right(entry),
                &ldvt, scratch.take<T>(0), &lwork, rwork, svd.info(entry));
    else
      decompose(&mode, &mode, &m, &n, svd.matrix(entry), &lda, svd.s(entry), svd.left(entry), &ldu, svd.right(entry),
                &ldvt, scratch.take<T>(0), &lwork, svd.info(entry));
  };
  call.for_each_entry(svd.entries, svd.work(), body);
}

/// (a, column-major) -> (vectors, column-major, values [.., n], info). Attributes mode ('V', 'N') and uplo.
template <typename T> void syevd(const Call &call) {
  int64_t order = call.operands[0].size(-1), entries = Call::batch(call.operands[0], 2);
  Fortran<T> decompose("syevd", "heevd");
  auto body = [&](int64_t entry, char *memory) {
    copy_entry<T>(call.operands[0], call.results[0], entry, order * order);
    Scratch scratch(memory, call.scratch_bytes(entries));
    int n = as_int(order), lda = leading(order), liwork = as_int(3 + 5 * order);
    int lrwork = as_int(1 + 5 * order + 2 * order * order);
    int *iwork = scratch.take<int>(liwork);
    auto *rwork = scratch.take<RealOf<T>>(Scalar<T>::is_complex ? lrwork : 0);
    char mode = static_cast<char>(call.spec.attribute("mode")), uplo = static_cast<char>(call.spec.attribute("uplo"));
    T *a = call.results[0].as<T>() + entry * order * order;
    auto *values = call.results[1].as<RealOf<T>>() + entry * order;
    int *info = call.results[2].as<int>() + entry, lwork = scratch.left<T>();
    T *work = scratch.take<T>(0);
    if constexpr (Scalar<T>::is_complex)
      decompose(&mode, &uplo, &n, a, &lda, values, work, &lwork, rwork, &lrwork, iwork, &liwork, info);
    else
      decompose(&mode, &uplo, &n, a, &lda, values, work, &lwork, iwork, &liwork, info);
  };
  call.for_each_entry(entries, 9 * cube(order), body);
}

/// Eigenvectors of a real matrix as LAPACK packs them: a conjugate pair is a column of real and one of imaginary parts.
template <typename Real>
void unpack_vectors(int64_t order, const Real *imaginary, const Real *packed, std::complex<Real> *vectors) {
  for (int64_t column = 0; column < order; ++column) {
    const Real *first = packed + column * order;
    std::complex<Real> *out = vectors + column * order;
    if (imaginary[column] == 0 || column + 1 == order) {
      std::copy(first, first + order, out);
      continue;
    }
    for (int64_t i = 0; i < order; ++i) {
      out[i] = {first[i], first[order + i]};
      out[order + i] = {first[i], -first[order + i]};
    }
    ++column;
  }
}

/// (a) -> (real parts, imaginary parts, left vectors, right vectors, info); matrices column-major, the vectors complex.
/// Attributes compute_left and compute_right: 'V' or 'N'.
template <typename T> void geev_real(const Call &call) {
  int64_t order = call.operands[0].size(-1), entries = Call::batch(call.operands[0], 2);
  Fortran<T> decompose("geev");
  auto body = [&](int64_t entry, char *memory) {
    Scratch scratch(memory, call.scratch_bytes(entries));
    T *a = scratch.take<T>(order * order), *left = scratch.take<T>(order * order), *right = scratch.take<T>(order * order);
    const T *given = call.operands[0].as<T>() + entry * order * order;
    int *info = call.results[4].as<int>() + entry;
    if (!all_finite(given, order * order)) {
      *info = kNotFinite;
      return;
    }
    std::copy(given, given + order * order, a);
    T *real = call.results[0].as<T>() + entry * order, *imaginary = call.results[1].as<T>() + entry * order;
    char jobvl = static_cast<char>(call.spec.attribute("compute_left"));
    char jobvr = static_cast<char>(call.spec.attribute("compute_right"));
    int n = as_int(order), lda = leading(order), lwork = scratch.left<T>();
    decompose(&jobvl, &jobvr, &n, a, &lda, real, imaginary, left, &lda, right, &lda, scratch.take<T>(0), &lwork, info);
    if (*info != 0)
      return;
    if (jobvl == 'V')
      unpack_vectors(order, imaginary, left, call.results[2].as<std::complex<T>>() + entry * order * order);
    if (jobvr == 'V')
      unpack_vectors(order, imaginary, right, call.results[3].as<std::complex<T>>() + entry * order * order);
  };
  call.for_each_entry(entries, 25 * cube(order), body);
}

/// (a) -> (values, left vectors, right vectors, info), as for real matrices.
template <typename T> void geev_complex(const Call &call) {
  int64_t order = call.operands[0].size(-1), entries = Call::batch(call.operands[0], 2);
  Fortran<T> decompose("geev");
  auto body = [&](int64_t entry, char *memory) {
    Scratch scratch(memory, call.scratch_bytes(entries));
    T *a = scratch.take<T>(order * order);
    auto *rwork = scratch.take<RealOf<T>>(2 * order);
    const T *given = call.operands[0].as<T>() + entry * order * order;
    int *info = call.results[3].as<int>() + entry;
    if (!all_finite(given, order * order)) {
      *info = kNotFinite;
      return;
    }
    std::copy(given, given + order * order, a);
    char jobvl = static_cast<char>(call.spec.attribute("compute_left"));
    char jobvr = static_cast<char>(call.spec.attribute("compute_right"));
    T *left = call.results[1].as<T>() + entry * order * order, *right = call.results[2].as<T>() + entry * order * order;
    int n = as_int(order), lda = leading(order), lwork = scratch.left<T>();
    decompose(&jobvl, &jobvr, &n, a, &lda, call.results[0].as<T>() + entry * order, left, &lda, right, &lda,
              scratch.take<T>(0), &lwork, rwork, info);
  };
  call.for_each_entry(entries, 25 * cube(order), body);
}

/// (a) -> (Schur form, Schur vectors, values (real: real parts, imaginary parts), selected, info); column-major.
template <typename T> void gees(const Call &call) {
  int64_t order = call.operands[0].size(-1), entries = Call::batch(call.operands[0], 2);
  constexpr int last = Scalar<T>::is_complex ? 4 : 5;
  Fortran<T> decompose("gees");
  auto body = [&](int64_t entry, char *memory) {
    copy_entry<T>(call.operands[0], call.results[0], entry, order * order);
    Scratch scratch(memory, call.scratch_bytes(entries));
    auto *rwork = scratch.take<RealOf<T>>(Scalar<T>::is_complex ? order : 0);
    char mode = static_cast<char>(call.spec.attribute("mode")), sort = 'N';
    void *select = nullptr;
    int *unused = nullptr;
    T *a = call.results[0].as<T>() + entry * order * order, *vectors = call.results[1].as<T>() + entry * order * order;
    T *values = call.results[2].as<T>() + entry * order, *imaginary = call.results[3].as<T>() + entry * order;
    int *selected = call.results[last - 1].as<int>() + entry, *info = call.results[last].as<int>() + entry;
    int n = as_int(order), lda = leading(order), lwork = scratch.left<T>();
    T *work = scratch.take<T>(0);
    if constexpr (Scalar<T>::is_complex)
      decompose(&mode, &sort, select, &n, a, &lda, selected, values, vectors, &lda, work, &lwork, rwork, unused, info);
    else
      decompose(&mode, &sort, select, &n, a, &lda, selected, values, imaginary, vectors, &lda, work, &lwork, unused,
                info);
  };
  call.for_each_entry(entries, 25 * cube(order), body);
}

/// (a) -> (Hessenberg form and reflectors, tau [.., n - 1], info); column-major. Attributes low and high, from 1.
template <typename T> void gehrd(const Call &call) {
  int64_t order = call.operands[0].size(-1), entries = Call::batch(call.operands[0], 2);
  int64_t taus = call.results[1].size(-1);
  Fortran<T> reduce("gehrd");
  auto body = [&](int64_t entry, char *memory) {
    copy_entry<T>(call.operands[0], call.results[0], entry, order * order);
    Scratch scratch(memory, call.scratch_bytes(entries));
    int low = as_int(call.spec.attribute("low")), high = as_int(call.spec.attribute("high"));
    int n = as_int(order), lda = leading(order), lwork = scratch.left<T>();
    reduce(&n, &low, &high, call.results[0].as<T>() + entry * order * order, &lda,
           call.results[1].as<T>() + entry * taus, scratch.take<T>(0), &lwork, call.results[2].as<int>() + entry);
  };
  call.for_each_entry(entries, 4 * cube(order), body);
}

/// (a) -> (tridiagonal form and reflectors, diagonal, off-diagonal, tau, info); column-major. Attribute uplo.
template <typename T> void sytrd(const Call &call) {
  int64_t order = call.operands[0].size(-1), entries = Call::batch(call.operands[0], 2);
  int64_t outer = call.results[2].size(-1), taus = call.results[3].size(-1);
  Fortran<T> reduce("sytrd", "hetrd");
  auto body = [&](int64_t entry, char *memory) {
    copy_entry<T>(call.operands[0], call.results[0], entry, order * order);
    Scratch scratch(memory, call.scratch_bytes(entries));
    char uplo = static_cast<char>(call.spec.attribute("uplo"));
    int n = as_int(order), lda = leading(order), lwork = scratch.left<T>();
    reduce(&uplo, &n, call.results[0].as<T>() + entry * order * order, &lda,
           call.results[1].as<RealOf<T>>() + entry * order, call.results[2].as<RealOf<T>>() + entry * outer,
           call.results[3].as<T>() + entry * taus, scratch.take<T>(0), &lwork, call.results[4].as<int>() + entry);
  };
  call.for_each_entry(entries, 4 * cube(order), body);
}

} // namespace

template <typename T> void add_spectral(BuiltinTable &table) {
  table["gesdd"] = {gesdd<T>, 1, 5};
  table["gesvd"] = {gesvd<T>, 1, 5};
  table[Scalar<T>::is_complex ? "heevd" : "syevd"] = {syevd<T>, 1, 3};
  if constexpr (Scalar<T>::is_complex)
    table["geev"] = {geev_complex<T>, 1, 4};
  else
    table["geev"] = {geev_real<T>, 1, 5};
  table["gees"] = {gees<T>, 1, Scalar<T>::is_complex ? 5U : 6U};
  table["gehrd"] = {gehrd<T>, 1, 3};
  table[Scalar<T>::is_complex ? "hetrd" : "sytrd"] = {sytrd<T>, 1, 5};
}

template void add_spectral<float>(BuiltinTable &);
template void add_spectral<double>(BuiltinTable &);
template void add_spectral<Complex64>(BuiltinTable &);
template void add_spectral<Complex128>(BuiltinTable &);

} // namespace disc
