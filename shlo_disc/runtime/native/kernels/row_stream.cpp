// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "row_stream.h"

#include "dot_batch.h"
#include "gemm_blocks.h"
#include "row_ranges.h"
#include "row_sums.h"

#include <algorithm>
#include <memory>
#include <new>

namespace disc {

namespace {

using gemm::divide_up;
using gemm::share;

constexpr int64_t kFewestBytes = 1 << 20;      // of B: what the caches of the cores hold is read in place otherwise
constexpr int64_t kFewestColumns = 64;         // of B
constexpr int64_t kNarrowestBytes = 64;        // of a tile's row: two registers of 256 bits
constexpr int64_t kFewestOfRange = 64;         // rows of B
constexpr int64_t kSumsBytes = 256 << 10;      // of an item: a quarter of a core's second cache
constexpr int64_t kColumnsOfPiece = 2048;      // of C, whose sums of all ranges are added together
static_assert(kColumnsOfPiece % kEpilogueColumns == 0);
constexpr int64_t kWorkOfPiece = 1 << 14;      // sums that pay for handing them to another thread

/// The sums of each range of rows of B, then those of all ranges.
template <typename T> class RowStream {
public:
  RowStream(const DiscDot &dot, int threads)
      : dot_(dot), ranges_(dot.k, kFewestOfRange, row_sums::streams_of(dot.m)) {
    int64_t most = kSumsBytes / static_cast<int64_t>(sizeof(T)) / dot.m / kFewestColumns * kFewestColumns;
    units_ = divide_up(dot.n, kFewestColumns);
    groups_ = std::clamp(divide_up(threads, ranges_.count()), divide_up(dot.n, most), units_);
    sums_.reset(new (std::nothrow) T[static_cast<size_t>(ranges_.count() * dot.m * dot.n)]);
  }

  bool has_memory() const { return sums_ != nullptr; }

  void run(ThreadPool &pool) {
    auto ranges = [](void *self, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        static_cast<const RowStream *>(self)->add_range(i);
    };
    pool.run(ranges, this, ranges_.count() * groups_, 1);
    auto pieces = [](void *self, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        static_cast<const RowStream *>(self)->finish(i * kColumnsOfPiece);
    };
    pool.run(pieces, this, divide_up(dot_.n, kColumnsOfPiece),
             std::max<int64_t>(1, kWorkOfPiece / (ranges_.count() * dot_.m * kColumnsOfPiece)));
  }

private:
  T *sums(int64_t range) const { return sums_.get() + range * dot_.m * dot_.n; }

  void add_range(int64_t item) const {
    int64_t range = item / groups_, group = item % groups_;
    int64_t together = row_sums::streams_of(dot_.m), k = ranges_.first(range), past = ranges_.first(range + 1);
    int64_t column = share(units_, groups_, group) * kFewestColumns;
    int64_t count = std::min(dot_.n, share(units_, groups_, group + 1) * kFewestColumns) - column;
    T *target = sums(range) + column;
    for (int64_t i = 0; i < dot_.m; ++i)
      std::fill_n(target + i * dot_.n, count, T(0));
    const T *a = static_cast<const T *>(dot_.a), *b = static_cast<const T *>(dot_.b) + column;
    auto rows = static_cast<size_t>(dot_.m - 1);
    for (int64_t streams; k < past; k += streams) {
      streams = past - k < together ? 1 : together;
      const auto &add = streams == 1 ? row_sums::kAddOne<T> : row_sums::kAdd<T, true>;
      add[rows]({a + k * dot_.a_k, dot_.a_m, dot_.a_k, b + k * dot_.b_k, dot_.b_k, target, dot_.n, count});
    }
  }

  /// Some columns of C: the sums of the ranges, one after the other, and the epilogue of them.
  void finish(int64_t column) const {
    alignas(64) thread_local T total[row_sums::kMostRows * kColumnsOfPiece];
    int64_t count = std::min(kColumnsOfPiece, dot_.n - column);
    bool has_epilogue = has_tile_epilogue(dot_);
    for (int64_t i = 0; i < dot_.m; ++i) {
      T *row = total + i * count;
      std::copy_n(sums(0) + i * dot_.n + column, count, row);
      for (int64_t range = 1; range < ranges_.count(); ++range)
        for (int64_t j = 0; j < count; ++j)
          row[j] += sums(range)[i * dot_.n + column + j];
      T *c = static_cast<T *>(dot_.c) + i * dot_.c_m + column * dot_.c_n;
      for (int64_t j = 0; !has_epilogue && j < count; ++j)
        c[j * dot_.c_n] = row[j];
    }
    if (has_epilogue)
      run_tile_epilogue(dot_, 0, dot_.m, total, count, column, column + count);
  }

  const DiscDot &dot_;
  RowRanges ranges_;
  int64_t groups_ = 1, units_ = 1;
  std::unique_ptr<T[]> sums_; // of each range, of dense rows
};

template <typename T> bool run_as(ThreadPool &pool, const DiscDot &dot) {
  RowStream<T> product(dot, pool.size());
  if (product.has_memory())
    product.run(pool);
  return product.has_memory();
}

} // namespace

bool streams_rows(const DiscDot &dot) {
  int64_t size = dot.format == 0 ? 4 : 8;
  return has_avx2() && dot.format <= 1 && dot.packed == nullptr && dot.batch_rank == 0 && dot.b_n == 1 && dot.m > 0 &&
         dot.m <= row_sums::kMostRows && dot.n >= kFewestColumns && dot.b_k >= dot.n &&
         dot.tile_columns * size >= kNarrowestBytes && dot.k * dot.b_k * size >= kFewestBytes;
}

bool run_row_stream(ThreadPool &pool, const DiscDot &dot) {
  return dot.format == 0 ? run_as<float>(pool, dot) : run_as<double>(pool, dot);
}

} // namespace disc
