// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dot_batch.h"

#include "gemm_blocks.h"

#include <cstring>

namespace disc {

int64_t batch_offset(const DiscDot &dot, int64_t entry, const int64_t *strides) {
  return gemm::entry_offset(dot.batch_rank, dot.batch, strides, entry);
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

} // namespace disc
