// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gemm.h"

#include "dot_batch.h"
#include "gemm_blocks.h"
#include "gemm_formats.h"
#include "packing.h"
#include "reuse.h"

#include <algorithm>
#include <numeric>

namespace disc {

using namespace gemm;

namespace {

constexpr int64_t kMostRows = 168;              // of a block
constexpr int64_t kChunksTogether = 11;         // of a row of A packed at once
constexpr int64_t kChunksOfRepacked = 3;        // the same where B is packed again for each block, which wants many rows
constexpr int64_t kDeepPanels = 8;              // panels whose sums are kept while A is packed piece by piece
constexpr int64_t kWorkToShare = 1 << 17;       // multiply-adds that pay for handing a range to another thread
constexpr int64_t kFewestOfWindow = 8;          // panels packed at a time, for which A is packed once more
constexpr int64_t kTilesInPlace = 4;            // below as many, B is read where it lies
constexpr int64_t kFewRows = 3;                 // of A, for which reading B takes longer than computing
constexpr int64_t kRowsTogether = 16;           // of B, read side by side then: a page of memory each
constexpr int64_t kMoreRowsTogether = 32;       // the same where computing takes longer
constexpr int64_t kTilesThatWait = 2;           // of rows: with no more, reading B takes longer than computing
constexpr int64_t kPageBytes = 4096;            // of memory, and of a way of the first cache
constexpr int64_t kCachedBytes = 8 << 20;       // of a matrix that the last cache is likely to hold
constexpr int64_t kBytesAhead = 256;            // of a row of B, fetched before they are used
constexpr int64_t kRowBytes = 2048;             // of a row of B, at least, for one item
constexpr int64_t kNearBytes = 1 << 20;         // of what a thread reads, which its second cache is taken to hold
constexpr int64_t kItemsPerThread = 4;          // enough to even out a thread that loses its processor
static_assert(kStagedRows >= kMostRows);
static_assert(sizeof(DiscDot) == 41 * sizeof(int64_t)); // as lowering_cpu/host.py fills them

/// How many rows of a panel of `depth` are used together: about as many each time. Results depend on where these chunks
/// begin, so it is the same wherever k is cut for packing.
int64_t chunk_of(int64_t depth) {
  int64_t chunks = std::max<int64_t>(1, divide_up(depth, kChunk));
  return std::max<int64_t>(1, divide_up(depth, chunks * kDepth)) * kDepth;
}

/// What the next panels read: there are more rows than processors fetch ahead by themselves.
void fetch_rows(const char *rows, int64_t step, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    __builtin_prefetch(rows + i * step + kBytesAhead);
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
    bool is_packed_now = false;  // for this call, a window at a time
    bool is_near = false;        // few rows, and the caches have what was packed before
  };
  /// Panels of all products whose right-hand sides are packed at a time, unless they were before, and the items of work
  /// that make what depends on them.
  struct Window {
    const Gemm *gemm;
    int64_t first, end, groups;
    bool is_whole; // all panels, by items of whole rows
  };
  struct Block {
    int64_t entry = -1, first_tile = 0, end_tile = 0, first_row = 0, rows = 0;
  };
  /// A piece of k of some neighbouring panels of one product, where the sums of the first of them are, and where the
  /// matrices B and C of the batch are, the latter from the block's first row on.
  struct Piece {
    const Part *part;
    int64_t first, end, k0, depth, step;
    T *sums;
    const char *b;
    const T *packed; // from panel `first_packed` on, which may be counted back from this entry's, or null
    int64_t first_packed;
    T *c;
    bool fetches; // rows of B
  };

  /// Rows [k, k + count) of the piece's, of the panels [first, end).
  struct Rows {
    int64_t first, end, k, count;
  };

  void choose_blocks(int64_t chunks);
  void pack_now();
  int64_t groups_of(int64_t panels) const;
  bool may_be_packed_now(const DiscDot &dot) const;
  bool is_near(const DiscDot &dot) const;
  void pack_window(ThreadPool &pool, const Window &window) const;
  void run_items(const Window &window, int64_t begin, int64_t end) const;
  void run_item(const Window &window, const Block &block, int64_t group, bool is_packed, const Scratch &scratch) const;
  void pack_block(const Block &block, int64_t k0, int64_t depth, T *target) const;
  void run_piece(const Block &block, const Piece &piece, const Scratch &scratch) const;
  void run_panels(const Block &block, const Piece &piece, const Rows &rows, const Scratch &scratch) const;
  const T *right_panel(const Piece &piece, const Rows &rows, int64_t panel, const Scratch &scratch,
                       int64_t &step) const;
  Ahead ahead_of_tile(const Piece &piece, const Rows &rows, int64_t panel, const T *right, int64_t step, int64_t tile,
                      int64_t tiles) const;
  Ahead rows_to_pack(const Piece &piece, int64_t panel, int64_t k, int64_t of_word) const;
  bool fetches_rows(const DiscDot &dot, int64_t panels) const;
  void write_sums(const Block &block, const Piece &piece) const;
  const void *left(const Block &block, int64_t row, int64_t k) const {
    int64_t place = batch_offset(a_, block.entry, a_.a_batch) + row * a_.a_m + k * a_.a_k;
    return static_cast<const char *>(a_.a) + place * format_.element_bytes;
  }
  bool writes_result(const Piece &piece, int64_t width) const {
    return piece.part->adds_to_result && width == columns_;
  }
  int64_t panel_bytes() const { return k_ * columns_ * static_cast<int64_t>(sizeof(T)); } // of B, packed
  int64_t row_of(int64_t tile) const { return tile == tiles_ ? a_.m : share(a_.m, tiles_, tile); }
  bool keeps_sums() const { return depth_ < k_ && stages_; }
  bool reads_rows() const { return format_.is_plain && a_.m == 1 && a_.a_k == 1; }
  /// B is read for one group of tiles, so that packing all of a panel first would not pay.
  bool reads_once(const DiscDot &dot) const { return dot.packed == nullptr && tiles_ < kTilesInPlace; }

  /// Rows of B that lie whole pages apart are copied before three tiles read them: their panels displace each other in
  /// the first cache. A matrix that comes from memory is read where it lies: waiting for it takes longer.
  bool copies_rows(const DiscDot &dot) const {
    bool by_pages = dot.b_n == 1 && dot.b_k * format_.element_bytes % kPageBytes == 0;
    bool is_cached = dot.k * dot.n * format_.element_bytes <= kCachedBytes;
    return walks_rows(dot) && format_.is_plain && tiles_ > kTilesThatWait && by_pages && is_cached;
  }

  /// B is read row by row rather than panel by panel: a panel's rows each lie on a page of memory of their own.
  bool walks_rows(const DiscDot &dot) const { return reads_once(dot) && dot.b_n < dot.b_k; }

  const DiscDot &a_;
  const Format &format_;
  const RowSource *source_;
  int64_t k_, columns_, entries_, tiles_;
  int threads_;
  int64_t parts_ = 0, panels_ = 0, depth_ = 0, blocks_ = 1, window_panels_ = 0;
  uint64_t call_ = next_call();
  bool stages_ = false;     // whole groups of panels of sums may have to be kept
  bool walks_rows_ = false; // of some B
  char *slab_ = nullptr;    // for panels that are packed by this call
  Part part_[kMostProducts];
};

template <typename T>
Gemm<T>::Gemm(const DiscDot &first, const RowSource *source, int threads)
    : a_(first), format_(format_of(first.format)), source_(source), k_(format_.words(first.k)),
      columns_(first.tile_columns), entries_(entries_of(first)), tiles_(divide_up(first.m, first.tile_rows)),
      threads_(threads) {
  bool repacks = false, is_ragged = false;
  for (const DiscDot *dot = &first; dot != nullptr && parts_ < kMostProducts; dot = dot->next) {
    int64_t end = panels_ + divide_up(dot->n, columns_);
    bool adds = dot->c_n == 1 && !has_tile_epilogue(*dot);
    part_[parts_++] = {dot, panels_, end, adds, false, is_near(*dot)};
    panels_ = end;
    stages_ |= !adds;
    is_ragged |= dot->n % columns_ != 0;
    repacks |= dot->packed == nullptr && adds && tiles_ >= kTilesInPlace;
    walks_rows_ |= walks_rows(*dot);
  }
  stages_ |= is_ragged && parts_ > 1; // each has a last panel of its own to keep
  choose_blocks(repacks ? kChunksOfRepacked : kChunksTogether);
  if (blocks_ > 1)
    pack_now();
  int64_t windows = slab_ == nullptr ? 1 : divide_up(panels_, kSlabBytes / panel_bytes());
  window_panels_ = divide_up(panels_, windows);
}

/// Whether panels of B are worth packing for one call where several blocks read them: they come from memory.
template <typename T> bool Gemm<T>::may_be_packed_now(const DiscDot &dot) const {
  return dot.packed == nullptr && tiles_ >= kTilesInPlace && entries_ == 1 && k_ > 0 &&
         dot.k * dot.n * format_.element_bytes > kBlockBytes && panel_bytes() * kFewestOfWindow <= kSlabBytes;
}

/// Notes that a packed matrix is read. Whether few rows find it in the threads' second caches, where it was read not
/// long ago.
template <typename T> bool Gemm<T>::is_near(const DiscDot &dot) const {
  if (dot.packed == nullptr)
    return false;
  int64_t between = bytes_since(dot.packed, entries_ * divide_up(dot.n, columns_) * panel_bytes());
  return has_few(a_.m, a_.tile_rows) && between <= kNearBytes * threads_;
}

/// Has this call pack, once, what several blocks of rows read. One block packs each panel before its tiles read it.
template <typename T> void Gemm<T>::pack_now() {
  bool repacks = false;
  for (int64_t i = 0; i < parts_; ++i) {
    Part &part = part_[i];
    bool may_be_packed = may_be_packed_now(*part.dot);
    if (may_be_packed && slab_ == nullptr && (slab_ = Scratch::slab()) == nullptr)
      return;
    part.is_packed_now = may_be_packed;
    repacks |= part.dot->packed == nullptr && !may_be_packed && part.adds_to_result;
  }
  if (slab_ != nullptr)
    choose_blocks(repacks ? kChunksOfRepacked : kChunksTogether);
}

/// As many tiles as their rows fit the scratch, evenly divided; `chunks`: of a row of A, at most, packed at once.
template <typename T> void Gemm<T>::choose_blocks(int64_t chunks) {
  depth_ = std::min(k_, chunks * chunk_of(k_));
  int64_t row_bytes = divide_up(std::max<int64_t>(depth_, 1), kDepth) * kDepth * static_cast<int64_t>(sizeof(T));
  int64_t rows = std::min(kBlockBytes / row_bytes, keeps_sums() ? kStagedRows / kDeepPanels : kMostRows);
  blocks_ = divide_up(tiles_, std::max<int64_t>(1, rows / a_.tile_rows));
}

/// Groups of the panels of a window. Blocks alone occupy the threads when there are enough of them; otherwise the panels
/// are divided, too.
template <typename T> int64_t Gemm<T>::groups_of(int64_t panels) const {
  int64_t blocks = std::max<int64_t>(1, blocks_ * entries_);
  int64_t even = threads_ / std::gcd<int64_t>(threads_, blocks); // groups of this number: as many items for each thread
  int64_t wanted = divide_up(divide_up(kItemsPerThread * threads_, blocks), even) * even;
  double work = static_cast<double>(a_.m) * static_cast<double>(panels * columns_) * static_cast<double>(k_);
  wanted = std::min(wanted, static_cast<int64_t>(std::min(work / kWorkToShare, 1e6)) + 1);
  if (walks_rows_)
    wanted = std::min(wanted, divide_up(divide_up(panels * columns_ * format_.element_bytes, kRowBytes), even) * even);
  int64_t fewest = keeps_sums() ? divide_up(panels, kDeepPanels) : 1;
  return std::max(fewest, threads_ == 1 ? 1 : std::min(wanted, panels));
}

template <typename T> void Gemm<T>::run(ThreadPool &pool) const {
  bool is_whole = false;
  for (int64_t first = 0; first < panels_; first += window_panels_) {
    int64_t end = std::min(panels_, first + window_panels_), groups = groups_of(end - first);
    is_whole = groups == 1 && end - first == panels_;
    Window window{this, first, end, groups, is_whole};
    pack_window(pool, window);
    int64_t items = entries_ * blocks_ * groups;
    double work = static_cast<double>(a_.m) * static_cast<double>((end - first) * columns_) * static_cast<double>(k_) *
                  static_cast<double>(entries_) / static_cast<double>(items);
    int64_t grain = std::max<int64_t>(1, kWorkToShare / std::max<int64_t>(1, static_cast<int64_t>(std::min(work, 1e15))));
    auto body = [](void *opaque, int64_t begin, int64_t end) {
      const Window &window = *static_cast<const Window *>(opaque);
      window.gemm->run_items(window, begin, end);
    };
    pool.run(body, &window, items, grain);
  }
  if (!is_whole)
    for (int64_t i = 0; i < parts_; ++i)
      run_row_epilogue(pool, *part_[i].dot);
}

/// The panels of a window that were not packed before, each at its place in the slab.
template <typename T> void Gemm<T>::pack_window(ThreadPool &pool, const Window &window) const {
  for (int64_t i = 0; i < parts_; ++i) {
    const Part &part = part_[i];
    int64_t first = std::max(window.first, part.first_panel), end = std::min(window.end, part.end_panel);
    if (part.is_packed_now && first < end)
      pack_panels(pool, *part.dot, first - part.first_panel, end - part.first_panel,
                  slab_ + (first - window.first) * panel_bytes());
  }
}

/// Items of one block follow each other, so that a thread packs its rows once.
template <typename T> void Gemm<T>::run_items(const Window &window, int64_t begin, int64_t end) const {
  Scratch scratch(call_);
  for (int64_t item = begin; item < end; ++item) {
    int64_t number = item / window.groups;
    Block block;
    block.entry = number / blocks_;
    block.first_tile = share(tiles_, blocks_, number % blocks_);
    block.end_tile = share(tiles_, blocks_, number % blocks_ + 1);
    block.first_row = row_of(block.first_tile);
    block.rows = row_of(block.end_tile) - block.first_row;
    run_item(window, block, item % window.groups, scratch.held() == number, scratch);
    scratch.hold(depth_ < k_ ? -1 : number);
    int64_t row = block.entry * a_.m + block.first_row;
    for (int64_t i = 0; window.is_whole && i < parts_; ++i)
      if (has_row_epilogue(*part_[i].dot))
        part_[i].dot->epilogue(part_[i].dot->epilogue_args, row, row + block.rows);
  }
}

template <typename T>
void Gemm<T>::run_item(const Window &window, const Block &block, int64_t group, bool is_packed,
                       const Scratch &scratch) const {
  int64_t panels = window.end - window.first, first = window.first + share(panels, window.groups, group);
  int64_t end = window.first + share(panels, window.groups, group + 1);
  int64_t most = std::max<int64_t>(1, kStagedRows / block.rows);
  for (int64_t k0 = 0; k0 < std::max<int64_t>(k_, 1); k0 += std::max<int64_t>(depth_, 1)) {
    int64_t depth = std::min(depth_, k_ - k0);
    if (!is_packed && !reads_rows())
      pack_block(block, k0, depth, scratch.block<T>());
    for (int64_t i = 0; i < parts_; ++i) {
      int64_t past = std::min(end, part_[i].end_panel);
      const DiscDot &dot = *part_[i].dot;
      const char *b = right_matrix(dot, block.entry);
      const void *packed = part_[i].is_packed_now ? slab_ : dot.packed;
      int64_t first_packed = window.first;
      if (dot.packed != nullptr)
        first_packed = part_[i].first_panel - block.entry * (part_[i].end_panel - part_[i].first_panel);
      T *c = static_cast<T *>(dot.c);
      if (c != nullptr)
        c += batch_offset(dot, block.entry, dot.c_batch) + block.first_row * dot.c_m;
      bool fetches = fetches_rows(dot, end - first);
      for (int64_t panel = std::max(first, part_[i].first_panel); panel < past; panel += most) {
        int64_t count = std::min(most, past - panel);
        T *sums = scratch.sums<T>() + (keeps_sums() ? (panel - first) * block.rows * columns_ : 0);
        Piece piece{&part_[i], panel, panel + count, k0, depth, count * columns_, sums, b,
                    static_cast<const T *>(packed), first_packed, c, fetches};
        run_piece(block, piece, scratch);
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

/// All panels' sums of some rows of B, then of the next, or all of one panel's.
template <typename T>
void Gemm<T>::run_piece(const Block &block, const Piece &piece, const Scratch &scratch) const {
  const DiscDot &dot = *piece.part->dot;
  int64_t depth = std::max<int64_t>(piece.depth, 1), together = 1;
  int64_t chunk = reads_once(dot) ? kDepth : chunk_of(k_); // a short one stays in the first cache
  if (walks_rows(dot)) {
    together = piece.end - piece.first;
    chunk = block.rows > kFewRows ? kMoreRowsTogether : kRowsTogether;
  }
  if (copies_rows(dot)) {
    chunk = kDepth;
    together = std::min(together, kRowPanelsBytes / (chunk * columns_ * static_cast<int64_t>(sizeof(T))));
  }
  for (int64_t first = piece.first; first < piece.end; first += together)
    for (int64_t k = 0; k < depth; k += chunk)
      run_panels(block, piece, {first, std::min(piece.end, first + together), k, std::min(chunk, piece.depth - k)},
                 scratch);
  if (piece.k0 + piece.depth != k_)
    return;
  if (!has_tile_epilogue(dot))
    return write_sums(block, piece);
  int64_t row = block.entry * dot.m + block.first_row, column = (piece.first - piece.part->first_panel) * columns_;
  int64_t past = std::min(dot.n, (piece.end - piece.part->first_panel) * columns_);
  run_tile_epilogue(dot, row, block.rows, piece.sums, piece.step, column, past);
}

template <typename T>
void Gemm<T>::run_panels(const Block &block, const Piece &piece, const Rows &rows, const Scratch &scratch) const {
  const DiscDot &dot = *piece.part->dot;
  int64_t padded = divide_up(piece.depth, kDepth) * kDepth, behind = rows.k % kDepth;
  int64_t tiles = block.end_tile - block.first_tile;
  const T *a = reads_rows() ? static_cast<const T *>(left(block, 0, piece.k0)) : scratch.block<T>();
  bool copies = copies_rows(dot);
  if (copies) {
    int64_t n0 = (rows.first - piece.part->first_panel) * columns_;
    int64_t past = std::min((rows.end - piece.part->first_panel) * columns_, dot.n);
    const T *first = reinterpret_cast<const T *>(piece.b) + n0 + (piece.k0 + rows.k) * dot.b_k;
    copy_panels(first, dot.b_k, rows.count, past - n0, columns_, scratch.row_panels<T>(), rows.count * columns_);
  }
  for (int64_t panel = rows.first; panel < rows.end; ++panel) {
    int64_t n0 = (panel - piece.part->first_panel) * columns_, width = std::min(columns_, dot.n - n0), b_step = columns_;
    const T *right = copies ? scratch.row_panels<T>() + (panel - rows.first) * rows.count * columns_
                            : right_panel(piece, rows, panel, scratch, b_step);
    bool direct = writes_result(piece, width);
    T *c = direct ? piece.c + n0 : piece.sums + (panel - piece.first) * columns_;
    int64_t c_step = direct ? dot.c_m : piece.step;
    for (int64_t tile = block.first_tile, row = 0, next; tile < block.end_tile; ++tile, row = next) {
      next = row_of(tile + 1) - block.first_row;
      const T *rows_of_a = a + row * padded + (rows.k - behind) * (next - row) + behind;
      Ahead ahead = ahead_of_tile(piece, rows, panel, right, b_step, tile - block.first_tile, tiles);
      if (b_step != columns_ || piece.part->is_near)
        ahead = unless_few(ahead, next - row, a_.tile_rows);
      a_.tile(next - row, rows_of_a, right, b_step, c + row * c_step, c_step, rows.count, piece.k0 + rows.k != 0,
              ahead.first, ahead.step);
    }
  }
}

/// Rows of a panel of B where they lie, one of each word, from word k of the piece on.
template <typename T> Ahead Gemm<T>::rows_to_pack(const Piece &piece, int64_t panel, int64_t k, int64_t of_word) const {
  int64_t step = piece.part->dot->b_k * format_.element_bytes;
  int64_t column = (panel - piece.part->first_panel) * columns_ * format_.element_bytes;
  return {piece.b + ((piece.k0 + k) * format_.elements + of_word) * step + column, step * format_.elements};
}

/// What a tile fetches for those after it while it multiplies by some rows of a panel, which are at `right`.
template <typename T>
Ahead Gemm<T>::ahead_of_tile(const Piece &piece, const Rows &rows, int64_t panel, const T *right, int64_t step,
                             int64_t tile, int64_t tiles) const {
  if (step != columns_)
    return rows_ahead(right, step);
  int64_t k = rows.k + rows.count;
  if (k >= piece.depth)
    k = 0, ++panel;
  if (panel >= piece.part->end_panel)
    return {right, 0};
  if (piece.packed == nullptr) // dense rows are brought to the second cache, to be packed: a tile fetches one for each word
    return tile < format_.elements && piece.part->dot->b_n == 1 ? rows_to_pack(piece, panel, k, tile) : Ahead{right, 0};
  const T *next = piece.packed + ((panel - piece.first_packed) * k_ + piece.k0 + k) * columns_;
  return part_of(next, std::min(chunk_of(k_), piece.depth - k) * columns_, rows.count, tile, tiles);
}

/// Rows of a panel of B, `step` words apart: packed before, where they lie, or in the scratch.
template <typename T>
const T *Gemm<T>::right_panel(const Piece &piece, const Rows &rows, int64_t panel, const Scratch &scratch,
                              int64_t &step) const {
  const DiscDot &dot = *piece.part->dot;
  int64_t number = panel - piece.part->first_panel, n0 = number * columns_, width = std::min(columns_, dot.n - n0);
  if (piece.packed != nullptr)
    return piece.packed + ((panel - piece.first_packed) * k_ + piece.k0 + rows.k) * columns_;
  int64_t first = (piece.k0 + rows.k) * format_.elements;
  int64_t elements = std::min(rows.count * format_.elements, dot.k - first);
  const char *b = piece.b + (n0 * dot.b_n + first * dot.b_k) * format_.element_bytes;
  if (piece.fetches)
    fetch_rows(b, dot.b_k * format_.element_bytes, elements);
  if (format_.is_plain && dot.b_n == 1 && width == columns_ && reads_once(dot)) {
    step = dot.b_k;
    return reinterpret_cast<const T *>(b);
  }
  format_.pack_panel(b, dot.b_k, dot.b_n, elements, width, columns_, scratch.panel<T>());
  return scratch.panel<T>();
}

/// Whether rows of B are fetched before they are used, which costs time where they are in the cache or computing takes
/// longer.
template <typename T> bool Gemm<T>::fetches_rows(const DiscDot &dot, int64_t panels) const {
  return walks_rows(dot) && a_.m <= kFewRows && dot.k * panels * columns_ * format_.element_bytes > kBlockBytes;
}

/// The sums that are not in C yet.
template <typename T> void Gemm<T>::write_sums(const Block &block, const Piece &piece) const {
  const DiscDot &dot = *piece.part->dot;
  for (int64_t panel = piece.first; panel < piece.end; ++panel) {
    int64_t n0 = (panel - piece.part->first_panel) * columns_, width = std::min(columns_, dot.n - n0);
    if (writes_result(piece, width))
      continue;
    const T *sums = piece.sums + (panel - piece.first) * columns_;
    T *c = piece.c + n0 * dot.c_n;
    for (int64_t row = 0; row < block.rows; ++row)
      for (int64_t column = 0; column < width; ++column)
        c[row * dot.c_m + column * dot.c_n] = sums[row * piece.step + column];
  }
}

} // namespace

void run_gemm(ThreadPool &pool, const DiscDot &dot, const RowSource *source) {
  if (format_of(dot.format).word_bytes == 4)
    Gemm<uint32_t>(dot, source, pool.size()).run(pool);
  else
    Gemm<uint64_t>(dot, source, pool.size()).run(pool);
}

} // namespace disc
