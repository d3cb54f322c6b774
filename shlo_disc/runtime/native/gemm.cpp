// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gemm.h"

#include "gemm_blocks.h"

#include <algorithm>
#include <numeric>

namespace disc {

using namespace gemm;

namespace {

constexpr int64_t kMostRows = 168;              // of a block
constexpr int64_t kDeepest = 4096;              // elements of a row of A packed at once
constexpr int64_t kRepackedDepth = 1024;        // the same where B is packed again for each block, which wants many rows
constexpr int64_t kDeepPanels = 8;              // panels whose sums are kept while A is packed piece by piece
constexpr int64_t kWorkToShare = 1 << 17;       // multiply-adds that pay for handing a range to another thread
constexpr int64_t kTilesInPlace = 4;            // below as many, B is read where it lies
constexpr int64_t kItemsPerThread = 4;          // enough to even out a thread that loses its processor
static_assert(kStagedRows >= kMostRows);

int64_t entry_offset(const DiscDot &dot, int64_t entry, const int64_t *strides) {
  int64_t result = 0;
  for (int64_t i = dot.batch_rank - 1; i >= 0; --i) {
    result += entry % dot.batch[i] * strides[i];
    entry /= dot.batch[i];
  }
  return result;
}

int64_t entries_of(const DiscDot &dot) {
  int64_t entries = 1;
  for (int64_t i = 0; i < dot.batch_rank; ++i)
    entries *= dot.batch[i];
  return entries;
}

/// One product, cut into items: a batch entry, a block of rows and a group of panels each.
template <typename T> class Gemm {
public:
  Gemm(const DiscDot &dot, const RowSource<T> *source, int threads);
  void run(ThreadPool &pool) const;

private:
  struct Block {
    int64_t entry = -1, first_tile = 0, end_tile = 0, first_row = 0;
  };

  void choose_blocks();
  void choose_groups(int threads);
  void run_items(int64_t begin, int64_t end) const;
  void run_item(const Block &block, int64_t group, bool is_packed, const Scratch &scratch) const;
  void pack_block(const Block &block, int64_t k0, int64_t depth, T *target) const;
  void run_panel(const Block &block, int64_t panel, int64_t k0, int64_t depth, const Scratch &scratch, T *sums) const;
  void write_sums(const Block &block, int64_t panel, const T *sums) const;
  int64_t row_of(int64_t tile) const { return share(dot_.m, tiles_, tile); }
  int64_t width_of(int64_t panel) const { return std::min(columns_, dot_.n - panel * columns_); }
  bool keeps_sums() const { return depth_ < dot_.k && !adds_to_result_; }
  bool reads_rows() const { return dot_.m == 1 && dot_.a_k == 1; }

  const DiscDot &dot_;
  const RowSource<T> *source_;
  int64_t columns_, panels_, entries_;
  int64_t tiles_, depth_ = 0, blocks_ = 1, groups_ = 1;
  bool adds_to_result_; // sums of pieces of k meet in C itself
};

template <typename T>
Gemm<T>::Gemm(const DiscDot &dot, const RowSource<T> *source, int threads)
    : dot_(dot), source_(source), columns_(dot.tile_columns), panels_(divide_up(dot.n, columns_)), entries_(entries_of(dot)),
      tiles_(divide_up(dot.m, dot.tile_rows)), adds_to_result_(dot.c_n == 1) {
  bool repacks = dot.packed == nullptr && adds_to_result_ && tiles_ >= kTilesInPlace;
  depth_ = std::min(dot.k, repacks ? kRepackedDepth : kDeepest);
  choose_blocks();
  choose_groups(threads);
}

/// As many tiles as their rows fit the scratch, evenly divided.
template <typename T> void Gemm<T>::choose_blocks() {
  int64_t row_bytes = divide_up(std::max<int64_t>(depth_, 1), kDepth) * kDepth * static_cast<int64_t>(sizeof(T));
  int64_t rows = std::min(kBlockBytes / row_bytes, keeps_sums() ? kStagedRows / kDeepPanels : kMostRows);
  blocks_ = divide_up(tiles_, std::max<int64_t>(1, rows / dot_.tile_rows));
}

/// Blocks alone occupy the threads when there are enough of them; otherwise the panels are divided, too.
template <typename T> void Gemm<T>::choose_groups(int threads) {
  int64_t blocks = std::max<int64_t>(1, blocks_ * entries_);
  int64_t even = threads / std::gcd<int64_t>(threads, blocks); // groups of this number make as many items for each thread
  int64_t wanted = divide_up(divide_up(kItemsPerThread * threads, blocks), even) * even;
  double work = static_cast<double>(dot_.m) * static_cast<double>(dot_.n) * static_cast<double>(dot_.k);
  wanted = std::min(wanted, static_cast<int64_t>(std::min(work / kWorkToShare, 1e6)) + 1);
  int64_t fewest = keeps_sums() ? divide_up(panels_, kDeepPanels) : 1;
  groups_ = std::max(fewest, threads == 1 ? 1 : std::min(wanted, panels_));
}

template <typename T> void Gemm<T>::run(ThreadPool &pool) const {
  int64_t items = entries_ * blocks_ * groups_;
  double work = static_cast<double>(dot_.m) * static_cast<double>(dot_.n) * static_cast<double>(dot_.k) *
                static_cast<double>(entries_) / static_cast<double>(items);
  int64_t grain = std::max<int64_t>(1, kWorkToShare / std::max<int64_t>(1, static_cast<int64_t>(std::min(work, 1e15))));
  auto body = [](void *gemm, int64_t begin, int64_t end) { static_cast<const Gemm *>(gemm)->run_items(begin, end); };
  pool.run(body, const_cast<Gemm *>(this), items, grain);
}

/// Items of one block follow each other, so that its rows are packed once.
template <typename T> void Gemm<T>::run_items(int64_t begin, int64_t end) const {
  Scratch scratch;
  int64_t held = -1;
  for (int64_t item = begin; item < end; ++item) {
    int64_t number = item / groups_;
    Block block;
    block.entry = number / blocks_;
    block.first_tile = share(tiles_, blocks_, number % blocks_);
    block.end_tile = share(tiles_, blocks_, number % blocks_ + 1);
    block.first_row = row_of(block.first_tile);
    run_item(block, item % groups_, held == number, scratch);
    held = depth_ < dot_.k ? -1 : number;
  }
}

template <typename T>
void Gemm<T>::run_item(const Block &block, int64_t group, bool is_packed, const Scratch &scratch) const {
  int64_t first = share(panels_, groups_, group), end = share(panels_, groups_, group + 1);
  int64_t block_rows = row_of(block.end_tile) - block.first_row;
  for (int64_t k0 = 0; k0 < std::max<int64_t>(dot_.k, 1); k0 += std::max<int64_t>(depth_, 1)) {
    int64_t depth = std::min(depth_, dot_.k - k0);
    if (!is_packed && !reads_rows())
      pack_block(block, k0, depth, scratch.block<T>());
    for (int64_t panel = first; panel < end; ++panel) {
      T *sums = scratch.sums<T>() + (keeps_sums() ? (panel - first) * block_rows * columns_ : 0);
      run_panel(block, panel, k0, depth, scratch, sums);
    }
  }
}

/// Each tile's rows, in blocks of kDepth along k.
template <typename T> void Gemm<T>::pack_block(const Block &block, int64_t k0, int64_t depth, T *target) const {
  const T *a = static_cast<const T *>(dot_.a) + entry_offset(dot_, block.entry, dot_.a_batch) + k0 * dot_.a_k;
  int64_t padded = divide_up(depth, kDepth) * kDepth;
  for (int64_t tile = block.first_tile; tile < block.end_tile; ++tile) {
    int64_t row = row_of(tile), rows = row_of(tile + 1) - row;
    T *place = target + (row - block.first_row) * padded;
    if (source_ != nullptr)
      source_->pack(row, rows, k0, depth, place);
    else
      pack_rows(a + row * dot_.a_m, dot_.a_m, dot_.a_k, rows, depth, place);
  }
}

template <typename T>
void Gemm<T>::run_panel(const Block &block, int64_t panel, int64_t k0, int64_t depth, const Scratch &scratch,
                        T *sums) const {
  int64_t n0 = panel * columns_, width = width_of(panel);
  int64_t padded = divide_up(depth, kDepth) * kDepth;
  const T *a = scratch.block<T>();
  if (reads_rows())
    a = static_cast<const T *>(dot_.a) + entry_offset(dot_, block.entry, dot_.a_batch) + k0;
  const T *b = static_cast<const T *>(dot_.b) + entry_offset(dot_, block.entry, dot_.b_batch);
  T *c = static_cast<T *>(dot_.c) + entry_offset(dot_, block.entry, dot_.c_batch);
  bool direct = adds_to_result_ && width == columns_;
  bool in_place = dot_.packed == nullptr && dot_.b_n == 1 && width == columns_ && tiles_ < kTilesInPlace;
  for (int64_t k = 0; k < std::max<int64_t>(depth, 1); k += kChunk) {
    int64_t count = std::min(kChunk, depth - k), b_step = columns_;
    const T *right = scratch.panel<T>();
    if (dot_.packed != nullptr) {
      right = static_cast<const T *>(dot_.packed) + ((block.entry * panels_ + panel) * dot_.k + k0 + k) * columns_;
    } else if (in_place) {
      right = b + (k0 + k) * dot_.b_k + n0;
      b_step = dot_.b_k;
    } else {
      pack_panel(b + (k0 + k) * dot_.b_k + n0 * dot_.b_n, dot_.b_k, dot_.b_n, count, width, columns_,
                 scratch.panel<T>());
    }
    for (int64_t tile = block.first_tile; tile < block.end_tile; ++tile) {
      int64_t row = row_of(tile), rows = row_of(tile + 1) - row;
      const T *left = a + (row - block.first_row) * padded + k * rows;
      T *out = direct ? c + row * dot_.c_m + n0 : sums + (row - block.first_row) * columns_;
      dot_.tile(rows, left, right, b_step, out, direct ? dot_.c_m : columns_, count, k0 + k != 0);
    }
  }
  if (!direct && k0 + depth == dot_.k)
    write_sums(block, panel, sums);
}

template <typename T> void Gemm<T>::write_sums(const Block &block, int64_t panel, const T *sums) const {
  int64_t rows = row_of(block.end_tile) - block.first_row, width = width_of(panel);
  T *c = static_cast<T *>(dot_.c) + entry_offset(dot_, block.entry, dot_.c_batch) + block.first_row * dot_.c_m +
         panel * columns_ * dot_.c_n;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < width; ++column)
      c[row * dot_.c_m + column * dot_.c_n] = sums[row * columns_ + column];
}

} // namespace

int64_t packed_elements(int64_t entries, int64_t k, int64_t n, int64_t columns) {
  return entries * divide_up(n, columns) * columns * k;
}

template <typename T> void pack_right(ThreadPool &pool, const DiscDot &dot, T *target) {
  struct Job {
    const DiscDot &dot;
    T *target;
    int64_t panels;
  } job{dot, target, divide_up(dot.n, dot.tile_columns)};
  auto body = [](void *opaque, int64_t begin, int64_t end) {
    const Job &job = *static_cast<const Job *>(opaque);
    const DiscDot &dot = job.dot;
    int64_t columns = dot.tile_columns;
    for (int64_t i = begin; i < end; ++i) {
      int64_t n0 = i % job.panels * columns;
      const T *b = static_cast<const T *>(dot.b) + entry_offset(dot, i / job.panels, dot.b_batch);
      pack_panel(b + n0 * dot.b_n, dot.b_k, dot.b_n, dot.k, std::min(columns, dot.n - n0), columns,
                 job.target + i * dot.k * columns);
    }
  };
  pool.run(body, &job, entries_of(dot) * job.panels, 4);
}

template <typename T> void run_gemm(ThreadPool &pool, const DiscDot &dot, const RowSource<T> *source) {
  Gemm<T>(dot, source, pool.size()).run(pool);
}

template void pack_right(ThreadPool &, const DiscDot &, float *);
template void pack_right(ThreadPool &, const DiscDot &, double *);
template void run_gemm(ThreadPool &, const DiscDot &, const RowSource<float> *);
template void run_gemm(ThreadPool &, const DiscDot &, const RowSource<double> *);

} // namespace disc
