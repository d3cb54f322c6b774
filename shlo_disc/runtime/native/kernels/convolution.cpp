// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "convolution.h"

#include "dot_batch.h"
#include "gemm.h"
#include "gemm_blocks.h"
#include "core/command_clock.h"
#include "winograd.h"

#include <algorithm>
#include <cstring>

namespace disc {

namespace {

using gemm::kDepth;

/// Elements of a row on their way to blocks of kDepth, `step` apart, of which some at the beginning are left out.
template <typename T> class RowWriter {
public:
  RowWriter(T *target, int64_t step, int64_t skip, int64_t left)
      : target_(target), step_(step), skip_(skip), left_(left) {}

  bool is_full() const { return left_ <= 0; }

  /// The next `count` elements; zeros for null.
  void put(const T *source, int64_t count) {
    int64_t skipped = std::min(skip_, count);
    skip_ -= skipped, count = std::min(count - skipped, left_);
    left_ -= count;
    for (source = source == nullptr ? nullptr : source + skipped; count > 0;) {
      int64_t piece = std::min(count, room_);
      write(source, piece);
      source = source == nullptr ? nullptr : source + piece;
      target_ += piece, count -= piece, room_ -= piece;
      if (room_ == 0)
        target_ += step_ - kDepth, room_ = kDepth;
    }
  }

private:
  void write(const T *source, int64_t count) {
    size_t bytes = static_cast<size_t>(count) * sizeof(T);
    if (source == nullptr)
      std::memset(target_, 0, bytes);
    else
      std::memcpy(target_, source, bytes);
  }

  T *target_;
  int64_t step_, skip_, left_, room_ = kDepth;
};

/// A row is what lies under one window: lines of pixels that lie together, or single pixels.
template <typename T> class Windows final : public RowSource {
public:
  explicit Windows(const DiscConvolution &given) : conv_(given) {
    bool is_dense = given.column_dilation == 1 || given.window_width == 1;
    together_ = is_dense ? given.window_width : 1;
  }

  void pack(int64_t row, int64_t rows, int64_t k0, int64_t depth, void *target) const override {
    int64_t run = together_ * conv_.channels;
    for (int64_t r = 0; r < rows && depth > 0; ++r) {
      RowWriter<T> writer(static_cast<T *>(target) + r * kDepth, rows * kDepth, k0 % run, depth);
      pack_row(row + r, k0 / run, writer);
    }
  }

private:
  void pack_row(int64_t pixel, int64_t run, RowWriter<T> &writer) const {
    int64_t column = pixel % conv_.result_width, line = pixel / conv_.result_width;
    int64_t image = line / conv_.result_height;
    int64_t top = line % conv_.result_height * conv_.row_stride - conv_.row_padding;
    int64_t left = column * conv_.column_stride - conv_.column_padding, runs_in_line = conv_.window_width / together_;
    for (; !writer.is_full(); ++run) {
      int64_t y = top + run / runs_in_line * conv_.row_dilation;
      int64_t x = left + run % runs_in_line * conv_.column_dilation;
      put_run(image * conv_.height + y, y >= 0 && y < conv_.height, x, writer);
    }
  }

  /// `together_` pixels of a line from column x, zeros where they lie outside.
  void put_run(int64_t line, bool is_inside, int64_t x, RowWriter<T> &writer) const {
    int64_t before = std::clamp<int64_t>(is_inside ? -x : together_, 0, together_);
    int64_t end = std::clamp<int64_t>(is_inside ? conv_.width - x : together_, before, together_);
    if (before > 0)
      writer.put(nullptr, before * conv_.channels);
    if (end > before)
      writer.put(static_cast<const T *>(conv_.input) + (line * conv_.width + x + before) * conv_.channels,
                 (end - before) * conv_.channels);
    if (end < together_)
      writer.put(nullptr, (together_ - end) * conv_.channels);
  }

  const DiscConvolution &conv_;
  int64_t together_;
};

} // namespace

void run_convolution(ThreadPool &pool, const DiscConvolution &convolution) {
  const DiscDot &dot = convolution.product;
  if (dot.m <= 0)
    return;
  if (dot.n <= 0)
    return run_row_epilogue(pool, dot);
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
