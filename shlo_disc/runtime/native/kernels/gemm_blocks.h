// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What products, and whatever else is made of their tiles, share: packed forms and each thread's scratch memory.
#pragma once

#include "core/forks.h"

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace disc::gemm {

constexpr int64_t kDepth = 64;                    // elements of a row of A that lie together, as in gemm_kernel.py
constexpr int64_t kChunk = 6 * kDepth;            // rows of a panel of B used together: 48 KB of f32
constexpr int64_t kBlockBytes = 512 << 10;        // packed rows of A: half of a core's L2
constexpr int64_t kWidestPanelBytes = 128;        // two registers of 512 bits
constexpr int64_t kStagedRows = 256;              // rows of a panel of sums
constexpr int64_t kSlabBytes = 8 << 20;           // panels of B that a call packs for itself, of those in the last cache
constexpr int64_t kRowPanelsBytes = 96 << 10;     // panels of some rows of B, which are copied as they lie, or rows of A
constexpr int64_t kPatchBytes = 4160 << 10;       // transformed patches of a convolution
constexpr int64_t kPatchSumsBytes = 520 << 10;    // their sums
constexpr int64_t kPatchResultsBytes = 28 << 10;  // results of some patches
constexpr int64_t kPatchWeightsBytes = 320 << 10; // transformed weights of some channels of a panel

constexpr int64_t kRowsAhead = 32;                // of B, fetched where they are apart

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The bytes that a tile brings to the second cache while it multiplies: from `first` on, with each row of B `step` more.
/// `first` may be null where a tile has few rows, as `has_few` says: nothing is fetched then.
struct Ahead {
  const void *first;
  int64_t step;
};

/// Whether a tile of `rows` rows, of at most `most`, waits for its loads of B rather than for its sums.
inline bool has_few(int64_t rows, int64_t most) { return 2 * rows <= most; }

/// What a tile fetches of rows that the caches have: nothing if it has few, for a prefetch takes the place of a load.
inline Ahead unless_few(Ahead ahead, int64_t rows, int64_t most) {
  return has_few(rows, most) ? Ahead{nullptr, 0} : ahead;
}

/// The part of tile `tile` of `tiles` of the `words` at `next`, which are used after the rows of B that all of them
/// multiply by, `rows` in number. A tile fetches its part evenly: a burst would keep it waiting.
template <typename T>
Ahead part_of(const T *next, int64_t words, int64_t rows, int64_t tile = 0, int64_t tiles = 1) {
  int64_t bytes = words * static_cast<int64_t>(sizeof(T));
  return {reinterpret_cast<const char *>(next) + bytes * tile / tiles,
          divide_up(bytes, std::max<int64_t>(rows, 1) * tiles)};
}

/// Rows of B that lie `step` words apart, fetched while those before them are used.
template <typename T> Ahead rows_ahead(const T *b, int64_t step) {
  return {b + kRowsAhead * step, step * static_cast<int64_t>(sizeof(T))};
}

/// One of these for `rows` rows of B: behind those of a panel lies the next panel.
template <typename T> Ahead ahead_of(const T *b, int64_t step, int64_t columns, int64_t rows) {
  return step == columns ? part_of(b + rows * columns, rows * columns, rows) : rows_ahead(b, step);
}

/// Where part `index` of `parts` even ones of `total` begins.
inline int64_t share(int64_t total, int64_t parts, int64_t index) {
  if (((total | index) >> 31) == 0)
    return total * index / parts;
  return static_cast<int64_t>(static_cast<__int128>(total) * index / parts);
}

/// How many elements entry `entry` of a batch of these sizes lies behind the first one.
inline int64_t entry_offset(int64_t rank, const int64_t *sizes, const int64_t *strides, int64_t entry) {
  int64_t result = 0;
  for (int64_t i = rank - 1; i >= 0; --i) {
    result += entry % sizes[i] * strides[i];
    entry /= sizes[i];
  }
  return result;
}

/// A number that no other call has.
uint64_t next_call();

/// A thread's scratch memory: a block of packed rows of A, a chunk of a panel of B, and a panel of sums; or transformed
/// patches, their sums and a panel of transformed weights, in the same place. Kept for good; where memory ran out,
/// threads take turns with one.
class Scratch {
public:
  /// `call` is from `next_call`: what a thread has packed for one range of a call's items is still there for the next.
  explicit Scratch(uint64_t call = 0);

  /// The number of the block that is there, or -1.
  int64_t held() const { return contents().block; }
  void hold(int64_t block) const { contents().block = block; }

  template <typename T> T *block() const { return reinterpret_cast<T *>(base_); }
  template <typename T> T *panel() const { return reinterpret_cast<T *>(base_ + kBlockBytes); }
  template <typename T> T *sums() const {
    return reinterpret_cast<T *>(base_ + kBlockBytes + kChunk * kWidestPanelBytes);
  }

  template <typename T> T *row_panels() const {
    return reinterpret_cast<T *>(base_ + kBlockBytes + (kChunk + kStagedRows) * kWidestPanelBytes);
  }

  /// Memory of this thread for `kSlabBytes`, or null: behind what items of work use, so that others may read it while
  /// this thread works on some.
  static char *slab();

  float *patches() const { return reinterpret_cast<float *>(base_); }
  float *patch_weights() const { return reinterpret_cast<float *>(base_ + kPatchBytes + kPatchSumsBytes); }
  float *patch_results() const {
    return reinterpret_cast<float *>(base_ + kPatchBytes + kPatchSumsBytes + kPatchWeightsBytes);
  }
  float *patch_sums() const { return reinterpret_cast<float *>(base_ + kPatchBytes); }

private:
  struct Contents {
    uint64_t call = 0;
    int64_t block = -1;
  };
  static Contents &contents();

  char *base_ = nullptr;
  std::unique_lock<ForkMutex> turn_;
};

/// `rows` rows of `depth` elements as a tile reads them: in blocks of kDepth elements, within a block row by row. All
/// rows take `divide_up(depth, kDepth) * kDepth` elements each.
template <typename T>
void pack_rows(const T *a, int64_t row_stride, int64_t k_stride, int64_t rows, int64_t depth, T *target);

/// `depth` rows of `width` columns of B, filled up with zeros to rows of `columns`.
template <typename T>
void pack_panel(const T *b, int64_t k_stride, int64_t column_stride, int64_t depth, int64_t width, int64_t columns,
                T *target);

} // namespace disc::gemm
