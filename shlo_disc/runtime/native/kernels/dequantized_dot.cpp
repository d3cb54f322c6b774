// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `dequantized_dot`: products with matrices of narrow integers, W[k, n] = (q[k, n] - zero) * scale, which stay as they
// are in memory. transforms/simplify/dequantized_products.py makes the calls.
//
// Items of work are parts of the products of all matrices (dequantized_product.h).
#include "library_call.h"

#include "dequantized_product.h"
#include "gemm_blocks.h"
#include "row_ranges.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <new>

namespace disc {

namespace {

using dequantized::Code;
using dequantized::kFewestColumns;
using dequantized::kFewestTerms;
using dequantized::Method;
using dequantized::Parameter;
using dequantized::Part;
using dequantized::Product;
using dequantized::Rounding;
using dequantized::Steps;
using dequantized::Weight;
using gemm::divide_up;
using gemm::share;

constexpr int64_t kFewestOfRange = 256;   // rows of bytes
constexpr int64_t kMostRowsOfRanges = 4;  // of A; with more, multiplying takes longer than reading
constexpr int64_t kItemsPerThread = 4;    // enough to even out a thread that loses its processor
constexpr int64_t kWorkToShare = 1 << 17; // multiply-adds that pay for handing a range to another thread

class DequantizedDot {
public:
  DequantizedDot(const Call &call, const Weight &first, int64_t matrices, const Method &method)
      : pool_(call.pool), first_(first), how_(method), matrices_(matrices), a_(call.operands[0].as<float>()),
        c_(call.results[0].as<float>()) {}

  void run() {
    if (how_.m == 0)
      return;
    choose_items();
    if (ranges_.count() > 1)
      range_sums_.reset(new (std::nothrow) float[static_cast<size_t>(matrices_ * ranges_.count() * results())]);
    if (!range_sums_)
      ranges_ = all_rows();
    auto body = [](void *self, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        static_cast<const DequantizedDot *>(self)->run_item(i);
    };
    double work = static_cast<double>(matrices_) * static_cast<double>(results()) * static_cast<double>(first_.k);
    int64_t items = matrices_ * blocks_ * groups_ * ranges_.count();
    auto each = static_cast<int64_t>(std::min(work / static_cast<double>(items), 1e15));
    pool_.run(body, this, items, std::max<int64_t>(1, kWorkToShare / std::max<int64_t>(1, each)));
    for (int64_t matrix = 0; ranges_.count() > 1 && matrix < matrices_; ++matrix)
      add_ranges(matrix);
  }

private:
  /// Of a matrix.
  int64_t results() const { return how_.m * first_.n; }

  Product product(int64_t matrix) const {
    return {how_, first_.matrix(matrix), a_ + matrix * how_.m * first_.k, c_ + matrix * results()};
  }

  /// Few rows read long rows of bytes, a range of them in an item; dense columns are as long in any item. Of many
  /// matrices, each is an item.
  void choose_items() {
    int64_t threads = pool_.size(), most = how_.is_few ? how_.row_columns : how_.block.columns;
    int64_t fewest = divide_up(first_.n, most), of_matrix = divide_up(RowRanges::kMost, matrices_);
    bool has_ranges = how_.by_rows && !how_.plain && how_.m <= kMostRowsOfRanges;
    ranges_ = has_ranges ? RowRanges(first_.bytes(), kFewestOfRange, dequantized::kStreams, of_matrix) : all_rows();
    blocks_ = how_.is_few ? 1 : divide_up(how_.m, how_.block.rows);
    int64_t items = matrices_ * blocks_ * ranges_.count();
    bool is_even = how_.by_rows && (matrices_ == 1 || items % threads == 0);
    int64_t pieces = is_even ? divide_up(fewest, threads) : kItemsPerThread;
    units_ = divide_up(first_.n, kFewestColumns);
    groups_ = threads == 1 ? fewest : std::max(fewest, std::min(divide_up(pieces * threads, items), units_));
  }

  void run_item(int64_t item) const {
    int64_t range = item % ranges_.count(), group = item / ranges_.count() % groups_;
    int64_t block = item / (groups_ * ranges_.count()) % blocks_;
    int64_t matrix = item / (blocks_ * groups_ * ranges_.count());
    Part part = columns_of(group);
    part.row = share(how_.m, blocks_, block), part.rows = share(how_.m, blocks_, block + 1) - part.row;
    part.begin = ranges_.first(range), part.end = ranges_.first(range + 1);
    Product product = this->product(matrix);
    if (how_.plain)
      return product.multiply_plainly(part);
    product.multiply(part, ranges_.count() == 1 ? c_ + matrix * results() : sums_of(matrix, range));
    if (how_.is_few && ranges_.count() == 1)
      product.mend_overflows(part);
  }

  float *sums_of(int64_t matrix, int64_t range) const {
    return range_sums_.get() + (matrix * ranges_.count() + range) * results();
  }

  RowRanges all_rows() const { return RowRanges(first_.bytes(), first_.bytes(), 1); }

  /// All rows of a group of columns.
  Part columns_of(int64_t group) const {
    int64_t column = share(units_, groups_, group) * kFewestColumns;
    int64_t past = std::min(first_.n, share(units_, groups_, group + 1) * kFewestColumns);
    return {0, how_.m, column, past - column, 0, first_.bytes()};
  }

  /// Adds the sums of all ranges, one after the other.
  void add_ranges(int64_t matrix) const {
    float *c = c_ + matrix * results();
    std::copy_n(sums_of(matrix, 0), results(), c);
    for (int64_t range = 1; range < ranges_.count(); ++range)
      std::transform(c, c + results(), sums_of(matrix, range), c, std::plus<>());
    for (int64_t group = 0; group < groups_; ++group)
      product(matrix).mend_overflows(columns_of(group));
  }

  ThreadPool &pool_;
  const Weight &first_; // of the matrices
  const Method &how_;
  int64_t matrices_;
  const float *a_;
  float *c_;
  int64_t blocks_ = 1, groups_ = 1, units_ = 1; // of a matrix
  RowRanges ranges_; // of rows of bytes
  std::unique_ptr<float[]> range_sums_; // of each matrix and each of its ranges, as C
};

/// The operand that an attribute names, or the number whose bits it has. Steps are those of the tensor, or of another
/// like it.
Parameter parameter(const Call &call, const std::string &name, const std::string &steps_of, int64_t group,
                    int64_t columns) {
  int64_t operand = call.spec.attribute(name);
  if (operand < 2 || operand >= static_cast<int64_t>(call.spec.operands.size()))
    return Parameter(std::bit_cast<float>(static_cast<uint32_t>(call.spec.attribute(name + "_bits"))));
  auto number = static_cast<size_t>(operand);
  auto step = [&](const char *axis) { return call.spec.attribute(steps_of + axis); };
  Steps steps{group, columns, step("_k"), step("_n"), step("_matrix")};
  return Parameter(call.operands[number], call.spec.operands[number].dtype, steps);
}

/// Whether a call's operands are as large as its attributes say.
bool fits(const Call &call, const Weight &w, int64_t matrices, int64_t group) {
  bool has_rows = w.k % w.halves() == 0 && w.row(w.bytes() - 1, w.halves() - 1) == w.k - 1;
  bool has_whole_groups =
      group >= w.k || w.halves() == 1 || (w.step == 2 ? group % 2 == 0 : w.half > 0 && w.half % group == 0);
  bool has_long_groups = w.group >= std::min(w.bytes(), kFewestTerms);
  bool is_spread = w.halves() == 1 && (has_long_groups || w.group == 1);
  bool has_halves = w.column_half == 1 || (w.column_half > 0 && 2 * w.column_half == w.n);
  bool are_halves_alike = w.columns == 1 || w.columns >= w.n ||
                          (w.column_half == 1 ? w.columns % 2 == 0 : w.column_half % w.columns == 0);
  int64_t rows = call.operands[0].elements() / w.k;
  int64_t bytes = (matrices - 1) * w.matrix_step + w.bytes() * w.byte_columns();
  bool has_columns = w.column_half == 0 || (has_halves && are_halves_alike && w.n % 2 == 0 && halves_of(w.code) == 2);
  return has_rows && has_columns && has_whole_groups && (w.is_spread() ? is_spread : has_long_groups) &&
         w.matrix_step >= 0 && call.operands[1].elements() == bytes && rows % matrices == 0 &&
         rows == call.results[0].elements() / w.n && w.scale.fits(matrices, w.k, w.n) &&
         w.zero.fits(matrices, w.k, w.n) && w.divisor.fits(matrices, w.k, w.n) &&
         is_place(w.code) == (w.table != nullptr);
}

/// The 16 floats that an attribute names; null where there are none.
const float *table(const Call &call) {
  int64_t operand = call.spec.attribute("table");
  bool is_there = operand >= 2 && operand < static_cast<int64_t>(call.spec.operands.size()) &&
                  call.operands[operand].elements() == static_cast<int64_t>(dequantized::Table{}.size());
  return is_there ? call.operands[operand].as<float>() : nullptr;
}

/// (A, q[, scale][, zero][, divisor][, table]) -> C. Attributes: k, n; code, of `Code`; dense_columns: q is (n, k), else
/// (k, n); step, half, column_half, difference_bits: as in Weight; group, columns: rows and columns of a scale;
/// vector_bits: the widest registers that the program may use. scale, zero: numbers of operands, of which scale_k,
/// scale_n, zero_k, zero_n are the steps, or 0, and scale_bits, zero_bits the f32 itself. divisor: the operand whose
/// reciprocals the scales are, with their steps, or 0. adds_zeros: zero points are added to integers that are scaled.
/// table: the operand that a code of places has, or 0. rounding, of `Rounding`: the type of the weights; bf16: whether
/// the program's type of A is bf16. matrices: of A, W and C, which A and C have as their first axis; matrix,
/// scale_matrix, zero_matrix are the steps from one to the next, or 0.
void dequantized_dot(const Call &call) {
  auto given = [&](const char *name) { return call.spec.attribute(name); };
  int64_t k = given("k"), n = given("n"), group = given("group"), code = given("code"), step = given("step");
  int64_t rounding = given("rounding"), matrices = call.spec.attribute("matrices", 1);
  int64_t columns = call.spec.attribute("columns", 1);
  bool is_known = k > 0 && n > 0 && group > 0 && columns > 0 && step > 0 && code >= 0 && matrices > 0 &&
                  code < static_cast<int64_t>(dequantized::kCodes) && rounding >= 0 &&
                  rounding < static_cast<int64_t>(dequantized::kRoundings);
  if (!is_known)
    return report_failure("dequantized_dot: an attribute of the call is out of range");
  Parameter scale = parameter(call, "scale", "scale", group, columns);
  Parameter zero = parameter(call, "zero", "zero", group, columns);
  Parameter divisor = parameter(call, "divisor", "scale", group, columns);
  Weight weight{call.operands[1].as<uint8_t>(), k, n, given("dense_columns") != 0, static_cast<Code>(code), step,
                given("half"), group / step, columns, given("matrix"), scale, zero, divisor, given("adds_zeros") != 0,
                given("difference_bits"), given("column_half"), table(call)};
  if (group >= k)
    weight.group = weight.bytes();
  if (!fits(call, weight, matrices, group))
    return report_failure("dequantized_dot: the attributes of the call do not fit its operands");
  int64_t rows = call.operands[0].elements() / k / matrices;
  Method method(weight, rows, static_cast<Rounding>(rounding), given("bf16") != 0, given("vector_bits"));
  DequantizedDot(call, weight, matrices, method).run();
}

} // namespace

const Builtin *dequantized_dot_builtin(std::string_view target) {
  static const Builtin function{dequantized_dot, 2, 1, 4};
  return target == "dequantized_dot" ? &function : nullptr;
}

} // namespace disc
