// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `dequantized_dot`: products with a matrix of narrow integers, W[k, n] = (q[k, n] - zero) * scale, which stays as it
// is in memory. transforms/simplify/dequantized_products.py makes the calls.
//
// Few rows: integers become floats in registers (dequantized_kernels.h), and each is read once. More rows: strips of W
// are written as floats, for all rows of a block, while they are in the cache (strip_products.h).
#include "library_call.h"

#include "core/strided_copy.h"
#include "dequantized_kernels.h"
#include "gemm_blocks.h"
#include "strip_products.h"

#include <algorithm>
#include <bit>

namespace disc {

namespace {

using dequantized::Code;
using gemm::divide_up;
using gemm::Scratch;
using gemm::share;

constexpr int64_t kFewRows = 32;          // of A, at most, for which integers become floats in registers
constexpr int64_t kBlockRows = 128;       // of C, by strips
constexpr int64_t kBlockColumns = 512;    // of C, by strips: the sums of a block fit a core's second cache
constexpr int64_t kRowColumns = 2048;     // of C, of few rows: the sums fit the first cache
constexpr int64_t kFewestColumns = 64;    // of an item: the lines of the cache that its bytes lie in
constexpr int64_t kItemsPerThread = 4;    // enough to even out a thread that loses its processor
constexpr int64_t kWorkToShare = 1 << 17; // multiply-adds that pay for handing a range to another thread
constexpr int64_t kChunkTerms = 32 << 10; // of all rows of A together, which stay in the second cache
constexpr int64_t kLongestChunk = 4096;   // of each
constexpr int64_t kFewestTerms = 4;       // bytes of a group, as the compiler sees to
constexpr int64_t kSpare = dequantized::kWidest;
constexpr int64_t kSumsStep = kBlockColumns + kSpare; // rows of sums lie in other lines of the cache
constexpr int64_t kSumsBytes = kBlockRows * kSumsStep * 4;
constexpr int64_t kRowStep = kRowColumns + kSpare; // the same of few rows
constexpr int64_t kRowsTerms = kChunkTerms + kFewRows * kSpare; // rows of A lie in other lines, too
constexpr int64_t kGroupsOfColumns = dequantized::kMostColumns * (kLongestChunk / kFewestTerms + 2);
constexpr int64_t kParameters = 4 * std::max(kRowStep, kGroupsOfColumns); // of two halves
static_assert(kSumsBytes + kBlockRows * strips::kDeepestBytes <= gemm::kBlockBytes);
static_assert((kFewRows * kRowStep + kRowsTerms + kParameters) * 4 <= gemm::kBlockBytes);

using Pair = std::array<const float *, 2>;
using Targets = std::array<float *, 2>;

/// Scales, or zero points, as floats: element k / group * step_k + n * step_n of a tensor, or one number.
class Parameter {
public:
  Parameter(const CallTensor &tensor, const std::string &dtype, int64_t group, int64_t step_k, int64_t step_n)
      : data_(tensor.data), dtype_(dtype), group_(group), step_k_(step_k), step_n_(step_n),
        elements_(tensor.elements()) {}
  explicit Parameter(float number) : number_(number) {}

  /// Those of row k, from `column` on: where they lie as floats, or copied to `memory`.
  const float *row(int64_t k, int64_t column, int64_t count, float *memory) const {
    return found(k / group_ * step_k_ + column * step_n_, step_n_, count, memory);
  }
  /// Those of a column, of the group that row k is in and of those that follow.
  const float *groups(int64_t k, int64_t column, int64_t count, float *memory) const {
    return found(k / group_ * step_k_ + column * step_n_, step_k_, count, memory);
  }
  /// The distance of columns of `count` groups each.
  int64_t column_step(int64_t count) const { return is_in_place(step_k_) ? step_n_ : count; }
  bool is_same(int64_t k, int64_t other) const { return k / group_ == other / group_; }

  /// Whether the tensor has an element for each column of each group.
  bool fits(int64_t k, int64_t n) const {
    bool goes_forward = step_k_ >= 0 && step_n_ >= 0;
    return data_ == nullptr ||
           (goes_forward && (divide_up(k, group_) - 1) * step_k_ + (n - 1) * step_n_ < elements_);
  }
  bool is_nothing() const { return data_ == nullptr && number_ == 0; }

private:
  bool is_in_place(int64_t step) const { return data_ != nullptr && dtype_ == "f32" && step == 1; }

  const float *found(int64_t first, int64_t step, int64_t count, float *memory) const {
    if (is_in_place(step))
      return static_cast<const float *>(data_) + first;
    if (data_ == nullptr)
      std::fill_n(memory, is_nothing() ? 0 : count, number_);
    else if (dtype_ == "f32")
      copy_as<float>(first, step, count, memory);
    else if (dtype_ == "i32")
      copy_as<int32_t>(first, step, count, memory);
    else
      copy_bytes(first, step, count, memory);
    return memory;
  }

  template <typename T> void copy_as(int64_t first, int64_t step, int64_t count, float *target) const {
    const T *source = static_cast<const T *>(data_) + first;
    for (int64_t i = 0; i < count; ++i)
      target[i] = static_cast<float>(source[i * step]);
  }

  void copy_bytes(int64_t first, int64_t step, int64_t count, float *target) const {
    static const bool has_vectors = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool is_signed = dtype_ == "i8";
    if (step == 1 && has_vectors) {
      static const float one = 1, zero = 0;
      const auto &kernels = dequantized::avx2::kKernels[static_cast<size_t>(is_signed ? Code::kI8 : Code::kU8)][0];
      const auto *bytes = static_cast<const uint8_t *>(data_) + first;
      return kernels.dequantise(bytes, {&one, &one}, {&zero, &zero}, 0, count, {target, target});
    }
    is_signed ? copy_as<int8_t>(first, step, count, target) : copy_as<uint8_t>(first, step, count, target);
  }

  const void *data_ = nullptr;
  std::string_view dtype_;
  int64_t group_ = 1, step_k_ = 0, step_n_ = 0, elements_ = 0;
  float number_ = 0;
};

/// W. Rows of bytes hold an element of a row each, or of two: element h of byte row r is in row r * step + h * half.
struct Weight {
  const uint8_t *q;
  int64_t k, n;
  bool has_dense_columns; // else rows
  Code code;
  int64_t step, half;
  int64_t group; // of bytes along k
  Parameter scale, zero;

  int64_t halves() const { return dequantized::halves_of(code); }
  int64_t bytes() const { return k / halves(); } // along k
  int64_t row(int64_t r, int64_t h) const { return r * step + h * half; }
  /// Bytes of the group of r from r on.
  int64_t rest(int64_t r) const { return group - r % group; }
  int64_t column_step() const { return has_dense_columns ? bytes() : 1; }
  int64_t row_step() const { return has_dense_columns ? 1 : n; }
};

/// Scales and zero points of each half, where they lie or in `memory`, which has rows of `length` for each.
struct Parameters {
  float *memory;
  int64_t length;
  Pair scale{}, zero{};

  float *place(int64_t number) const { return memory + number * length; }

  /// Those of a row of bytes, from `column` on.
  void find_row(const Weight &w, int64_t r, int64_t column, int64_t count) {
    for (int64_t h = 0; h < w.halves(); ++h) {
      bool is_same = h == 1 && w.scale.is_same(w.row(r, 0), w.row(r, 1)); // as is the zero point's group
      scale[h] = is_same ? scale[0] : w.scale.row(w.row(r, h), column, count, place(2 * h));
      zero[h] = is_same ? zero[0] : w.zero.row(w.row(r, h), column, count, place(2 * h + 1));
    }
  }
  /// Those of `columns` columns, of the group of r and of those that follow.
  void find_groups(const Weight &w, int64_t r, int64_t column, int64_t columns, int64_t count) {
    for (int64_t h = 0; h < w.halves(); ++h)
      for (int64_t j = columns - 1; j >= 0; --j) {
        scale[h] = w.scale.groups(w.row(r, h), column + j, count, place(2 * h) + j * count);
        zero[h] = w.zero.groups(w.row(r, h), column + j, count, place(2 * h + 1) + j * count);
      }
  }
};

/// Element h of bytes [r, r + count) belongs to term h * count + i of these rows of A.
void copy_terms(const Weight &w, const float *a, int64_t rows, int64_t r, int64_t count, float *target, int64_t step) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t h = 0; h < w.halves(); ++h)
      for (int64_t j = 0; j < count; ++j)
        target[i * step + h * count + j] = a[i * w.k + w.row(r + j, h)];
}

/// The operands of strips::multiply. Its terms are bytes, and of each range of them the halves one behind the other.
struct Operands {
  const Weight &w;
  const dequantized::Kernels &kernels;
  const float *a;
  int64_t rows, column;
  float *parameters_memory;
  float *columns_copy;
  const float *b = nullptr;
  int64_t b_step = 0;

  void copy_rows(const strips::Range &range, float *target) const {
    copy_terms(w, a, rows, range.k / w.halves(), range.depth / w.halves(), target, range.depth);
  }

  void copy_strip(const strips::Range &range, float *target) const {
    int64_t first = column + range.column;
    w.has_dense_columns ? copy_columns(range, first, target) : copy_dense_rows(range, first, target);
    for (int64_t i = 0; range.present < range.width && i < range.depth; ++i)
      std::fill_n(target + i * range.width + range.present, range.width - range.present, 0.0F);
  }

  void copy_dense_rows(const strips::Range &range, int64_t first, float *target) const {
    int64_t begin = range.k / w.halves(), count = range.depth / w.halves();
    Parameters parameters{parameters_memory, range.width};
    for (int64_t r = 0, past = 0; r < count; ++r) {
      if (r == past)
        parameters.find_row(w, begin + r, first, range.present), past = r + w.rest(begin + r);
      Targets rows_of = {target + r * range.width, target + (count + r) * range.width};
      kernels.dequantise(w.q + (begin + r) * w.n + first, parameters.scale, parameters.zero, 1, range.present, rows_of);
    }
  }

  void copy_columns(const strips::Range &range, int64_t first, float *target) const {
    int64_t begin = range.k / w.halves(), count = range.depth / w.halves();
    Parameters parameters{parameters_memory, 1};
    for (int64_t j = 0; j < range.present; ++j)
      for (int64_t r = 0, past; r < count; r = past) {
        past = std::min(count, r + w.rest(begin + r));
        parameters.find_groups(w, begin + r, first + j, 1, 1);
        float *place = columns_copy + j * range.depth + r;
        kernels.dequantise(w.q + (first + j) * w.bytes() + begin + r, parameters.scale, parameters.zero, 0,
                           past - r, {place, place + count});
      }
    copy_matrix(columns_copy, 1, range.depth, target, range.width, range.depth, range.present);
  }
};

/// Some rows and columns of C.
struct Part {
  int64_t row, rows, column, columns;
};

int32_t decoded(Code code, uint8_t byte, int64_t half) {
  using dequantized::decoded;
  switch (code) {
  case Code::kI8:
    return decoded<Code::kI8>(byte, half);
  case Code::kU8:
    return decoded<Code::kU8>(byte, half);
  case Code::kI4:
  case Code::kI4Pairs:
    return decoded<Code::kI4Pairs>(byte, half);
  default:
    return decoded<Code::kU4Pairs>(byte, half);
  }
}

class DequantizedDot {
public:
  DequantizedDot(const Call &call, const Weight &weight)
      : pool_(call.pool), w_(weight), a_(call.operands[0].as<float>()), c_(call.results[0].as<float>()),
        m_(call.results[0].elements() / weight.n), is_few_(m_ <= kFewRows) {
    int64_t bits = call.spec.attribute("vector_bits");
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    plain_ = bits < 256 || !has_avx2;
    wide_ = bits >= 512 && __builtin_cpu_supports("avx512f");
    auto code = static_cast<size_t>(w_.code);
    kernels_ = &(wide_ ? dequantized::avx512::kKernels : dequantized::avx2::kKernels)[code][!w_.zero.is_nothing()];
  }

  void run() {
    if (m_ == 0)
      return;
    choose_items();
    auto body = [](void *self, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        static_cast<const DequantizedDot *>(self)->run_item(i);
    };
    double work = static_cast<double>(m_) * static_cast<double>(w_.n) * static_cast<double>(w_.k);
    auto each = static_cast<int64_t>(std::min(work / static_cast<double>(blocks_ * groups_), 1e15));
    pool_.run(body, this, blocks_ * groups_, std::max<int64_t>(1, kWorkToShare / std::max<int64_t>(1, each)));
  }

private:
  /// Few rows of A read long rows of bytes, in as few pieces as threads need; dense columns are as long in any piece.
  void choose_items() {
    int64_t threads = pool_.size(), most = is_few_ ? kRowColumns : kBlockColumns, fewest = divide_up(w_.n, most);
    bool by_rows = is_few_ && !w_.has_dense_columns;
    blocks_ = is_few_ ? 1 : divide_up(m_, kBlockRows);
    int64_t wanted = divide_up(by_rows ? divide_up(fewest, threads) * threads : kItemsPerThread * threads, blocks_);
    units_ = divide_up(w_.n, kFewestColumns);
    groups_ = threads == 1 ? fewest : std::max(fewest, std::min(wanted, units_));
  }

  void run_item(int64_t item) const {
    int64_t block = item / groups_, group = item % groups_;
    Part part{};
    part.row = share(m_, blocks_, block), part.rows = share(m_, blocks_, block + 1) - part.row;
    part.column = share(units_, groups_, group) * kFewestColumns;
    part.columns = std::min(w_.n, share(units_, groups_, group + 1) * kFewestColumns) - part.column;
    if (plain_)
      return multiply_plainly(part);
    Scratch scratch;
    float *sums = scratch.block<float>();
    int64_t step = is_few_ ? kRowStep : kSumsStep;
    for (int64_t i = 0; is_few_ && i < part.rows; ++i)
      std::fill_n(sums + i * step, step, 0.0F);
    if (!is_few_)
      multiply_strips(part, sums, scratch);
    else
      w_.has_dense_columns ? add_columns(part, sums) : add_rows(part, sums);
    for (int64_t i = 0; i < part.rows; ++i)
      std::copy_n(sums + i * step, part.columns, c_ + (part.row + i) * w_.n + part.column);
  }

  /// The rows of A, and what follows them, lie behind the sums of few rows.
  static float *behind_sums(float *sums) { return sums + kFewRows * kRowStep; }
  static float *behind_rows(float *rows) { return rows + kRowsTerms; }

  /// Bytes of each column that are used together.
  int64_t chunk(int64_t rows) const {
    int64_t most = std::min(kLongestChunk, kChunkTerms / (rows * w_.halves()));
    return w_.group < most ? most / w_.group * w_.group : most;
  }

  void add_rows(const Part &part, float *sums) const {
    int64_t length = chunk(part.rows), shift = w_.halves() * length + kSpare;
    float *x = behind_sums(sums);
    Parameters parameters{behind_rows(x), kRowStep};
    for (int64_t r = 0, past = 0; r < w_.bytes();) {
      if (r == past)
        parameters.find_row(w_, r, part.column, part.columns), past = r + w_.rest(r);
      int64_t at = r % length, count = std::min(w_.bytes() - r + at, length);
      if (at == 0)
        copy_terms(w_, a_, part.rows, r, count, x, shift);
      bool is_one = std::min({past, w_.bytes(), r - at + count}) - r < dequantized::kStreams;
      dequantized::Rows of{w_.q + r * w_.n + part.column, w_.n, {x + at, x + at + count}, shift, parameters.scale,
                           parameters.zero, sums, kRowStep, part.columns};
      const auto &kernels = is_one ? kernels_->add_row : kernels_->add_streams;
      for (int64_t rows = part.rows, step; rows > 0; rows -= step) {
        step = dequantized::rows_together(rows);
        kernels[static_cast<size_t>(step - 1)](of);
        of.x[0] += step * shift, of.x[1] += step * shift, of.sums += step * kRowStep;
      }
      r += is_one ? 1 : dequantized::kStreams;
    }
  }

  void add_columns(const Part &part, float *sums) const {
    int64_t length = chunk(part.rows), shift = w_.halves() * length + kSpare;
    float *x = behind_sums(sums);
    Parameters parameters{behind_rows(x), kGroupsOfColumns};
    int64_t together = kernels_->columns_of(std::min(part.rows, dequantized::kMostByColumns));
    for (int64_t r = 0, count; r < w_.bytes(); r += count) {
      count = std::min(length, w_.bytes() - r);
      copy_terms(w_, a_, part.rows, r, count, x, shift);
      int64_t groups = count <= w_.rest(r) ? 1 : 1 + divide_up(count - w_.rest(r), w_.group);
      for (int64_t j = 0, columns; j < part.columns; j += columns) {
        columns = part.columns - j < together ? 1 : together;
        parameters.find_groups(w_, r, part.column + j, columns, groups);
        dequantized::Columns of{w_.q + (part.column + j) * w_.bytes() + r, w_.bytes(), {x, x + count}, shift,
                                parameters.scale, parameters.zero, w_.scale.column_step(groups),
                                w_.zero.column_step(groups), w_.rest(r), w_.group, sums + j, kRowStep, count};
        add_to_rows(of, part.rows, columns);
      }
    }
  }

  /// Rows of A that use another number of columns together, the last ones, go column by column.
  void add_to_rows(dequantized::Columns of, int64_t rows, int64_t columns) const {
    for (int64_t step; rows > 0; rows -= step) {
      step = std::min(rows, dequantized::kMostByColumns);
      auto number = static_cast<size_t>(step - 1);
      if (columns == kernels_->columns_of(step))
        kernels_->add_columns[number](of);
      else
        for (int64_t j = 0; j < columns; ++j)
          kernels_->add_column[number](column_of(of, j));
      of.x[0] += step * of.x_step, of.x[1] += step * of.x_step, of.sums += step * kRowStep;
    }
  }

  dequantized::Columns column_of(dequantized::Columns of, int64_t number) const {
    of.q += number * of.q_step, of.sums += number;
    for (size_t h = 0; h < static_cast<size_t>(w_.halves()); ++h)
      of.scale[h] += number * of.scale_step, of.zero[h] += number * of.zero_step;
    return of;
  }

  void multiply_strips(const Part &part, float *sums, const Scratch &scratch) const {
    float *rows_copy = sums + kSumsBytes / 4, *row_panels = scratch.row_panels<float>();
    strips::Block<float> block{part.rows, part.columns, w_.k, sums, kSumsStep, rows_copy, scratch.panel<float>()};
    const auto &kernels = wide_ ? strips::avx512::kKernels<float> : strips::avx2::kKernels<float>;
    strips::multiply(kernels, block,
                     Operands{w_, *kernels_, a_ + part.row * w_.k, part.rows, part.column, scratch.sums<float>(),
                              row_panels});
  }

  /// Without the kernels' instructions.
  void multiply_plainly(const Part &part) const {
    Scratch scratch;
    Parameters parameters{scratch.block<float>(), kRowColumns};
    float *weights = parameters.place(4);
    bool has_zeros = !w_.zero.is_nothing();
    for (int64_t i = part.row; i < part.row + part.rows; ++i)
      std::fill_n(c_ + i * w_.n + part.column, part.columns, 0.0F);
    for (int64_t r = 0, past = 0; r < w_.bytes(); ++r) {
      if (r == past)
        parameters.find_row(w_, r, part.column, part.columns), past = r + w_.rest(r);
      for (int64_t h = 0; h < w_.halves(); ++h) {
        for (int64_t j = 0; j < part.columns; ++j) {
          uint8_t byte = w_.q[r * w_.row_step() + (part.column + j) * w_.column_step()];
          auto q = static_cast<float>(decoded(w_.code, byte, h));
          weights[j] = (has_zeros ? q - parameters.zero[h][j] : q) * parameters.scale[h][j];
        }
        for (int64_t i = part.row; i < part.row + part.rows; ++i)
          for (int64_t j = 0; j < part.columns; ++j)
            c_[i * w_.n + part.column + j] += a_[i * w_.k + w_.row(r, h)] * weights[j];
      }
    }
  }

  ThreadPool &pool_;
  const Weight &w_;
  const float *a_;
  float *c_;
  int64_t m_;
  bool is_few_, plain_ = false, wide_ = false;
  const dequantized::Kernels *kernels_ = nullptr;
  int64_t blocks_ = 1, groups_ = 1, units_ = 1;
};

/// The operand that an attribute names, or the number whose bits it has. Steps are those of the tensor.
Parameter parameter(const Call &call, const std::string &name, int64_t group) {
  int64_t operand = call.spec.attribute(name);
  if (operand < 2 || operand >= static_cast<int64_t>(call.spec.operands.size()))
    return Parameter(std::bit_cast<float>(static_cast<uint32_t>(call.spec.attribute(name + "_bits"))));
  auto number = static_cast<size_t>(operand);
  return Parameter(call.operands[number], call.spec.operands[number].dtype, group, call.spec.attribute(name + "_k"),
                   call.spec.attribute(name + "_n"));
}

/// Whether a call's operands are as large as its attributes say.
bool fits(const Call &call, const Weight &w, int64_t group) {
  bool has_rows = w.k % w.halves() == 0 && w.row(w.bytes() - 1, w.halves() - 1) == w.k - 1;
  bool has_whole_groups =
      group >= w.k || w.halves() == 1 || (w.step == 2 ? group % 2 == 0 : w.half > 0 && w.half % group == 0);
  return has_rows && has_whole_groups && w.group >= std::min(w.bytes(), kFewestTerms) &&
         call.operands[1].elements() == w.bytes() * w.n &&
         call.operands[0].elements() / w.k == call.results[0].elements() / w.n && w.scale.fits(w.k, w.n) &&
         w.zero.fits(w.k, w.n);
}

/// (A, q[, scale][, zero]) -> C. Attributes: k, n; code, of `Code`; dense_columns: q is (n, k), else (k, n); step,
/// half: as in Weight; group; vector_bits: the widest registers that the program may use. scale, zero: numbers of
/// operands, of which scale_k, scale_n, zero_k, zero_n are the steps, or 0, and scale_bits, zero_bits the f32 itself.
void dequantized_dot(const Call &call) {
  auto given = [&](const char *name) { return call.spec.attribute(name); };
  int64_t k = given("k"), n = given("n"), group = given("group"), code = given("code"), step = given("step");
  bool is_known = k > 0 && n > 0 && group > 0 && step > 0 && code >= 0 &&
                  code < static_cast<int64_t>(dequantized::kCodes);
  if (!is_known)
    return report_failure("dequantized_dot: an attribute of the call is out of range");
  Weight weight{call.operands[1].as<uint8_t>(), k, n, given("dense_columns") != 0, static_cast<Code>(code), step,
                given("half"), group / step, parameter(call, "scale", group), parameter(call, "zero", group)};
  if (group >= k)
    weight.group = weight.bytes();
  if (!fits(call, weight, group))
    return report_failure("dequantized_dot: the attributes of the call do not fit its operands");
  DequantizedDot(call, weight).run();
}

} // namespace

const Builtin *dequantized_dot_builtin(std::string_view target) {
  static const Builtin function{dequantized_dot, 2, 1, 2};
  return target == "dequantized_dot" ? &function : nullptr;
}

} // namespace disc
