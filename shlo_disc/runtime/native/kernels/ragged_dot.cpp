// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `ragged_dot`: products of groups of neighbouring rows with a matrix for each group, as `jax.lax.ragged_dot`.
//
// Rows: C[i, :] = A[i, :] B[g], where row i belongs to group g; rows of no group are 0. Contraction: C[g] = A_g' B_g of
// the group's rows. Either way each group is a product of its own, whose C is cut into blocks of up to kBlockRows rows
// and kRowBytes of columns; the blocks of all groups are one range of items, which threads share.
#include "library_call.h"

#include "core/bfloat16.h"
#include "core/strided_copy.h"
#include "gemm_blocks.h"
#include "strip_products.h"

#include <algorithm>
#include <cstring>

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
constexpr int64_t kSumsBytes = kRowBytes + kLineBytes; // of a row of sums: rows lie in other lines of the cache
constexpr int64_t kSumsEnd = kBlockRows * kSumsBytes;  // where the copied rows of A begin in the scratch
static_assert(kSumsEnd + kBlockRows * strips::kDeepestBytes <= gemm::kBlockBytes);
static_assert(strips::kCopyBytes <= gemm::kChunk * gemm::kWidestPanelBytes);

struct Bfloat16 {
  uint16_t bits;
};

#define DISC_CONVERTS __attribute__((target("avx2,fma,f16c")))
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
DISC_CONVERTS void copy_widened(const S *source, int64_t row_stride, int64_t column_stride, T *target,
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

/// Some rows and columns of C.
struct Part {
  int64_t row, rows, column, columns;
};

template <typename T, typename R>
DISC_CONVERTS void store_sums(const T *sums, int64_t sums_step, R *target, int64_t target_step, const Part &part) {
  for (int64_t i = 0; i < part.rows; ++i)
    for (int64_t j = 0; j < part.columns; ++j)
      narrow(sums[i * sums_step + j], target[i * target_step + j]);
}

/// S: elements of A and B. T: those that are multiplied and added. R: elements of C.
template <typename S, typename T, typename R> void multiply_block(const Product<S, R> &p, const Part &part, bool wide) {
  Scratch scratch;
  constexpr int64_t sums_step = kSumsBytes / static_cast<int64_t>(sizeof(T));
  T *sums = scratch.block<T>();
  auto *rows_copy = reinterpret_cast<T *>(scratch.block<char>() + kSumsEnd);
  strips::Block<T> block{part.rows, part.columns, p.k, sums, sums_step, rows_copy, scratch.panel<T>()};
  Operands<S, T> operands{p.a + part.row * p.a_m, p.a_m, p.a_k, part.rows, p.b + part.column * p.b_n, p.b_k, p.b_n};
  if constexpr (std::is_same_v<S, T>)
    if (p.b_n == 1)
      operands.b = operands.first, operands.b_step = p.b_k;
  strips::multiply(wide ? strips::avx512::kKernels<T> : strips::avx2::kKernels<T>, block, operands);
  store_sums(sums, sums_step, p.c + part.row * p.c_m + part.column, p.c_m, part);
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
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    plain_ = bits < 256 || !has_avx2;
    wide_ = bits >= 512 && __builtin_cpu_supports("avx512f");
  }

  void run() {
    if (call_.results[0].elements() == 0)
      return;
    find_groups();
    int64_t bytes = static_cast<int64_t>(sizeof(T)), most = kRowBytes / bytes, unit = kLineBytes / bytes;
    int64_t wanted = divide_up(kItemsPerThread * call_.pool.size(), std::max<int64_t>(1, blocks_[groups_]));
    int64_t few = divide_up(columns_, kFewestColumns);
    column_groups_ = std::max(divide_up(columns_, most), std::min(wanted, few));
    units_ = divide_up(columns_, unit);
    auto body = [](void *self, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        static_cast<const RaggedDot *>(self)->run_item(i);
    };
    call_.pool.run(body, this, blocks_[groups_] * column_groups_, 1);
    if (!contracts_)
      std::fill(product_.c + starts_[groups_] * columns_, product_.c + rows_ * columns_, R{});
  }

private:
  void find_groups() {
    starts_[0] = blocks_[0] = 0;
    for (int64_t g = 0; g < groups_; ++g) {
      int64_t size = group_size(call_.operands[2], call_.spec.operands[2].dtype, g);
      starts_[g + 1] = starts_[g] + std::min(size, rows_ - starts_[g]);
      int64_t m = contracts_ ? product_.m : starts_[g + 1] - starts_[g];
      blocks_[g + 1] = blocks_[g] + divide_up(m, kBlockRows);
    }
  }

  void run_item(int64_t item) const {
    int64_t block = item / column_groups_, columns = item % column_groups_;
    int64_t g = std::upper_bound(blocks_, blocks_ + groups_ + 1, block) - blocks_ - 1;
    int64_t first = starts_[g], size = starts_[g + 1] - first, parts = blocks_[g + 1] - blocks_[g];
    Product<S, R> p = product_;
    (contracts_ ? p.k : p.m) = size;
    p.a += first * (contracts_ ? p.a_k : p.a_m);
    p.b += contracts_ ? first * p.b_k : g * p.k * p.n;
    p.c += contracts_ ? g * p.m * p.n : first * p.c_m;
    int64_t unit = kLineBytes / static_cast<int64_t>(sizeof(T));
    Part part{};
    part.row = share(p.m, parts, block - blocks_[g]), part.rows = share(p.m, parts, block - blocks_[g] + 1) - part.row;
    part.column = share(units_, column_groups_, columns) * unit;
    part.columns = std::min(columns_, share(units_, column_groups_, columns + 1) * unit) - part.column;
    if (p.k == 0)
      for (int64_t i = 0; i < part.rows; ++i)
        std::fill_n(p.c + (part.row + i) * p.c_m + part.column, part.columns, R{});
    else
      plain_ ? multiply_plainly<S, T, R>(p, part) : multiply_block<S, T, R>(p, part, wide_);
  }

  const Call &call_;
  bool contracts_, plain_ = false, wide_ = false;
  int64_t groups_, *starts_, *blocks_;
  int64_t rows_ = 0, columns_ = 0, column_groups_ = 1, units_ = 1;
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
