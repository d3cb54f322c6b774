// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "packing.h"

#include "dot_batch.h"
#include "gemm_blocks.h"
#include "gemm_formats.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace disc {

namespace gemm {

namespace {

constexpr int64_t kLine = 64;     // bytes of the cache
constexpr int64_t kTogether = 8;  // panels packed together: memory is fetched ahead along rows of a kilobyte
constexpr int64_t kRowsAhead = 4; // fetched before they are copied: each may lie on a page of its own

/// Whole panels of rows. `bytes`, of a row of a panel, is a constant for the usual ones: calls of memcpy take longer
/// than such copies.
template <typename Bytes>
void copy_whole(const char *source, int64_t step, int64_t rows, int64_t panels, char *target, int64_t panel_step,
                Bytes bytes) {
  for (int64_t row = 0; row < rows; ++row, source += step, target += bytes) {
    int64_t ahead = row + kRowsAhead < rows ? kRowsAhead * step : 0;
    for (int64_t panel = 0; panel < panels; ++panel) {
      const char *from = source + panel * bytes;
      for (int64_t line = 0; line < bytes; line += kLine)
        __builtin_prefetch(from + ahead + line);
      std::memcpy(target + panel * panel_step, from, static_cast<size_t>(bytes));
    }
  }
}

/// Items of work: some panels of one batch entry, and a piece of k.
class Packing {
public:
  Packing(const DiscDot &dot, int64_t first, int64_t end, void *target)
      : dot_(dot), format_(format_of(dot.format)), first_(first), end_(end), target_(static_cast<char *>(target)),
        words_(format_.words(dot.k)), groups_(divide_up(end - first, kTogether)), pieces_(divide_up(words_, kChunk)) {}

  void run(ThreadPool &pool) {
    auto body = [](void *self, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        static_cast<const Packing *>(self)->pack(i);
    };
    pool.run(body, this, entries_of(dot_) * groups_ * pieces_, 1);
  }

private:
  void pack(int64_t item) const {
    int64_t entry = item / (groups_ * pieces_), group = item / pieces_ % groups_;
    int64_t k = item % pieces_ * kChunk, words = std::min(kChunk, words_ - k);
    int64_t columns = dot_.tile_columns, row_bytes = columns * format_.word_bytes, panel_bytes = words_ * row_bytes;
    int64_t first = first_ + group * kTogether, end = std::min(end_, first + kTogether);
    const char *b = right_matrix(dot_, entry) + k * format_.elements * dot_.b_k * format_.element_bytes;
    char *place = target_ + (entry * (end_ - first_) + first - first_) * panel_bytes + k * row_bytes;
    if (format_.is_plain && dot_.b_n == 1)
      return format_.word_bytes == 4 ? copy<uint32_t>(b, words, first, end, place, panel_bytes)
                                     : copy<uint64_t>(b, words, first, end, place, panel_bytes);
    int64_t elements = std::min(words * format_.elements, dot_.k - k * format_.elements);
    for (int64_t panel = first; panel < end; ++panel, place += panel_bytes) {
      int64_t n0 = panel * columns;
      format_.pack_panel(b + n0 * dot_.b_n * format_.element_bytes, dot_.b_k, dot_.b_n, elements,
                         std::min(columns, dot_.n - n0), columns, place);
    }
  }

  template <typename T>
  void copy(const char *b, int64_t rows, int64_t first, int64_t end, char *target, int64_t panel_bytes) const {
    int64_t columns = dot_.tile_columns, n0 = first * columns, width = std::min(end * columns, dot_.n) - n0;
    copy_panels(reinterpret_cast<const T *>(b) + n0, dot_.b_k, rows, width, columns, reinterpret_cast<T *>(target),
                panel_bytes / static_cast<int64_t>(sizeof(T)));
  }

  const DiscDot &dot_;
  const Format &format_;
  int64_t first_, end_;
  char *target_;
  int64_t words_, groups_, pieces_;
};

} // namespace

const char *right_matrix(const DiscDot &dot, int64_t entry) {
  return static_cast<const char *>(dot.b) + batch_offset(dot, entry, dot.b_batch) * format_of(dot.format).element_bytes;
}

template <typename T>
void copy_panels(const T *source, int64_t step, int64_t rows, int64_t width, int64_t columns, T *target,
                 int64_t panel_step) {
  constexpr int64_t size = sizeof(T);
  int64_t whole = width / columns, rest = width % columns;
  auto copy = [&](auto bytes) {
    copy_whole(reinterpret_cast<const char *>(source), step * size, rows, whole, reinterpret_cast<char *>(target),
               panel_step * size, bytes);
  };
  if (columns * size == kWidestPanelBytes)
    copy(std::integral_constant<int64_t, kWidestPanelBytes>());
  else if (columns * size == kWidestPanelBytes / 2)
    copy(std::integral_constant<int64_t, kWidestPanelBytes / 2>());
  else
    copy(columns * size);
  if (rest == 0)
    return;
  source += whole * columns, target += whole * panel_step;
  for (int64_t row = 0; row < rows; ++row, source += step, target += columns) {
    std::memcpy(target, source, static_cast<size_t>(rest * size));
    std::memset(target + rest, 0, static_cast<size_t>((columns - rest) * size));
  }
}

template void copy_panels(const float *, int64_t, int64_t, int64_t, int64_t, float *, int64_t);
template void copy_panels(const double *, int64_t, int64_t, int64_t, int64_t, double *, int64_t);
template void copy_panels(const uint32_t *, int64_t, int64_t, int64_t, int64_t, uint32_t *, int64_t);
template void copy_panels(const uint64_t *, int64_t, int64_t, int64_t, int64_t, uint64_t *, int64_t);

void pack_panels(ThreadPool &pool, const DiscDot &dot, int64_t first, int64_t end, void *target) {
  Packing(dot, first, end, target).run(pool);
}

} // namespace gemm

int64_t packed_words(int64_t entries, int64_t k, int64_t n, int64_t columns) {
  return entries * gemm::divide_up(n, columns) * columns * k;
}

void pack_right(ThreadPool &pool, const DiscDot &dot, void *target) {
  gemm::pack_panels(pool, dot, 0, gemm::divide_up(dot.n, dot.tile_columns), target);
}

} // namespace disc
