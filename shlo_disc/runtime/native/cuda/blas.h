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

/// All that the choice of an algorithm depends on.
struct BlasProblem {
  int64_t format = 0;
  bool by_tf32 = false;
  int64_t batch = 1;
  BlasOperand a, b, d;

  auto operator<=>(const BlasProblem &) const = default;
};

/// cuBLASLt on one GPU. The algorithms that it recommends are remembered by problem. Thread-safe.
class Blas {
public:
  /// `names`: paths and names that the library may be found by. `may_use_tf32`: products of f32 whose precision is the
  /// default take factors with the bits of TF32. Workspace comes from `allocator`.
  Blas(std::shared_ptr<Gpu> gpu, std::shared_ptr<Allocator> allocator, std::vector<std::string> names,
       bool may_use_tf32);
  ~Blas();
  Blas(const Blas &) = delete;
  Blas &operator=(const Blas &) = delete;

  /// Gives a product to the GPU's stream; false where there is no library, or none that takes it. Throws Error(device)
  /// naming the product by `name`.
  bool multiply(const DiscProduct &product, const std::string &name);

  /// The library's version as it gives it, such as 130200; 0 where there is none.
  int64_t version();

private:
  struct Plan;

  bool is_open();
  const Plan &plan_for(const BlasProblem &problem, const std::string &what);
  std::unique_ptr<Plan> chosen(const BlasProblem &problem, const std::string &what) const;
  void *workspace();

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<Allocator> allocator_;
  std::vector<std::string> names_;
  bool may_use_tf32_;
  std::mutex mutex_;
  std::optional<BlasLibrary> library_;
  BlasHandle handle_ = nullptr;
  std::map<BlasProblem, std::unique_ptr<Plan>> plans_;
  std::unique_ptr<Block> workspace_;
};

} // namespace disc::cuda
