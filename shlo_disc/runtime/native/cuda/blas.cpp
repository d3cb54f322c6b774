// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "blas.h"

#include "product_choice.h"

#include <algorithm>
#include <limits>
#include <span>

namespace disc::cuda {

namespace {

/// What there may be in use at a time: cuBLASLt's documentation recommends 32 MiB on Hopper, and less before.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

/// Algorithms that are remembered; beyond these, all are forgotten.
constexpr size_t kMostPlans = 4096;

constexpr uint64_t kMostAlignment = 256;

struct Format {
  int64_t bytes, result_bytes;
  DataType element, sum, result;
  ComputeType compute;
};

/// The element types that the library takes, in the order of lowering_gpu/product_block.py. Others follow there.
constexpr Format kFormats[] = {
    {4, 4, DataType::r32f, DataType::r32f, DataType::r32f, ComputeType::f32},
    {8, 8, DataType::r64f, DataType::r64f, DataType::r64f, ComputeType::f64},
    {2, 4, DataType::r16f, DataType::r32f, DataType::r32f, ComputeType::f32},
    {2, 4, DataType::r16bf, DataType::r32f, DataType::r32f, ComputeType::f32},
    {1, 4, DataType::r8i, DataType::r32i, DataType::r32i, ComputeType::i32},
    {2, 2, DataType::r16f, DataType::r32f, DataType::r16f, ComputeType::f32},
    {2, 2, DataType::r16bf, DataType::r32f, DataType::r16bf, ComputeType::f32},
};

/// The factors of A B and of C, in the type of the sums.
struct Factors {
  const void *one, *zero;
};

Factors factors_of(const Format &format) {
  static constexpr float f32[] = {1, 0};
  static constexpr double f64[] = {1, 0};
  static constexpr int32_t i32[] = {1, 0};
  if (format.compute == ComputeType::f64)
    return {&f64[0], &f64[1]};
  if (format.compute == ComputeType::i32)
    return {&i32[0], &i32[1]};
  return {&f32[0], &f32[1]};
}

ProductKind kind_of(const Format &format, bool by_tf32) {
  switch (format.element) {
  case DataType::r32f:
    return by_tf32 ? ProductKind::tf32 : ProductKind::f32;
  case DataType::r64f:
    return ProductKind::f64;
  case DataType::r8i:
    return ProductKind::bytes;
  default:
    return ProductKind::halves;
  }
}

/// A matrix of any strides, if BLAS can take it.
std::optional<BlasMatrix> stored(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  if ((row_stride == 1 || rows == 1) && (columns == 1 || column_stride >= rows))
    return BlasMatrix{rows, columns, columns == 1 ? rows : column_stride, false};
  if ((column_stride == 1 || columns == 1) && (rows == 1 || row_stride >= columns))
    return BlasMatrix{columns, rows, rows == 1 ? columns : row_stride, true};
  return std::nullopt;
}

/// The axes of a batch without those of one matrix, neighbours as one where each matrix follows the one before.
std::vector<DiscBatchAxis> merged(std::span<const DiscBatchAxis> axes) {
  std::vector<DiscBatchAxis> found;
  for (const DiscBatchAxis &axis : axes) {
    if (axis.size == 1)
      continue;
    DiscBatchAxis *last = found.empty() ? nullptr : &found.back();
    if (last && last->a == axis.a * axis.size && last->b == axis.b * axis.size && last->c == axis.c * axis.size)
      *last = {last->size * axis.size, axis.a, axis.b, axis.c};
    else
      found.push_back(axis);
  }
  return found;
}

/// The largest power of two, as far as matters, that an address and all strides from it, in bytes, are multiples of.
uint32_t alignment_of(const void *address, std::span<const DiscBatchAxis> axes, int64_t DiscBatchAxis::*stride,
                      int64_t bytes) {
  uint64_t bits = reinterpret_cast<uint64_t>(address) | kMostAlignment;
  for (const DiscBatchAxis &axis : axes)
    bits |= static_cast<uint64_t>(axis.*stride * bytes);
  return static_cast<uint32_t>(bits & -bits);
}

/// A product as the library takes it, in columns: D' = B' A' is C = A B in rows. `outer` are the axes of the batch for
/// each of whose indices it is called.
struct Call {
  BlasProblem problem;
  std::vector<DiscBatchAxis> outer;
};

std::optional<Call> call_of(const DiscProduct &p, bool by_tf32, const void *bias) {
  std::optional<BlasMatrix> a = stored(p.n, p.k, p.b_n, p.b_k), b = stored(p.k, p.m, p.a_k, p.a_m);
  std::optional<BlasMatrix> d = stored(p.n, p.m, 1, p.c_m);
  if (!a || !b || !d || d->is_transposed)
    return std::nullopt;
  std::vector<DiscBatchAxis> axes = merged({p.batch, static_cast<size_t>(p.batch_rank)});
  const Format &format = kFormats[p.format];
  Call call{{p.format, by_tf32, bias ? alignment_of(bias, {}, &DiscBatchAxis::a, 0) : 0, 1,
             {*a, 0, alignment_of(p.b, axes, &DiscBatchAxis::b, format.bytes)},
             {*b, 0, alignment_of(p.a, axes, &DiscBatchAxis::a, format.bytes)},
             {*d, 0, alignment_of(p.c, axes, &DiscBatchAxis::c, format.result_bytes)}},
            {}};
  if (auto longest = std::ranges::max_element(axes, {}, &DiscBatchAxis::size); longest != axes.end()) {
    if (longest->size > std::numeric_limits<int32_t>::max())
      return std::nullopt;
    call.problem.batch = longest->size;
    call.problem.a.stride = longest->b, call.problem.b.stride = longest->a, call.problem.d.stride = longest->c;
    axes.erase(longest);
  }
  call.outer = std::move(axes);
  return call;
}

/// The product that the library may compute in place of one and what follows it.
DiscProduct with_library_epilogue(DiscProduct product) {
  product.c = product.library_result, product.format = product.library_format;
  return product;
}

/// The addresses of the first matrices of a batch.
struct Addresses {
  const char *a, *b;
  char *c;
};

/// body(addresses) for all indices of `axes`.
template <typename Body>
void for_each(std::span<const DiscBatchAxis> axes, Addresses at, const Format &format, const Body &body) {
  if (axes.empty())
    return body(at);
  const DiscBatchAxis &axis = axes.front();
  for (int64_t i = 0; i < axis.size; ++i)
    for_each(axes.subspan(1),
             Addresses{at.a + i * axis.a * format.bytes, at.b + i * axis.b * format.bytes,
                       at.c + i * axis.c * format.result_bytes},
             format, body);
}

} // namespace

/// How a problem is solved; not at all where there is no algorithm.
struct Blas::Plan {
  explicit Plan(const BlasLibrary &given) : library(given) {}
  ~Plan() {
    for (LayoutHandle layout : {a, b, d})
      if (layout)
        library.destroy_layout(layout);
    if (matmul)
      library.destroy_matmul(matmul);
  }
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;

  LayoutHandle layout_of(const BlasOperand &operand, DataType type, int64_t batch, const std::string &what) const;

  const BlasLibrary &library;
  MatmulHandle matmul = nullptr;
  LayoutHandle a = nullptr, b = nullptr, d = nullptr;
  Algorithm algorithm{};
  size_t workspace = 0;
  bool is_solved = false;
};

LayoutHandle Blas::Plan::layout_of(const BlasOperand &operand, DataType type, int64_t batch,
                                   const std::string &what) const {
  const auto &[rows, columns, step, is_transposed] = operand.matrix;
  LayoutHandle layout = nullptr;
  library.check(library.create_layout(&layout, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), step),
                what);
  auto count = static_cast<int32_t>(batch);
  BlasStatus status = library.set_layout(layout, LayoutAttribute::batch_count, &count, sizeof count);
  if (status == kBlasSuccess)
    status = library.set_layout(layout, LayoutAttribute::batch_stride, &operand.stride, sizeof operand.stride);
  if (status != kBlasSuccess)
    library.destroy_layout(layout);
  library.check(status, what);
  return layout;
}

Blas::Blas(std::shared_ptr<Gpu> gpu, std::shared_ptr<Allocator> allocator, std::vector<std::string> names,
           bool may_use_tf32, std::optional<bool> fuses_products)
    : gpu_(std::move(gpu)), allocator_(std::move(allocator)), names_(std::move(names)), may_use_tf32_(may_use_tf32),
      fuses_products_(fuses_products) {}

Blas::~Blas() {
  try {
    if (!handle_)
      return;
    gpu_->wait(); // for products of its own
    gpu_->within([&] {
      plans_.clear();
      library_->destroy(handle_);
    });
  } catch (const Error &) {
    // It is gone with the context; what is left of it on the host goes with the process.
    for (auto &[problem, plan] : plans_)
      static_cast<void>(plan.release());
  }
}

/// Whether there is a library; looks for it, and creates its handle, when asked first. Names are tried once.
bool Blas::is_open() {
  if (!library_ && !names_.empty()) {
    library_ = BlasLibrary::open(names_);
    names_.clear();
  }
  if (library_ && !handle_)
    gpu_->within([&] { library_->check(library_->create(&handle_), "start cuBLASLt on a GPU"); });
  return library_.has_value();
}

int64_t Blas::version() {
  std::lock_guard lock(mutex_);
  return is_open() ? static_cast<int64_t>(library_->version()) : 0;
}

/// Memory that all products of the GPU use, one after the other, at an address that stays the same.
void *Blas::workspace() {
  if (!workspace_)
    workspace_ = std::make_unique<Block>(allocator_, kWorkspaceBytes, BlockKind::constant);
  return workspace_->address();
}

std::unique_ptr<Blas::Plan> Blas::chosen(const BlasProblem &problem, const void *bias, const std::string &what) const {
  const BlasLibrary &library = *library_;
  const Format &format = kFormats[problem.format];
  auto plan = std::make_unique<Plan>(library);
  library.check(library.create_matmul(&plan->matmul, problem.by_tf32 ? ComputeType::f32_by_tf32 : format.compute,
                                      format.sum),
                what);
  auto transpose = [&](MatmulAttribute attribute, const BlasOperand &operand) {
    Operation operation = operand.matrix.is_transposed ? Operation::transpose : Operation::none;
    library.check(library.set_matmul(plan->matmul, attribute, &operation, sizeof operation), what);
  };
  transpose(MatmulAttribute::transpose_a, problem.a);
  transpose(MatmulAttribute::transpose_b, problem.b);
  if (bias) { // of whose address the algorithm depends on the alignment
    LibraryEpilogue epilogue = LibraryEpilogue::bias;
    library.check(library.set_matmul(plan->matmul, MatmulAttribute::epilogue, &epilogue, sizeof epilogue), what);
    library.check(library.set_matmul(plan->matmul, MatmulAttribute::bias, &bias, sizeof bias), what);
  }
  plan->a = plan->layout_of(problem.a, format.element, problem.batch, what);
  plan->b = plan->layout_of(problem.b, format.element, problem.batch, what);
  plan->d = plan->layout_of(problem.d, format.result, problem.batch, what);

  PreferenceHandle preference = nullptr;
  library.check(library.create_preference(&preference), what);
  std::unique_ptr<PreferenceState, BlasStatus (*)(PreferenceHandle)> held(preference, library.destroy_preference);
  auto prefer = [&](PreferenceAttribute attribute, const auto &value) {
    library.check(library.set_preference(preference, attribute, &value, sizeof value), what);
  };
  prefer(PreferenceAttribute::workspace_bytes, uint64_t{kWorkspaceBytes});
  prefer(PreferenceAttribute::alignment_a, problem.a.alignment);
  prefer(PreferenceAttribute::alignment_b, problem.b.alignment);
  prefer(PreferenceAttribute::alignment_c, problem.d.alignment);
  prefer(PreferenceAttribute::alignment_d, problem.d.alignment);
  Heuristic best{};
  int count = 0;
  BlasStatus status = library.find_algorithms(handle_, plan->matmul, plan->a, plan->b, plan->d, plan->d, preference, 1,
                                              &best, &count);
  if (status != kBlasNotSupported)
    library.check(status, what);
  plan->is_solved = status == kBlasSuccess && count > 0 && best.state == kBlasSuccess;
  plan->algorithm = best.algorithm, plan->workspace = best.workspace;
  return plan;
}

const Blas::Plan &Blas::plan_for(const BlasProblem &problem, const void *bias, const std::string &what) {
  if (auto known = plans_.find(problem); known != plans_.end())
    return *known->second;
  if (plans_.size() >= kMostPlans)
    plans_.clear();
  return *plans_.emplace(problem, chosen(problem, bias, what)).first->second;
}

bool Blas::is_by_tf32(const DiscProduct &product) const {
  bool is_f32 = kFormats[product.format].element == DataType::r32f;
  return is_f32 && (product.precision == 2 || (product.precision == 1 && may_use_tf32_));
}

Multiplied Blas::multiply(const DiscProduct &product, const std::string &name, bool by_maps) {
  if (product.format >= static_cast<int64_t>(std::size(kFormats)) || product.k == 0)
    return Multiplied::nothing;
  std::lock_guard lock(mutex_);
  bool is_followed = product.epilogue >= 0;
  if (is_followed && fuses_products_ == true)
    return Multiplied::nothing;
  if (!is_open())
    return Multiplied::nothing;
  std::string what = "multiply the matrices of " + name + " by cuBLASLt (GPU " + std::to_string(gpu_->ordinal()) + ")";
  if (product.library_result && give(with_library_epilogue(product), product.bias, what, name))
    return Multiplied::all;
  const Format &format = kFormats[product.format];
  ProductKernel kernel{by_maps, static_cast<double>(gpu_->facts().multiprocessors)};
  if (is_followed && !fuses_products_ &&
      is_fused(product, kind_of(format, is_by_tf32(product)), format.result_bytes, kernel))
    return Multiplied::nothing;
  if (!give(product, nullptr, what, name))
    return Multiplied::nothing;
  return is_followed ? Multiplied::product : Multiplied::all;
}

/// Gives a product, plus a bias unless that is null, to the library; false where it takes none.
bool Blas::give(const DiscProduct &product, const void *bias, const std::string &what, const std::string &name) {
  std::optional<Call> call = call_of(product, is_by_tf32(product), bias);
  if (!call)
    return false;
  bool is_taken = true;
  gpu_->within([&] {
    const Plan &plan = plan_for(call->problem, bias, what);
    is_taken = plan.is_solved;
    if (!is_taken)
      return;
    if (bias)
      library_->check(library_->set_matmul(plan.matmul, MatmulAttribute::bias, &bias, sizeof bias), what);
    void *room = plan.workspace ? workspace() : nullptr;
    const Format &format = kFormats[product.format];
    Factors factors = factors_of(format);
    gpu_->remember(std::make_shared<const std::vector<std::string>>(1, name));
    Addresses first{static_cast<const char *>(product.a), static_cast<const char *>(product.b),
                    static_cast<char *>(product.c)};
    for_each(call->outer, first, format, [&](const Addresses &at) {
      library_->check(library_->multiply(handle_, plan.matmul, factors.one, at.b, plan.a, at.a, plan.b, factors.zero,
                                         at.c, plan.d, at.c, plan.d, &plan.algorithm, room, plan.workspace,
                                         gpu_->stream()),
                      what);
    });
  });
  return is_taken;
}

} // namespace disc::cuda
