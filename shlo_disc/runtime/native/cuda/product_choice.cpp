// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "product_choice.h"

#include <span>

namespace disc::cuda {

namespace {

/// Nanoseconds between two kernels of a stream, and bytes of memory in one.
constexpr double kLaunch = 2000, kBytes = 2000;

/// Operations in a nanosecond.
struct Rates {
  double library, kernel;
};

Rates rates_of(ProductKind kind) {
  switch (kind) {
  case ProductKind::f32:
    return {30e3, 15e3};
  case ProductKind::tf32:
    return {200e3, 15e3};
  case ProductKind::f64:
    return {30e3, 7e3};
  case ProductKind::halves:
    return {400e3, 200e3};
  case ProductKind::bytes:
    return {800e3, 200e3};
  }
  return {1, 1};
}

} // namespace

bool is_fused(const DiscProduct &product, ProductKind kind, int64_t sum_bytes, std::optional<bool> fuses_products) {
  if (fuses_products)
    return *fuses_products;
  double sums = static_cast<double>(product.m) * static_cast<double>(product.n);
  for (const DiscBatchAxis &axis : std::span(product.batch, static_cast<size_t>(product.batch_rank)))
    sums *= static_cast<double>(axis.size);
  Rates rates = rates_of(kind);
  double saved = kLaunch + 2 * sums * static_cast<double>(sum_bytes) / kBytes;
  double lost = 2 * sums * static_cast<double>(product.k) * (1 / rates.kernel - 1 / rates.library);
  return lost <= saved;
}

} // namespace disc::cuda
