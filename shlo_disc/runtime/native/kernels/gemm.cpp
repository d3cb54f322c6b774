// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gemm.h"

#include "gemm_blocks.h"
#include "gemm_formats.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace disc {

using namespace gemm;

namespace {

constexpr int64_t kMostRows = 168;              // of a block
constexpr int64_t kDeepest = 11 * kChunk;       // elements of a row of A packed at once
constexpr int64_t kRepackedDepth = 3 * kChunk;  // the same where B is packed again for each block, which wants many rows
constexpr int64_t kDeepPanels = 8;              // panels whose sums are kept while A is packed piece by piece
constexpr int64_t kWorkToShare = 1 << 17;       // multiply-adds that pay for handing a range to another thread
constexpr int64_t kTilesInPlace = 4;            // below as many, B is read where it lies
constexpr int64_t kItemsPerThread = 4;          // enough to even out a thread that loses its processor
static_assert(kStagedRows >= kMostRows);
static_assert(sizeof(DiscDot) == 41 * sizeof(int64_t)); // as lowering_cpu/host.py fills them

/// Matrix `entry` of the right-hand sides.
const char *right_matrix(const DiscDot &dot, int64_t entry) {
  int64_t bytes = format_of(dot.format).element_bytes;
  return static_cast<const char *>(dot.b) + batch_offset(dot, entry, dot.b_batch) * bytes;
}

/// Products of one A, cut into items: a batch entry, a block of rows and a group of panels each. The panels of all
/// products are counted together. k is counted in words, which have the size of T, as have sums.
template <typename T> class Gemm {
public:
  Gemm(const DiscDot &first, const RowSource *source, int threads);
  void run(ThreadPool &pool) const;

private:
  struct Part {
    const DiscDot *dot = nullptr;
    int64_t first_panel = 0, end_panel = 0;
    bool adds_to_result = false; // sums of pieces of k meet in C itself
  };
  struct Block {
    int64_t entry = -1, first_tile = 0, end_tile = 0, first_row = 0, rows = 0;
  };
  /// A piece of k of some neighbouring panels of one product, and where the sums of the first of them are.
  struct Piece {
    const Part *part;
    int64_t first, end, k0, depth, step;
    T *sums;
  };

  void choose_blocks();
  void choose_groups(int threads);
  void run_items(int64_t begin, int64_t end) const;
  void run_item(const Block &block, int64_t group, bool is_packed, const Scratch &scratch) const;
  void pack_block(const Block &block, int64_t k0, int64_t depth, T *target) const;
  void run_piece(const Block &block, const Piece &piece, const Scratch &scratch) const;
  void run_panel(const Block &block, const Piece &piece, int64_t panel, const Scratch &scratch) const;
  void write_sums(const Block &block, const Piece &piece, int64_t panel, const T *sums) const;
  const void *left(const Block &block, int64_t row, int64_t k) const {
    int64_t place = batch_offset(a_, block.entry, a_.a_batch) + row * a_.a_m + k * a_.a_k;
    return static_cast<const char *>(a_.a) + place * format_.element_bytes;
  }
  int64_t row_of(int64_t tile) const { return share(a_.m, tiles_, tile); }
  bool keeps_sums() const { return depth_ < k_ && stages_; }
  bool reads_rows() const { return format_.is_plain && a_.m == 1 && a_.a_k == 1; }

  const DiscDot &a_;
  const Format &format_;
  const RowSource *source_;
  int64_t k_, columns_, entries_, tiles_;
  int64_t parts_ = 0, panels_ = 0, depth_ = 0, blocks_ = 1, groups_ = 1;
  uint64_t call_ = next_call();
  bool stages_ = false; // whole groups of panels of sums may have to be kept
  Part part_[kMostProducts];
};

template <typename T>
Gemm<T>::Gemm(const DiscDot &first, const RowSource *source, int threads)
    : a_(first), format_(format_of(first.format)), source_(source), k_(format_.words(first.k)),
      columns_(first.tile_columns), entries_(entries_of(first)), tiles_(divide_up(first.m, first.tile_rows)) {
  bool repacks = false, is_ragged = false;
  for (const DiscDot *dot = &first; dot != nullptr && parts_ < kMostProducts; dot = dot->next) {
    int64_t end = panels_ + divide_up(dot->n, columns_);
    bool adds = dot->c_n == 1 && !has_tile_epilogue(*dot);
    part_[parts_++] = {dot, panels_, end, adds};
    panels_ = end;
    stages_ |= !adds;
    is_ragged |= dot->n % columns_ != 0;
    repacks |= dot->packed == nullptr && adds && tiles_ >= kTilesInPlace;
  }
  stages_ |= is_ragged && parts_ > 1; // each has a last panel of its own to keep
  depth_ = std::min(k_, repacks ? kRepackedDepth : kDeepest);
  choose_blocks();
  choose_groups(threads);
}

/// As many tiles as their rows fit the scratch, evenly divided.
template <typename T> void Gemm<T>::choose_blocks() {
  int64_t row_bytes = divide_up(std::max<int64_t>(depth_, 1), kDepth) * kDepth * static_cast<int64_t>(sizeof(T));
  int64_t rows = std::min(kBlockBytes / row_bytes, keeps_sums() ? kStagedRows / kDeepPanels : kMostRows);
  blocks_ = divide_up(tiles_, std::max<int64_t>(1, rows / a_.tile_rows));
}

/// Blocks alone occupy the threads when there are enough of them; otherwise the panels are divided, too.
template <typename T> void Gemm<T>::choose_groups(int threads) {
  int64_t blocks = std::max<int64_t>(1, blocks_ * entries_);
  int64_t even = threads / std::gcd<int64_t>(threads, blocks); // groups of this number make as many items for each thread
  int64_t wanted = divide_up(divide_up(kItemsPerThread * threads, blocks), even) * even;
  double work = static_cast<double>(a_.m) * static_cast<double>(panels_ * columns_) * static_cast<double>(k_);
  wanted = std::min(wanted, static_cast<int64_t>(std::min(work / kWorkToShare, 1e6)) + 1);
  int64_t fewest = keeps_sums() ? divide_up(panels_, kDeepPanels) : 1;
  groups_ = std::max(fewest, threads == 1 ? 1 : std::min(wanted, panels_));
}

template <typename T> void Gemm<T>::run(ThreadPool &pool) const {
  int64_t items = entries_ * blocks_ * groups_;
  double work = static_cast<double>(a_.m) * static_cast<double>(panels_ * columns_) * static_cast<double>(k_) *
                static_cast<double>(entries_) / static_cast<double>(items);
  int64_t grain = std::max<int64_t>(1, kWorkToShare / std::max<int64_t>(1, static_cast<int64_t>(std::min(work, 1e15))));
  auto body = [](void *gemm, int64_t begin, int64_t end) { static_cast<const Gemm *>(gemm)->run_items(begin, end); };
  pool.run(body, const_cast<Gemm *>(this), items, grain);
  if (groups_ > 1)
    for (int64_t i = 0; i < parts_; ++i)
      run_row_epilogue(pool, *part_[i].dot);
}

/// Items of one block follow each other, so that a thread packs its rows once.
template <typename T> void Gemm<T>::run_items(int64_t begin, int64_t end) const {
  Scratch scratch(call_);
  for (int64_t item = begin; item < end; ++item) {
    int64_t number = item / groups_;
    Block block;
    block.entry = number / blocks_;
    block.first_tile = share(tiles_, blocks_, number % blocks_);
    block.end_tile = share(tiles_, blocks_, number % blocks_ + 1);
    block.first_row = row_of(block.first_tile);
    block.rows = row_of(block.end_tile) - block.first_row;
    run_item(block, item % groups_, scratch.held() == number, scratch);
    scratch.hold(depth_ < k_ ? -1 : number);
    int64_t row = block.entry * a_.m + block.first_row;
    for (int64_t i = 0; groups_ == 1 && i < parts_; ++i)
      if (has_row_epilogue(*part_[i].dot))
        part_[i].dot->epilogue(part_[i].dot->epilogue_args, row, row + block.rows);
  }
}

template <typename T>
void Gemm<T>::run_item(const Block &block, int64_t group, bool is_packed, const Scratch &scratch) const {
  int64_t first = share(panels_, groups_, group), end = share(panels_, groups_, group + 1);
  int64_t most = std::max<int64_t>(1, kStagedRows / block.rows);
  for (int64_t k0 = 0; k0 < std::max<int64_t>(k_, 1); k0 += std::max<int64_t>(depth_, 1)) {
    int64_t depth = std::min(depth_, k_ - k0);
    if (!is_packed && !reads_rows())
      pack_block(block, k0, depth, scratch.block<T>());
    for (int64_t i = 0; i < parts_; ++i) {
      int64_t past = std::min(end, part_[i].end_panel);
      for (int64_t panel = std::max(first, part_[i].first_panel); panel < past; panel += most) {
        int64_t count = std::min(most, past - panel);
        T *sums = scratch.sums<T>() + (keeps_sums() ? (panel - first) * block.rows * columns_ : 0);
        run_piece(block, {&part_[i], panel, panel + count, k0, depth, count * columns_, sums}, scratch);
      }
    }
  }
}

/// Each tile's rows, in blocks of kDepth along k.
template <typename T> void Gemm<T>::pack_block(const Block &block, int64_t k0, int64_t depth, T *target) const {
  int64_t first = k0 * format_.elements, count = std::min(depth * format_.elements, a_.k - first);
  int64_t padded = divide_up(depth, kDepth) * kDepth;
  for (int64_t tile = block.first_tile; tile < block.end_tile; ++tile) {
    int64_t row = row_of(tile), rows = row_of(tile + 1) - row;
    T *place = target + (row - block.first_row) * padded;
    if (source_ != nullptr)
      source_->pack(row, rows, k0, depth, place);
    else
      format_.pack_rows(left(block, row, first), a_.a_m, a_.a_k, rows, count, place);
  }
}

template <typename T>
void Gemm<T>::run_piece(const Block &block, const Piece &piece, const Scratch &scratch) const {
  const DiscDot &dot = *piece.part->dot;
  for (int64_t panel = piece.first; panel < piece.end; ++panel)
    run_panel(block, piece, panel, scratch);
  if (!has_tile_epilogue(dot) || piece.k0 + piece.depth != k_)
    return;
  int64_t row = block.entry * dot.m + block.first_row, column = (piece.first - piece.part->first_panel) * columns_;
  int64_t past = std::min(dot.n, (piece.end - piece.part->first_panel) * columns_);
  run_tile_epilogue(dot, row, block.rows, piece.sums, piece.step, column, past);
}

template <typename T>
void Gemm<T>::run_panel(const Block &block, const Piece &piece, int64_t panel, const Scratch &scratch) const {
  const DiscDot &dot = *piece.part->dot;
  int64_t number = panel - piece.part->first_panel;
  int64_t n0 = number * columns_, width = std::min(columns_, dot.n - n0);
  int64_t padded = divide_up(piece.depth, kDepth) * kDepth;
  const T *a = scratch.block<T>();
  if (reads_rows())
    a = static_cast<const T *>(left(block, 0, piece.k0));
  const char *b = right_matrix(dot, block.entry) + n0 * dot.b_n * format_.element_bytes;
  bool direct = piece.part->adds_to_result && width == columns_;
  bool in_place = format_.is_plain && dot.packed == nullptr && dot.b_n == 1 && width == columns_ && tiles_ < kTilesInPlace;
  T *c = piece.sums + (panel - piece.first) * columns_;
  int64_t c_step = piece.step;
  if (direct) {
    c = static_cast<T *>(dot.c) + batch_offset(dot, block.entry, dot.c_batch) + block.first_row * dot.c_m + n0;
    c_step = dot.c_m;
  }
  for (int64_t k = 0; k < std::max<int64_t>(piece.depth, 1); k += kChunk) {
    int64_t count = std::min(kChunk, piece.depth - k), b_step = columns_, first = (piece.k0 + k) * format_.elements;
    const char *rows_of_b = b + first * dot.b_k * format_.element_bytes;
    const T *right = scratch.panel<T>();
    if (dot.packed != nullptr) {
      int64_t panels = piece.part->end_panel - piece.part->first_panel;
      right = static_cast<const T *>(dot.packed) + ((block.entry * panels + number) * k_ + piece.k0 + k) * columns_;
    } else if (in_place) {
      right = reinterpret_cast<const T *>(rows_of_b);
      b_step = dot.b_k;
    } else {
      format_.pack_panel(rows_of_b, dot.b_k, dot.b_n, std::min(count * format_.elements, dot.k - first), width, columns_,
                         scratch.panel<T>());
    }
    for (int64_t tile = block.first_tile; tile < block.end_tile; ++tile) {
      int64_t row = row_of(tile) - block.first_row, rows = row_of(tile + 1) - row_of(tile);
      a_.tile(rows, a + row * padded + k * rows, right, b_step, c + row * c_step, c_step, count, piece.k0 + k != 0);
    }
  }
  if (!direct && !has_tile_epilogue(dot) && piece.k0 + piece.depth == k_)
    write_sums(block, piece, panel, c);
}

template <typename T>
void Gemm<T>::write_sums(const Block &block, const Piece &piece, int64_t panel, const T *sums) const {
  const DiscDot &dot = *piece.part->dot;
  int64_t n0 = (panel - piece.part->first_panel) * columns_, width = std::min(columns_, dot.n - n0);
  T *c = static_cast<T *>(dot.c) + batch_offset(dot, block.entry, dot.c_batch) + block.first_row * dot.c_m + n0 * dot.c_n;
  for (int64_t row = 0; row < block.rows; ++row)
    for (int64_t column = 0; column < width; ++column)
      c[row * dot.c_m + column * dot.c_n] = sums[row * piece.step + column];
}

} // namespace

int64_t batch_offset(const DiscDot &dot, int64_t entry, const int64_t *strides) {
  return entry_offset(dot.batch_rank, dot.batch, strides, entry);
}

int64_t entries_of(const DiscDot &dot) {
  int64_t entries = 1;
  for (int64_t i = 0; i < dot.batch_rank; ++i)
    entries *= dot.batch[i];
  return entries;
}

bool has_tile_epilogue(const DiscDot &dot) { return dot.epilogue != nullptr && dot.tile_word >= 0; }

bool has_row_epilogue(const DiscDot &dot) { return dot.epilogue != nullptr && dot.tile_word < 0; }

void run_tile_epilogue(const DiscDot &dot, int64_t row, int64_t rows, const void *sums, int64_t step, int64_t column,
                       int64_t past) {
  size_t bytes = static_cast<size_t>(dot.epilogue_words) * sizeof(int64_t);
  auto *words = static_cast<int64_t *>(__builtin_alloca(bytes));
  std::memcpy(words, dot.epilogue_args, bytes);
  int64_t *tile = words + dot.tile_word;
  words[dot.sums_word] = reinterpret_cast<int64_t>(sums);
  tile[0] = step, tile[1] = column, tile[2] = past;
  dot.epilogue(words, row, row + rows);
}

void run_row_epilogue(ThreadPool &pool, const DiscDot &dot) {
  if (!has_row_epilogue(dot))
    return;
  auto body = [](void *context, int64_t begin, int64_t end) {
    const DiscDot &dot = *static_cast<const DiscDot *>(context);
    dot.epilogue(dot.epilogue_args, begin, end);
  };
  pool.run(body, const_cast<DiscDot *>(&dot), entries_of(dot) * dot.m, dot.epilogue_grain);
}

int64_t packed_words(int64_t entries, int64_t k, int64_t n, int64_t columns) {
  return entries * divide_up(n, columns) * columns * k;
}

void pack_right(ThreadPool &pool, const DiscDot &dot, void *target) {
  struct Job {
    const DiscDot &dot;
    const Format &format;
    char *target;
    int64_t panels;
  } job{dot, format_of(dot.format), static_cast<char *>(target), divide_up(dot.n, dot.tile_columns)};
  auto body = [](void *opaque, int64_t begin, int64_t end) {
    const Job &job = *static_cast<const Job *>(opaque);
    const DiscDot &dot = job.dot;
    const Format &format = job.format;
    int64_t columns = dot.tile_columns, panel_bytes = format.words(dot.k) * columns * format.word_bytes;
    for (int64_t i = begin; i < end; ++i) {
      int64_t n0 = i % job.panels * columns;
      const char *b = right_matrix(dot, i / job.panels) + n0 * dot.b_n * format.element_bytes;
      format.pack_panel(b, dot.b_k, dot.b_n, dot.k, std::min(columns, dot.n - n0), columns, job.target + i * panel_bytes);
    }
  };
  pool.run(body, &job, entries_of(dot) * job.panels, 4);
}

void run_gemm(ThreadPool &pool, const DiscDot &dot, const RowSource *source) {
  if (format_of(dot.format).word_bytes == 4)
    Gemm<uint32_t>(dot, source, pool.size()).run(pool);
  else
    Gemm<uint64_t>(dot, source, pool.size()).run(pool);
}

} // namespace disc
