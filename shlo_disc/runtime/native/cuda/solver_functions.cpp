// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of LAPACK on GPUs. Operands and results are those of `kernels/lapack_factor.cpp` and
// `lapack_spectral.cpp`: "column-major" is a tensor of dims [.., columns, rows], and the others are row-major, so that
// the libraries, which take matrices column by column, have the transposed ones.
#include "solver_call.h"

#include <algorithm>

namespace disc::cuda {

namespace {

int as_int(int64_t value) { return static_cast<int>(value); }

/// A triangle of the transposed matrix.
Triangle flipped(char uplo) { return uplo == 'L' ? Triangle::upper : Triangle::lower; }

/// A number as cuBLAS takes it, in the type of a call.
const void *number(const SolverCall &c, bool is_one) {
  static const float narrow[2][2] = {{0, 0}, {1, 0}};
  static const double wide[2][2] = {{0, 0}, {1, 0}};
  return c.real_type == DataType::r32f ? static_cast<const void *>(narrow[is_one]) : wide[is_one];
}

/// Numbers that succeed, for matrices without elements.
void succeed(const SolverCall &c, size_t result) {
  c.gpu.fill(reinterpret_cast<Address>(c.results[result].first), 0,
             static_cast<size_t>(c.entries * c.results[result].bytes));
}

/// (a [.., n, n]) -> (factor, info), row-major. Attribute uplo: the triangle that is read and written. In a batch, the
/// other one is destroyed.
void potrf(SolverCall &c) {
  int64_t n = c.call.operands[0].size(-1);
  if (n == 0)
    return succeed(c, 1);
  Triangle triangle = flipped(c.letter("uplo"));
  if (c.is_batch(n)) {
    void **a = c.addresses(c.results[0]);
    return c.give_batch(c.library, 0, [&] {
      return c.library.potrf_batched[c.index](c.solver, triangle, as_int(n), a, as_int(n),
                                              static_cast<int *>(c.results[1][0]), as_int(c.entries));
    });
  }
  Workspace room = c.workspace([&](size_t *device, size_t *host) {
    return c.library.potrf_bytes(c.solver, c.options, triangle, n, c.type, c.results[0][0], n, c.type, device, host);
  });
  c.give_each(c.library, [&](int64_t i) {
    c.copy(0, 0, i);
    return c.library.potrf(c.solver, c.options, triangle, n, c.type, c.results[0][i], n, c.type, room.device,
                           room.device_bytes, room.host, room.host_bytes, static_cast<int *>(c.results[1][i]));
  });
}

/// (a [.., n, n], b [.., p, q]) -> (x), row-major. Attributes side, uplo, trans_x, diag: letters as in BLAS.
void trsm(SolverCall &c) {
  const CallTensor &b = c.call.operands[1];
  int64_t n = c.call.operands[0].size(-1), rows = b.size(-2), columns = b.size(-1);
  if (rows == 0 || columns == 0)
    return;
  Side side = c.letter("side") == 'L' ? Side::right : Side::left;
  Triangle triangle = flipped(c.letter("uplo"));
  char letter = c.letter("trans_x");
  Operation operation = letter == 'N' ? Operation::none : letter == 'T' ? Operation::transpose : Operation::adjoint;
  Diagonal diagonal = c.letter("diag") == 'U' ? Diagonal::ones : Diagonal::any;
  if (c.is_batch(n)) {
    void **left = c.addresses(c.operands[0]), **right = c.addresses(c.results[0]);
    return c.give_batch(c.cublas, 1, [&] {
      return c.cublas.trsm_batched[c.index](c.blas, side, triangle, operation, diagonal, as_int(columns), as_int(rows),
                                            number(c, true), left, as_int(n), right, as_int(columns),
                                            as_int(c.entries));
    });
  }
  c.give_each(c.cublas, [&](int64_t i) {
    c.copy(1, 0, i);
    return c.cublas.trsm[c.index](c.blas, side, triangle, operation, diagonal, as_int(columns), as_int(rows),
                                  number(c, true), c.operands[0][i], as_int(n), c.results[0][i], as_int(columns));
  });
}

/// (a, column-major) -> (lu, pivots [.., min(m, n)], info). Pivots count from 1.
void getrf(SolverCall &c) {
  int64_t columns = c.call.operands[0].size(-2), rows = c.call.operands[0].size(-1);
  if (rows == 0 || columns == 0)
    return succeed(c, 2);
  int m = as_int(rows), n = as_int(columns);
  if (c.is_batch(rows) && m == n) {
    void **a = c.addresses(c.results[0]);
    return c.give_batch(c.cublas, 0, [&] {
      return c.cublas.getrf_batched[c.index](c.blas, n, a, n, static_cast<int *>(c.results[1][0]),
                                             static_cast<int *>(c.results[2][0]), as_int(c.entries));
    });
  }
  Workspace room = c.workspace_in_elements(
      [&](int *elements) { return c.library.getrf_elements[c.index](c.solver, m, n, c.results[0][0], m, elements); });
  c.give_each(c.library, [&](int64_t i) {
    c.copy(0, 0, i);
    return c.library.getrf[c.index](c.solver, m, n, c.results[0][i], m, room.device,
                                    static_cast<int *>(c.results[1][i]), static_cast<int *>(c.results[2][i]));
  });
}

/// (a, column-major) -> (reflectors and r, tau [.., min(m, n)]).
void geqrf(SolverCall &c) {
  int64_t columns = c.call.operands[0].size(-2), rows = c.call.operands[0].size(-1);
  if (rows == 0 || columns == 0)
    return;
  Workspace room = c.workspace([&](size_t *device, size_t *host) {
    return c.library.geqrf_bytes(c.solver, c.options, rows, columns, c.type, c.results[0][0], rows, c.type,
                                 c.results[1][0], c.type, device, host);
  });
  c.give_each(c.library, [&](int64_t i) {
    c.copy(0, 0, i);
    return c.library.geqrf(c.solver, c.options, rows, columns, c.type, c.results[0][i], rows, c.type, c.results[1][i],
                           c.type, room.device, room.device_bytes, room.host, room.host_bytes, room.info);
  });
}

/// (reflectors, tau [.., k]) -> (q), both matrices column-major of the same sizes.
void orgqr(SolverCall &c) {
  int m = as_int(c.call.operands[0].size(-1)), n = as_int(c.call.operands[0].size(-2));
  int k = as_int(c.call.operands[1].size(-1));
  if (m == 0 || n == 0)
    return;
  Workspace room = c.workspace_in_elements([&](int *elements) {
    return c.library.orgqr_elements[c.index](c.solver, m, n, k, c.results[0][0], m, c.operands[1][0], elements);
  });
  c.give_each(c.library, [&](int64_t i) {
    c.copy(0, 0, i);
    return c.library.orgqr[c.index](c.solver, m, n, k, c.results[0][i], m, c.operands[1][i], room.device,
                                    room.elements, room.info);
  });
}

/// (reflectors, tau [.., k], c) -> (q c), (q^H c), (c q) or (c q^H), by the attributes left and transpose.
void ormqr(SolverCall &c) {
  const CallTensor &target = c.call.operands[2];
  int m = as_int(target.size(-1)), n = as_int(target.size(-2)), k = as_int(c.call.operands[1].size(-1));
  int order = as_int(c.call.operands[0].size(-1));
  if (m == 0 || n == 0)
    return;
  Side side = c.call.spec.attribute("left") != 0 ? Side::left : Side::right;
  Operation turned = c.type == c.real_type ? Operation::transpose : Operation::adjoint;
  Operation operation = c.call.spec.attribute("transpose") != 0 ? turned : Operation::none;
  Workspace room = c.workspace_in_elements([&](int *elements) {
    return c.library.ormqr_elements[c.index](c.solver, side, operation, m, n, k, c.operands[0][0], order,
                                             c.operands[1][0], c.results[0][0], m, elements);
  });
  c.give_each(c.library, [&](int64_t i) {
    c.copy(2, 0, i);
    return c.library.ormqr[c.index](c.solver, side, operation, m, n, k, c.operands[0][i], order, c.operands[1][i],
                                    c.results[0][i], m, room.device, room.elements, room.info);
  });
}

/// (a, column-major) -> (vectors, column-major, values [.., n], info). Attributes mode ('V', 'N') and uplo.
void syevd(SolverCall &c) {
  int64_t n = c.call.operands[0].size(-1);
  if (n == 0)
    return succeed(c, 2);
  Vectors vectors = c.letter("mode") == 'V' ? Vectors::all : Vectors::none;
  Triangle triangle = c.letter("uplo") == 'L' ? Triangle::lower : Triangle::upper;
  Workspace room = c.workspace([&](size_t *device, size_t *host) {
    return c.library.syevd_bytes(c.solver, c.options, vectors, triangle, n, c.type, c.results[0][0], n, c.real_type,
                                 c.results[1][0], c.type, device, host);
  });
  c.give_each(c.library, [&](int64_t i) {
    c.copy(0, 0, i);
    return c.library.syevd(c.solver, c.options, vectors, triangle, n, c.type, c.results[0][i], n, c.real_type,
                           c.results[1][i], c.type, room.device, room.device_bytes, room.host, room.host_bytes,
                           static_cast<int *>(c.results[2][i]));
  });
}

/// The memory of a matrix of columns x rows becomes that of the transposed one.
void transpose(const SolverCall &c, const void *from, void *to, int64_t rows, int64_t columns) {
  int m = as_int(rows), n = as_int(columns);
  c.cublas.check(c.cublas.geam[c.index](c.blas, Operation::transpose, Operation::none, m, n, number(c, true), from, n,
                                        number(c, false), to, m, to, m),
                 c.what);
}

/// (a [.., rows, columns], row-major) -> (a destroyed, s, u, vt, info). Attribute mode: 'A' all vectors, 'S' the first
/// min(rows, columns), 'N' none.
///
/// cuSOLVER takes matrices of at least as many rows as columns. What lies in memory is the transposed matrix, column by
/// column, whose u and vt are those of the original transposed and exchanged: they lie in memory as row-major ones do.
/// It has enough rows where the original has no more rows than columns; otherwise all matrices are transposed.
void gesvd(SolverCall &c) {
  const CallTensor &a = c.call.operands[0];
  int64_t rows = a.size(-2), columns = a.size(-1), most = std::max(rows, columns), least = std::min(rows, columns);
  if (least == 0)
    return succeed(c, 4);
  bool turns = rows > columns, has_vectors = c.letter("mode") != 'N';
  int64_t u_columns = c.letter("mode") == 'A' ? most : least;
  auto mode = static_cast<signed char>(c.letter("mode"));
  void *turned_u = turns && has_vectors ? c.memory(most * u_columns * c.element_bytes) : nullptr;
  void *turned_vt = turns && has_vectors ? c.memory(least * least * c.element_bytes) : nullptr;
  auto u = [&](int64_t i) { return !has_vectors ? nullptr : turns ? turned_u : c.results[3][i]; };
  auto vt = [&](int64_t i) { return !has_vectors ? nullptr : turns ? turned_vt : c.results[2][i]; };
  Workspace room = c.workspace([&](size_t *device, size_t *host) {
    return c.library.gesvd_bytes(c.solver, c.options, mode, mode, most, least, c.type, c.results[0][0], most,
                                 c.real_type, c.results[1][0], c.type, u(0), most, c.type, vt(0), least, c.type, device,
                                 host);
  });
  c.give_each(c.library, [&](int64_t i) {
    if (turns)
      transpose(c, c.operands[0][i], c.results[0][i], rows, columns);
    else
      c.copy(0, 0, i);
    SolverStatus status = c.library.gesvd(c.solver, c.options, mode, mode, most, least, c.type, c.results[0][i], most,
                                          c.real_type, c.results[1][i], c.type, u(i), most, c.type, vt(i), least,
                                          c.type, room.device, room.device_bytes, room.host, room.host_bytes,
                                          static_cast<int *>(c.results[4][i]));
    if (status == 0 && turns && has_vectors) {
      transpose(c, turned_u, c.results[2][i], u_columns, most);
      transpose(c, turned_vt, c.results[3][i], least, least);
    }
    return status;
  });
}

constexpr LapackFunction kFunctions[] = {
    {"potrf", "Mt", "MtNi", "a Cholesky factorization", potrf},
    {"trsm", "MtMt", "Mt", "a solution of triangular equations", trsm},
    {"getrf", "Mt", "MtViNi", "an LU factorization", getrf},
    {"geqrf", "Mt", "MtVt", "a QR factorization", geqrf},
    {"orgqr", "MtVt", "Mt", "the orthogonal matrix of a QR factorization", orgqr},
    {"ungqr", "MtVt", "Mt", "the unitary matrix of a QR factorization", orgqr},
    {"ormqr", "MtVtMt", "Mt", "a product by the orthogonal matrix of a QR factorization", ormqr},
    {"unmqr", "MtVtMt", "Mt", "a product by the unitary matrix of a QR factorization", ormqr},
    {"syevd", "Mt", "MtVrNi", "eigenvalues", syevd},
    {"heevd", "Mt", "MtVrNi", "eigenvalues", syevd},
    {"gesdd", "Mt", "MtVrMtMtNi", "a singular value decomposition", gesvd},
    {"gesvd", "Mt", "MtVrMtMtNi", "a singular value decomposition", gesvd},
};

} // namespace

const LapackFunction *lapack_function(std::string_view name) {
  for (const LapackFunction &function : kFunctions)
    if (function.name == name)
      return &function;
  return nullptr;
}

} // namespace disc::cuda
