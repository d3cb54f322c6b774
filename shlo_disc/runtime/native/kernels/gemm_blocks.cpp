// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gemm_blocks.h"

#include "packing.h"
#include "core/aligned.h"
#include "core/strided_copy.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

namespace disc::gemm {

namespace {

constexpr int64_t kProductBytes = kBlockBytes + (kChunk + kStagedRows) * kWidestPanelBytes + kRowPanelsBytes;
constexpr int64_t kPatchesBytes = kPatchBytes + kPatchSumsBytes + kPatchWeightsBytes + kPatchResultsBytes;
constexpr size_t kScratchBytes = std::max(kProductBytes + kSlabBytes, kPatchesBytes);

/// This thread's memory, or null. What of it is not used takes none.
char *own_memory() {
  thread_local AlignedMemory own(kScratchBytes);
  return own.address();
}

} // namespace

uint64_t next_call() {
  static std::atomic<uint64_t> calls = 0;
  return ++calls;
}

Scratch::Contents &Scratch::contents() {
  thread_local Contents contents;
  return contents;
}

char *Scratch::slab() {
  char *memory = own_memory();
  return memory == nullptr ? nullptr : memory + kProductBytes;
}

Scratch::Scratch(uint64_t call) {
  base_ = own_memory();
  if (base_ == nullptr || contents().call != call)
    contents() = {call, -1};
  if (base_ != nullptr)
    return;
  static ForkMutex mutex;
  alignas(64) static char shared[std::max(kProductBytes, kPatchesBytes)];
  turn_ = std::unique_lock(mutex);
  base_ = shared;
}

template <typename T>
void pack_rows(const T *a, int64_t row_stride, int64_t k_stride, int64_t rows, int64_t depth, T *target) {
  for (int64_t k = 0; k < depth; k += kDepth, target += rows * kDepth)
    copy_matrix(a + k * k_stride, row_stride, k_stride, target, kDepth, rows, std::min(kDepth, depth - k));
}

template <typename T>
void pack_panel(const T *b, int64_t k_stride, int64_t column_stride, int64_t depth, int64_t width, int64_t columns,
                T *target) {
  if (column_stride == 1)
    return copy_panels(b, k_stride, depth, width, columns, target, depth * columns);
  if (width < columns)
    std::memset(target, 0, static_cast<size_t>(depth * columns) * sizeof(T));
  copy_matrix(b, k_stride, column_stride, target, columns, depth, width);
}

template void pack_rows(const float *, int64_t, int64_t, int64_t, int64_t, float *);
template void pack_rows(const double *, int64_t, int64_t, int64_t, int64_t, double *);
template void pack_panel(const float *, int64_t, int64_t, int64_t, int64_t, int64_t, float *);
template void pack_panel(const double *, int64_t, int64_t, int64_t, int64_t, int64_t, double *);

} // namespace disc::gemm
