// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix products by cuBLASLt.
#pragma once

#include "blas_library.h"
#include "core/abi.h"
#include "core/memory.h"
#include "gpu.h"

#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace disc::cuda {

/// A matrix as BLAS takes it: columns of neighbours, `step` elements apart; or the transposed one of such a matrix.
struct BlasMatrix {
  int64_t rows = 0, columns = 0, step = 0;
  bool is_transposed = false;

  auto operator<=>(const BlasMatrix &) const = default;
};

/// A matrix of a product for as long as a batch goes: its layout, the elements to the next one, and what all of their
/// addresses are multiples of.
struct BlasOperand {
  BlasMatrix matrix;
  int64_t stride = 0;
  uint32_t alignment = 0;

  auto operator<=>(const BlasOperand &) const = default;
};

/// All that the choice of an algorithm depends on. `bias_alignment`: what the address of a bias is a multiple of; 0 for
/// none.
struct BlasProblem {
  int64_t format = 0;
  bool by_tf32 = false;
  uint32_t bias_alignment = 0;
  int64_t batch = 1;
  BlasOperand a, b, d;

  auto operator<=>(const BlasProblem &) const = default;
};

/// What has been done of a product and what follows it: nothing, so that the program's kernel has both to do; the
/// product alone; or all.
enum class Multiplied { nothing, product, all };

/// cuBLASLt on one GPU. The algorithms that it recommends are remembered by problem. Thread-safe.
class Blas {
public:
  /// `names`: paths and names that the library may be found by. `may_use_tf32`: products of f32 whose precision is the
  /// default take factors with the bits of TF32. `fuses_products`: what the user says of products with
  /// what follows them, in place of `is_fused`. Workspace comes from `allocator`.
  Blas(std::shared_ptr<Gpu> gpu, std::shared_ptr<Allocator> allocator, std::vector<std::string> names,
       bool may_use_tf32, std::optional<bool> fuses_products);
  ~Blas();
  Blas(const Blas &) = delete;
  Blas &operator=(const Blas &) = delete;

  /// Gives a product to the GPU's stream, with what follows it where the library does just that; nothing where there is
  /// no library, or none that takes it, or where a kernel of both is better. Throws Error(device) naming the product by
  /// `name`. `by_maps`: the kernel is told tensor maps, where it can be.
  Multiplied multiply(const DiscProduct &product, const std::string &name, bool by_maps);

  /// The library's version as it gives it, such as 130200; 0 where there is none.
  int64_t version();

private:
  struct Plan;

  bool is_open();
  bool is_by_tf32(const DiscProduct &product) const;
  bool give(const DiscProduct &product, const void *bias, const std::string &what, const std::string &name);
  const Plan &plan_for(const BlasProblem &problem, const void *bias, const std::string &what);
  std::unique_ptr<Plan> chosen(const BlasProblem &problem, const void *bias, const std::string &what) const;
  void *workspace();

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<Allocator> allocator_;
  std::vector<std::string> names_;
  bool may_use_tf32_;
  std::optional<bool> fuses_products_;
  std::mutex mutex_;
  std::optional<BlasLibrary> library_;
  BlasHandle handle_ = nullptr;
  std::map<BlasProblem, std::unique_ptr<Plan>> plans_;
  std::unique_ptr<Block> workspace_;
};

} // namespace disc::cuda
