// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "product_choice.h"

#include <algorithm>
#include <span>

namespace disc::cuda {

namespace {

/// Nanoseconds between two kernels of a stream, and bytes of memory in one.
constexpr double kLaunch = 2000, kBytes = 4000;

/// Rows and columns that the program's kernels round a result up to, at least, and those of the tiles of few rows; and
/// rows that a library's do, unless it is one row or one column.
constexpr int64_t kTile = 64, kFewRows = 16, kFewRowsColumns = 128, kLibraryTile = 128;

/// The multiprocessors of what was measured, an H200.
constexpr double kProcessors = 132;

/// How fast a kernel is: operations in a nanosecond where there is enough to do, and the nanoseconds for one step along
/// the depth where each multiprocessor has a tile at most.
struct Rate {
  double operations, step;
};

/// A library's kernels, the program's, and those of the latter that are told tensor maps; and the bytes of a factor.
struct Rates {
  Rate library, kernel, by_maps;
  double bytes;
};

/// Measured on an H200, but for tf32, f64, and the steps of bytes and of libraries.
Rates rates_of(ProductKind kind) {
  switch (kind) {
  case ProductKind::f32:
    return {{51e3, 0}, {29e3, 70}, {}, 4};
  case ProductKind::tf32:
    return {{300e3, 0}, {29e3, 70}, {}, 4};
  case ProductKind::f64:
    return {{50e3, 0}, {14e3, 100}, {}, 8};
  case ProductKind::halves:
    return {{760e3, 2}, {280e3, 8.7}, {650e3, 4.9}, 2};
  case ProductKind::bytes:
    return {{1300e3, 2}, {480e3, 8}, {1200e3, 3}, 1};
  }
  return {};
}

double rounded_up(int64_t size, int64_t tile) { return static_cast<double>((size + tile - 1) / tile * tile); }

/// The rows, columns and depth of a product's matrices, and how many of these there are; sizes may be rounded up.
struct Sizes {
  double m, n, k, matrices;

  double results() const { return matrices * m * n; }
  double factors() const { return matrices * k * (m + n); }
};

Sizes sizes_of(const DiscProduct &product, int64_t rows, int64_t columns) {
  Sizes sizes{rounded_up(product.m, rows), rounded_up(product.n, columns), static_cast<double>(product.k), 1};
  for (const DiscBatchAxis &axis : std::span(product.batch, static_cast<size_t>(product.batch_rank)))
    sizes.matrices *= static_cast<double>(axis.size);
  return sizes;
}

/// Nanoseconds that a kernel calculates, whose blocks have so many parts of the depth.
double time_of(const Rate &rate, const Sizes &sizes, double processors, double parts = 1) {
  return sizes.k * std::max(rate.step / parts, 2 * sizes.results() * kProcessors / processors / rate.operations);
}

/// The sizes of a result that the program's kernel computes; the one that is told maps has no tiles of few rows.
Sizes in_kernel(const DiscProduct &product, bool by_maps) {
  bool is_wide = !by_maps && product.m <= kFewRows;
  return is_wide ? sizes_of(product, kFewRows, kFewRowsColumns) : sizes_of(product, kTile, kTile);
}

} // namespace

int64_t parts_of(const DiscProduct &product) {
  // Programs of earlier versions have no such word: what `args` points to is there.
  const auto *behind = reinterpret_cast<const int64_t *>(&product + 1);
  return product.args && product.args >= behind ? product.parts : 0;
}

bool is_fused(const DiscProduct &product, ProductKind kind, int64_t sum_bytes, const ProductKernel &kernel) {
  Rates rates = rates_of(kind);
  Sizes sizes = sizes_of(product, 1, 1);
  bool is_vector = product.m == 1 || product.n == 1;
  Sizes in_library = is_vector ? sizes : sizes_of(product, kLibraryTile, kLibraryTile);
  double read = sizes.factors() * rates.bytes / kBytes;
  double library = std::max(read, time_of(rates.library, in_library, kernel.processors));
  double sum_time = 2 * sizes.results() * static_cast<double>(sum_bytes) / kBytes;
  const Rate &own = kernel.by_maps ? rates.by_maps : rates.kernel;
  auto parts = static_cast<double>(parts_of(product));
  double own_time = time_of(own, in_kernel(product, kernel.by_maps), kernel.processors, std::max(parts, 1.0));
  return std::max(read, own_time) + parts * sum_time <= library + kLaunch + sum_time;
}

} // namespace disc::cuda
