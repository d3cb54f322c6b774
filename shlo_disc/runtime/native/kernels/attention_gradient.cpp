// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention_gradient.h"

#include "attention_blocks.h"
#include "blas.h"
#include "gemm_blocks.h"
#include "gemm_formats.h"

#include <cstring>
#include <mutex>

namespace disc {

namespace {

using namespace gemm;

constexpr int64_t kBufferBytes = 768 << 10; // buffers of a block of rows: what is used of them is to fit a core's L2
constexpr int64_t kMostTiles = 4;           // of a block: its columns are those that any of its rows sees
constexpr int64_t kWorkToShare = 1 << 17;   // multiply-adds that pay for handing an entry to another thread

/// A matrix of one entry.
template <typename T> struct Matrix {
  T *data;
  int64_t row, column;

  T *at(int64_t i, int64_t j) const { return data + i * row + j * column; }
};

/// Sums have type T, which is that of all elements. An entry is one thread's: its rows add to the same gradients.
template <typename T> class Gradient {
public:
  explicit Gradient(const DiscAttentionGradient &problem);
  void run(ThreadPool &pool) const;

private:
  /// Where a thread has what it works on. The key is packed along its rows, for scores, and along its columns.
  struct GradientScratch {
    T *key_columns, *value_columns, *key_rows, *key_sums, *value_sums; // of an entry
    T *query, *upstream, *query_panels, *upstream_panels;              // of a block
    T *left, *sums, *edge;                                             // of a tile
    T *buffers[8];
  };
  struct Entry {
    Matrix<T> query, key, value, upstream, query_gradient, key_gradient, value_gradient;
    const int32_t *first, *end;
    int64_t number; // of the first row among all entries' rows
    T largest_key, largest_value; // in magnitude
  };
  struct Block {
    int64_t row, rows;
    Columns columns; // from the first one of a panel on
  };

  size_t place(GradientScratch &scratch, char *base) const;
  void run_entries(int64_t begin, int64_t end) const;
  Entry entry(int64_t number) const;
  Matrix<T> matrix(const DiscMatrices &of, int64_t number) const {
    auto *data = static_cast<T *>(const_cast<void *>(of.data));
    return {data + entry_offset(p_.batch_rank, p_.batch, of.batch, number), of.row, of.column};
  }
  void pack_entry(Entry &entry, const GradientScratch &scratch) const;
  bool hides_columns(const Entry &entry, int64_t row, int64_t rows) const;
  void run_block(const Entry &entry, const Block &block, const GradientScratch &scratch) const;
  void pack_block(const Entry &entry, const Block &block, const GradientScratch &scratch) const;
  void multiply_tile(int64_t rows, const T *left, const T *panel, T *sums, int64_t step, int64_t depth, bool adds) const;
  void multiply_columns(const Block &block, const T *left, const T *right, int64_t depth, T *result,
                        const GradientScratch &scratch) const;
  void run_rows(const DiscRowKernel &kernel, const int64_t *arguments, int64_t first, int64_t rows, Columns columns,
                T *const *buffers) const;
  void multiply_query(const Entry &entry, const Block &block, const GradientScratch &scratch) const;
  void multiply_transposed(const Block &block, const T *buffer, const T *right, int64_t width, T *sums,
                           const GradientScratch &scratch) const;
  void write(const Matrix<T> &result, int64_t row, int64_t rows, int64_t width, const T *sums) const;
  void run_without_memory(const Entry &entry) const;

  T *score_buffer(T *const *buffers) const { return buffers[p_.buffers - 2]; }
  T *gradient_buffer(T *const *buffers) const { return buffers[p_.buffers - 1]; }
  const int64_t *row_arguments() const { return reinterpret_cast<const int64_t *>(&p_ + 1); }
  const int64_t *gradient_arguments() const { return row_arguments() + p_.rows.words; }
  int64_t padded(int64_t depth) const { return divide_up(depth, kDepth) * kDepth; }
  int64_t wide(int64_t width) const { return divide_up(width, columns_) * columns_; }

  const DiscAttentionGradient &p_;
  int64_t columns_, tile_rows_, entries_ = 1, block_rows_;
};

template <typename T>
Gradient<T>::Gradient(const DiscAttentionGradient &problem)
    : p_(problem), columns_(p_.tile_columns), tile_rows_(p_.tile_rows) {
  for (int64_t i = 0; i < p_.batch_rank; ++i)
    entries_ *= p_.batch[i];
  int64_t row_bytes = std::max<int64_t>(p_.n, 1) * p_.buffers * static_cast<int64_t>(sizeof(T));
  int64_t tiles = std::clamp<int64_t>(kBufferBytes / (row_bytes * tile_rows_), 1, kMostTiles);
  block_rows_ = std::min(tiles * tile_rows_, std::max<int64_t>(p_.m, 1));
}

/// Divides memory from `base` on; returns the bytes that it takes.
template <typename T> size_t Gradient<T>::place(GradientScratch &scratch, char *base) const {
  char *next = base;
  auto take = [&](int64_t elements) {
    auto *address = reinterpret_cast<T *>(next);
    next += (static_cast<size_t>(elements) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return address;
  };
  scratch.key_columns = take(wide(p_.n) * p_.d);
  scratch.value_columns = take(wide(p_.n) * p_.w);
  scratch.key_rows = take(p_.n * wide(p_.d));
  scratch.key_sums = take(p_.n * wide(p_.d));
  scratch.value_sums = take(p_.n * wide(p_.w));
  scratch.query = take(block_rows_ * padded(p_.d));
  scratch.upstream = take(block_rows_ * padded(p_.w));
  scratch.query_panels = take(block_rows_ * wide(p_.d));
  scratch.upstream_panels = take(block_rows_ * wide(p_.w));
  scratch.left = take(tile_rows_ * padded(std::max(kChunk, block_rows_)));
  scratch.sums = take(tile_rows_ * wide(p_.d));
  scratch.edge = take(tile_rows_ * columns_);
  for (int64_t i = 0; i < p_.buffers; ++i)
    scratch.buffers[i] = take(block_rows_ * p_.n);
  return static_cast<size_t>(next - base);
}

template <typename T> void Gradient<T>::run(ThreadPool &pool) const {
  double work = static_cast<double>(p_.m) * static_cast<double>(p_.n) * static_cast<double>(p_.d + p_.w);
  auto each = std::max<int64_t>(1, static_cast<int64_t>(std::min(work, 1e15)));
  auto body = [](void *self, int64_t begin, int64_t end) { static_cast<const Gradient *>(self)->run_entries(begin, end); };
  pool.run(body, const_cast<Gradient *>(this), entries_, std::max<int64_t>(1, kWorkToShare / each));
}

template <typename T> void Gradient<T>::run_entries(int64_t begin, int64_t end) const {
  GradientScratch scratch;
  char *memory = thread_memory(place(scratch, nullptr));
  place(scratch, memory);
  for (int64_t number = begin; number < end; ++number) {
    Entry of = entry(number);
    if (memory == nullptr) {
      run_without_memory(of);
      continue;
    }
    pack_entry(of, scratch);
    for (int64_t row = 0; row < p_.m; row += block_rows_) {
      Block block{row, std::min(block_rows_, p_.m - row), {0, p_.n}};
      if (hides_columns(of, block.row, block.rows)) {
        int64_t place = row * p_.visible_m;
        block.columns = seen_columns(of.first + place, of.end + place, p_.visible_m, block.rows, p_.n);
        block.columns.first = block.columns.first / columns_ * columns_;
      }
      run_block(of, block, scratch);
    }
    write(of.key_gradient, 0, p_.n, p_.d, scratch.key_sums);
    write(of.value_gradient, 0, p_.n, p_.w, scratch.value_sums);
  }
}

template <typename T> typename Gradient<T>::Entry Gradient<T>::entry(int64_t number) const {
  int64_t seen = entry_offset(p_.batch_rank, p_.batch, p_.visible_batch, number);
  return {matrix(p_.query, number), matrix(p_.key, number), matrix(p_.value, number), matrix(p_.upstream, number),
          matrix(p_.query_gradient, number), matrix(p_.key_gradient, number), matrix(p_.value_gradient, number),
          p_.first + seen, p_.end + seen, number * p_.m, 0, 0};
}

// ---- what is packed ---------------------------------------------------------------------------------------------------

/// Packs key and value of an entry, notes how large they are, and clears its sums.
template <typename T> void Gradient<T>::pack_entry(Entry &entry, const GradientScratch &scratch) const {
  const Matrix<T> &key = entry.key, &value = entry.value;
  for (int64_t n = 0; n < p_.n; n += columns_) {
    int64_t width = std::min(columns_, p_.n - n);
    pack_panel(key.at(n, 0), key.column, key.row, p_.d, width, columns_, scratch.key_columns + n * p_.d);
    pack_panel(value.at(n, 0), value.column, value.row, p_.w, width, columns_, scratch.value_columns + n * p_.w);
  }
  for (int64_t d = 0; d < p_.d; d += columns_)
    pack_panel(key.at(0, d), key.row, key.column, p_.n, std::min(columns_, p_.d - d), columns_,
               scratch.key_rows + d * p_.n);
  entry.largest_key = largest(key.data, p_.n, key.row, p_.d, key.column);
  entry.largest_value = largest(value.data, p_.n, value.row, p_.w, value.column);
  std::fill_n(scratch.key_sums, p_.n * wide(p_.d), T{0});
  std::fill_n(scratch.value_sums, p_.n * wide(p_.w), T{0});
}

/// Packs the rows of a block: as the left sides of products, and as the right sides of transposed ones.
template <typename T>
void Gradient<T>::pack_block(const Entry &entry, const Block &block, const GradientScratch &scratch) const {
  auto pack = [&](const Matrix<T> &of, int64_t depth, T *rows, T *panels) {
    for (int64_t row = 0; row < block.rows; row += tile_rows_)
      pack_rows(of.at(block.row + row, 0), of.row, of.column, std::min(tile_rows_, block.rows - row), depth,
                rows + row * padded(depth));
    for (int64_t d = 0; d < depth; d += columns_)
      pack_panel(of.at(block.row, d), of.row, of.column, block.rows, std::min(columns_, depth - d), columns_,
                 panels + d * block.rows);
  };
  pack(entry.query, p_.d, scratch.query, scratch.query_panels);
  pack(entry.upstream, p_.w, scratch.upstream, scratch.upstream_panels);
}

/// Whether columns that a mask hides add exactly 0 to all gradients: both kinds of scores are known to be small enough.
template <typename T> bool Gradient<T>::hides_columns(const Entry &entry, int64_t row, int64_t rows) const {
  auto is_small = [&](const Matrix<T> &left, T right, int64_t depth, int64_t most) {
    T size = largest(left.at(row, 0), rows, left.row, depth, left.column);
    double score = static_cast<double>(size) * static_cast<double>(right) * static_cast<double>(depth);
    return score * kRounding <= static_cast<double>(most) && std::isfinite(size) && std::isfinite(right);
  };
  return p_.n <= INT32_MAX && is_small(entry.query, entry.largest_key, p_.d, p_.magnitude) &&
         is_small(entry.upstream, entry.largest_value, p_.w, p_.upstream_magnitude);
}

// ---- a block ----------------------------------------------------------------------------------------------------------

template <typename T>
void Gradient<T>::run_block(const Entry &entry, const Block &block, const GradientScratch &scratch) const {
  T *const *buffers = scratch.buffers;
  int64_t first = entry.number + block.row;
  pack_block(entry, block, scratch);
  multiply_columns(block, scratch.query, scratch.key_columns, p_.d, buffers[0], scratch);
  run_rows(p_.rows, row_arguments(), first, block.rows, block.columns, buffers);
  multiply_columns(block, scratch.upstream, scratch.value_columns, p_.w, score_buffer(buffers), scratch);
  run_rows(p_.gradient_rows, gradient_arguments(), first, block.rows, block.columns, buffers);
  multiply_query(entry, block, scratch);
  multiply_transposed(block, gradient_buffer(buffers), scratch.query_panels, p_.d, scratch.key_sums, scratch);
  multiply_transposed(block, buffers[p_.weights], scratch.upstream_panels, p_.w, scratch.value_sums, scratch);
}

/// Some rows times `depth` rows of a panel, written or added to sums that are `step` apart.
template <typename T>
void Gradient<T>::multiply_tile(int64_t rows, const T *left, const T *panel, T *sums, int64_t step, int64_t depth,
                                bool adds) const {
  Ahead ahead = unless_few(ahead_of(panel, columns_, columns_, depth), rows, tile_rows_);
  p_.tile(rows, left, panel, columns_, sums, step, depth, adds, ahead.first, ahead.step);
}

/// Rows of a block times columns: scores, where `right` is the key, for all columns that count.
template <typename T>
void Gradient<T>::multiply_columns(const Block &block, const T *left, const T *right, int64_t depth, T *result,
                                   const GradientScratch &scratch) const {
  for (int64_t n = block.columns.first; n < block.columns.end; n += columns_)
    for (int64_t row = 0; row < block.rows; row += tile_rows_) {
      int64_t rows = std::min(tile_rows_, block.rows - row), width = p_.n - n;
      T *out = result + row * p_.n + n;
      const T *packed = left + row * padded(depth);
      if (width >= columns_) {
        multiply_tile(rows, packed, right + n * depth, out, p_.n, depth, false);
        continue;
      }
      multiply_tile(rows, packed, right + n * depth, scratch.edge, columns_, depth, false);
      for (int64_t i = 0; i < rows; ++i)
        std::copy_n(scratch.edge + i * columns_, width, out + i * p_.n);
    }
}

/// A row kernel on `rows` rows from `first` on, which `buffers` have.
template <typename T>
void Gradient<T>::run_rows(const DiscRowKernel &kernel, const int64_t *arguments, int64_t first, int64_t rows,
                           Columns columns, T *const *buffers) const {
  int64_t words[kMostRowWords];
  std::memcpy(words, arguments, static_cast<size_t>(kernel.words) * sizeof *words);
  for (int64_t i = 0; i < p_.buffers; ++i)
    if (kernel.place[i] >= 0)
      words[kernel.place[i]] =
          reinterpret_cast<int64_t>(buffers[i]) - first * p_.n * static_cast<int64_t>(sizeof(T));
  words[kernel.first] = columns.first;
  words[kernel.end] = columns.end;
  kernel.kernel(words, first, first + rows);
}

/// The gradient of the block's rows of the query.
template <typename T>
void Gradient<T>::multiply_query(const Entry &entry, const Block &block, const GradientScratch &scratch) const {
  const T *gradient = gradient_buffer(scratch.buffers);
  for (int64_t row = 0; row < block.rows; row += tile_rows_) {
    int64_t rows = std::min(tile_rows_, block.rows - row), first = block.columns.first;
    for (int64_t n = first; n < block.columns.end || n == first; n += kChunk) {
      int64_t depth = std::min(kChunk, block.columns.end - n);
      pack_rows(gradient + row * p_.n + n, p_.n, int64_t{1}, rows, depth, scratch.left);
      for (int64_t d = 0; d < p_.d; d += columns_)
        multiply_tile(rows, scratch.left, scratch.key_rows + d * p_.n + n * columns_, scratch.sums + d, wide(p_.d),
                      depth, n != first);
    }
    write(entry.query_gradient, block.row + row, rows, p_.d, scratch.sums);
  }
}

/// Adds the product of a buffer, transposed, with rows of the block to the sums of the columns that count.
template <typename T>
void Gradient<T>::multiply_transposed(const Block &block, const T *buffer, const T *right, int64_t width, T *sums,
                                      const GradientScratch &scratch) const {
  for (int64_t n = block.columns.first; n < block.columns.end; n += tile_rows_) {
    int64_t rows = std::min(tile_rows_, block.columns.end - n);
    pack_rows(buffer + n, int64_t{1}, p_.n, rows, block.rows, scratch.left);
    for (int64_t d = 0; d < width; d += columns_)
      multiply_tile(rows, scratch.left, right + d * block.rows, sums + n * wide(width) + d, wide(width), block.rows,
                    true);
  }
}

template <typename T>
void Gradient<T>::write(const Matrix<T> &result, int64_t row, int64_t rows, int64_t width, const T *sums) const {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j)
      *result.at(row + i, j) = sums[i * wide(width) + j];
}

/// Row by row, in the scratch that the program has for one of them; threads take turns.
template <typename T> void Gradient<T>::run_without_memory(const Entry &entry) const {
  static ForkMutex mutex;
  std::lock_guard turn(mutex);
  T *buffers[8];
  for (int64_t i = 0; i < p_.buffers; ++i)
    buffers[i] = static_cast<T *>(p_.row) + i * p_.n;
  auto each = [](int64_t rows, int64_t columns, auto &&body) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        body(i, j);
  };
  each(p_.n, p_.d, [&](int64_t n, int64_t d) { *entry.key_gradient.at(n, d) = 0; });
  each(p_.n, p_.w, [&](int64_t n, int64_t w) { *entry.value_gradient.at(n, w) = 0; });
  for (int64_t row = 0; row < p_.m; ++row) {
    T *scores = buffers[0], *upstream = score_buffer(buffers), *gradient = gradient_buffer(buffers);
    const T *weights = buffers[p_.weights];
    std::fill_n(scores, p_.n, T{0});
    each(p_.n, p_.d, [&](int64_t n, int64_t d) { scores[n] += *entry.query.at(row, d) * *entry.key.at(n, d); });
    run_rows(p_.rows, row_arguments(), entry.number + row, 1, {0, p_.n}, buffers);
    std::fill_n(upstream, p_.n, T{0});
    each(p_.n, p_.w, [&](int64_t n, int64_t w) { upstream[n] += *entry.upstream.at(row, w) * *entry.value.at(n, w); });
    run_rows(p_.gradient_rows, gradient_arguments(), entry.number + row, 1, {0, p_.n}, buffers);
    each(1, p_.d, [&](int64_t, int64_t d) { *entry.query_gradient.at(row, d) = 0; });
    each(p_.n, p_.d, [&](int64_t n, int64_t d) {
      *entry.query_gradient.at(row, d) += gradient[n] * *entry.key.at(n, d);
      *entry.key_gradient.at(n, d) += gradient[n] * *entry.query.at(row, d);
    });
    each(p_.n, p_.w,
         [&](int64_t n, int64_t w) { *entry.value_gradient.at(n, w) += weights[n] * *entry.upstream.at(row, w); });
  }
}

} // namespace

void run_attention_gradient(ThreadPool &pool, const DiscAttentionGradient &gradient) {
  for (int64_t i = 0; i < gradient.batch_rank; ++i)
    if (gradient.batch[i] <= 0)
      return;
  if (format_of(gradient.format).word_bytes == 4)
    Gradient<float>(gradient).run(pool);
  else
    Gradient<double>(gradient).run(pool);
}

} // namespace disc
