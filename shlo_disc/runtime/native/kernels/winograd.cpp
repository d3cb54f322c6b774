// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "winograd.h"

#include "dot_batch.h"
#include "gemm_blocks.h"

#include <algorithm>
#include <numeric>

namespace disc {

namespace {

using namespace gemm;

constexpr int64_t kEdge = 4;                  // results of a patch in each direction
constexpr int64_t kSide = kEdge + 2;          // its elements in each direction
constexpr int64_t kPositions = kSide * kSide; // matrices
constexpr int64_t kWindow = 9;                // elements of a window
constexpr int64_t kWeightChannels = kDepth;   // transformed at a time
constexpr int64_t kMostPatches = 112;         // of a block: as many as a panel's sums take of a core's L2
constexpr int64_t kStagedPatches = 14;        // side by side: their results fit a core's L1
constexpr int64_t kMostChannels = 4096;
constexpr int64_t kFewestChannels = 16;       // with fewer, transforming them takes longer than it saves
constexpr double kPatchCost = 1.15;           // of a position of a patch with its transforms, against one of a window
constexpr double kWeightCost = 5;             // of transforming a position of the weights
constexpr int64_t kItemsPerThread = 4;        // enough to even out a thread that loses its processor
constexpr int64_t kWorkToShare = 1 << 17;     // multiply-adds that pay for handing a range to another thread
constexpr int64_t kApartBytes = kDepth * kPositions * static_cast<int64_t>(sizeof(float));
static_assert(kMostPatches * kPositions * kWidestPanelBytes + kApartBytes <= kPatchSumsBytes);
static_assert(kStagedPatches * kEdge * kEdge * kWidestPanelBytes <= kPatchResultsBytes);
static_assert(kWeightChannels * kPositions * kWidestPanelBytes + kApartBytes <= kPatchWeightsBytes);

int64_t padded(int64_t channels) { return divide_up(channels, kDepth) * kDepth; }

alignas(64) constexpr float kNothing[kMostChannels] = {}; // a pixel outside

/// The distance between matrices of so many elements: one element of each does not fall on the same lines of the cache.
int64_t apart(int64_t elements) { return elements + kDepth; }

/// How many patches of a convolution fit a thread's scratch memory at once.
int64_t most_patches(int64_t channels) {
  int64_t floats = kPatchBytes / (kPositions * static_cast<int64_t>(sizeof(float))) - kDepth;
  return std::min(kMostPatches, floats / padded(std::max<int64_t>(channels, 1)));
}

/// Patches are cut into blocks; a block of transformed patches is multiplied with one panel of weights after another,
/// each of which is transformed before.
class Winograd {
public:
  Winograd(const DiscConvolution &convolution, int threads);
  void run(ThreadPool &pool) const;

private:
  struct Block {
    int64_t first = 0, rows = 0, tiles = 0;
    int64_t start[kMostPatches + 1]; // of each tile, and its end, among the rows
  };
  struct Patch {
    int64_t image, y, x;
  };

  Block block_of(int64_t number) const;
  void run_items(int64_t begin, int64_t end) const;
  void transform(const Block &block, float *target) const;
  void transform_weights(int64_t panel, int64_t channel, int64_t count, float *target) const;
  void multiply(const Block &block, int64_t panel, const Scratch &scratch) const;
  void write(const Block &block, int64_t panel, const Scratch &scratch) const;
  void write_patch(const Block &block, int64_t r, int64_t panel, const Scratch &scratch) const;
  void stage(const Block &block, int64_t r, int64_t patches, int64_t panel, const Scratch &scratch) const;
  void gather(const Block &block, int64_t r, int64_t width, float *const *pixels, const Scratch &scratch) const;
  Patch patch_of(int64_t number) const;

  const DiscConvolution &conv_;
  const DiscDot &dot_;
  int64_t high_, wide_, patches_, tiles_, panels_, padded_;
  int64_t blocks_ = 1, groups_ = 1;
  uint64_t call_ = next_call();
};

Winograd::Winograd(const DiscConvolution &convolution, int threads)
    : conv_(convolution), dot_(convolution.product), high_(divide_up(conv_.result_height, kEdge)),
      wide_(divide_up(conv_.result_width, kEdge)), patches_(conv_.images * high_ * wide_),
      tiles_(divide_up(patches_, dot_.tile_rows)), panels_(divide_up(dot_.n, dot_.tile_columns)),
      padded_(padded(conv_.channels)) {
  blocks_ = divide_up(tiles_, std::max<int64_t>(1, most_patches(conv_.channels) / dot_.tile_rows));
  int64_t even = threads / std::gcd<int64_t>(threads, blocks_);
  groups_ = threads == 1 ? 1 : std::min(divide_up(divide_up(kItemsPerThread * threads, blocks_), even) * even, panels_);
}

void Winograd::run(ThreadPool &pool) const {
  int64_t items = blocks_ * groups_;
  double work = static_cast<double>(patches_ * kPositions) * static_cast<double>(conv_.channels * dot_.n) /
                static_cast<double>(items);
  int64_t grain = std::max<int64_t>(1, kWorkToShare / std::max<int64_t>(1, static_cast<int64_t>(std::min(work, 1e15))));
  auto body = [](void *self, int64_t begin, int64_t end) { static_cast<const Winograd *>(self)->run_items(begin, end); };
  pool.run(body, const_cast<Winograd *>(this), items, grain);
  run_row_epilogue(pool, dot_);
}

Winograd::Block Winograd::block_of(int64_t number) const {
  int64_t first_tile = share(tiles_, blocks_, number), end_tile = share(tiles_, blocks_, number + 1);
  Block block;
  block.first = share(patches_, tiles_, first_tile);
  block.tiles = end_tile - first_tile;
  for (int64_t tile = 0; tile <= block.tiles; ++tile)
    block.start[tile] = share(patches_, tiles_, first_tile + tile) - block.first;
  block.rows = block.start[block.tiles];
  return block;
}

/// Items of one block follow each other, so that a thread transforms its patches once.
void Winograd::run_items(int64_t begin, int64_t end) const {
  Scratch scratch(call_);
  for (int64_t item = begin; item < end; ++item) {
    int64_t number = item / groups_, group = item % groups_;
    Block block = block_of(number);
    if (scratch.held() != number)
      transform(block, scratch.patches());
    scratch.hold(number);
    for (int64_t panel = share(panels_, groups_, group); panel < share(panels_, groups_, group + 1); ++panel) {
      multiply(block, panel, scratch);
      write(block, panel, scratch);
    }
  }
}

Winograd::Patch Winograd::patch_of(int64_t number) const {
  int64_t line = number / wide_;
  return {line / high_, line % high_ * kEdge, number % wide_ * kEdge};
}

/// A matrix for each position, packed as `pack_rows` does it, of patches with zeros outside of the input.
void Winograd::transform(const Block &block, float *target) const {
  for (int64_t tile = 0; tile < block.tiles; ++tile) {
    int64_t row = block.start[tile], rows = block.start[tile + 1] - row;
    float *place = target + row * padded_;
    for (int64_t r = 0; r < rows; ++r) {
      Patch patch = patch_of(block.first + row + r);
      const float *pixels[kPositions];
      for (int64_t i = 0; i < kPositions; ++i) {
        int64_t y = patch.y + i / kSide - conv_.row_padding, x = patch.x + i % kSide - conv_.column_padding;
        int64_t pixel = (patch.image * conv_.height + y) * conv_.width + x;
        bool is_inside = y >= 0 && y < conv_.height && x >= 0 && x < conv_.width;
        pixels[i] = is_inside ? static_cast<const float *>(conv_.input) + pixel * conv_.channels : kNothing;
      }
      for (int64_t k = 0; k < conv_.channels; k += kDepth)
        conv_.transform_patch(pixels, k, std::min(kDepth, conv_.channels - k), place + k * rows + r * kDepth,
                              apart(block.rows * padded_));
    }
  }
}

/// `count` channels of a panel: a packed matrix for each position, as for `pack_right`.
void Winograd::transform_weights(int64_t panel, int64_t channel, int64_t count, float *target) const {
  int64_t columns = dot_.tile_columns, row = dot_.b_k, width = std::min(columns, dot_.n - panel * columns);
  const float *source = static_cast<const float *>(dot_.b) + panel * columns;
  if (dot_.packed != nullptr) {
    source = static_cast<const float *>(dot_.packed) + panel * dot_.k * columns;
    row = width = columns;
  }
  source += channel * row;
  for (int64_t i = 0; i < count; ++i)
    conv_.transform_weights(source + i * row, conv_.channels * row, width, columns, target + i * columns,
                            apart(count * columns));
}

/// The weights are transformed for some channels at a time, and used before they leave the cache.
void Winograd::multiply(const Block &block, int64_t panel, const Scratch &scratch) const {
  int64_t columns = dot_.tile_columns, channels = conv_.channels;
  for (int64_t k = 0; k < std::max<int64_t>(channels, 1); k += kWeightChannels) {
    int64_t count = std::min(kWeightChannels, channels - k);
    transform_weights(panel, k, count, scratch.patch_weights());
    for (int64_t position = 0; position < kPositions; ++position) {
      const float *a = scratch.patches() + position * apart(block.rows * padded_);
      const float *right = scratch.patch_weights() + position * apart(count * columns);
      float *c = scratch.patch_sums() + position * apart(block.rows * columns);
      for (int64_t tile = 0; tile < block.tiles; ++tile) {
        int64_t row = block.start[tile], rows = block.start[tile + 1] - row;
        Ahead ahead = part_of(right + apart(count * columns), count * columns, count, tile, block.tiles);
        dot_.tile(rows, a + row * padded_ + k * rows, right, columns, c + row * columns, columns, count, k != 0,
                  ahead.first, ahead.step);
      }
    }
  }
}

/// Patches side by side are finished together; an epilogue has their results, line by line, while they are in cache.
void Winograd::write(const Block &block, int64_t panel, const Scratch &scratch) const {
  for (int64_t r = 0; r < block.rows;) {
    Patch patch = patch_of(block.first + r);
    int64_t side_by_side = std::min({block.rows - r, wide_ - patch.x / kEdge, kStagedPatches});
    if (has_tile_epilogue(dot_))
      stage(block, r, side_by_side, panel, scratch);
    else
      for (int64_t i = 0; i < side_by_side; ++i)
        write_patch(block, r + i, panel, scratch);
    r += side_by_side;
  }
}

void Winograd::write_patch(const Block &block, int64_t r, int64_t panel, const Scratch &scratch) const {
  int64_t columns = dot_.tile_columns, n0 = panel * columns;
  Patch patch = patch_of(block.first + r);
  float outside[kWidestPanelBytes / sizeof(float)];
  float *pixels[kEdge * kEdge];
  for (int64_t i = 0; i < kEdge * kEdge; ++i) {
    int64_t y = patch.y + i / kEdge, x = patch.x + i % kEdge;
    int64_t pixel = (patch.image * conv_.result_height + y) * conv_.result_width + x;
    bool is_inside = y < conv_.result_height && x < conv_.result_width;
    pixels[i] = is_inside ? static_cast<float *>(dot_.c) + pixel * dot_.c_m + n0 : outside;
  }
  gather(block, r, std::min(columns, dot_.n - n0), pixels, scratch);
}

void Winograd::stage(const Block &block, int64_t r, int64_t patches, int64_t panel, const Scratch &scratch) const {
  int64_t columns = dot_.tile_columns, n0 = panel * columns, step = patches * kEdge * columns;
  float *staged = scratch.patch_results(), *pixels[kEdge * kEdge];
  for (int64_t number = 0; number < patches; ++number) {
    for (int64_t i = 0; i < kEdge * kEdge; ++i)
      pixels[i] = staged + i / kEdge * step + (number * kEdge + i % kEdge) * columns;
    gather(block, r + number, columns, pixels, scratch);
  }
  Patch patch = patch_of(block.first + r);
  int64_t width = std::min(patches * kEdge, conv_.result_width - patch.x);
  for (int64_t y = 0; y < std::min(kEdge, conv_.result_height - patch.y); ++y) {
    int64_t pixel = (patch.image * conv_.result_height + patch.y + y) * conv_.result_width + patch.x;
    run_tile_epilogue(dot_, pixel, width, staged + y * step, columns, n0, std::min(dot_.n, n0 + columns));
  }
}

/// The results of one patch.
void Winograd::gather(const Block &block, int64_t r, int64_t width, float *const *pixels, const Scratch &scratch) const {
  int64_t columns = dot_.tile_columns;
  conv_.gather_patch(scratch.patch_sums() + r * columns, apart(block.rows * columns), width, pixels);
}

} // namespace

bool prefers_winograd(const DiscConvolution &convolution) {
  const DiscDot &dot = convolution.product;
  int64_t channels = convolution.channels;
  if (convolution.transform_patch == nullptr || std::min(channels, dot.n) < kFewestChannels ||
      channels > kMostChannels || most_patches(channels) < dot.tile_rows)
    return false;
  int64_t high = divide_up(convolution.result_height, kEdge), wide = divide_up(convolution.result_width, kEdge);
  int64_t patches = convolution.images * high * wide, blocks = divide_up(patches, most_patches(channels));
  double transformed = kPatchCost * static_cast<double>(patches) + kWeightCost * static_cast<double>(blocks);
  return kPositions * transformed < static_cast<double>(kWindow * dot.m);
}

void run_winograd(ThreadPool &pool, const DiscConvolution &convolution) {
  Winograd(convolution, pool.size()).run(pool);
}

} // namespace disc
