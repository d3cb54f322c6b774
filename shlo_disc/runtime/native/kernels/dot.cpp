// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dot.h"

#include "blas.h"
#include "gemm.h"
#include "outer_product.h"
#include "core/command_clock.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace disc {

namespace {

constexpr int64_t kIntLimit = (int64_t{1} << 31) - 1;
constexpr int64_t kLargestPiece = int64_t{1} << 30; // in each dimension: BLAS counts in 32-bit integers
constexpr int64_t kWorkToShare = 1 << 17;           // multiply-adds that pay for handing a range to another thread
constexpr int64_t kSmallestPiece = 16;              // rows or columns of C

// OpenBLAS multiplies up to a million multiply-adds without packing its operands first, and with few rows packing the
// matrix would cost more than the product. Measured on AVX-512: 1.4 to 3 times as fast up to 6 rows, slower from 12.
constexpr int64_t kFewRows = 6;
constexpr double kUnpackedWork = 0.95e6;

/// How BLAS sees one operand: column-major as stored or transposed, with a leading dimension.
struct Layout {
  char transpose = 'N';
  int64_t leading = 1;
  bool valid = true;
};

/// A rows x columns matrix with element strides as a column-major BLAS operand; invalid when BLAS cannot express it.
/// A dimension of size one has no stride of its own, so either reading is open to it.
Layout layout_of(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  bool as_stored = (rows > 1 && row_stride == 1) || (rows <= 1 && (columns <= 1 || column_stride != 1));
  int64_t along = as_stored ? rows : columns, across = as_stored ? columns : rows;
  int64_t unit = as_stored ? row_stride : column_stride, other = as_stored ? column_stride : row_stride;
  int64_t smallest = std::max<int64_t>(along, 1);
  int64_t leading = across <= 1 ? smallest : other;
  bool valid = (along <= 1 || unit == 1) && leading >= smallest && leading <= kIntLimit;
  return {as_stored ? 'N' : 'T', leading, valid};
}

/// One dot with C's columns contiguous (the problem is transposed when its rows are), cut into pieces of C.
template <typename T> struct Problem {
  DiscDot dot;
  Layout a, b, c; // of the transposed matrices: BLAS computes C' = B' A'
  bool vector = false;
  int64_t row_pieces = 1, column_pieces = 1;
  int64_t entries;

  explicit Problem(const DiscDot &given, int threads);
  int64_t pieces() const { return entries * row_pieces * column_pieces; }
  int64_t work() const;
  void run_piece(int64_t index) const;

private:
  void transpose();
  void choose_pieces(int threads);
  void multiply(const T *a, const T *b, T *c, int64_t m, int64_t n) const;
  void multiply_by_gemm(const T *a, const T *b, T *c, int64_t m, int64_t n) const;
  void multiply_by_gemv(const T *a, const T *b, T *c, int64_t n) const;
  void multiply_by_loops(const T *a, const T *b, T *c, int64_t m, int64_t n) const;
};

template <typename T> Problem<T>::Problem(const DiscDot &given, int threads) : dot(given), entries(entries_of(given)) {
  // BLAS wants unit strides down C's columns; a product with a vector keeps the vector on the left, B is the matrix.
  bool column_vector = dot.n == 1 && dot.m > 1;
  bool column_major = dot.m > 1 && dot.n > 1 && dot.c_n != 1 && dot.c_m == 1;
  if (column_vector || column_major)
    transpose();
  a = layout_of(dot.k, dot.m, dot.a_k, dot.a_m);
  b = layout_of(dot.n, dot.k, dot.b_n, dot.b_k);
  c = layout_of(dot.n, dot.m, dot.c_n, dot.c_m);
  c.valid = c.valid && c.transpose == 'N';
  vector = dot.m == 1 && b.valid && dot.a_k > 0 && dot.a_k <= kIntLimit && dot.c_n > 0 && dot.c_n <= kIntLimit;
  choose_pieces(threads);
}

/// C = A B  <=>  C' = B' A'.
template <typename T> void Problem<T>::transpose() {
  std::swap(dot.a, dot.b);
  std::swap(dot.m, dot.n);
  std::swap(dot.a_batch, dot.b_batch);
  std::swap(dot.c_m, dot.c_n);
  int64_t a_m = dot.a_m, a_k = dot.a_k;
  dot.a_m = dot.b_n, dot.a_k = dot.b_k;
  dot.b_n = a_m, dot.b_k = a_k;
}

/// Multiply-adds of one piece; saturates far above any threshold.
template <typename T> int64_t Problem<T>::work() const {
  double work = static_cast<double>(dot.m) * static_cast<double>(dot.n) * static_cast<double>(dot.k);
  return static_cast<int64_t>(std::min(work / static_cast<double>(row_pieces * column_pieces), 1e15));
}

/// Enough batch entries keep every thread busy on their own. Otherwise C is cut along its longer side: each piece
/// packs the whole of the operand along the other side again, so the shorter cut edge costs least.
template <typename T> void Problem<T>::choose_pieces(int threads) {
  row_pieces = (dot.m + kLargestPiece - 1) / kLargestPiece;
  column_pieces = (dot.n + kLargestPiece - 1) / kLargestPiece;
  int64_t wanted = entries >= 4 * threads ? 1 : (threads + entries - 1) / entries;
  double work = static_cast<double>(dot.m) * static_cast<double>(dot.n) * static_cast<double>(dot.k);
  wanted = std::min(wanted, static_cast<int64_t>(std::min(work / kWorkToShare, 1e6)));
  bool by_rows = dot.m >= dot.n;
  int64_t &cuts = by_rows ? row_pieces : column_pieces;
  cuts = std::max(cuts, std::min(wanted, (by_rows ? dot.m : dot.n) / kSmallestPiece));
  if (dot.m > 1 && dot.m <= kFewRows)
    column_pieces =
        std::max(column_pieces, std::min(static_cast<int64_t>(work / kUnpackedWork) + 1, dot.n / kSmallestPiece));
}

/// The first index of piece `index` of `pieces` over `size`, on multiples of the micro-kernels' tiles where it can be.
int64_t cut(int64_t size, int64_t pieces, int64_t index) {
  if (index >= pieces)
    return size;
  auto position = static_cast<int64_t>(static_cast<__int128>(size) * index / pieces);
  return size / pieces >= 4 * kSmallestPiece ? position / kSmallestPiece * kSmallestPiece : position;
}

template <typename T> void Problem<T>::run_piece(int64_t index) const {
  int64_t column = index % column_pieces;
  int64_t row = index / column_pieces % row_pieces;
  int64_t entry = index / column_pieces / row_pieces;
  int64_t m0 = cut(dot.m, row_pieces, row), m1 = cut(dot.m, row_pieces, row + 1);
  int64_t n0 = cut(dot.n, column_pieces, column), n1 = cut(dot.n, column_pieces, column + 1);
  const T *left = static_cast<const T *>(dot.a) + batch_offset(dot, entry, dot.a_batch) + m0 * dot.a_m;
  const T *right = static_cast<const T *>(dot.b) + batch_offset(dot, entry, dot.b_batch) + n0 * dot.b_n;
  T *out = static_cast<T *>(dot.c) + batch_offset(dot, entry, dot.c_batch) + m0 * dot.c_m + n0 * dot.c_n;
  if (m1 > m0 && n1 > n0)
    multiply(left, right, out, m1 - m0, n1 - n0);
}

template <typename T>
void Problem<T>::multiply(const T *left, const T *right, T *out, int64_t m, int64_t n) const {
  const Blas &blas = Blas::instance();
  if (vector && blas.gemv<T>() && dot.k <= kIntLimit)
    return multiply_by_gemv(left, right, out, n);
  if (a.valid && b.valid && c.valid && blas.gemm<T>())
    return multiply_by_gemm(left, right, out, m, n);
  multiply_by_loops(left, right, out, m, n);
}

template <typename T>
void Problem<T>::multiply_by_gemm(const T *left, const T *right, T *out, int64_t m, int64_t n) const {
  Gemm<T> gemm = Blas::instance().gemm<T>();
  char trans_left = a.transpose, trans_right = b.transpose;
  int lda = static_cast<int>(a.leading), ldb = static_cast<int>(b.leading), ldc = static_cast<int>(c.leading);
  int rows = static_cast<int>(n), columns = static_cast<int>(m);
  T one = 1, beta = 0;
  for (int64_t k0 = 0; k0 < dot.k; k0 += kLargestPiece) {
    int depth = static_cast<int>(std::min(kLargestPiece, dot.k - k0));
    gemm(&trans_right, &trans_left, &rows, &columns, &depth, &one, const_cast<T *>(right + k0 * dot.b_k), &ldb,
         const_cast<T *>(left + k0 * dot.a_k), &lda, &beta, out, &ldc);
    beta = 1;
  }
}

template <typename T> void Problem<T>::multiply_by_gemv(const T *left, const T *right, T *out, int64_t n) const {
  Gemv<T> gemv = Blas::instance().gemv<T>();
  // Some versions scale y by beta instead of storing zeros, which keeps a NaN that happens to lie there.
  for (int64_t i = 0; i < n; ++i)
    out[i * dot.c_n] = 0;
  char trans = b.transpose;
  int depth = static_cast<int>(dot.k), length = static_cast<int>(n);
  int &rows = trans == 'N' ? length : depth, &columns = trans == 'N' ? depth : length;
  int ldb = static_cast<int>(b.leading), step_left = static_cast<int>(dot.a_k), step_out = static_cast<int>(dot.c_n);
  T one = 1, beta = 0;
  gemv(&trans, &rows, &columns, &one, const_cast<T *>(right), &ldb, const_cast<T *>(left), &step_left, &beta, out,
       &step_out);
}

/// Any strides at all, among them broadcast (0) and leading dimensions beyond 32 bits.
template <typename T>
void Problem<T>::multiply_by_loops(const T *left, const T *right, T *out, int64_t m, int64_t n) const {
  for (int64_t i = 0; i < m; ++i) {
    T *row = out + i * dot.c_m;
    for (int64_t j = 0; j < n; ++j)
      row[j * dot.c_n] = 0;
    for (int64_t k = 0; k < dot.k; ++k) {
      T scale = left[i * dot.a_m + k * dot.a_k];
      const T *source = right + k * dot.b_k;
      for (int64_t j = 0; j < n; ++j)
        row[j * dot.c_n] += scale * source[j * dot.b_n];
    }
  }
}

/// Neither do products of the same A have one, nor what is computed of their rows.
bool has_no_rows(const DiscDot &dot) {
  bool empty = dot.m <= 0;
  for (int64_t i = 0; i < dot.batch_rank; ++i)
    empty |= dot.batch[i] <= 0;
  return empty;
}

/// B is not packed, and packing it would cost more than the product: few rows, or a vector.
bool is_thin(const DiscDot &dot) { return dot.packed == nullptr && dot.k > 0 && (dot.m < 4 || dot.n < 4); }

template <typename T> void run_thin(ThreadPool &pool, const DiscDot &dot) {
  Problem<T> problem(dot, pool.size());
  Blas::SingleThreaded guard;
  int64_t grain = std::max<int64_t>(1, kWorkToShare / std::max<int64_t>(problem.work(), 1));
  auto body = [](void *context, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<const Problem<T> *>(context)->run_piece(i);
  };
  pool.run(body, &problem, problem.pieces(), grain);
  run_row_epilogue(pool, dot);
}

/// A thin product whose sums only its epilogue sees: pieces along the longer side of C, each in a thread's own memory.
template <typename T> struct ThinPieces {
  static constexpr int64_t kMostSums = 3 * 2048;
  static constexpr int64_t kShortest = 64;

  const DiscDot &dot;
  bool by_rows;
  int64_t entries, length, pieces;

  ThinPieces(const DiscDot &given, int threads) : dot(given), by_rows(given.n < 4 && given.m >= given.n) {
    int64_t size = by_rows ? dot.m : dot.n, other = by_rows ? dot.n : dot.m;
    int64_t even = (size / (4 * threads) + kShortest - 1) / kShortest * kShortest;
    length = std::min(kMostSums / other, std::max(kShortest, even));
    pieces = (size + length - 1) / length;
    entries = entries_of(dot);
  }

  int64_t work() const { return dot.k * length * (by_rows ? dot.n : dot.m); }

  void run(int64_t index) const {
    alignas(64) thread_local T sums[kMostSums];
    int64_t entry = index / pieces, first = index % pieces * length;
    int64_t m0 = by_rows ? first : 0, n0 = by_rows ? 0 : first;
    DiscDot piece = dot;
    piece.m = by_rows ? std::min(length, dot.m - first) : dot.m;
    piece.n = by_rows ? dot.n : std::min(length, dot.n - first);
    piece.batch_rank = 0;
    piece.a = static_cast<const T *>(dot.a) + batch_offset(dot, entry, dot.a_batch) + m0 * dot.a_m;
    piece.b = static_cast<const T *>(dot.b) + batch_offset(dot, entry, dot.b_batch) + n0 * dot.b_n;
    piece.c = sums, piece.c_m = piece.n, piece.c_n = 1;
    Problem<T> problem(piece, 1);
    for (int64_t i = 0; i < problem.pieces(); ++i)
      problem.run_piece(i);
    run_tile_epilogue(dot, entry * dot.m + m0, piece.m, sums, piece.n, n0, n0 + piece.n);
  }
};

template <typename T> void run_thin_pieces(ThreadPool &pool, const DiscDot &dot) {
  ThinPieces<T> thin(dot, pool.size());
  Blas::SingleThreaded guard;
  auto body = [](void *context, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<const ThinPieces<T> *>(context)->run(i);
  };
  pool.run(body, &thin, thin.entries * thin.pieces, std::max<int64_t>(1, kWorkToShare / thin.work()));
}

template <typename T> void run_thin_products(ThreadPool &pool, const DiscDot &first) {
  for (const DiscDot *dot = &first; dot != nullptr; dot = dot->next)
    has_tile_epilogue(*dot) ? run_thin_pieces<T>(pool, *dot) : run_thin<T>(pool, *dot);
}

/// Products that have columns.
void run_products(ThreadPool &pool, const DiscDot &dot) {
  chosen_way = "outer product";
  if (is_outer_product(dot) && run_outer_product(pool, dot))
    return;
  bool are_thin = dot.format <= 1; // BLAS has products of f32 and f64
  for (const DiscDot *each = &dot; each != nullptr; each = each->next)
    are_thin &= is_thin(*each);
  chosen_way = are_thin ? "thin" : dot.packed == nullptr ? "tiles" : "tiles, packed before";
  if (!are_thin)
    run_gemm(pool, dot);
  else if (dot.format == 0)
    run_thin_products<float>(pool, dot);
  else
    run_thin_products<double>(pool, dot);
}

/// Of products without columns there are no sums, but rows of them may be folded.
void run_without_columns(ThreadPool &pool, const DiscDot &first) {
  for (const DiscDot *dot = &first; dot != nullptr; dot = dot->next) {
    if (dot->n == 0) {
      run_row_epilogue(pool, *dot);
      continue;
    }
    DiscDot alone = *dot;
    alone.next = nullptr;
    run_products(pool, alone);
  }
}

} // namespace

void run_dot(ThreadPool &pool, const DiscDot &dot) {
  chosen_way = "outer product";
  if (has_no_rows(dot))
    return;
  bool have_columns = true;
  for (const DiscDot *each = &dot; each != nullptr; each = each->next)
    have_columns &= each->n > 0;
  have_columns ? run_products(pool, dot) : run_without_columns(pool, dot);
}

} // namespace disc
