// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "convolution.h"

#include "gemm.h"
#include "gemm_blocks.h"
#include "step_clock.h"
#include "winograd.h"

#include <algorithm>
#include <cstring>

namespace disc {

namespace {

using gemm::kDepth;

/// A row is what lies under one window: `runs` pieces of the input of `length` elements each.
template <typename T> class Windows final : public RowSource {
public:
  explicit Windows(const DiscConvolution &given) : conv_(given) {
    bool is_dense = given.column_dilation == 1 || given.window_width == 1;
    length_ = is_dense ? given.window_width * given.channels : given.channels;
    runs_in_row_ = is_dense ? 1 : given.window_width;
  }

  void pack(int64_t row, int64_t rows, int64_t k0, int64_t depth, void *target) const override {
    for (int64_t r = 0; r < rows && depth > 0; ++r)
      pack_row(place_of(row + r), k0, depth, rows * kDepth, static_cast<T *>(target) + r * kDepth);
  }

private:
  const T *place_of(int64_t pixel) const {
    int64_t x = pixel % conv_.result_width, line = pixel / conv_.result_width;
    int64_t y = line % conv_.result_height, image = line / conv_.result_height;
    int64_t start = (image * conv_.height + y * conv_.row_stride) * conv_.width + x * conv_.column_stride;
    return static_cast<const T *>(conv_.input) + start * conv_.channels;
  }

  const T *run_of(const T *window, int64_t run) const {
    int64_t y = run / runs_in_row_ * conv_.row_dilation, x = run % runs_in_row_ * conv_.column_dilation;
    return window + (y * conv_.width + x) * conv_.channels;
  }

  /// Elements [k0, k0 + depth) under a window to blocks of kDepth, `step` apart.
  void pack_row(const T *window, int64_t k0, int64_t depth, int64_t step, T *target) const {
    int64_t run = k0 / length_, skip = k0 % length_, room = kDepth;
    while (depth > 0) {
      const T *source = run_of(window, run++) + skip;
      int64_t left = std::min(length_ - skip, depth);
      depth -= left, skip = 0;
      while (left > 0) {
        int64_t count = std::min(left, room);
        std::memcpy(target, source, static_cast<size_t>(count) * sizeof(T));
        source += count, target += count, left -= count, room -= count;
        if (room == 0)
          target += step - kDepth, room = kDepth;
      }
    }
  }

  const DiscConvolution &conv_;
  int64_t length_, runs_in_row_;
};

} // namespace

void run_convolution(ThreadPool &pool, const DiscConvolution &convolution) {
  const DiscDot &dot = convolution.product;
  if (dot.m <= 0 || dot.n <= 0)
    return;
  if (dot.format == 0) {
    Windows<float> windows(convolution);
    bool transform = prefers_winograd(convolution);
    chosen_way = transform ? "Winograd" : "tiles";
    if (transform)
      run_winograd(pool, convolution);
    else
      run_gemm(pool, dot, &windows);
  } else {
    Windows<double> windows(convolution);
    run_gemm(pool, dot, &windows);
  }
}

} // namespace disc
