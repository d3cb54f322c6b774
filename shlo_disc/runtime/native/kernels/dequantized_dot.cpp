// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `dequantized_dot`: products with a matrix of narrow integers, W[k, n] = (q[k, n] - zero) * scale, which stays as it
// is in memory. transforms/simplify/dequantized_products.py makes the calls.
//
// Few rows: integers become floats in registers (dequantized_kernels.h), or tiles of the first cache where weights are
// rounded (dequantized_tiles.h), and each is read once. More rows: strips of W are written as floats, for all rows of a
// block, while they are in the cache (dequantized_strips.h).
#include "library_call.h"

#include "core/bfloat16.h"
#include "dequantized_strips.h"
#include "dequantized_tiles.h"
#include "gemm_blocks.h"
#include "row_ranges.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <new>

namespace disc {

namespace {

using dequantized::ByteRows;
using dequantized::Code;
using dequantized::kFewestTerms;
using dequantized::Parameter;
using dequantized::Parameters;
using dequantized::Rounding;
using dequantized::Weight;
using gemm::divide_up;
using gemm::Scratch;
using gemm::share;

constexpr int64_t kFewRows = 32;          // of A, at most, for which integers become floats in registers
constexpr int64_t kFewRowsOfPairs = 16;   // the same where pairs of bf16 are multiplied
constexpr int64_t kDotColumns = 2048;     // of C, of few rows and dense columns
constexpr int64_t kFewestOfRange = 256;   // rows of bytes
constexpr int64_t kMostRowsOfRanges = 4;  // of A; with more, multiplying takes longer than reading
constexpr int64_t kFewestColumns = 64;    // of an item: the lines of the cache that its bytes lie in
constexpr int64_t kItemsPerThread = 4;    // enough to even out a thread that loses its processor
constexpr int64_t kWorkToShare = 1 << 17; // multiply-adds that pay for handing a range to another thread
constexpr int64_t kChunkTerms = 32 << 10; // of all rows of A together, which stay in the second cache
constexpr int64_t kLongestChunk = 4096;   // of each
constexpr int64_t kSpare = dequantized::kWidest;
constexpr int64_t kRowsTerms = kChunkTerms + kFewRows * kSpare; // rows of A lie in other lines, too
constexpr int64_t kGroupsOfColumns = dequantized::kMostColumns * (kLongestChunk / kFewestTerms + 2);
constexpr int64_t kBlockFloats = gemm::kBlockBytes / 4;

/// Rows and columns of C, by strips: the sums of a block fit a core's second cache. Where multiplying takes less time,
/// more rows share what is written of a weight.
struct BlockShape {
  int64_t rows, columns;

  constexpr int64_t step() const { return columns + kSpare; } // rows of sums lie in other lines of the cache
  constexpr int64_t sums_bytes() const { return rows * step() * 4; }
};
constexpr BlockShape kOfFloats{128, 512}, kOfPairs{256, 256};
static_assert(kOfFloats.sums_bytes() + kOfFloats.rows * strips::kDeepestBytes <= gemm::kBlockBytes);
static_assert(kOfPairs.sums_bytes() + kOfPairs.rows * strips::avx512::kDepthBytes <= gemm::kBlockBytes);
static_assert(kFewRows * (kDotColumns + kSpare) + kRowsTerms + 4 * kGroupsOfColumns <= kBlockFloats);

/// Columns of C, of few rows, whose sums and parameters of two halves the scratch holds beside rows of A. Long pieces of
/// rows of bytes let the processor read ahead.
constexpr int64_t most_row_columns(int64_t m) {
  return ((kBlockFloats - kRowsTerms) / (m + 4) - kSpare) / kFewestColumns * kFewestColumns;
}

/// Some rows and columns of C, and the rows of bytes that are summed there.
struct Part {
  int64_t row, rows, column, columns, begin, end;
};

float rounded(float weight, Rounding rounding) {
  if (rounding == Rounding::kBf16)
    return from_bf16(to_bf16(weight));
  return rounding == Rounding::kF16 ? static_cast<float>(static_cast<_Float16>(weight)) : weight;
}

float decoded(Code code, uint8_t byte, int64_t half) {
  using dequantized::decoded;
  switch (code) {
  case Code::kE4M3:
    return decoded<Code::kE4M3>(byte, half);
  case Code::kE5M2:
    return decoded<Code::kE5M2>(byte, half);
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
  /// `has_bf16`: bf16 has the elements of A and, as they are rounded, those of W.
  DequantizedDot(const Call &call, const Weight &weight, Rounding rounding, bool has_bf16)
      : pool_(call.pool), w_(weight), rounding_(rounding), a_(call.operands[0].as<float>()),
        c_(call.results[0].as<float>()), m_(call.results[0].elements() / weight.n),
        plain_(call.spec.attribute("vector_bits") < 256 || !has_avx2()),
        wide_(call.spec.attribute("vector_bits") >= 512 && __builtin_cpu_supports("avx512f")),
        pairs_(has_bf16 && wide_ && __builtin_cpu_supports("avx512bf16")),
        is_few_(m_ <= (pairs_ ? kFewRowsOfPairs : kFewRows)), by_rows_(is_few_ && !weight.has_dense_columns),
        row_columns_(by_rows_ ? most_row_columns(m_) : kDotColumns) {
    auto code = static_cast<size_t>(w_.code);
    const float *zero = w_.zero.number();
    bool is_in_table = wide_ && zero && dequantized::is_of_4_bits(w_.code);
    table_ = dequantized::table_of(w_.code, is_in_table ? *zero : 0);
    bool has_zeros = !is_in_table && !w_.zero.is_nothing();
    kernels_ = &(wide_ ? dequantized::avx512::kKernels : dequantized::avx2::kKernels)[code][has_zeros];
    int64_t most = wide_ ? dequantized::avx512::kMostRowsOfWords : dequantized::avx2::kMostRowsOfWords;
    int64_t lanes = wide_ ? dequantized::avx512::V::kLanes : dequantized::avx2::V::kLanes;
    lanes_ = !is_rounded() && m_ <= most && w_.has_words(4 * lanes) ? lanes : 0;
  }

  void run() {
    if (m_ == 0)
      return;
    choose_items();
    if (ranges_.count() > 1)
      range_sums_.reset(new (std::nothrow) float[static_cast<size_t>(ranges_.count() * m_ * w_.n)]);
    if (!range_sums_)
      ranges_ = all_rows();
    auto body = [](void *self, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        static_cast<const DequantizedDot *>(self)->run_item(i);
    };
    double work = static_cast<double>(m_) * static_cast<double>(w_.n) * static_cast<double>(w_.k);
    int64_t items = blocks_ * groups_ * ranges_.count();
    auto each = static_cast<int64_t>(std::min(work / static_cast<double>(items), 1e15));
    pool_.run(body, this, items, std::max<int64_t>(1, kWorkToShare / std::max<int64_t>(1, each)));
    if (ranges_.count() > 1)
      add_ranges();
  }

private:
  static bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  }

  /// Few rows of A read long rows of bytes, a range of them in an item; dense columns are as long in any item.
  void choose_items() {
    int64_t threads = pool_.size(), most = is_few_ ? row_columns_ : block_.columns, fewest = divide_up(w_.n, most);
    bool has_ranges = by_rows_ && !plain_ && m_ <= kMostRowsOfRanges;
    ranges_ = has_ranges ? RowRanges(w_.bytes(), kFewestOfRange, dequantized::kStreams) : all_rows();
    blocks_ = is_few_ ? 1 : divide_up(m_, block_.rows);
    int64_t pieces = by_rows_ ? divide_up(fewest, threads) : kItemsPerThread;
    int64_t wanted = divide_up(pieces * threads, blocks_ * ranges_.count());
    units_ = divide_up(w_.n, kFewestColumns);
    groups_ = threads == 1 ? fewest : std::max(fewest, std::min(wanted, units_));
  }

  void run_item(int64_t item) const {
    int64_t block = item / (groups_ * ranges_.count()), range = item % ranges_.count();
    Part part = columns_of(item / ranges_.count() % groups_);
    part.row = share(m_, blocks_, block), part.rows = share(m_, blocks_, block + 1) - part.row;
    part.begin = ranges_.first(range), part.end = ranges_.first(range + 1);
    if (plain_)
      return multiply_plainly(part);
    multiply(part, ranges_.count() == 1 ? c_ : range_sums_.get() + range * m_ * w_.n);
    if (is_few_ && ranges_.count() == 1)
      mend_overflows(part);
  }

  RowRanges all_rows() const { return RowRanges(w_.bytes(), w_.bytes(), 1); }

  /// All rows of a group of columns.
  Part columns_of(int64_t group) const {
    int64_t column = share(units_, groups_, group) * kFewestColumns;
    int64_t past = std::min(w_.n, share(units_, groups_, group + 1) * kFewestColumns);
    return {0, m_, column, past - column, 0, w_.bytes()};
  }

  /// The sums of a part to rows of `target`, which are as those of C.
  void multiply(const Part &part, float *target) const {
    Scratch scratch;
    float *sums = scratch.block<float>();
    int64_t step = is_few_ ? row_step() : block_.step();
    for (int64_t i = 0; is_few_ && i < part.rows; ++i)
      std::fill_n(sums + i * step, step, 0.0F);
    if (!is_few_)
      multiply_strips(part, sums, scratch);
    else if (is_rounded())
      add_tiles(part, sums, scratch);
    else
      w_.has_dense_columns ? add_columns(part, sums) : add_rows(part, sums);
    for (int64_t i = 0; i < part.rows; ++i)
      std::copy_n(sums + i * step, part.columns, target + (part.row + i) * w_.n + part.column);
  }

  /// Adds the sums of all ranges, one after the other.
  void add_ranges() const {
    int64_t count = m_ * w_.n;
    const float *sums = range_sums_.get();
    std::copy_n(sums, count, c_);
    for (int64_t range = 1; range < ranges_.count(); ++range)
      std::transform(c_, c_ + count, sums + range * count, c_, std::plus<>());
    for (int64_t group = 0; group < groups_; ++group)
      mend_overflows(columns_of(group));
  }

  /// Few rows multiply sums by scales, where the program multiplies weights, which may overflow otherwise. A row of A
  /// with NaN has NaN in either way.
  void mend_overflows(const Part &part) const {
    if (is_rounded())
      return;
    auto is_finite = [](float number) { return std::isfinite(number); };
    auto is_nan = [](float number) { return std::isnan(number); };
    for (int64_t i = part.row; i < part.row + part.rows; ++i) {
      const float *sums = c_ + i * w_.n + part.column, *terms = a_ + i * w_.k;
      if (!std::all_of(sums, sums + part.columns, is_finite) && !std::any_of(terms, terms + w_.k, is_nan))
        multiply_plainly({i, 1, part.column, part.columns, part.begin, part.end});
    }
  }

  /// Rows of sums of few rows lie in other lines of the cache; behind them lie the rows of A, and what follows those.
  int64_t row_step() const { return row_columns_ + kSpare; }
  float *behind_sums(float *sums) const { return sums + m_ * row_step(); }
  static float *behind_rows(float *rows) { return rows + kRowsTerms; }

  /// Bytes of each column that are used together.
  int64_t chunk(int64_t rows) const {
    int64_t most = std::min(kLongestChunk, kChunkTerms / (rows * w_.halves()));
    return w_.group < most ? most / w_.group * w_.group : most;
  }

  bool is_rounded() const { return rounding_ != Rounding::kNone; }

  /// All few rows of A.
  void add_tiles(const Part &part, float *sums, const Scratch &scratch) const {
    using dequantized::kTileTerms, dequantized::kTileFloats;
    static_assert(kTileFloats * 4 <= gemm::kChunk * gemm::kWidestPanelBytes);
    static_assert(4 * (kTileTerms / kFewestTerms + 2) <= 4 * kGroupsOfColumns);
    const auto &strips = wide_ ? strips::avx512::kKernels<float> : strips::avx2::kKernels<float>;
    const auto &by_tile = wide_ ? dequantized::avx512::kMultiplyTile : dequantized::avx2::kMultiplyTile;
    float *left = behind_sums(sums), *parameters = behind_rows(left);
    dequantized::Tiles tiles(w_, *kernels_, rounding_, table_.data(), strips, by_tile, a_, m_, sums, row_step(),
                             scratch.panel<float>(), left, kChunkTerms / (m_ * w_.halves()));
    if (w_.has_dense_columns)
      tiles.add_columns(part.column, part.columns, parameters);
    else
      tiles.add_rows(part.begin, part.end, part.column, part.columns, {parameters, row_step()});
  }

  void add_rows(const Part &part, float *sums) const {
    int64_t length = chunk(part.rows), shift = w_.halves() * length + kSpare;
    float *x = behind_sums(sums);
    Parameters parameters{behind_rows(x), row_step()};
    for (int64_t r = part.begin, past = r, first = r, behind = r; r < part.end;) {
      if (r == past)
        parameters.find_row(w_, r, part.column, part.columns), past = r + w_.rest(r);
      if (r == behind) {
        first = r, behind = std::min(part.end, r + length);
        copy_terms(w_, a_, part.rows, r, behind - r, x, shift);
      }
      int64_t at = r - first, count = behind - first;
      bool is_one = std::min(past, behind) - r < dequantized::kStreams;
      dequantized::Rows of{w_.q + r * w_.n + part.column, w_.n, {x + at, x + at + count}, shift, parameters.scale,
                           parameters.zero, table_.data(), sums, row_step(), part.columns};
      const auto &kernels = is_one ? kernels_->add_row : kernels_->add_streams;
      for (int64_t rows = part.rows, step; rows > 0; rows -= step) {
        step = dequantized::rows_together(rows);
        kernels[static_cast<size_t>(step - 1)](of);
        of.x[0] += step * shift, of.x[1] += step * shift, of.sums += step * row_step();
      }
      r += is_one ? 1 : dequantized::kStreams;
    }
  }

  void add_columns(const Part &part, float *sums) const {
    int64_t length = chunk(part.rows), shift = w_.halves() * length + kSpare;
    float *x = behind_sums(sums);
    Parameters parameters{behind_rows(x), kGroupsOfColumns};
    int64_t together = by_columns().columns_of(std::min(part.rows, dequantized::kMostByColumns));
    for (int64_t r = 0, count; r < w_.bytes(); r += count) {
      count = std::min(length, w_.bytes() - r);
      if (lanes_ != 0)
        copy_word_terms(w_, a_, part.rows, r, count, lanes_, x, shift);
      else
        copy_terms(w_, a_, part.rows, r, count, x, shift);
      int64_t groups = w_.groups(r, count);
      for (int64_t j = 0, columns; j < part.columns; j += columns) {
        columns = part.columns - j < together ? 1 : together;
        parameters.find_groups(w_, r, part.column + j, columns, groups);
        dequantized::Columns of{w_.q + (part.column + j) * w_.bytes() + r, w_.bytes(), {x, x + count}, shift,
                                parameters.scale, parameters.zero, table_.data(), w_.scale.column_step(groups),
                                w_.zero.column_step(groups), w_.rest(r), w_.group, sums + j, row_step(), count};
        add_to_rows(of, part.rows, columns);
      }
    }
  }

  /// Rows of A that use another number of columns together, the last ones, go column by column.
  void add_to_rows(dequantized::Columns of, int64_t rows, int64_t columns) const {
    const dequantized::ByColumns &kernels = by_columns();
    for (int64_t step; rows > 0; rows -= step) {
      step = std::min(rows, dequantized::kMostByColumns);
      auto number = static_cast<size_t>(step - 1);
      if (columns == kernels.columns_of(step))
        kernels.add_columns[number](of);
      else
        for (int64_t j = 0; j < columns; ++j)
          kernels.add_column[number] ? kernels.add_column[number](column_of(of, j)) : add_alone(column_of(of, j), step);
      of.x[0] += step * of.x_step, of.x[1] += step * of.x_step, of.sums += step * row_step();
    }
  }

  /// A column by a kernel of several, each of which it is.
  void add_alone(dequantized::Columns of, int64_t rows) const {
    float sums[dequantized::kMostByColumns * dequantized::kMostColumns] = {}, *target = of.sums;
    of.q_step = of.scale_step = of.zero_step = 0;
    of.sums = sums, of.sums_step = dequantized::kMostColumns;
    by_columns().add_columns[static_cast<size_t>(rows - 1)](of);
    for (int64_t i = 0; i < rows; ++i)
      target[i * row_step()] += sums[i * dequantized::kMostColumns];
  }

  const dequantized::ByColumns &by_columns() const { return lanes_ != 0 ? kernels_->words : kernels_->columns; }

  dequantized::Columns column_of(dequantized::Columns of, int64_t number) const {
    of.q += number * of.q_step, of.sums += number;
    for (size_t h = 0; h < static_cast<size_t>(w_.halves()); ++h)
      of.scale[h] += number * of.scale_step, of.zero[h] += number * of.zero_step;
    return of;
  }

  /// The rows of bytes of a part, one behind the other in memory of this thread, as far as that has room. Strips read a
  /// line of each row at a time: of rows that lie pages apart, that takes longer than to copy them first.
  ByteRows rows_of(const Part &part) const {
    ByteRows rows = w_.byte_rows();
    auto *copy = reinterpret_cast<uint8_t *>(Scratch::slab());
    if (w_.has_dense_columns || copy == nullptr || w_.bytes() * part.columns > gemm::kSlabBytes)
      return rows;
    for (int64_t r = 0; r < w_.bytes(); ++r)
      std::copy_n(rows.at(r, part.column), part.columns, copy + r * part.columns);
    return {copy, part.columns, part.column};
  }

  void multiply_strips(const Part &part, float *sums, const Scratch &scratch) const {
    ByteRows bytes = rows_of(part);
    float *rows_copy = sums + block_.sums_bytes() / 4, *row_panels = scratch.row_panels<float>();
    const float *a = a_ + part.row * w_.k;
    if (pairs_) {
      auto words = [](float *memory) { return reinterpret_cast<uint32_t *>(memory); };
      using dequantized::PairOperands;
      PairOperands operands(w_, bytes, *kernels_, rounding_, table_.data(), a, part.rows, part.column, row_panels);
      strips::Block<uint32_t> block{part.rows,    part.columns,     PairOperands::terms(w_),   words(sums),
                                    block_.step(), words(rows_copy), scratch.panel<uint32_t>()};
      return strips::multiply(strips::bf16_pairs::kKernels<uint32_t>, block, operands);
    }
    strips::Block<float> block{part.rows, part.columns, w_.k, sums, block_.step(), rows_copy, scratch.panel<float>()};
    const auto &kernels = wide_ ? strips::avx512::kKernels<float> : strips::avx2::kKernels<float>;
    strips::multiply(kernels, block,
                     dequantized::Operands{w_, bytes, *kernels_, rounding_, table_.data(), a, part.rows, part.column,
                                           scratch.sums<float>(), row_panels});
  }

  /// Without the kernels' instructions.
  void multiply_plainly(const Part &part) const {
    Scratch scratch;
    Parameters parameters{scratch.block<float>(), part.columns};
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
          float q = decoded(w_.code, byte, h);
          weights[j] = rounded((has_zeros ? q - parameters.zero[h][j] : q) * parameters.scale[h][j], rounding_);
        }
        for (int64_t i = part.row; i < part.row + part.rows; ++i)
          for (int64_t j = 0; j < part.columns; ++j)
            c_[i * w_.n + part.column + j] += a_[i * w_.k + w_.row(r, h)] * weights[j];
      }
    }
  }

  ThreadPool &pool_;
  const Weight &w_;
  Rounding rounding_;
  const float *a_;
  float *c_;
  int64_t m_;
  bool plain_, wide_, pairs_; // pairs_: many rows multiply pairs of bf16
  bool is_few_, by_rows_;
  int64_t row_columns_; // of C, whose sums few rows have at a time
  const dequantized::Kernels *kernels_ = nullptr;
  BlockShape block_ = pairs_ ? kOfPairs : kOfFloats;
  int64_t lanes_ = 0; // words that are read at a time; 0 where bytes are
  dequantized::Table table_{};
  int64_t blocks_ = 1, groups_ = 1, units_ = 1;
  RowRanges ranges_; // of rows of bytes
  std::unique_ptr<float[]> range_sums_; // of each range, as C
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
/// rounding, of `Rounding`: the type of the weights; bf16: whether the program's type of A is bf16.
void dequantized_dot(const Call &call) {
  auto given = [&](const char *name) { return call.spec.attribute(name); };
  int64_t k = given("k"), n = given("n"), group = given("group"), code = given("code"), step = given("step");
  int64_t rounding = given("rounding");
  bool is_known = k > 0 && n > 0 && group > 0 && step > 0 && code >= 0 &&
                  code < static_cast<int64_t>(dequantized::kCodes) && rounding >= 0 &&
                  rounding < static_cast<int64_t>(dequantized::kRoundings);
  if (!is_known)
    return report_failure("dequantized_dot: an attribute of the call is out of range");
  Weight weight{call.operands[1].as<uint8_t>(), k, n, given("dense_columns") != 0, static_cast<Code>(code), step,
                given("half"), group / step, parameter(call, "scale", group), parameter(call, "zero", group)};
  if (group >= k)
    weight.group = weight.bytes();
  if (!fits(call, weight, group))
    return report_failure("dequantized_dot: the attributes of the call do not fit its operands");
  DequantizedDot(call, weight, static_cast<Rounding>(rounding), given("bf16") != 0).run();
}

} // namespace

const Builtin *dequantized_dot_builtin(std::string_view target) {
  static const Builtin function{dequantized_dot, 2, 1, 2};
  return target == "dequantized_dot" ? &function : nullptr;
}

} // namespace disc
