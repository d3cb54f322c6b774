// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fft.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace disc::cuda {

namespace {

enum Kind : int64_t { complex_to_complex = 0, real_to_complex = 1, complex_to_real = 2 };

constexpr size_t kMostPlans = 256; // each has tables in the memory of the GPU

Address address_of(const void *pointer) { return reinterpret_cast<Address>(pointer); }

int64_t product_of(const CallTensor &tensor, int64_t first, int64_t end) {
  int64_t product = 1;
  for (int64_t axis = first; axis < end; ++axis)
    product *= tensor.dims[axis];
  return product;
}

/// A call as cuFFT takes it: the same problem for each of `outer` parts of the arrays, `source_step` and `target_step`
/// bytes apart.
struct Transforms {
  FftProblem problem;
  FftDirection direction{};
  int64_t outer = 1, source_step = 0, target_step = 0;
};

Transforms transforms_of(const Call &call) {
  const CallTensor &source = call.operands[0], &target = call.results[0];
  int64_t kind = call.spec.attribute("kind"), rank = call.spec.attribute("rank"), skip = call.spec.attribute("skip");
  int64_t first = source.rank - skip - rank, end = first + rank;
  bool is_wide = call.spec.target == "fft_f64";
  DataType real = is_wide ? DataType::r64f : DataType::r32f, complex = is_wide ? DataType::c64f : DataType::c32f;
  int64_t real_bytes = is_wide ? 8 : 4;

  Transforms found;
  found.direction = call.spec.attribute("inverse") != 0 ? FftDirection::inverse : FftDirection::forward;
  FftProblem &problem = found.problem;
  problem.rank = rank;
  const CallTensor &whole = kind == complex_to_real ? target : source;
  std::copy_n(whole.dims + first, rank, problem.lengths.begin());
  int64_t outer = product_of(source, 0, first), inner = product_of(source, end, source.rank);
  auto side = [&](const CallTensor &tensor, bool is_real) {
    FftProblem::Side made{.type = is_real ? real : complex, .sizes = {}, .distance = 1};
    std::copy_n(tensor.dims + first, rank, made.sizes.begin());
    int64_t elements = product_of(tensor, first, end), bytes = is_real ? real_bytes : 2 * real_bytes;
    if (inner == 1)
      made.distance = elements;
    return std::pair(made, elements * inner * bytes);
  };
  std::tie(problem.source, found.source_step) = side(source, kind == real_to_complex);
  std::tie(problem.target, found.target_step) = side(target, kind == complex_to_real);
  problem.stride = inner;
  problem.batch = inner == 1 ? outer : inner;
  found.outer = inner == 1 ? 1 : outer;
  return found;
}

} // namespace

bool is_fft(const CallSpec &spec) { return !spec.custom && (spec.target == "fft_f32" || spec.target == "fft_f64"); }

void check_fft(const CallSpec &spec) {
  int64_t kind = spec.attribute("kind"), rank = spec.attribute("rank"), skip = spec.attribute("skip");
  bool is_right = spec.operands.size() == 1 && spec.results.size() == 2 && kind >= 0 && kind <= complex_to_real &&
                  rank >= 1 && rank <= 3 && skip >= 0 && (kind == complex_to_complex || (rank == 1 && skip == 0));
  std::string real = spec.target == "fft_f64" ? "f64" : "f32", complex = spec.target == "fft_f64" ? "c128" : "c64";
  if (!is_right || spec.operands[0].rank < rank + skip || spec.results[0].rank != spec.operands[0].rank ||
      spec.operands[0].dtype != (kind == real_to_complex ? real : complex) ||
      spec.results[0].dtype != (kind == complex_to_real ? real : complex))
    bad_artifact("header: the call of '" + spec.target + "' has wrong operands or results");
  FftLibrary::instance();
}

struct Fft::Plan {
  Plan(const FftLibrary &given, const std::string &what) : library(given) {
    library.check(library.create(&handle), what);
  }
  ~Plan() { library.destroy(handle); }
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;

  const FftLibrary &library;
  FftHandle handle = 0;
  size_t workspace = 0;
};

Fft::Fft(std::shared_ptr<Gpu> gpu, std::shared_ptr<Allocator> allocator)
    : gpu_(std::move(gpu)), allocator_(std::move(allocator)) {}

Fft::~Fft() {
  if (plans_.empty())
    return;
  try {
    gpu_->wait(); // for transforms
    gpu_->within([&] { plans_.clear(); });
  } catch (const Error &) {
    for (auto &[problem, plan] : plans_) // they are gone with the context
      static_cast<void>(plan.release());
  }
}

Fft::Plan &Fft::plan_for(const FftProblem &problem, const std::string &what) {
  if (auto known = by_problem_.find(problem); known != by_problem_.end()) {
    plans_.splice(plans_.begin(), plans_, known->second);
    return *known->second->second;
  }
  if (plans_.size() >= kMostPlans) {
    gpu_->wait(); // for its transforms
    by_problem_.erase(plans_.back().first);
    plans_.pop_back();
  }
  const FftLibrary &library = FftLibrary::instance();
  auto plan = std::make_unique<Plan>(library, what);
  library.check(library.set_auto_allocation(plan->handle, 0), what);
  std::array<long long, 3> lengths{}, source{}, target{};
  std::ranges::copy(problem.lengths, lengths.begin());
  std::ranges::copy(problem.source.sizes, source.begin());
  std::ranges::copy(problem.target.sizes, target.begin());
  bool is_wide = problem.source.type == DataType::r64f || problem.source.type == DataType::c64f;
  auto make = [&] {
    return library.make_plan(plan->handle, static_cast<int>(problem.rank), lengths.data(), source.data(),
                             problem.stride, problem.source.distance, problem.source.type, target.data(),
                             problem.stride, problem.target.distance, problem.target.type, problem.batch,
                             &plan->workspace, is_wide ? DataType::c64f : DataType::c32f);
  };
  library.check(with_released_memory(*allocator_, kFftNoMemory, make), what);
  library.check(library.set_stream(plan->handle, gpu_->stream()), what);
  plans_.emplace_front(problem, std::move(plan));
  by_problem_.emplace(problem, plans_.begin());
  return *plans_.front().second;
}

void Fft::run(const Call &call) {
  if (call.operands[0].elements() == 0 || call.results[0].elements() == 0)
    return;
  Transforms found = transforms_of(call);
  std::string name = shown("a Fourier transform", call.spec);
  std::string what = "compute " + name + " by cuFFT (GPU " + std::to_string(gpu_->ordinal()) + ")";
  std::lock_guard lock(mutex_);
  gpu_->within([&] {
    const FftLibrary &library = FftLibrary::instance();
    Plan &plan = plan_for(found.problem, what);
    auto *source = static_cast<char *>(call.operands[0].data), *target = static_cast<char *>(call.results[0].data);
    // cuFFT may write to the operand of a transform to real numbers.
    std::optional<Block> copied, room;
    if (call.spec.attribute("kind") == complex_to_real) {
      int64_t bytes = found.source_step * found.problem.batch;
      copied.emplace(allocator_, bytes, BlockKind::arena);
      gpu_->copy(address_of(copied->address()), address_of(source), static_cast<size_t>(bytes));
      source = static_cast<char *>(copied->address());
    }
    if (plan.workspace) {
      room.emplace(allocator_, static_cast<int64_t>(plan.workspace), BlockKind::arena);
      library.check(library.set_work_area(plan.handle, room->address()), what);
    }
    gpu_->remember(std::make_shared<const std::vector<std::string>>(1, name));
    for (int64_t i = 0; i < found.outer; ++i)
      library.check(library.execute(plan.handle, source + i * found.source_step, target + i * found.target_step,
                                    found.direction),
                    what);
  });
}

} // namespace disc::cuda
