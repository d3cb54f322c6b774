// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention.h"

#include "attention_blocks.h"
#include "core/bfloat16.h"
#include "blas.h"
#include "gemm_blocks.h"
#include "gemm_formats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <type_traits>

namespace disc {

namespace {

using namespace gemm;

constexpr int64_t kScoreBytes = 256 << 10;     // scores of a block of rows: with key and value they fit a core's L2
constexpr int64_t kLargestTile = 4 << 20;      // bytes of the scores of a tile, from which on it has fewer rows
constexpr int64_t kHeldBytes = 2 << 20;        // packed key or value of one entry that is kept for all of its blocks
constexpr int64_t kTilesInPlace = 4;           // below as many, a matrix is read where it lies
constexpr int64_t kWorkToShare = 1 << 17;      // multiply-adds that pay for handing a range to another thread
constexpr int64_t kItemsPerThread = 4;         // enough to even out a thread that loses its processor
constexpr int64_t kFewRows = 3;                // for which packing the key would cost more than the product
constexpr int64_t kVisibleFollows = -2;        // of DiscAttention::bound

/// Sums have type T, as have the words of packed forms. Weights have the operands' type: where that is narrower, they do
/// not lie where the scores are.
template <typename T> class Attention {
public:
  Attention(const DiscAttention &problem, int threads);
  void run(ThreadPool &pool) const;

private:
  /// Where a thread has what it works on.
  struct AttentionScratch {
    Columns *counted; // by the rows of each tile
    T *key, *value, *query, *scores, *edge, *weights, *sums;
    char *narrow; // rows of weights, if they are narrow
    const char *held_key = nullptr, *held_value = nullptr; // which matrices `key` and `value` are the packed forms of
    const char *measured_key = nullptr, *measured_value = nullptr; // which matrices `largest_key` was found in
    T largest_key = 0; // in magnitude; infinite if the value is not finite
  };
  struct Block {
    int64_t first_tile, end_tile, first_row, rows;
    const char *query, *key, *value;
    char *result;
    int64_t number; // of the first row among all entries' rows
    const int32_t *first, *end; // which columns the first row sees, if a mask says so
  };

  void choose_tiles(int threads);
  size_t place(AttentionScratch &scratch, char *base) const;
  void run_items(int64_t begin, int64_t end) const;
  Block block_of(int64_t item) const;
  int64_t offset(int64_t entry, const int64_t *strides) const {
    return entry_offset(p_.batch_rank, p_.batch, strides, entry);
  }
  void multiply_keys(const Block &block, AttentionScratch &scratch) const;
  void multiply_key_rows(const Block &block, const AttentionScratch &scratch) const;
  void measure(const Block &block, AttentionScratch &scratch) const;
  void pack_held(const Block &block, AttentionScratch &scratch) const;
  bool hides_columns(const Block &block, AttentionScratch &scratch) const;
  void count_columns(const Block &block, AttentionScratch &scratch) const;
  Columns seen(const Block &block, int64_t tile) const;
  const T *key_panel(const Block &block, int64_t panel, AttentionScratch &scratch, int64_t &step) const;
  void run_tiles(const Block &block, const AttentionScratch &scratch) const;
  void run_rows(T *scores, char *narrow, int64_t first, int64_t count, Columns columns) const;
  static T *plain(const char *place) { return const_cast<T *>(reinterpret_cast<const T *>(place)); }
  const char *at(const char *base, int64_t place) const { return base + place * format_.element_bytes; }
  char *narrow_row(const AttentionScratch &scratch, int64_t row) const {
    return scratch.narrow + row * p_.n * format_.element_bytes;
  }
  void multiply_values(const Block &block, AttentionScratch &scratch) const;
  const T *value_panels(const Block &block, int64_t k0, int64_t count, AttentionScratch &scratch) const;
  void write_sums(const Block &block, const AttentionScratch &scratch) const;
  void write(const Block &block, int64_t row, int64_t column, T sum) const;
  void run_without_memory(const Block &block) const;
  /// The columns that count in at least one row of a tile, from the first one of a panel on.
  static Columns counted(const Block &block, int64_t tile, const AttentionScratch &scratch) {
    return scratch.counted[tile - block.first_tile];
  }
  Columns counted(const Block &block, const AttentionScratch &scratch) const;
  int64_t row_of(int64_t tile) const { return share(p_.m, tiles_, tile); }

  const DiscAttention &p_;
  const Format &format_;
  int64_t d_, n_; // words along d and n
  int64_t columns_, entries_ = 1, panels_, value_panels_;
  int64_t tiles_ = 1, blocks_ = 1, block_rows_ = 1, tile_rows_ = 1;
  bool reads_key_, reads_value_; // where they lie
  bool reads_key_rows_;          // one by one, by BLAS
  bool holds_key_, holds_value_;
  const DiscVisible *visible_; // or null
  bool bounded_; // columns that a mask hides may be left out
  bool direct_;  // tiles of the result are written where they belong
};

template <typename T>
Attention<T>::Attention(const DiscAttention &problem, int threads)
    : p_(problem), format_(format_of(p_.format)), d_(format_.words(p_.d)), n_(format_.words(p_.n)),
      columns_(p_.tile_columns), panels_(divide_up(p_.n, columns_)),
      value_panels_(divide_up(p_.w, columns_)) {
  for (int64_t i = 0; i < p_.batch_rank; ++i)
    entries_ *= p_.batch[i];
  choose_tiles(threads);
  bool few = tiles_ < kTilesInPlace;
  auto bytes = static_cast<double>(sizeof(T));
  bool is_plain = format_.is_plain;
  reads_key_ = is_plain && few && p_.key_n == 1;
  reads_value_ = is_plain && p_.value_w == 1 && p_.w % columns_ == 0 && few;
  reads_key_rows_ = is_plain && p_.m <= kFewRows && p_.key_d == 1 && p_.key_n >= p_.d && p_.n > 0 && p_.d > 0 &&
                    p_.query_d > 0 && std::max({p_.n, p_.d, p_.key_n, p_.query_d}) < INT32_MAX &&
                    Blas::instance().gemv<T>();
  holds_key_ = static_cast<double>(panels_ * columns_) * static_cast<double>(d_) * bytes <= kHeldBytes;
  holds_value_ = static_cast<double>(value_panels_ * columns_) * static_cast<double>(n_) * bytes <= kHeldBytes;
  bool is_causal = p_.bound >= 0 && p_.causal_offset >= 0 && p_.causal_reach <= INT32_MAX;
  const auto *behind = reinterpret_cast<const int64_t *>(&p_ + 1) + p_.row_words;
  visible_ = p_.bound == kVisibleFollows && p_.n <= INT32_MAX ? reinterpret_cast<const DiscVisible *>(behind) : nullptr;
  bounded_ = is_plain && (is_causal || visible_ != nullptr) && !few;
  direct_ = p_.rounds == 0 && p_.result_w == 1 && p_.w % columns_ == 0;
}

/// Blocks whose scores fit the cache, more of them where there are fewer than threads.
template <typename T> void Attention<T>::choose_tiles(int threads) {
  int64_t row_bytes = std::max<int64_t>(p_.n, 1) * static_cast<int64_t>(sizeof(T));
  tile_rows_ = std::clamp<int64_t>(kLargestTile / row_bytes, 1, p_.tile_rows);
  tiles_ = divide_up(p_.m, tile_rows_);
  int64_t fitting = std::max<int64_t>(1, kScoreBytes / (row_bytes * tile_rows_));
  blocks_ = divide_up(tiles_, fitting);
  double work = static_cast<double>(entries_ * p_.m) * static_cast<double>(p_.n) * static_cast<double>(p_.d + p_.w);
  auto worth = static_cast<int64_t>(std::min(work / kWorkToShare, 1e6)) + 1;
  int64_t wanted = threads == 1 ? 1 : std::min(kItemsPerThread * threads, worth);
  blocks_ = std::clamp(divide_up(wanted, std::max<int64_t>(entries_, 1)), blocks_, std::max(tiles_, blocks_));
  block_rows_ = divide_up(tiles_, blocks_) * divide_up(p_.m, tiles_);
}

/// Divides memory from `base` on; returns the bytes that it takes.
template <typename T> size_t Attention<T>::place(AttentionScratch &scratch, char *base) const {
  char *next = base;
  auto take = [&](int64_t elements) {
    auto *address = reinterpret_cast<T *>(next);
    next += (static_cast<size_t>(elements) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return address;
  };
  scratch.counted = reinterpret_cast<Columns *>(
      take(divide_up(tiles_, blocks_) * static_cast<int64_t>(sizeof(Columns) / sizeof(T))));
  int64_t chunk = std::min(kChunk, n_), wide = value_panels_ * columns_;
  scratch.key = take((reads_key_ || !holds_key_ ? 1 : panels_) * d_ * columns_);
  scratch.value = take(reads_value_ ? 0 : (holds_value_ ? n_ : chunk) * wide);
  scratch.query = take(block_rows_ * divide_up(d_, kDepth) * kDepth);
  scratch.scores = take(block_rows_ * p_.n);
  scratch.edge = take(p_.n % columns_ == 0 ? 0 : tile_rows_ * columns_);
  scratch.weights = take(tile_rows_ * divide_up(chunk, kDepth) * kDepth);
  scratch.narrow = reinterpret_cast<char *>(take(format_.is_plain ? 0 : block_rows_ * n_));
  scratch.sums = take(direct_ ? 0 : block_rows_ * wide);
  return static_cast<size_t>(next - base);
}

template <typename T> void Attention<T>::run(ThreadPool &pool) const {
  int64_t items = entries_ * blocks_;
  double work = static_cast<double>(block_rows_) * static_cast<double>(p_.n) * static_cast<double>(p_.d + p_.w);
  auto each = std::max<int64_t>(1, static_cast<int64_t>(std::min(work, 1e15)));
  auto body = [](void *self, int64_t begin, int64_t end) { static_cast<const Attention *>(self)->run_items(begin, end); };
  Blas::SingleThreaded guard;
  pool.run(body, const_cast<Attention *>(this), items, std::max<int64_t>(1, kWorkToShare / each));
}

template <typename T> void Attention<T>::run_items(int64_t begin, int64_t end) const {
  AttentionScratch scratch;
  char *memory = thread_memory(place(scratch, nullptr));
  place(scratch, memory);
  for (int64_t item = begin; item < end; ++item) {
    Block block = block_of(item);
    if (memory == nullptr) {
      run_without_memory(block);
      continue;
    }
    count_columns(block, scratch);
    if (reads_key_rows_)
      multiply_key_rows(block, scratch);
    else
      multiply_keys(block, scratch);
    run_tiles(block, scratch);
    multiply_values(block, scratch);
  }
}

template <typename T> typename Attention<T>::Block Attention<T>::block_of(int64_t item) const {
  int64_t entry = item / blocks_, part = item % blocks_;
  Block block;
  block.first_tile = share(tiles_, blocks_, part);
  block.end_tile = share(tiles_, blocks_, part + 1);
  block.first_row = row_of(block.first_tile);
  block.rows = row_of(block.end_tile) - block.first_row;
  block.query = at(static_cast<const char *>(p_.query), p_.query_start + offset(entry, p_.query_batch));
  block.key = at(static_cast<const char *>(p_.key), p_.key_start + offset(entry, p_.key_batch));
  block.value = at(static_cast<const char *>(p_.value), p_.value_start + offset(entry, p_.value_batch));
  int64_t result_bytes = p_.rounds != 0 ? 2 : static_cast<int64_t>(sizeof(T));
  block.result = static_cast<char *>(p_.result) + offset(entry, p_.result_batch) * result_bytes;
  block.number = entry * p_.m + block.first_row;
  block.first = block.end = nullptr;
  if (visible_ != nullptr) {
    int64_t place = offset(entry, visible_->batch) + block.first_row * visible_->m;
    block.first = visible_->first + place;
    block.end = visible_->end + place;
  }
  return block;
}

// ---- scores -----------------------------------------------------------------------------------------------------------

/// Rows of scores follow each other without gaps, as the row kernel wants them. A tile is as wide as a panel, so that one
/// of the last panel, if that is not full, is computed beside them and copied: in which order a tile writes its elements
/// is for the micro-kernel to choose.
template <typename T> void Attention<T>::multiply_keys(const Block &block, AttentionScratch &scratch) const {
  int64_t padded = divide_up(d_, kDepth) * kDepth;
  for (int64_t tile = block.first_tile; tile < block.end_tile; ++tile) {
    int64_t row = row_of(tile), rows = row_of(tile + 1) - row;
    format_.pack_rows(at(block.query, row * p_.query_m), p_.query_m, p_.query_d, rows, p_.d,
                      scratch.query + (row - block.first_row) * padded);
  }
  Columns all = counted(block, scratch);
  for (int64_t panel = divide_up(all.end, columns_) - 1; panel >= all.first / columns_; --panel) {
    int64_t step = columns_;
    const T *right = key_panel(block, panel, scratch, step);
    for (int64_t tile = block.first_tile; tile < block.end_tile; ++tile) {
      Columns columns = counted(block, tile, scratch);
      if (panel * columns_ >= columns.end || (panel + 1) * columns_ <= columns.first)
        continue;
      int64_t row = row_of(tile) - block.first_row, rows = row_of(tile + 1) - row_of(tile);
      const T *left = scratch.query + row * padded;
      T *scores = scratch.scores + row * p_.n + panel * columns_;
      int64_t width = p_.n - panel * columns_;
      Ahead ahead = unless_few(ahead_of(right, step, columns_, d_), rows, p_.tile_rows);
      if (width >= columns_) {
        p_.tile(rows, left, right, step, scores, p_.n, d_, 0, ahead.first, ahead.step);
        continue;
      }
      p_.tile(rows, left, right, step, scratch.edge, columns_, d_, 0, ahead.first, ahead.step);
      for (int64_t i = 0; i < rows; ++i)
        std::copy_n(scratch.edge + i * columns_, width, scores + i * p_.n);
    }
  }
  if (holds_key_ && !reads_key_ && divide_up(all.end, columns_) == panels_ && all.first == 0)
    scratch.held_key = block.key;
}

/// Each score is a product of two vectors.
template <typename T> void Attention<T>::multiply_key_rows(const Block &block, const AttentionScratch &scratch) const {
  char transpose = 'T';
  int depth = static_cast<int>(p_.d), count = static_cast<int>(p_.n), leading = static_cast<int>(p_.key_n);
  int query_step = static_cast<int>(p_.query_d), step = 1;
  T one = 1, beta = 0;
  for (int64_t row = 0; row < block.rows; ++row) {
    T *scores = scratch.scores + row * p_.n;
    std::fill(scores, scores + p_.n, T{0}); // some versions scale what is there, which keeps a NaN
    Blas::instance().gemv<T>()(&transpose, &depth, &count, &one, plain(block.key), &leading,
                               plain(at(block.query, (block.first_row + row) * p_.query_m)), &query_step, &beta, scores,
                               &step);
  }
}

template <typename T>
const T *Attention<T>::key_panel(const Block &block, int64_t panel, AttentionScratch &scratch, int64_t &step) const {
  int64_t first = panel * columns_, width = std::min(columns_, p_.n - first);
  const char *source = at(block.key, first * p_.key_n);
  if (reads_key_ && width == columns_) {
    step = p_.key_d;
    return plain(source);
  }
  T *target = scratch.key + (holds_key_ && !reads_key_ ? panel * d_ * columns_ : 0);
  if (scratch.held_key != block.key)
    format_.pack_panel(source, p_.key_d, p_.key_n, p_.d, width, columns_, target);
  return target;
}

/// Packs all of the block's key and value, where they are held.
template <typename T> void Attention<T>::pack_held(const Block &block, AttentionScratch &scratch) const {
  int64_t step = columns_;
  if (holds_key_ && !reads_key_ && scratch.held_key != block.key) {
    for (int64_t panel = 0; panel < panels_; ++panel)
      key_panel(block, panel, scratch, step);
    scratch.held_key = block.key;
  }
  if (holds_value_ && !reads_value_)
    value_panels(block, 0, n_, scratch);
}

/// Notes how large the block's key and value are.
template <typename T> void Attention<T>::measure(const Block &block, AttentionScratch &scratch) const {
  if (scratch.measured_key == block.key && scratch.measured_value == block.value)
    return;
  pack_held(block, scratch);
  T found = largest(plain(block.key), p_.n, p_.key_n, p_.d, p_.key_d);
  T value = largest(plain(block.value), p_.n, p_.value_n, p_.w, p_.value_w);
  scratch.largest_key = std::isfinite(value) ? found : std::numeric_limits<T>::infinity();
  scratch.measured_key = block.key;
  scratch.measured_value = block.value;
}

/// Whether columns that a mask hides have weights of exactly 0: the scores are known to be small enough.
template <typename T> bool Attention<T>::hides_columns(const Block &block, AttentionScratch &scratch) const {
  measure(block, scratch);
  double factor = static_cast<double>(p_.d) * static_cast<double>(scratch.largest_key);
  double magnitude = static_cast<double>(visible_ != nullptr ? visible_->magnitude : p_.magnitude);
  for (int64_t row = block.first_row; row < block.first_row + block.rows; ++row) {
    double score = static_cast<double>(largest(plain(at(block.query, row * p_.query_m)), p_.query_d, p_.d)) * factor;
    if (!(score * kRounding <= magnitude)) // also where it is NaN
      return false;
  }
  return true;
}

/// Notes which columns count in each tile.
template <typename T> void Attention<T>::count_columns(const Block &block, AttentionScratch &scratch) const {
  bool hides = bounded_ && hides_columns(block, scratch);
  for (int64_t tile = block.first_tile; tile < block.end_tile; ++tile) {
    Columns all{0, p_.n};
    if (hides && visible_ != nullptr)
      all = seen(block, tile);
    else if (hides)
      all.end = std::min(p_.n, row_of(tile + 1) + std::min(p_.n, p_.causal_offset));
    scratch.counted[tile - block.first_tile] = all;
  }
}

/// The columns that some row of a tile sees, from the first one of a panel on.
template <typename T> Columns Attention<T>::seen(const Block &block, int64_t tile) const {
  int64_t row = (row_of(tile) - block.first_row) * visible_->m;
  Columns all = seen_columns(block.first + row, block.end + row, visible_->m, row_of(tile + 1) - row_of(tile), p_.n);
  return {all.first / columns_ * columns_, all.end};
}

/// The columns that count in at least one tile.
template <typename T>
Columns Attention<T>::counted(const Block &block, const AttentionScratch &scratch) const {
  Columns all = counted(block, block.first_tile, scratch);
  for (int64_t tile = block.first_tile + 1; tile < block.end_tile; ++tile) {
    Columns columns = counted(block, tile, scratch);
    all = {std::min(all.first, columns.first), std::max(all.end, columns.end)};
  }
  return all;
}

template <typename T> void Attention<T>::run_tiles(const Block &block, const AttentionScratch &scratch) const {
  if (!bounded_)
    return run_rows(scratch.scores, scratch.narrow, block.number, block.rows, {0, p_.n});
  for (int64_t tile = block.first_tile; tile < block.end_tile; ++tile) {
    int64_t row = row_of(tile) - block.first_row, rows = row_of(tile + 1) - row_of(tile);
    run_rows(scratch.scores + row * p_.n, narrow_row(scratch, row), block.number + row, rows,
             counted(block, tile, scratch));
  }
}

/// The row kernel on `count` rows from `first` on, which are at `scores`.
template <typename T>
void Attention<T>::run_rows(T *scores, char *narrow, int64_t first, int64_t count, Columns columns) const {
  int64_t words[kMostRowWords];
  std::memcpy(words, &p_ + 1, static_cast<size_t>(p_.row_words) * sizeof *words);
  int64_t row_bytes = p_.n * static_cast<int64_t>(sizeof(T));
  words[p_.scores] = words[p_.weights] = reinterpret_cast<int64_t>(scores) - first * row_bytes;
  if (!format_.is_plain)
    words[p_.weights] = reinterpret_cast<int64_t>(narrow) - first * p_.n * format_.element_bytes;
  if (p_.bound >= 0)
    words[p_.bound] = columns.end;
  if (visible_ != nullptr) {
    words[visible_->first_word] = columns.first;
    words[visible_->end_word] = columns.end;
  }
  p_.rows(words, first, first + count);
}

// ---- result -----------------------------------------------------------------------------------------------------------

template <typename T> void Attention<T>::multiply_values(const Block &block, AttentionScratch &scratch) const {
  int64_t wide = value_panels_ * columns_, elements = format_.elements;
  Columns all = counted(block, scratch);
  int64_t least = all.first / elements, most = format_.words(all.end);
  const auto *weights = format_.is_plain ? reinterpret_cast<const char *>(scratch.scores) : scratch.narrow;
  for (int64_t k0 = least; k0 < std::max<int64_t>(most, 1); k0 += kChunk) {
    int64_t depth = std::min(kChunk, most - k0);
    const T *values = value_panels(block, k0, depth, scratch);
    int64_t panel_size = reads_value_ ? columns_ : (holds_value_ ? n_ : depth) * columns_;
    int64_t step = reads_value_ ? p_.value_n : columns_;
    for (int64_t tile = block.first_tile; tile < block.end_tile; ++tile) {
      Columns columns = counted(block, tile, scratch);
      int64_t first = std::max(k0 * elements, columns.first), end = std::min((k0 + depth) * elements, columns.end);
      if (end <= first && p_.n > 0)
        continue;
      int64_t row = row_of(tile) - block.first_row, rows = row_of(tile + 1) - row_of(tile);
      format_.pack_rows(at(weights, row * p_.n + first), p_.n, 1, rows, end - first, scratch.weights);
      T *out = direct_ ? plain(block.result) + (block.first_row + row) * p_.result_m : scratch.sums + row * wide;
      const T *right = values + (first / elements - k0) * step;
      int64_t count = format_.words(end - first);
      for (int64_t panel = 0; panel < value_panels_; ++panel) {
        Ahead ahead = unless_few(ahead_of(right + panel * panel_size, step, columns_, count), rows, p_.tile_rows);
        p_.tile(rows, scratch.weights, right + panel * panel_size, step, out + panel * columns_,
                direct_ ? p_.result_m : wide, count, first != columns.first, ahead.first, ahead.step);
      }
    }
  }
  if (!direct_)
    write_sums(block, scratch);
}

/// Rows [k0, k0 + count) of the value, counted in words, in panels; all rows are packed at once where they are held.
template <typename T>
const T *Attention<T>::value_panels(const Block &block, int64_t k0, int64_t count, AttentionScratch &scratch) const {
  if (reads_value_)
    return plain(block.value) + k0 * p_.value_n;
  int64_t first = holds_value_ ? 0 : k0 * format_.elements, depth = holds_value_ ? n_ : count;
  if (!holds_value_ || scratch.held_value != block.value)
    for (int64_t panel = 0; panel < value_panels_; ++panel) {
      int64_t column = panel * columns_, rows = std::min(depth * format_.elements, p_.n - first);
      format_.pack_panel(at(block.value, first * p_.value_n + column * p_.value_w), p_.value_n, p_.value_w, rows,
                         std::min(columns_, p_.w - column), columns_, scratch.value + panel * depth * columns_);
    }
  if (holds_value_)
    scratch.held_value = block.value;
  return scratch.value + (holds_value_ ? k0 * columns_ : 0);
}

template <typename T> void Attention<T>::write_sums(const Block &block, const AttentionScratch &scratch) const {
  int64_t wide = value_panels_ * columns_;
  for (int64_t row = 0; row < block.rows; ++row)
    for (int64_t column = 0; column < p_.w; ++column)
      write(block, block.first_row + row, column, scratch.sums[row * wide + column]);
}

template <typename T> void Attention<T>::write(const Block &block, int64_t row, int64_t column, T sum) const {
  int64_t place = row * p_.result_m + column * p_.result_w;
  if (p_.rounds != 0)
    reinterpret_cast<uint16_t *>(block.result)[place] = to_bf16(static_cast<float>(sum));
  else
    plain(block.result)[place] = sum;
}

/// Row by row, in the scratch that the program has for one of them; threads take turns.
template <typename T> void Attention<T>::run_without_memory(const Block &block) const {
  static ForkMutex mutex;
  std::lock_guard turn(mutex);
  auto load = [&](const char *base, int64_t place) { return static_cast<T>(format_.load(base, place)); };
  T *scores = static_cast<T *>(p_.row);
  char *narrow = reinterpret_cast<char *>(scores + p_.n);
  const char *weights = format_.is_plain ? static_cast<const char *>(p_.row) : narrow;
  for (int64_t row = block.first_row; row < block.first_row + block.rows; ++row) {
    std::fill(scores, scores + p_.n, T{0});
    for (int64_t d = 0; d < p_.d; ++d)
      for (int64_t n = 0; n < p_.n; ++n)
        scores[n] += load(block.query, row * p_.query_m + d * p_.query_d) * load(block.key, n * p_.key_n + d * p_.key_d);
    run_rows(scores, narrow, block.number + row - block.first_row, 1, {0, p_.n});
    for (int64_t w = 0; w < p_.w; ++w) {
      T sum = 0;
      for (int64_t n = 0; n < p_.n; ++n)
        sum += load(weights, n) * load(block.value, n * p_.value_n + w * p_.value_w);
      write(block, row, w, sum);
    }
  }
}

} // namespace

void run_attention(ThreadPool &pool, const DiscAttention &attention) {
  bool empty = attention.m <= 0 || attention.w <= 0;
  for (int64_t i = 0; i < attention.batch_rank; ++i)
    empty |= attention.batch[i] <= 0;
  if (empty)
    return;
  if (format_of(attention.format).word_bytes == 4)
    Attention<float>(attention, pool.size()).run(pool);
  else
    Attention<double>(attention, pool.size()).run(pool);
}

} // namespace disc
