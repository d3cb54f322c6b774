// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "few_rows.h"

#include "core/strided_copy.h"
#include "dot_batch.h"
#include "gemm_blocks.h"
#include "row_sums.h"
#include "strip_products.h"
#include "vector_dots.h"

#include <algorithm>
#include <cstring>

namespace disc {

namespace {

using namespace gemm;

constexpr int64_t kNarrowestBytes = 64;      // of a tile's row: two registers of 256 bits
constexpr int64_t kWideTileBytes = 128;      // the same with registers of 512 bits
constexpr int64_t kWorkToShare = 1 << 17;    // multiply-adds that pay for handing a range to another thread
constexpr int64_t kItemsPerThread = 4;       // enough to even out a thread that loses its processor
constexpr int64_t kLineBytes = 64;           // of the cache: where items' columns begin
constexpr int64_t kMostDots = 18;            // rows of A for dot products; from there on packing B pays
constexpr int64_t kFewestTerms = 128;        // of a dot product; shorter ones take no longer by tiles
constexpr int64_t kChunkBytes = 16 << 10;    // of a row of A used together, in dot products
constexpr int64_t kSumsBytes = kStagedRows * kWidestPanelBytes; // of dot products that an epilogue takes
constexpr int64_t kMostStrips = 128;         // rows of A for strips, which take less time than packing B for a call
constexpr int64_t kMostTiles = 3;            // of rows of A, for which B is read where it lies
constexpr int64_t kRowsOfSmall = 36;         // the same where B is small
constexpr int64_t kSmallBytes = 256 << 10;   // of B, below which tiles take no longer than strips
constexpr int64_t kUncachedBytes = 24 << 20; // of B, from where on it is taken to come from memory
constexpr int64_t kMostSums = 3;             // rows of A for sums, with registers of 256 bits
constexpr int64_t kMostWideSums = 2;         // the same with 512 bits, where B comes from memory
constexpr int64_t kFewestColumns = 64;       // of B whose rows are dense
constexpr int64_t kRowBytes = 8 << 10;       // of a row of B, read in one go where there are as many
constexpr int64_t kMostLongRows = 48;        // rows of A whose sums for such a row the scratch holds
constexpr int64_t kShortRowBytes = 3 << 10;  // read in one go with more rows of A
constexpr int64_t kApartBytes = 9 * kLineBytes; // of rows of sums, which lie in other lines of the cache
static_assert(kMostDots * kChunkBytes <= kBlockBytes);
static_assert(kMostDots * kEpilogueColumns * 8 <= kSumsBytes);
static_assert(kRowBytes % (kEpilogueColumns * 8) == 0 && kShortRowBytes % (kEpilogueColumns * 8) == 0);
static_assert(std::max(kMostSums, kMostWideSums) <= row_sums::kMostRows);
static_assert(kMostLongRows * (kRowBytes + kApartBytes) <= kBlockBytes);
static_assert(kMostStrips * (kShortRowBytes + kApartBytes) <= kBlockBytes);
static_assert(kMostStrips * strips::kDeepestBytes <= kRowPanelsBytes);
static_assert(strips::kCopyBytes <= kChunk * kWidestPanelBytes);

/// The ways to multiply few rows.
enum class Way {
  kNone,
  kDots,   // dot products of dense columns of B
  kStrips, // of dense rows of B
  kSums,   // of whole dense rows of B
};

/// Whether the program and the processor have registers of 512 bits.
bool is_wide(const DiscDot &dot) {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has && dot.tile_columns * (dot.format == 0 ? 4 : 8) >= kWideTileBytes;
}

/// The way for a product, or for a piece of one, which may have fewer columns than rows. The width of the program's
/// vectors is part of it, so that one program has the same results on all processors.
Way way_of(const DiscDot &dot) {
  int64_t size = dot.format == 0 ? 4 : 8, tile_bytes = dot.tile_columns * size;
  if (dot.format > 1 || tile_bytes < kNarrowestBytes || !has_avx2())
    return Way::kNone;
  if (dot.b_k == 1 && dot.k >= kFewestTerms && dot.m <= kMostDots)
    return Way::kDots;
  if (dot.b_n != 1)
    return Way::kNone;
  int64_t bytes = dot.k * dot.b_k * size;
  bool is_small = bytes < kSmallBytes, is_cached = bytes < kUncachedBytes;
  int64_t cached_sums = is_wide(dot) ? 0 : 1, other_sums = !is_wide(dot) ? kMostSums : is_small ? 1 : kMostWideSums;
  if (dot.m <= (is_cached && !is_small ? cached_sums : other_sums))
    return Way::kSums;
  return !is_small && dot.m <= std::min(most_rows_in_place(dot), kMostStrips) ? Way::kStrips : Way::kNone;
}

/// A product cut into items: a batch entry and a group of columns each.
template <typename T> class FewRows {
public:
  FewRows(const DiscDot &dot, int threads) : dot_(dot), entries_(entries_of(dot)), way_(way_of(dot)) {
    double work = static_cast<double>(dot.m) * static_cast<double>(dot.n) * static_cast<double>(dot.k);
    int64_t wanted = divide_up(kItemsPerThread * threads, std::max<int64_t>(1, entries_));
    if (way_ != Way::kDots)
      wanted = std::min(wanted, divide_up(divide_up(dot.n, most_columns()), threads) * threads);
    auto worth = static_cast<int64_t>(std::min(work / kWorkToShare, 1e6));
    groups_ = threads == 1 ? 1 : std::clamp<int64_t>(std::min(wanted, worth), 1, divide_up(dot.n, dots::kColumns));
    work_ = std::max<int64_t>(1, static_cast<int64_t>(std::min(work / static_cast<double>(groups_), 1e15)));
  }

  void run(ThreadPool &pool) const {
    auto body = [](void *self, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        static_cast<const FewRows *>(self)->run_item(i);
    };
    pool.run(body, const_cast<FewRows *>(this), entries_ * groups_, std::max<int64_t>(1, kWorkToShare / work_));
  }

private:
  static constexpr int64_t kSize = sizeof(T);

  /// Columns of one matrix of the batch.
  struct Part {
    int64_t entry, first, columns;
  };

  /// Whether dense columns are fetched before they are used: they are more than the second cache holds.
  bool fetches_columns() const { return dot_.n * dot_.b_n * kSize >= kBlockBytes; }

  /// Columns of B that are read in one go, and the distance between rows of their sums.
  int64_t most_columns() const { return (dot_.m <= kMostLongRows ? kRowBytes : kShortRowBytes) / kSize; }
  int64_t sums_step() const { return most_columns() + kApartBytes / kSize; }

  /// The first column of a group.
  int64_t cut(int64_t group) const {
    int64_t unit = has_tile_epilogue(dot_) ? kEpilogueColumns : way_ == Way::kDots ? 1 : kLineBytes / kSize;
    return std::min(dot_.n, share(divide_up(dot_.n, unit), groups_, group) * unit);
  }

  void run_item(int64_t item) const {
    Scratch scratch;
    Part part{item / groups_, cut(item % groups_), 0};
    int64_t past = cut(item % groups_ + 1), most = most_columns();
    if (way_ == Way::kDots)
      most = has_tile_epilogue(dot_) ? kSumsBytes / kSize / dot_.m / kEpilogueColumns * kEpilogueColumns : past;
    for (; part.first < past; part.first += part.columns) {
      part.columns = std::min(most, past - part.first);
      way_ == Way::kDots ? multiply_vectors(part, scratch) : add_rows(part, scratch);
    }
  }

  const T *left(const Part &part) const {
    return static_cast<const T *>(dot_.a) + batch_offset(dot_, part.entry, dot_.a_batch);
  }
  const T *right(const Part &part) const {
    return static_cast<const T *>(dot_.b) + batch_offset(dot_, part.entry, dot_.b_batch) + part.first * dot_.b_n;
  }
  T *result(const Part &part) const {
    return static_cast<T *>(dot_.c) + batch_offset(dot_, part.entry, dot_.c_batch) + part.first * dot_.c_n;
  }
  /// The epilogue of complete sums.
  void finish(const Part &part, const T *sums, int64_t step) const {
    run_tile_epilogue(dot_, part.entry * dot_.m, dot_.m, sums, step, part.first, part.first + part.columns);
  }

  void multiply_vectors(const Part &part, const Scratch &scratch) const {
    if (!has_tile_epilogue(dot_))
      return multiply_vectors(part, result(part), dot_.c_m, dot_.c_n, scratch);
    multiply_vectors(part, scratch.sums<T>(), part.columns, 1, scratch);
    finish(part, scratch.sums<T>(), part.columns);
  }

  void multiply_vectors(const Part &part, T *c, int64_t c_m, int64_t c_n, const Scratch &scratch) const {
    constexpr int64_t chunk = kChunkBytes / kSize;
    const T *a = left(part), *b = right(part);
    for (int64_t k = 0; k < dot_.k; k += chunk) {
      int64_t depth = std::min(chunk, dot_.k - k);
      dots::Block<T> block{a + k * dot_.a_k, dot_.a_m, b + k, dot_.b_n, c, c_m, c_n, depth, k > 0};
      if (dot_.a_k != 1) {
        copy_matrix(block.a, dot_.a_m, dot_.a_k, scratch.block<T>(), depth, dot_.m, depth);
        block.a = scratch.block<T>(), block.a_step = depth;
      }
      multiply_chunk(block, part.columns);
    }
  }

  void multiply_chunk(dots::Block<T> block, int64_t columns) const {
    constexpr int64_t step = dots::kColumns;
    int64_t parts = divide_up(dot_.m, dots::kRows);
    for (; columns > 0; columns -= step, block.b += step * dot_.b_n, block.c += step * dot_.c_n)
      for (int64_t part = 0; part < parts; ++part) {
        int64_t row = share(dot_.m, parts, part), rows = share(dot_.m, parts, part + 1) - row;
        dots::Block<T> rows_of_a = block;
        rows_of_a.a += row * block.a_step, rows_of_a.c += row * block.c_m;
        const auto &kernels = part == 0 && fetches_columns() ? dots::kMultiply<T, true> : dots::kMultiply<T, false>;
        kernels[static_cast<size_t>(rows - 1)](rows_of_a, std::min(columns, step));
      }
  }

  /// The sums lie in the scratch until they are complete.
  void add_rows(const Part &part, const Scratch &scratch) const {
    T *sums = scratch.block<T>();
    const T *a = left(part), *b = right(part);
    way_ == Way::kSums ? sum_rows(a, b, sums, part.columns) : multiply_strips(a, b, sums, part.columns, scratch);
    if (has_tile_epilogue(dot_))
      return finish(part, sums, sums_step());
    T *c = result(part);
    for (int64_t i = 0; i < dot_.m; ++i)
      for (int64_t j = 0; j < part.columns; ++j)
        c[i * dot_.c_m + j * dot_.c_n] = sums[i * sums_step() + j];
  }

  void sum_rows(const T *a, const T *b, T *sums, int64_t count) const {
    auto rows = static_cast<size_t>(dot_.m - 1);
    int64_t together = row_sums::streams_of(dot_.m);
    bool fetches = dot_.m > 1 && dot_.k * dot_.b_k * kSize >= kUncachedBytes;
    const auto &add_together = fetches ? row_sums::kAdd<T, true> : row_sums::kAdd<T, false>;
    int64_t step = sums_step();
    for (int64_t i = 0; i < dot_.m; ++i)
      std::memset(sums + i * step, 0, static_cast<size_t>(count * kSize));
    for (int64_t k = 0, streams; k < dot_.k; k += streams) {
      streams = dot_.k - k < together ? 1 : together;
      const auto &add = streams == 1 ? row_sums::kAddOne<T> : add_together;
      add[rows]({a + k * dot_.a_k, dot_.a_m, dot_.a_k, b + k * dot_.b_k, dot_.b_k, sums, step, count});
    }
  }

  /// The operands of strips::multiply.
  struct Operands {
    const T *a;
    int64_t a_m, a_k, rows;
    const T *b;
    int64_t b_step;

    void copy_rows(const strips::Range &range, T *target) const {
      copy_matrix(a + range.k * a_k, a_m, a_k, target, range.depth, rows, range.depth);
    }
    void copy_strip(const strips::Range &, T *) const {}
  };

  void multiply_strips(const T *a, const T *b, T *sums, int64_t count, const Scratch &scratch) const {
    const strips::Kernels<T> &kernels = is_wide(dot_) ? strips::avx512::kKernels<T> : strips::avx2::kKernels<T>;
    strips::Block<T> block{dot_.m, count, dot_.k, sums, sums_step(), scratch.row_panels<T>(), scratch.panel<T>()};
    strips::multiply(kernels, block, Operands{a, dot_.a_m, dot_.a_k, dot_.m, b, dot_.b_k});
  }

  const DiscDot &dot_;
  int64_t entries_;
  Way way_;
  int64_t groups_ = 1, work_ = 1; // multiply-adds of an item
};

} // namespace

int64_t most_rows_in_place(const DiscDot &dot) {
  bool is_small = dot.k * dot.b_k * (dot.format == 0 ? 4 : 8) < kSmallBytes;
  int64_t by_strips = dot.format > 1 || dot.b_n != 1 ? 0 : is_small ? kRowsOfSmall : kMostStrips;
  return std::max(kMostTiles * dot.tile_rows, by_strips);
}

bool has_few_dots(const DiscDot &dot) { return dot.m <= dots::kRows && way_of(dot) == Way::kDots; }

bool has_few_rows(const DiscDot &dot) {
  if (dot.packed != nullptr || dot.k <= 0 || dot.m > dot.n)
    return false;
  Way way = way_of(dot);
  return way == Way::kDots || (way != Way::kNone && dot.n >= kFewestColumns);
}

void run_few_rows(ThreadPool &pool, const DiscDot &dot) {
  dot.format == 0 ? FewRows<float>(dot, pool.size()).run(pool) : FewRows<double>(dot, pool.size()).run(pool);
}

} // namespace disc
