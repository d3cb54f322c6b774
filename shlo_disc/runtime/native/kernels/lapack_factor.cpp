// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Factorisations and solves. "Column-major" below: a tensor of dims [.., columns, rows], which is what Fortran calls a
// matrix of that many rows and columns; the compiler has transposed it. `lapack_potrf` and `lapack_trsm` take row-major
// matrices instead: a row-major matrix is the transposed column-major one, so the other triangle and side do the same.
#include "lapack.h"

namespace disc {

namespace {

char flipped(int64_t letter, char one, char other) { return letter == one ? other : one; }

double cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

/// (a [.., n, n]) -> (factor, info). Attribute uplo: the triangle that is read and written.
template <typename T> void potrf(const Call &call) {
  int64_t size = call.operands[0].size(-1);
  char uplo = flipped(call.spec.attribute("uplo"), 'L', 'U');
  Fortran<T> factor("potrf");
  auto body = [&](int64_t entry, char *) {
    copy_entry<T>(call.operands[0], call.results[0], entry, size * size);
    char triangle = uplo;
    int n = as_int(size), lda = leading(size);
    factor(&triangle, &n, call.results[0].as<T>() + entry * size * size, &lda, call.results[1].as<int>() + entry);
  };
  call.for_each_entry(Call::batch(call.operands[0], 2), cube(size) / 3, body);
}

/// (a [.., n, n], b [.., p, q]) -> (x). Attributes side, uplo, trans_x, diag: letters as in BLAS.
template <typename T> void trsm(const Call &call) {
  const CallTensor &a = call.operands[0], &b = call.operands[1];
  int64_t size = a.size(-1), rows = b.size(-2), columns = b.size(-1);
  Fortran<T> solve("trsm");
  auto body = [&](int64_t entry, char *) {
    copy_entry<T>(b, call.results[0], entry, rows * columns);
    char side = flipped(call.spec.attribute("side"), 'L', 'R'), uplo = flipped(call.spec.attribute("uplo"), 'L', 'U');
    char trans = static_cast<char>(call.spec.attribute("trans_x"));
    char diag = static_cast<char>(call.spec.attribute("diag"));
    int m = as_int(columns), n = as_int(rows), lda = leading(size), ldb = leading(columns);
    T one(1);
    if (m > 0 && n > 0)
      solve(&side, &uplo, &trans, &diag, &m, &n, &one, a.as<T>() + entry * size * size, &lda,
            call.results[0].as<T>() + entry * rows * columns, &ldb);
  };
  double work = static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(size);
  call.for_each_entry(Call::batch(a, 2), work, body);
}

/// (a, column-major) -> (lu, pivots [.., min(m, n)], info). Pivots count from 1.
template <typename T> void getrf(const Call &call) {
  int64_t columns = call.operands[0].size(-2), rows = call.operands[0].size(-1), pivots = call.results[1].size(-1);
  Fortran<T> factor("getrf");
  auto body = [&](int64_t entry, char *) {
    copy_entry<T>(call.operands[0], call.results[0], entry, rows * columns);
    int m = as_int(rows), n = as_int(columns), lda = leading(rows);
    factor(&m, &n, call.results[0].as<T>() + entry * rows * columns, &lda, call.results[1].as<int>() + entry * pivots,
           call.results[2].as<int>() + entry);
  };
  call.for_each_entry(Call::batch(call.operands[0], 2), cube(pivots), body);
}

/// (a, column-major) -> (reflectors and r, tau [.., min(m, n)]).
template <typename T> void geqrf(const Call &call) {
  int64_t columns = call.operands[0].size(-2), rows = call.operands[0].size(-1), taus = call.results[1].size(-1);
  int64_t entries = Call::batch(call.operands[0], 2);
  Fortran<T> factor("geqrf");
  auto body = [&](int64_t entry, char *memory) {
    copy_entry<T>(call.operands[0], call.results[0], entry, rows * columns);
    Scratch scratch(memory, call.scratch_bytes(entries));
    int m = as_int(rows), n = as_int(columns), lda = leading(rows), info = 0, lwork = scratch.left<T>();
    factor(&m, &n, call.results[0].as<T>() + entry * rows * columns, &lda, call.results[1].as<T>() + entry * taus,
           scratch.take<T>(0), &lwork, &info);
  };
  call.for_each_entry(entries, 2 * cube(taus), body);
}

/// (a, pivots [.., n]) -> (reflectors and r, pivots, tau [.., min(m, n)]); a column-major.
template <typename T> void geqp3(const Call &call) {
  int64_t columns = call.operands[0].size(-2), rows = call.operands[0].size(-1), taus = call.results[2].size(-1);
  int64_t entries = Call::batch(call.operands[0], 2);
  Fortran<T> factor("geqp3");
  auto body = [&](int64_t entry, char *memory) {
    copy_entry<T>(call.operands[0], call.results[0], entry, rows * columns);
    copy_entry<int>(call.operands[1], call.results[1], entry, columns);
    Scratch scratch(memory, call.scratch_bytes(entries));
    auto *rwork = scratch.take<RealOf<T>>(Scalar<T>::is_complex ? 2 * columns : 0);
    int m = as_int(rows), n = as_int(columns), lda = leading(rows), info = 0, lwork = scratch.left<T>();
    T *a = call.results[0].as<T>() + entry * rows * columns, *tau = call.results[2].as<T>() + entry * taus;
    int *jpvt = call.results[1].as<int>() + entry * columns;
    if constexpr (Scalar<T>::is_complex)
      factor(&m, &n, a, &lda, jpvt, tau, scratch.take<T>(0), &lwork, rwork, &info);
    else
      factor(&m, &n, a, &lda, jpvt, tau, scratch.take<T>(0), &lwork, &info);
  };
  call.for_each_entry(entries, 2 * cube(taus), body);
}

/// (reflectors, tau [.., k]) -> (q), both matrices column-major of the same sizes.
template <typename T> void orgqr(const Call &call) {
  int64_t columns = call.operands[0].size(-2), rows = call.operands[0].size(-1), taus = call.operands[1].size(-1);
  int64_t entries = Call::batch(call.operands[0], 2);
  Fortran<T> expand("orgqr", "ungqr");
  auto body = [&](int64_t entry, char *memory) {
    copy_entry<T>(call.operands[0], call.results[0], entry, rows * columns);
    Scratch scratch(memory, call.scratch_bytes(entries));
    int m = as_int(rows), n = as_int(columns), k = as_int(taus), lda = leading(rows), info = 0;
    int lwork = scratch.left<T>();
    expand(&m, &n, &k, call.results[0].as<T>() + entry * rows * columns, &lda, call.operands[1].as<T>() + entry * taus,
           scratch.take<T>(0), &lwork, &info);
  };
  call.for_each_entry(entries, 2 * cube(taus), body);
}

/// (reflectors, tau [.., k], c) -> (q c), (q^H c), (c q) or (c q^H), by the attributes left and transpose.
template <typename T> void ormqr(const Call &call) {
  const CallTensor &a = call.operands[0], &c = call.operands[2];
  int64_t columns = c.size(-2), rows = c.size(-1), taus = call.operands[1].size(-1), order = a.size(-1);
  int64_t entries = Call::batch(c, 2), stride = a.size(-2) * order;
  Fortran<T> multiply("ormqr", "unmqr");
  auto body = [&](int64_t entry, char *memory) {
    copy_entry<T>(c, call.results[0], entry, rows * columns);
    Scratch scratch(memory, call.scratch_bytes(entries));
    char side = call.spec.attribute("left") ? 'L' : 'R';
    char trans = !call.spec.attribute("transpose") ? 'N' : Scalar<T>::is_complex ? 'C' : 'T';
    int m = as_int(rows), n = as_int(columns), k = as_int(taus), lda = leading(order), ldc = leading(rows), info = 0;
    int lwork = scratch.left<T>();
    multiply(&side, &trans, &m, &n, &k, a.as<T>() + entry * stride, &lda, call.operands[1].as<T>() + entry * taus,
             call.results[0].as<T>() + entry * rows * columns, &ldc, scratch.take<T>(0), &lwork, &info);
  };
  call.for_each_entry(entries, 4 * cube(taus), body);
}

/// (lower, diagonal, upper [.., n], b) -> (the same overwritten, info); b column-major. lower[0] is not used.
template <typename T> void gtsv(const Call &call) {
  int64_t order = call.operands[1].size(-1), columns = call.operands[3].size(-2);
  Fortran<T> solve("gtsv");
  auto body = [&](int64_t entry, char *) {
    for (int i = 0; i < 3; ++i)
      copy_entry<T>(call.operands[i], call.results[i], entry, order);
    copy_entry<T>(call.operands[3], call.results[3], entry, order * columns);
    int n = as_int(order), nrhs = as_int(columns), ldb = leading(order);
    solve(&n, &nrhs, call.results[0].as<T>() + entry * order + 1, call.results[1].as<T>() + entry * order,
          call.results[2].as<T>() + entry * order, call.results[3].as<T>() + entry * order * columns, &ldb,
          call.results[4].as<int>() + entry);
  };
  call.for_each_entry(Call::batch(call.operands[1], 1), 8.0 * static_cast<double>(order * columns), body);
}

} // namespace

template <typename T> void add_factorisations(BuiltinTable &table) {
  table["potrf"] = {potrf<T>, 1, 2};
  table["trsm"] = {trsm<T>, 2, 1};
  table["getrf"] = {getrf<T>, 1, 3};
  table["geqrf"] = {geqrf<T>, 1, 2};
  table["geqp3"] = {geqp3<T>, 2, 3};
  table[Scalar<T>::is_complex ? "ungqr" : "orgqr"] = {orgqr<T>, 2, 1};
  table[Scalar<T>::is_complex ? "unmqr" : "ormqr"] = {ormqr<T>, 3, 1};
  table["gtsv"] = {gtsv<T>, 4, 5};
}

template void add_factorisations<float>(BuiltinTable &);
template void add_factorisations<double>(BuiltinTable &);
template void add_factorisations<Complex64>(BuiltinTable &);
template void add_factorisations<Complex128>(BuiltinTable &);

} // namespace disc
