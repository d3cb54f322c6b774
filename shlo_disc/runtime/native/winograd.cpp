// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "winograd.h"

#include "gemm_blocks.h"

#include <algorithm>
#include <emmintrin.h>
#include <numeric>

namespace disc {

namespace {

using namespace gemm;

constexpr int64_t kMostPatches = 56;          // of a block: as many as a panel's sums take of a core's L2
constexpr double kReadCost = 22;              // of a weight from memory, against its use for one row
constexpr int64_t kFewestChannels = 16;       // with fewer, transforming them takes longer than it saves
constexpr double kTransformCost = 1.15;       // of a position of a patch, against one of a window
constexpr int64_t kItemsPerThread = 4;        // enough to even out a thread that loses its processor
constexpr int64_t kWorkToShare = 1 << 17;     // multiply-adds that pay for handing a range to another thread
static_assert(kMostPatches * kPositions * kWidestPanelBytes <= kPatchSumsBytes);

int64_t padded(int64_t channels) { return divide_up(channels, kDepth) * kDepth; }

/// How many patches of a convolution fit a thread's room at once.
int64_t most_patches(int64_t channels) {
  return std::min(kMostPatches, kPatchBytes / (kPositions * padded(channels) * static_cast<int64_t>(sizeof(float))));
}

void transform_panel(const DiscDot &weights, int64_t panel, float *target);

/// Patches are cut into blocks; a block of transformed patches is multiplied with one panel of weights after another.
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
  const float *weights_of(int64_t panel, const Scratch &scratch) const;
  void multiply(const Block &block, const float *right, const float *patches, float *sums) const;
  void write(const Block &block, int64_t panel, const float *sums) const;
  Patch patch_of(int64_t number) const;

  const DiscConvolution &conv_;
  const DiscDot &dot_;
  int64_t high_, wide_, patches_, tiles_, panels_, padded_;
  int64_t blocks_ = 1, groups_ = 1;
};

Winograd::Winograd(const DiscConvolution &convolution, int threads)
    : conv_(convolution), dot_(convolution.product), high_(divide_up(conv_.result_height, 2)),
      wide_(divide_up(conv_.result_width, 2)), patches_(conv_.images * high_ * wide_),
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

/// Items of one block follow each other, so that its patches are transformed once.
void Winograd::run_items(int64_t begin, int64_t end) const {
  Scratch scratch;
  int64_t held = -1;
  for (int64_t item = begin; item < end; ++item) {
    int64_t number = item / groups_, group = item % groups_;
    Block block = block_of(number);
    if (held != number)
      transform(block, scratch.patches());
    held = number;
    for (int64_t panel = share(panels_, groups_, group); panel < share(panels_, groups_, group + 1); ++panel) {
      multiply(block, weights_of(panel, scratch), scratch.patches(), scratch.patch_sums());
      write(block, panel, scratch.patch_sums());
    }
  }
}

Winograd::Patch Winograd::patch_of(int64_t number) const {
  int64_t line = number / wide_;
  return {line / high_, line % high_ * 2, number % wide_ * 2};
}

/// A matrix for each position, packed as `pack_rows` does it. What a patch at an edge has outside of the input reaches
/// no result: the last row or column stands in for it.
void Winograd::transform(const Block &block, float *target) const {
  for (int64_t tile = 0; tile < block.tiles; ++tile) {
    int64_t row = block.start[tile], rows = block.start[tile + 1] - row;
    float *place = target + row * padded_;
    for (int64_t r = 0; r < rows; ++r) {
      Patch patch = patch_of(block.first + row + r);
      const float *pixels[kPositions];
      for (int64_t i = 0; i < kPositions; ++i) {
        int64_t y = std::min(patch.y + i / 4, conv_.height - 1), x = std::min(patch.x + i % 4, conv_.width - 1);
        int64_t pixel = (patch.image * conv_.height + y) * conv_.width + x;
        pixels[i] = static_cast<const float *>(conv_.input) + pixel * conv_.channels;
      }
      for (int64_t k = 0; k < conv_.channels; k += kDepth)
        conv_.transform_patch(pixels, k, std::min(kDepth, conv_.channels - k), place + k * rows + r * kDepth,
                              block.rows * padded_);
    }
  }
}

/// The transformed weights of a panel: made once for all calls, or here and now.
const float *Winograd::weights_of(int64_t panel, const Scratch &scratch) const {
  if (conv_.transformed != nullptr)
    return static_cast<const float *>(conv_.transformed) + panel * kPositions * conv_.channels * dot_.tile_columns;
  transform_panel(dot_, panel, scratch.patch_weights());
  return scratch.patch_weights();
}

void Winograd::multiply(const Block &block, const float *right, const float *patches, float *sums) const {
  int64_t columns = dot_.tile_columns, channels = conv_.channels;
  for (int64_t position = 0; position < kPositions; ++position) {
    const float *a = patches + position * block.rows * padded_;
    float *c = sums + position * block.rows * columns;
    for (int64_t k = 0; k < std::max<int64_t>(channels, 1); k += kChunk) {
      int64_t count = std::min(kChunk, channels - k);
      for (int64_t tile = 0; tile < block.tiles; ++tile) {
        int64_t row = block.start[tile], rows = block.start[tile + 1] - row;
        dot_.tile(rows, a + row * padded_ + k * rows, right + k * columns, columns, c + row * columns, columns, count,
                  k != 0);
      }
    }
    right += channels * columns;
  }
}

void Winograd::write(const Block &block, int64_t panel, const float *sums) const {
  int64_t columns = dot_.tile_columns, n0 = panel * columns, width = std::min(columns, dot_.n - n0);
  float outside[kWidestPanelBytes / sizeof(float)];
  for (int64_t r = 0; r < block.rows; ++r) {
    Patch patch = patch_of(block.first + r);
    float *pixels[4];
    for (int64_t i = 0; i < 4; ++i) {
      int64_t y = patch.y + i / 2, x = patch.x + i % 2;
      int64_t pixel = (patch.image * conv_.result_height + y) * conv_.result_width + x;
      bool is_inside = y < conv_.result_height && x < conv_.result_width;
      pixels[i] = is_inside ? static_cast<float *>(dot_.c) + pixel * dot_.c_m + n0 : outside;
    }
    conv_.gather_patch(sums + r * columns, block.rows * columns, width, pixels);
  }
}

/// G applied to three vectors of four columns: g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2.
void expand(__m128 g0, __m128 g1, __m128 g2, __m128 *result) {
  __m128 half = _mm_set1_ps(0.5F), outer = _mm_add_ps(g0, g2);
  result[0] = g0;
  result[1] = _mm_mul_ps(half, _mm_add_ps(outer, g1));
  result[2] = _mm_mul_ps(half, _mm_sub_ps(outer, g1));
  result[3] = g2;
}

/// G g G' for four columns of one channel; windows are `step` elements apart in `weights`, positions `to` in `target`.
void transform_columns(const float *weights, int64_t step, float *target, int64_t to) {
  __m128 g[3][3], rows[3][4], result[4];
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j)
      g[i][j] = _mm_loadu_ps(weights + (3 * i + j) * step);
    expand(g[i][0], g[i][1], g[i][2], rows[i]);
  }
  for (int j = 0; j < 4; ++j) {
    expand(rows[0][j], rows[1][j], rows[2][j], result);
    for (int i = 0; i < 4; ++i)
      _mm_storeu_ps(target + (4 * i + j) * to, result[i]);
  }
}

/// Panel `panel` of the transformed weights.
void transform_panel(const DiscDot &weights, int64_t panel, float *target) {
  constexpr int64_t lanes = 4;
  int64_t columns = weights.tile_columns, channels = weights.k / kWindow;
  int64_t width = std::min(columns, weights.n - panel * columns), step = channels * weights.b_k;
  const float *b = static_cast<const float *>(weights.b) + panel * columns;
  for (int64_t channel = 0; channel < channels; ++channel, b += weights.b_k, target += columns) {
    for (int64_t column = 0; column < columns; column += lanes) {
      if (column + lanes <= width) {
        transform_columns(b + column, step, target + column, channels * columns);
        continue;
      }
      float rest[kWindow * lanes] = {};
      for (int64_t i = 0; i < kWindow; ++i)
        for (int64_t j = column; j < width; ++j)
          rest[i * lanes + j - column] = b[i * step + j];
      transform_columns(rest, lanes, target + column, channels * columns);
    }
  }
}

} // namespace

void pack_winograd(ThreadPool &pool, const DiscDot &weights, float *target) {
  struct Job {
    const DiscDot &weights;
    float *target;
  } job{weights, target};
  auto body = [](void *opaque, int64_t begin, int64_t end) {
    const Job &job = *static_cast<const Job *>(opaque);
    int64_t elements = kPositions * (job.weights.k / kWindow) * job.weights.tile_columns;
    for (int64_t panel = begin; panel < end; ++panel)
      transform_panel(job.weights, panel, job.target + panel * elements);
  };
  pool.run(body, &job, divide_up(weights.n, weights.tile_columns), 1);
}

bool prefers_winograd(const DiscConvolution &convolution) {
  const DiscDot &dot = convolution.product;
  int64_t channels = convolution.channels, fewest = std::min(channels, dot.n);
  bool fits = convolution.transformed != nullptr || kPositions * channels * kWidestPanelBytes <= kPatchWeightsBytes;
  if (convolution.transform_patch == nullptr || fewest < kFewestChannels || !fits ||
      most_patches(channels) < dot.tile_rows)
    return false;
  int64_t high = divide_up(convolution.result_height, 2), wide = divide_up(convolution.result_width, 2);
  int64_t patches = convolution.images * high * wide;
  double whole = kWindow * (static_cast<double>(dot.m) + kReadCost);
  return kPositions * (kTransformCost * static_cast<double>(patches) + kReadCost) < whole;
}

void run_winograd(ThreadPool &pool, const DiscConvolution &convolution) {
  Winograd(convolution, pool.size()).run(pool);
}

} // namespace disc
