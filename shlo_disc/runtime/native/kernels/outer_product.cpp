// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "outer_product.h"

#include "core/aligned.h"
#include "dot_batch.h"
#include "gemm_blocks.h"
#include "gemm_formats.h"

#include <algorithm>

namespace disc {

namespace {

using namespace gemm;

constexpr int64_t kMostDepth = 4 * kDepth;    // words: a panel of B then has the size of a core's L1
constexpr int64_t kFewestResults = 1 << 16;   // elements of C; smaller ones stay in the cache whatever the order
constexpr int64_t kBytesToShare = 64 << 10;   // of C or of B that pay for handing a range to another thread

template <typename T> class OuterProduct {
public:
  OuterProduct(const DiscDot &dot, T *memory)
      : dot_(dot), format_(format_of(dot.format)), right_(memory), k_(format_.words(dot.k)), columns_(dot.tile_columns),
        panels_(divide_up(dot.n, columns_)), tiles_(divide_up(dot.m, dot.tile_rows)) {
    int64_t panel_bytes = k_ * columns_ * static_cast<int64_t>(sizeof(T));
    int64_t groups = divide_up(panels_, std::max<int64_t>(1, kBlockBytes / panel_bytes));
    group_ = divide_up(panels_, groups);
  }

  void run(ThreadPool &pool) {
    int64_t row_bytes = group_ * columns_ * static_cast<int64_t>(sizeof(T));
    for (first_ = 0; first_ < panels_; first_ += group_) {
      end_ = std::min(first_ + group_, panels_);
      pool.run(&each<&OuterProduct::pack>, this, end_ - first_,
               divide_up(kBytesToShare, k_ * columns_ * static_cast<int64_t>(sizeof(T))));
      pool.run(&each<&OuterProduct::write_tiles>, this, tiles_, divide_up(kBytesToShare, dot_.tile_rows * row_bytes));
    }
  }

private:
  template <auto method> static void each(void *self, int64_t begin, int64_t end) {
    (static_cast<const OuterProduct *>(self)->*method)(begin, end);
  }

  const void *element(const void *base, int64_t place) const {
    return static_cast<const char *>(base) + place * format_.element_bytes;
  }

  T *packed(int64_t panel) const { return right_ + (panel - first_) * k_ * columns_; }

  void pack(int64_t begin, int64_t end) const {
    for (int64_t panel = first_ + begin; panel < first_ + end; ++panel) {
      int64_t n0 = panel * columns_;
      format_.pack_panel(element(dot_.b, n0 * dot_.b_n), dot_.b_k, dot_.b_n, dot_.k, std::min(columns_, dot_.n - n0),
                         columns_, packed(panel));
    }
  }

  void write_tiles(int64_t begin, int64_t end) const {
    Scratch scratch;
    for (int64_t tile = begin; tile < end; ++tile) {
      int64_t row = share(dot_.m, tiles_, tile), rows = share(dot_.m, tiles_, tile + 1) - row;
      format_.pack_rows(element(dot_.a, row * dot_.a_m), dot_.a_m, dot_.a_k, rows, dot_.k, scratch.panel<T>());
      if (has_tile_epilogue(dot_)) {
        finish_tile(scratch, row, rows);
        continue;
      }
      T *c = static_cast<T *>(dot_.c) + row * dot_.c_m;
      for (int64_t panel = first_; panel < end_; ++panel)
        write_tile(scratch, rows, panel, c + panel * columns_);
    }
  }

  /// The sums of some panels at a time go to the epilogue.
  void finish_tile(const Scratch &scratch, int64_t row, int64_t rows) const {
    for (int64_t panel = first_, count; panel < end_; panel += count) {
      count = std::min(kStagedRows / rows, end_ - panel);
      int64_t step = count * columns_, column = panel * columns_;
      T *sums = scratch.sums<T>();
      for (int64_t i = 0; i < count; ++i)
        multiply(scratch, rows, packed(panel + i), sums + i * columns_, step);
      run_tile_epilogue(dot_, row, rows, sums, step, column, std::min(dot_.n, column + step));
    }
  }

  void multiply(const Scratch &scratch, int64_t rows, const T *panel, T *c, int64_t c_step) const {
    Ahead ahead = unless_few(ahead_of(panel, columns_, columns_, k_), rows, dot_.tile_rows);
    dot_.tile(rows, scratch.panel<T>(), panel, columns_, c, c_step, k_, 0, ahead.first, ahead.step);
  }

  void write_tile(const Scratch &scratch, int64_t rows, int64_t panel, T *c) const {
    int64_t width = dot_.n - panel * columns_;
    if (width >= columns_)
      return multiply(scratch, rows, packed(panel), c, dot_.c_m);
    T *sums = scratch.sums<T>();
    multiply(scratch, rows, packed(panel), sums, columns_);
    for (int64_t i = 0; i < rows; ++i)
      std::copy_n(sums + i * columns_, width, c + i * dot_.c_m);
  }

  const DiscDot &dot_;
  const Format &format_;
  T *right_;
  int64_t k_, columns_, panels_, tiles_;
  int64_t group_ = 1, first_ = 0, end_ = 0; // the panels of B that are packed
};

} // namespace

bool is_outer_product(const DiscDot &dot) {
  bool is_plain = dot.batch_rank == 0 && dot.packed == nullptr && dot.c_n == 1 && dot.next == nullptr;
  int64_t k = format_of(dot.format).words(dot.k);
  bool is_shallow = k >= 1 && k <= kMostDepth && dot.m >= 2 * dot.tile_rows && dot.n >= 2 * dot.tile_columns;
  return is_plain && is_shallow && dot.m >= kFewestResults / dot.n;
}

bool run_outer_product(ThreadPool &pool, const DiscDot &dot) {
  thread_local AlignedMemory memory(kBlockBytes);
  if (memory.address() == nullptr)
    return false;
  if (format_of(dot.format).word_bytes == 4)
    OuterProduct<uint32_t>(dot, reinterpret_cast<uint32_t *>(memory.address())).run(pool);
  else
    OuterProduct<uint64_t>(dot, reinterpret_cast<uint64_t *>(memory.address())).run(pool);
  run_row_epilogue(pool, dot);
  return true;
}

} // namespace disc
