// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `ragged_dot`: products of groups of neighbouring rows with a matrix for each group, as `jax.lax.ragged_dot`.
//
// Rows: C[i, :] = A[i, :] B[g], where row i belongs to group g; rows of no group are 0. Contraction: C[g] = A_g' B_g of
// the group's rows. Either way each group is a product of its own, whose C is cut into blocks of up to kBlockRows rows
// and kRowBytes of columns. The blocks of all groups are items that threads take one by one: where one group has all
// rows, a few of many items have all the work, and the others only zeros to write.
#include "library_call.h"

#include "core/bfloat16.h"
#include "core/strided_copy.h"
#include "gemm_blocks.h"
#include "strip_products.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <emmintrin.h>

namespace disc {

namespace {

using gemm::divide_up;
using gemm::Scratch;
using gemm::share;

constexpr int64_t kBlockRows = 128;      // of C
constexpr int64_t kRowBytes = 2 << 10;   // of sums: a block fits a core's second cache
constexpr int64_t kFewestColumns = 64;   // of a block
constexpr int64_t kItemsPerThread = 4;   // enough to even out groups and threads
constexpr int64_t kLineBytes = 64;       // of the cache
constexpr int64_t kFewTerms = 64;        // of a product
constexpr int64_t kStreamBytes = 24 << 20; // results from this size on bypass the caches, as in emitters/frame.py
constexpr int64_t kSumsBytes = kRowBytes + kLineBytes; // of a row of sums: rows lie in other lines of the cache
constexpr int64_t kSumsEnd = kBlockRows * kSumsBytes;  // where the copied rows of A begin in the scratch
static_assert(kSumsEnd + kBlockRows * strips::kDeepestBytes <= gemm::kBlockBytes);
static_assert(strips::kCopyBytes <= gemm::kChunk * gemm::kWidestPanelBytes);

template <typename T> constexpr int64_t kSumsStep = kSumsBytes / static_cast<int64_t>(sizeof(T));

struct Bfloat16 {
  uint16_t bits;
};

#define DISC_INLINE __attribute__((always_inline)) inline // compiled for the processors that its caller is for

DISC_INLINE float widened(float value) { return value; }
DISC_INLINE double widened(double value) { return value; }
DISC_INLINE float widened(Bfloat16 value) { return from_bf16(value.bits); }
DISC_INLINE float widened(_Float16 value) { return static_cast<float>(value); }

DISC_INLINE void narrow(float value, float &target) { target = value; }
DISC_INLINE void narrow(double value, double &target) { target = value; }
DISC_INLINE void narrow(float value, _Float16 &target) { target = static_cast<_Float16>(value); }
DISC_INLINE void narrow(float value, Bfloat16 &target) { target.bits = to_bf16(value); }

/// Copies a matrix of any element type; its rows or its columns are dense.
template <typename S, typename T>
DISC_AVX2 void copy_widened(const S *source, int64_t row_stride, int64_t column_stride, T *target,
                                int64_t target_step, int64_t rows, int64_t columns) {
  if (column_stride == 1)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        target[i * target_step + j] = widened(source[i * row_stride + j]);
  else
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i)
        target[i * target_step + j] = widened(source[i * row_stride + j * column_stride]);
}

template <typename T>
void copy_widened(const T *source, int64_t row_stride, int64_t column_stride, T *target, int64_t target_step,
                  int64_t rows, int64_t columns) {
  copy_matrix(source, row_stride, column_stride, target, target_step, rows, columns);
}

/// The product of one group: strides count elements, and C's rows are dense.
template <typename S, typename R> struct Product {
  int64_t m, n, k;
  const S *a;
  int64_t a_m, a_k;
  const S *b;
  int64_t b_k, b_n;
  R *c;
  int64_t c_m;
};

/// Operands of strips::multiply that are copied, or lie as kernels read them.
template <typename S, typename T> struct Operands {
  const S *a;
  int64_t a_m, a_k, rows;
  const S *first; // of B's columns
  int64_t b_k, b_n;
  const T *b = nullptr;
  int64_t b_step = 0;

  void copy_rows(const strips::Range &range, T *target) const {
    copy_widened(a + range.k * a_k, a_m, a_k, target, range.depth, rows, range.depth);
  }
  void copy_strip(const strips::Range &range, T *target) const {
    copy_widened(first + range.k * b_k + range.column * b_n, b_k, b_n, target, range.width, range.depth, range.present);
    for (int64_t i = 0; range.present < range.width && i < range.depth; ++i)
      std::memset(target + i * range.width + range.present, 0,
                  static_cast<size_t>(range.width - range.present) * sizeof(T));
  }
};

/// Some rows and columns of C. `streams`: non-temporal stores write them; each row is whole lines of the cache.
struct Part {
  int64_t row, rows, column, columns;
  bool streams;
};

/// Copies whole elements, with `streams` whole lines by non-temporal stores; both sides are aligned for these.
template <typename R> void copy_row(const R *source, R *target, int64_t count, bool streams) {
  if (!streams) {
    std::memcpy(target, source, static_cast<size_t>(count) * sizeof(R));
    return;
  }
  auto *from = reinterpret_cast<const __m128i *>(source);
  auto *to = reinterpret_cast<__m128i *>(target);
  for (int64_t i = 0; i < count * static_cast<int64_t>(sizeof(R)) / static_cast<int64_t>(sizeof(__m128i)); ++i)
    _mm_stream_si128(to + i, _mm_load_si128(from + i));
}

template <typename T, typename R>
DISC_AVX2 void store_sums(const T *sums, R *target, int64_t target_step, const Part &part) {
  alignas(kLineBytes) R narrowed[kRowBytes / sizeof(T)];
  for (int64_t i = 0; i < part.rows; ++i) {
    const T *row = sums + i * kSumsStep<T>;
    for (int64_t j = 0; !std::is_same_v<T, R> && j < part.columns; ++j)
      narrow(row[j], narrowed[j]);
    if constexpr (std::is_same_v<T, R>)
      copy_row(row, target + i * target_step, part.columns, part.streams);
    else
      copy_row(narrowed, target + i * target_step, part.columns, part.streams);
  }
}

template <typename R> void store_zeros(R *target, int64_t target_step, const Part &part) {
  alignas(kLineBytes) static constexpr char kZeros[kRowBytes]{};
  for (int64_t i = 0; i < part.rows; ++i)
    copy_row(reinterpret_cast<const R *>(kZeros), target + i * target_step, part.columns, part.streams);
}

/// Some rows and columns whose sums fit `scratch`.
template <typename S, typename T, typename R>
void multiply_part(const strips::Kernels<T> &kernels, const Product<S, R> &p, const Part &part, const Scratch &scratch) {
  auto *rows_copy = reinterpret_cast<T *>(scratch.block<char>() + kSumsEnd);
  strips::Block<T> block{part.rows, part.columns, p.k, scratch.block<T>(), kSumsStep<T>, rows_copy, scratch.panel<T>()};
  Operands<S, T> operands{p.a + part.row * p.a_m, p.a_m, p.a_k, part.rows, p.b + part.column * p.b_n, p.b_k, p.b_n};
  if constexpr (std::is_same_v<S, T>)
    if (p.b_n == 1)
      operands.b = operands.first, operands.b_step = p.b_k;
  strips::multiply(kernels, block, operands);
  store_sums(scratch.block<T>(), p.c + part.row * p.c_m + part.column, p.c_m, part);
}

/// S: elements of A and B. T: those that are multiplied and added. R: elements of C. With few terms, sums are read and
/// written about as often as operands: parts have sums that fit the first cache, where they need no copies of B.
template <typename S, typename T, typename R> void multiply_block(const Product<S, R> &p, const Part &part, bool wide) {
  const auto &kernels = wide ? strips::avx512::kKernels<T> : strips::avx2::kKernels<T>;
  Scratch scratch;
  if (p.k > kFewTerms || !std::is_same_v<S, T> || p.b_n != 1)
    return multiply_part(kernels, p, part, scratch);
  constexpr int64_t most_columns = kRowBytes / 2 / static_cast<int64_t>(sizeof(T));
  Part piece = part;
  for (int64_t column = 0; column < part.columns; column += most_columns)
    for (int64_t row = 0; row < part.rows; row += kernels.rows) {
      piece.column = part.column + column, piece.columns = std::min(most_columns, part.columns - column);
      piece.row = part.row + row, piece.rows = std::min(kernels.rows, part.rows - row);
      multiply_part(kernels, p, piece, scratch);
    }
}

/// The same without the kernels' instructions, row by row.
template <typename S, typename T, typename R> void multiply_plainly(const Product<S, R> &p, const Part &part) {
  Scratch scratch;
  T *sums = scratch.block<T>();
  for (int64_t i = part.row; i < part.row + part.rows; ++i) {
    std::fill_n(sums, part.columns, T{});
    for (int64_t k = 0; k < p.k; ++k) {
      T left = widened(p.a[i * p.a_m + k * p.a_k]);
      const S *right = p.b + k * p.b_k + part.column * p.b_n;
      for (int64_t j = 0; j < part.columns; ++j)
        sums[j] += left * widened(right[j * p.b_n]);
    }
    for (int64_t j = 0; j < part.columns; ++j)
      narrow(sums[j], p.c[i * p.c_m + part.column + j]);
  }
}

/// Number `index` of the group sizes; a negative one is no row.
int64_t group_size(const CallTensor &sizes, const std::string &dtype, int64_t index) {
  if (dtype == "i32")
    return std::max<int64_t>(0, sizes.as<int32_t>()[index]);
  if (dtype == "u32")
    return sizes.as<uint32_t>()[index];
  return std::max<int64_t>(0, sizes.as<int64_t>()[index]);
}

/// One call: the groups' first rows, and the first blocks of each, lie in the workspace.
template <typename S, typename T, typename R> class RaggedDot {
public:
  explicit RaggedDot(const Call &call)
      : call_(call), contracts_(call.spec.attribute("contracts") != 0), groups_(call.operands[2].size(0)),
        starts_(call.workspace().as<int64_t>()), blocks_(starts_ + groups_ + 1) {
    const CallTensor &lhs = call.operands[0], &rhs = call.operands[1];
    bool flips_lhs = call.spec.attribute("lhs_flipped") != 0, flips_rhs = call.spec.attribute("rhs_flipped") != 0;
    // Axes of A are rows and terms, those of each B terms and columns; either may lie the other way round.
    int64_t rows = lhs.size(flips_lhs ? 1 : 0), terms = lhs.size(flips_lhs ? 0 : 1);
    columns_ = rhs.size(flips_rhs ? -2 : -1);
    product_ = {contracts_ ? terms : rows, columns_, contracts_ ? rows : terms, lhs.as<S>(), 0, 0, rhs.as<S>(), 0, 0,
                call.results[0].as<R>(), columns_};
    int64_t row_step = flips_lhs ? 1 : terms, term_step = flips_lhs ? rows : 1;
    product_.a_m = contracts_ ? term_step : row_step, product_.a_k = contracts_ ? row_step : term_step;
    product_.b_k = flips_rhs ? 1 : columns_, product_.b_n = flips_rhs ? product_.k : 1;
    rows_ = rows;
    int64_t bits = call.spec.attribute("vector_bits");
    plain_ = bits < 256 || !has_avx2();
    wide_ = bits >= 512 && __builtin_cpu_supports("avx512f");
  }

  void run() {
    if (call_.results[0].elements() == 0)
      return;
    find_groups();
    int64_t bytes = static_cast<int64_t>(sizeof(T)), most = kRowBytes / bytes;
    int64_t wanted = divide_up(kItemsPerThread * call_.pool.size(), std::max<int64_t>(1, product_blocks_));
    int64_t few = divide_up(columns_, kFewestColumns);
    column_groups_ = std::max(divide_up(columns_, most), std::min(wanted, few));
    units_ = divide_up(columns_, kUnit);
    int64_t rest = contracts_ ? 0 : rows_ - starts_[groups_]; // rows of no group
    items_ = (blocks_[groups_] + divide_up(rest, kBlockRows)) * column_groups_;
    bool is_whole_lines = columns_ % kUnit == 0 && reinterpret_cast<uintptr_t>(product_.c) % kLineBytes == 0;
    streams_ = is_whole_lines && call_.results[0].elements() >= kStreamBytes / static_cast<int64_t>(sizeof(R));
    auto body = [](void *self, int64_t, int64_t) { static_cast<RaggedDot *>(self)->run_items(); };
    call_.pool.run(body, this, std::min<int64_t>(call_.pool.size(), items_), 1);
  }

private:
  static constexpr int64_t kUnit = kLineBytes / static_cast<int64_t>(sizeof(R)); // columns of a line of C

  void find_groups() {
    starts_[0] = blocks_[0] = 0;
    for (int64_t g = 0; g < groups_; ++g) {
      int64_t size = group_size(call_.operands[2], call_.spec.operands[2].dtype, g);
      starts_[g + 1] = starts_[g] + std::min(size, rows_ - starts_[g]);
      bool has_rows = starts_[g + 1] > starts_[g];
      int64_t blocks = divide_up(contracts_ ? product_.m : starts_[g + 1] - starts_[g], kBlockRows);
      blocks_[g + 1] = blocks_[g] + blocks;
      product_blocks_ += has_rows ? blocks : 0;
    }
  }

  /// The next items, until none is left.
  void run_items() {
    for (int64_t i = next_.fetch_add(1, std::memory_order_relaxed); i < items_;
         i = next_.fetch_add(1, std::memory_order_relaxed))
      run_item(i);
    if (streams_)
      _mm_sfence();
  }

  void run_item(int64_t item) const {
    int64_t block = item / column_groups_, columns = item % column_groups_;
    Part part{};
    part.streams = streams_;
    part.column = share(units_, column_groups_, columns) * kUnit;
    part.columns = std::min(columns_, share(units_, column_groups_, columns + 1) * kUnit) - part.column;
    if (block >= blocks_[groups_]) {
      part.row = starts_[groups_] + (block - blocks_[groups_]) * kBlockRows;
      part.rows = std::min(kBlockRows, rows_ - part.row);
      return store_zeros(product_.c + part.row * columns_ + part.column, columns_, part);
    }
    int64_t g = std::upper_bound(blocks_, blocks_ + groups_ + 1, block) - blocks_ - 1;
    int64_t first = starts_[g], size = starts_[g + 1] - first, parts = blocks_[g + 1] - blocks_[g];
    Product<S, R> p = product_;
    (contracts_ ? p.k : p.m) = size;
    p.a += first * (contracts_ ? p.a_k : p.a_m);
    p.b += contracts_ ? first * p.b_k : g * p.k * p.n;
    p.c += contracts_ ? g * p.m * p.n : first * p.c_m;
    part.row = share(p.m, parts, block - blocks_[g]), part.rows = share(p.m, parts, block - blocks_[g] + 1) - part.row;
    if (p.k == 0)
      store_zeros(p.c + part.row * p.c_m + part.column, p.c_m, part);
    else
      plain_ ? multiply_plainly<S, T, R>(p, part) : multiply_block<S, T, R>(p, part, wide_);
  }

  const Call &call_;
  bool contracts_, plain_ = false, wide_ = false, streams_ = false;
  int64_t groups_, *starts_, *blocks_;
  int64_t rows_ = 0, columns_ = 0, column_groups_ = 1, units_ = 1;
  int64_t product_blocks_ = 0, items_ = 0;     // blocks of groups that have rows, and items of all
  std::atomic<int64_t> next_{0};
  Product<S, R> product_{}; // of all rows
};

template <typename S, typename T, typename R> void run_ragged_dot(const Call &call) {
  RaggedDot<S, T, R>(call).run();
}

/// (A, B, group sizes) -> C. Attributes: contracts; lhs_flipped, rhs_flipped: the last two axes lie the other way round;
/// vector_bits: the widest registers that the program may use.
void ragged_dot(const Call &call) {
  const std::string &element = call.spec.operands[0].dtype, &result = call.spec.results[0].dtype;
  if (element == "f64")
    return run_ragged_dot<double, double, double>(call);
  if (element == "f32")
    return run_ragged_dot<float, float, float>(call);
  if (element == "bf16")
    return result == "f32" ? run_ragged_dot<Bfloat16, float, float>(call)
                           : run_ragged_dot<Bfloat16, float, Bfloat16>(call);
  if (element == "f16")
    return result == "f32" ? run_ragged_dot<_Float16, float, float>(call)
                           : run_ragged_dot<_Float16, float, _Float16>(call);
  report_failure("ragged_dot of " + element + " is not known");
}

} // namespace

const Builtin *ragged_dot_builtin(std::string_view target) {
  static const Builtin function{ragged_dot, 3, 1};
  return target == "ragged_dot" ? &function : nullptr;
}

} // namespace disc
