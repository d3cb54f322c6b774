// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "vector_product.h"

#include "blas.h"
#include "dot_batch.h"

#include <algorithm>
#include <utility>

namespace disc {

namespace {

constexpr int64_t kIntLimit = (int64_t{1} << 31) - 1;
constexpr int64_t kLargestPiece = int64_t{1} << 30; // BLAS counts in 32-bit integers
constexpr int64_t kWorkToShare = 1 << 17;           // multiply-adds that pay for handing a range to another thread
constexpr int64_t kSmallestPiece = 16;              // elements of C

/// A row times a matrix, cut into pieces of C.
template <typename T> class VectorProduct {
public:
  VectorProduct(const DiscDot &given, int threads);

  int64_t pieces() const { return entries_ * cuts_; }
  int64_t work() const; // of a piece
  void run_piece(int64_t index) const;

private:
  void choose_pieces(int threads);
  int64_t cut(int64_t index) const;
  void multiply_by_gemv(const T *a, const T *b, T *c, int64_t n) const;
  void multiply_by_loops(const T *a, const T *b, T *c, int64_t n) const;

  DiscDot dot_;
  int64_t entries_, cuts_ = 1;
  bool by_rows_;    // B's rows are dense, rather than its columns
  int64_t leading_; // from one of them to the next
  bool has_blas_;   // that can express it
};

template <typename T>
VectorProduct<T>::VectorProduct(const DiscDot &given, int threads)
    : dot_(given.m > 1 ? transposed(given) : given), entries_(entries_of(given)) {
  by_rows_ = dot_.b_n == 1 || dot_.n == 1;
  int64_t length = by_rows_ ? dot_.n : dot_.k, count = by_rows_ ? dot_.k : dot_.n;
  leading_ = count > 1 ? (by_rows_ ? dot_.b_k : dot_.b_n) : length;
  bool is_dense = by_rows_ || dot_.b_k == 1 || dot_.k == 1;
  bool fits = std::max({leading_, dot_.k, dot_.a_k, dot_.c_n}) <= kIntLimit && std::min(dot_.a_k, dot_.c_n) > 0;
  has_blas_ = Blas::instance().gemv<T>() && is_dense && leading_ >= length && fits;
  choose_pieces(threads);
}

/// Multiply-adds of one piece; saturates far above any threshold.
template <typename T> int64_t VectorProduct<T>::work() const {
  return static_cast<int64_t>(
      std::min(static_cast<double>(dot_.n) * static_cast<double>(dot_.k) / static_cast<double>(cuts_), 1e15));
}

/// Enough batch entries keep every thread busy on their own.
template <typename T> void VectorProduct<T>::choose_pieces(int threads) {
  int64_t wanted = entries_ >= 4 * threads ? 1 : (threads + entries_ - 1) / entries_;
  wanted = std::min({wanted, work() / kWorkToShare, dot_.n / kSmallestPiece});
  cuts_ = std::max(wanted, (dot_.n + kLargestPiece - 1) / kLargestPiece);
}

/// The first element of piece `index`, on a multiple of what kernels compute together where it can be.
template <typename T> int64_t VectorProduct<T>::cut(int64_t index) const {
  if (index >= cuts_)
    return dot_.n;
  auto position = static_cast<int64_t>(static_cast<__int128>(dot_.n) * index / cuts_);
  return dot_.n / cuts_ >= 4 * kSmallestPiece ? position / kSmallestPiece * kSmallestPiece : position;
}

template <typename T> void VectorProduct<T>::run_piece(int64_t index) const {
  int64_t entry = index / cuts_, first = cut(index % cuts_), past = cut(index % cuts_ + 1);
  const T *left = static_cast<const T *>(dot_.a) + batch_offset(dot_, entry, dot_.a_batch);
  const T *right = static_cast<const T *>(dot_.b) + batch_offset(dot_, entry, dot_.b_batch) + first * dot_.b_n;
  T *out = static_cast<T *>(dot_.c) + batch_offset(dot_, entry, dot_.c_batch) + first * dot_.c_n;
  if (past > first)
    has_blas_ ? multiply_by_gemv(left, right, out, past - first) : multiply_by_loops(left, right, out, past - first);
}

template <typename T>
void VectorProduct<T>::multiply_by_gemv(const T *left, const T *right, T *out, int64_t n) const {
  // Some versions scale y by beta instead of storing zeros, which keeps a NaN that happens to lie there.
  for (int64_t i = 0; i < n; ++i)
    out[i * dot_.c_n] = 0;
  char trans = by_rows_ ? 'N' : 'T';
  int depth = static_cast<int>(dot_.k), length = static_cast<int>(n);
  int &rows = by_rows_ ? length : depth, &columns = by_rows_ ? depth : length;
  int ldb = static_cast<int>(leading_), step_left = static_cast<int>(dot_.a_k), step_out = static_cast<int>(dot_.c_n);
  T one = 1, beta = 0;
  Blas::instance().gemv<T>()(&trans, &rows, &columns, &one, const_cast<T *>(right), &ldb, const_cast<T *>(left),
                             &step_left, &beta, out, &step_out);
}

/// Any strides at all, among them broadcast (0) and leading dimensions beyond 32 bits.
template <typename T>
void VectorProduct<T>::multiply_by_loops(const T *left, const T *right, T *out, int64_t n) const {
  for (int64_t j = 0; j < n; ++j)
    out[j * dot_.c_n] = 0;
  for (int64_t k = 0; k < dot_.k; ++k) {
    T scale = left[k * dot_.a_k];
    const T *source = right + k * dot_.b_k;
    for (int64_t j = 0; j < n; ++j)
      out[j * dot_.c_n] += scale * source[j * dot_.b_n];
  }
}

template <typename T> void run(ThreadPool &pool, const DiscDot &dot) {
  VectorProduct<T> product(dot, pool.size());
  Blas::SingleThreaded guard;
  int64_t grain = std::max<int64_t>(1, kWorkToShare / std::max<int64_t>(product.work(), 1));
  auto body = [](void *context, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<const VectorProduct<T> *>(context)->run_piece(i);
  };
  pool.run(body, &product, product.pieces(), grain);
}

} // namespace

DiscDot transposed(const DiscDot &dot) {
  DiscDot result = dot;
  std::swap(result.a, result.b);
  std::swap(result.m, result.n);
  std::swap(result.a_batch, result.b_batch);
  std::swap(result.c_m, result.c_n);
  result.a_m = dot.b_n, result.a_k = dot.b_k;
  result.b_n = dot.a_m, result.b_k = dot.a_k;
  return result;
}

bool is_vector_product(const DiscDot &dot) {
  return dot.format <= 1 && dot.packed == nullptr && dot.k > 0 && (dot.m == 1 || dot.n == 1);
}

void run_vector_product(ThreadPool &pool, const DiscDot &dot) {
  dot.format == 0 ? run<float>(pool, dot) : run<double>(pool, dot);
}

} // namespace disc
