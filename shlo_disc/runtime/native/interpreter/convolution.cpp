// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "products.h"
#include "window_axis.h"

#include <algorithm>

namespace disc::interpreter {

namespace {

/// The input is packed as [images, pixels, channels of all groups], the kernel as [places, channels, features].
class ConvolutionAxes {
public:
  /// An element of a window: the pixel of the input, and the place in the kernel.
  struct Tap {
    int64_t pixel, place;
  };

  explicit ConvolutionAxes(const Op &op) {
    Op::require(op.operands.size() == 2 && op.results.size() == 1);
    const Type &input = op.operand(0), &kernel = op.operand(1), &result = op.result();
    size_t rank = input.dims.size();
    Op::require(rank >= 2 && kernel.dims.size() == rank && result.dims.size() == rank);
    input_axes_ = axes_of(op, "input_batch_dimension", "input_spatial_dimensions", "input_feature_dimension", rank);
    kernel_axes_ = axes_of(op, "kernel_input_feature_dimension", "kernel_spatial_dimensions",
                           "kernel_output_feature_dimension", rank);
    std::rotate(kernel_axes_.begin(), kernel_axes_.begin() + 1, kernel_axes_.end() - 1); // places, channels, features
    Dims result_axes =
        axes_of(op, "output_batch_dimension", "output_spatial_dimensions", "output_feature_dimension", rank);
    Dims in = sizes_of(input, input_axes_), weights = sizes_of(kernel, kernel_axes_);
    Dims out = sizes_of(result, result_axes);
    images_ = out.front();
    features = out.back();
    channels = weights[rank - 2];
    all_channels_ = in.back();
    feature_groups_ = op.integer("feature_group_count");
    batch_groups_ = op.integer("batch_group_count");
    Op::require(feature_groups_ >= 1 && batch_groups_ >= 1 && (feature_groups_ == 1 || batch_groups_ == 1));
    Op::require(weights.back() == features && features % groups() == 0);
    Op::require(all_channels_ % feature_groups_ == 0 && all_channels_ / feature_groups_ == channels);
    Op::require(in.front() % batch_groups_ == 0 && in.front() / batch_groups_ == images_);
    Dims strides = strides_of(result.dims);
    image_step_ = strides[static_cast<size_t>(result_axes.front())];
    feature_step = strides[static_cast<size_t>(result_axes.back())];
    read_windows(op, in, weights, out);
    for (size_t i = 0; i < windows_.size(); ++i)
      result_steps_.push_back(strides[static_cast<size_t>(result_axes[i + 1])]);
  }

  int64_t groups() const { return feature_groups_ * batch_groups_; }

  Walk<1> walk_of_input(const Type &input) const { return packed_walk(input, {&input_axes_}); }
  Walk<1> walk_of_kernel(const Type &kernel) const { return packed_walk(kernel, {&kernel_axes_}); }

  /// Where the channels of a group begin in the packed input.
  int64_t input_start(int64_t image, int64_t pixel, int64_t group) const {
    int64_t of_group = batch_groups_ > 1 ? group * images_ + image : image;
    return (of_group * pixels_ + pixel) * all_channels_ + (feature_groups_ > 1 ? group * channels : 0);
  }

  /// Calls `visit` for each pixel of the result with its image, where its first feature is, and the taps of its window.
  template <typename Visit> void for_each_pixel(const Visit &visit) const {
    if (std::ranges::any_of(windows_, [](const WindowAxis &axis) { return axis.count == 0; }))
      return;
    std::vector<Tap> taps;
    Dims numbers(windows_.size());
    do {
      read_taps(numbers, taps);
      int64_t to = 0;
      for (size_t i = 0; i < numbers.size(); ++i)
        to += numbers[i] * result_steps_[i];
      for (int64_t image = 0; image < images_; ++image)
        visit(image, to + image * image_step_, taps);
    } while (advance(numbers, windows_, &WindowAxis::count));
  }

  int64_t features = 0, channels = 0; // of the result; of a group
  int64_t feature_step = 0;           // of the result

private:
  /// Axes in the order of the arguments, each once.
  static Dims axes_of(const Op &op, std::string_view first, std::string_view spatial, std::string_view last,
                      size_t rank) {
    Dims axes = {op.integer(first)};
    const Dims &between = op.integers(spatial, rank - 2);
    axes.insert(axes.end(), between.begin(), between.end());
    axes.push_back(op.integer(last));
    require_axes(axes, static_cast<int64_t>(rank));
    return axes;
  }

  static Dims sizes_of(const Type &type, const Dims &axes) {
    Dims sizes;
    for (int64_t axis : axes)
      sizes.push_back(type.dims[static_cast<size_t>(axis)]);
    return sizes;
  }

  void read_windows(const Op &op, const Dims &in, const Dims &weights, const Dims &out) {
    size_t count = in.size() - 2;
    const Dims &strides = op.integers("window_strides", count), &padding = op.integers("padding", 2 * count);
    const Dims &bases = op.integers("lhs_dilation", count), &dilations = op.integers("rhs_dilation", count);
    is_reversed_ = op.integers("window_reversal", count);
    for (size_t i = 0; i < count; ++i) {
      int64_t window = weights[i];
      Op::require(window > 0);
      windows_.push_back({in[i + 1], out[i + 1], window, strides[i], dilations[i], bases[i], padding[2 * i]});
      windows_.back().check(padding[2 * i + 1]);
      pixels_ *= in[i + 1];
    }
  }

  void read_taps(const Dims &numbers, std::vector<Tap> &taps) const {
    taps.clear();
    Dims places(windows_.size());
    do {
      Tap tap{0, 0};
      bool is_inside = true;
      for (size_t i = 0; i < places.size(); ++i) {
        const WindowAxis &axis = windows_[i];
        int64_t element = axis.element(numbers[i], places[i]);
        is_inside = is_inside && element >= 0;
        tap.pixel = tap.pixel * axis.size + element;
        tap.place = tap.place * axis.window + (is_reversed_[i] ? axis.window - 1 - places[i] : places[i]);
      }
      if (is_inside)
        taps.push_back(tap);
    } while (advance(places, windows_, &WindowAxis::window));
  }

  Dims input_axes_, kernel_axes_;
  WindowAxes windows_;
  Dims is_reversed_, result_steps_;
  int64_t images_ = 0, pixels_ = 1, all_channels_ = 0, image_step_ = 0;
  int64_t feature_groups_ = 1, batch_groups_ = 1;
};

template <typename T> Kernel convolution_of(const Op &op, const ConvolutionAxes &axes) {
  using To = Term<T>;
  Pack pack_lhs = pack_for<To>(op.operand(0).dtype), pack_rhs = pack_for<To>(op.operand(1).dtype);
  Walk<1> lhs_walk = axes.walk_of_input(op.operand(0)), rhs_walk = axes.walk_of_kernel(op.operand(1));
  auto lhs_count = static_cast<size_t>(op.operand(0).count()), rhs_count = static_cast<size_t>(op.operand(1).count());
  if (op.result().count() == 0) // other sizes may be larger than any memory
    return [](Inputs, Outputs) {};
  return [=](Inputs inputs, Outputs outputs) {
    std::vector<To> input(lhs_count), kernel(rhs_count), sums(static_cast<size_t>(axes.features));
    pack_lhs(lhs_walk, inputs[0], input.data());
    pack_rhs(rhs_walk, inputs[1], kernel.data());
    axes.for_each_pixel([&](int64_t image, int64_t to, const std::vector<ConvolutionAxes::Tap> &taps) {
      std::fill(sums.begin(), sums.end(), To{});
      int64_t per_group = axes.features / axes.groups();
      for (const ConvolutionAxes::Tap &tap : taps)
        for (int64_t group = 0; group < axes.groups(); ++group) {
          const To *pixel = input.data() + axes.input_start(image, tap.pixel, group);
          const To *weights = kernel.data() + tap.place * axes.channels * axes.features + group * per_group;
          To *sum = sums.data() + group * per_group;
          for (int64_t channel = 0; channel < axes.channels; ++channel, weights += axes.features)
            for (int64_t feature = 0; feature < per_group; ++feature)
              sum[feature] += Multiply::of(pixel[channel], weights[feature]);
        }
      T *result = static_cast<T *>(outputs[0]) + to;
      for (int64_t feature = 0; feature < axes.features; ++feature)
        result[feature * axes.feature_step] = static_cast<T>(sums[static_cast<size_t>(feature)]);
    });
  };
}

} // namespace

Kernel convolution_kernel(const Op &op) {
  ConvolutionAxes axes(op);
  return with_result(op, [&]<typename T>(T) { return convolution_of<T>(op, axes); });
}

} // namespace disc::interpreter
