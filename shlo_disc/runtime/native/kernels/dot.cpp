// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dot.h"

#include "blas.h"
#include "few_rows.h"
#include "dot_batch.h"
#include "gemm.h"
#include "gemm_blocks.h"
#include "gemm_formats.h"
#include "outer_product.h"
#include "row_stream.h"
#include "vector_product.h"
#include "core/command_clock.h"

#include <algorithm>

namespace disc {

namespace {

using gemm::divide_up;

constexpr int64_t kWorkToShare = 1 << 17; // multiply-adds that pay for handing a range to another thread

/// Neither do products of the same A have one, nor what is computed of their rows.
bool has_no_rows(const DiscDot &dot) {
  bool empty = dot.m <= 0;
  for (int64_t i = 0; i < dot.batch_rank; ++i)
    empty |= dot.batch[i] <= 0;
  return empty;
}

constexpr int64_t kTilesInPlace = 3; // whose rows' product reads the other operand where it lies, as in gemm.cpp

/// C' = B' A' has few rows, and reads A where it lies, or fills its panels better than C fills its only one.
bool is_narrow(const DiscDot &dot) {
  int64_t columns = dot.tile_columns;
  if (dot.packed != nullptr || dot.next != nullptr || dot.m <= columns)
    return false;
  bool reads_in_place = dot.a_m == 1 && dot.a_k != 1 && dot.n <= kTilesInPlace * dot.tile_rows && dot.n < dot.m;
  return reads_in_place || (dot.n < columns && dot.n * divide_up(dot.m, columns) < dot.m);
}

/// What computes C = A B; not what becomes of C, but for the ways that run epilogues of tiles.
using Multiply = void (*)(ThreadPool &pool, const DiscDot &dot);

/// A product of few rows or columns whose sums only its epilogue sees: pieces along the longer side of C, each in a
/// thread's own memory.
class PiecesOfSums {
public:
  PiecesOfSums(ThreadPool &pool, const DiscDot &dot, Multiply multiply)
      : pool_(pool), dot_(dot), multiply_(multiply), by_rows_(dot.m > dot.n), size_(by_rows_ ? dot.m : dot.n),
        other_(by_rows_ ? dot.n : dot.m) {
    int64_t even = divide_up(size_, 4 * pool.size() * kEpilogueColumns) * kEpilogueColumns;
    length_ = std::min(kMostSums / other_ / kEpilogueColumns * kEpilogueColumns, even);
    pieces_ = divide_up(size_, length_);
  }

  void run() {
    Blas::SingleThreaded guard;
    auto body = [](void *self, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        static_cast<const PiecesOfSums *>(self)->run_piece(i);
    };
    int64_t work = std::max<int64_t>(1, dot_.k * length_ * other_);
    pool_.run(body, this, entries_of(dot_) * pieces_, std::max<int64_t>(1, kWorkToShare / work));
  }

private:
  static constexpr int64_t kMostSums = 3 * 2048;

  void run_piece(int64_t index) const {
    alignas(64) thread_local double sums[kMostSums]; // of 4 or 8 bytes
    int64_t entry = index / pieces_, first = index % pieces_ * length_, count = std::min(length_, size_ - first);
    int64_t row = by_rows_ ? first : 0, column = by_rows_ ? 0 : first;
    DiscDot piece = dot_;
    (by_rows_ ? piece.m : piece.n) = count;
    piece.batch_rank = 0, piece.next = nullptr, piece.epilogue = nullptr;
    piece.a = element(dot_.a, batch_offset(dot_, entry, dot_.a_batch) + row * dot_.a_m);
    piece.b = element(dot_.b, batch_offset(dot_, entry, dot_.b_batch) + column * dot_.b_n);
    piece.c = sums, piece.c_m = piece.n, piece.c_n = 1;
    multiply_(pool_, piece); // a loop of the pool within one runs in this thread
    run_tile_epilogue(dot_, entry * dot_.m + row, piece.m, sums, piece.n, column, column + piece.n);
  }

  const void *element(const void *base, int64_t place) const {
    return static_cast<const char *>(base) + place * gemm::format_of(dot_.format).element_bytes;
  }

  ThreadPool &pool_;
  const DiscDot &dot_;
  Multiply multiply_;
  bool by_rows_;
  int64_t size_, other_, length_ = 1, pieces_ = 1;
};

/// Products of one A, one after the other. Whether `multiply` runs epilogues of tiles: `runs_epilogues`.
void run_each(ThreadPool &pool, const DiscDot &first, Multiply multiply, bool runs_epilogues) {
  for (const DiscDot *dot = &first; dot != nullptr; dot = dot->next) {
    if (has_tile_epilogue(*dot) && !runs_epilogues) {
      PiecesOfSums(pool, *dot, multiply).run();
      continue;
    }
    DiscDot alone = *dot;
    alone.next = nullptr;
    if (!has_tile_epilogue(*dot))
      alone.epilogue = nullptr;
    multiply(pool, alone);
    run_row_epilogue(pool, *dot);
  }
}

bool are_all(const DiscDot &first, bool (*is)(const DiscDot &)) {
  bool result = true;
  for (const DiscDot *dot = &first; dot != nullptr; dot = dot->next)
    result &= is(*dot);
  return result;
}

bool is_vector_product_by_blas(const DiscDot &dot) {
  const Blas &blas = Blas::instance();
  return is_vector_product(dot) && (dot.format == 0 ? blas.gemv<float>() != nullptr : blas.gemv<double>() != nullptr);
}

/// Products of one A, one after the other; by tiles where memory runs out.
void run_row_streams(ThreadPool &pool, const DiscDot &first) {
  for (const DiscDot *dot = &first; dot != nullptr; dot = dot->next) {
    DiscDot alone = *dot;
    alone.next = nullptr;
    if (run_row_stream(pool, alone))
      run_row_epilogue(pool, alone);
    else
      run_gemm(pool, alone);
  }
}

bool has_few_columns(const DiscDot &dot) { return has_few_rows(transposed(dot)); }

/// A way to compute products of few rows or columns.
struct Way {
  const char *name;
  bool (*fits)(const DiscDot &dot);
  Multiply multiply;
  bool runs_epilogues = false; // of tiles
};

/// The first one that fits is taken.
constexpr Way kWays[] = {
    {"matrix-vector", is_vector_product_by_blas, run_vector_product},
    {"few rows", has_few_rows, run_few_rows, true},
    {"few columns", has_few_columns, [](ThreadPool &pool, const DiscDot &dot) { run_few_rows(pool, transposed(dot)); }},
    {"matrix-vector", is_vector_product, run_vector_product},
    {"tiles, transposed", is_narrow, [](ThreadPool &pool, const DiscDot &dot) { run_gemm(pool, transposed(dot)); }},
};

/// Products that have columns.
void run_products(ThreadPool &pool, const DiscDot &dot) {
  chosen_way = "outer product";
  if (is_outer_product(dot) && run_outer_product(pool, dot))
    return;
  if (are_all(dot, streams_rows)) {
    chosen_way = "stream of rows";
    return run_row_streams(pool, dot);
  }
  for (const Way &way : kWays) {
    if (!are_all(dot, way.fits))
      continue;
    chosen_way = way.name;
    return run_each(pool, dot, way.multiply, way.runs_epilogues);
  }
  chosen_way = dot.packed == nullptr ? "tiles" : "tiles, packed before";
  run_gemm(pool, dot);
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
