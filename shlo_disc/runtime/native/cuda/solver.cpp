// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "solver.h"

#include "solver_call.h"

#include <array>

namespace disc::cuda {

namespace {

constexpr std::string_view kPrefix = "lapack_", kLetters = "sdcz";
constexpr std::array<DataType, 4> kTypes = {DataType::r32f, DataType::r64f, DataType::c32f, DataType::c64f};
constexpr std::array<const char *, 4> kNames = {"f32", "f64", "c64", "c128"};
constexpr std::array<int64_t, 4> kBytes = {4, 8, 8, 16};

Address address_of(const void *pointer) { return reinterpret_cast<Address>(pointer); }

/// The number of the type of the matrices in `kLetters`; as many as there are where there is none.
size_t index_of(const CallSpec &spec) {
  size_t found = spec.target.size() > kPrefix.size() ? kLetters.find(spec.target[kPrefix.size()]) : std::string::npos;
  return found == std::string::npos ? kLetters.size() : found;
}

const LapackFunction *function_of(const CallSpec &spec) {
  bool has_type = index_of(spec) < kLetters.size();
  return has_type ? lapack_function(std::string_view(spec.target).substr(kPrefix.size() + 1)) : nullptr;
}

/// Whether tensors are those of a signature, matrices having a rank of `rank`.
bool are(std::string_view signature, const std::vector<CallTensorSpec> &tensors, size_t index, int64_t rank) {
  auto name_of = [&](char type) {
    return std::string_view(type == 'i' ? "i32" : kNames[type == 'r' ? index % 2 : index]);
  };
  for (size_t i = 0; 2 * i < signature.size(); ++i) {
    char kind = signature[2 * i];
    int64_t fewer = kind == 'M' ? 0 : kind == 'V' ? 1 : 2;
    if (i >= tensors.size() || tensors[i].rank != rank - fewer || tensors[i].dtype != name_of(signature[2 * i + 1]))
      return false;
  }
  return true;
}

int64_t bytes_of(const std::string &dtype) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (dtype == kNames[i])
      return kBytes[i];
  return sizeof(int32_t);
}

std::vector<Entries> entries_of(const std::vector<CallTensorSpec> &specs, const CallTensor *tensors, int64_t count) {
  std::vector<Entries> found;
  for (size_t i = 0; i < specs.size(); ++i)
    found.push_back({tensors[i].as<char>(), tensors[i].elements() / count * bytes_of(specs[i].dtype)});
  return found;
}

} // namespace

bool is_lapack(const CallSpec &spec) { return !spec.custom && spec.target.starts_with(kPrefix); }

void check_lapack(const CallSpec &spec) {
  const LapackFunction *function = function_of(spec);
  if (!function)
    bad_artifact("header: there is no '" + spec.target + "' on GPUs");
  size_t operands = function->operands.size() / 2, results = function->results.size() / 2, index = index_of(spec);
  bool is_right = spec.operands.size() == operands && spec.results.size() == results + 1;
  int64_t rank = is_right ? spec.operands[0].rank : 0;
  if (rank < 2 || !are(function->operands, spec.operands, index, rank) ||
      !are(function->results, spec.results, index, rank))
    bad_artifact("header: the call of '" + spec.target + "' has wrong operands or results");
  SolverLibrary::instance();
  CublasLibrary::instance();
}

// ---- a call ---------------------------------------------------------------------------------------------------------

void *SolverCall::memory(int64_t bytes) {
  blocks.push_back(std::make_unique<Block>(allocator, bytes, BlockKind::arena));
  return blocks.back()->address();
}

Workspace SolverCall::workspace_of(size_t device_bytes, size_t host_bytes) {
  constexpr size_t info_bytes = 256; // what follows is aligned
  Workspace made;
  made.info = static_cast<int *>(memory(static_cast<int64_t>(info_bytes + device_bytes)));
  made.device = reinterpret_cast<char *>(made.info) + info_bytes;
  made.device_bytes = device_bytes;
  made.host_bytes = host_bytes;
  if (host_bytes > 0) {
    host_parts.push_back(std::make_unique<char[]>(host_bytes));
    made.host = host_parts.back().get();
  }
  return made;
}

void SolverCall::copy(size_t operand, size_t result, int64_t entry, int64_t count) const {
  const Entries &from = operands[operand], &to = results[result];
  if (from.first != to.first && from.bytes > 0)
    gpu.copy(address_of(to[entry]), address_of(from[entry]), static_cast<size_t>(from.bytes * count));
}

void **SolverCall::addresses(const Entries &of) {
  std::vector<void *> found;
  for (int64_t entry = 0; entry < entries; ++entry)
    found.push_back(of[entry]);
  auto bytes = found.size() * sizeof(void *);
  void *made = memory(static_cast<int64_t>(bytes));
  gpu.write(address_of(made), found.data(), bytes);
  return static_cast<void **>(made);
}

// ---- the libraries on a GPU -----------------------------------------------------------------------------------------

struct Solver::Handles {
  Handles(const Gpu &gpu, Allocator &allocator, const std::string &what) {
    auto make = [&](const auto &by, auto create) {
      by.check(with_released_memory(allocator, by.no_memory, create), what);
    };
    make(library, [&] { return library.create(&solver); });
    make(library, [&] { return library.create_options(&options); });
    make(cublas, [&] { return cublas.create(&blas); });
    library.check(library.set_stream(solver, gpu.stream()), what);
    cublas.check(cublas.set_stream(blas, gpu.stream()), what);
  }
  ~Handles() {
    if (blas)
      cublas.destroy(blas);
    if (options)
      library.destroy_options(options);
    if (solver)
      library.destroy(solver);
  }
  Handles(const Handles &) = delete;
  Handles &operator=(const Handles &) = delete;

  const SolverLibrary &library = SolverLibrary::instance();
  const CublasLibrary &cublas = CublasLibrary::instance();
  SolverHandle solver = nullptr;
  SolverOptions options = nullptr;
  CublasHandle blas = nullptr;
};

Solver::Solver(std::shared_ptr<Gpu> gpu, std::shared_ptr<Allocator> allocator)
    : gpu_(std::move(gpu)), allocator_(std::move(allocator)) {}

Solver::~Solver() {
  if (!handles_)
    return;
  try {
    gpu_->wait(); // for their work
    gpu_->within([&] { handles_.reset(); });
  } catch (const Error &) {
    static_cast<void>(handles_.release()); // they are gone with the context
  }
}

void Solver::run(const Call &call) {
  const LapackFunction &function = *function_of(call.spec);
  size_t index = index_of(call.spec);
  int64_t entries = Call::batch(call.operands[0], 2);
  std::string name = shown(function.shown, call.spec);
  std::string library = function.name == "trsm" ? "cuBLAS" : "cuSOLVER";
  std::string what = "compute " + name + " by " + library + " (GPU " + std::to_string(gpu_->ordinal()) + ")";
  if (entries == 0)
    return;
  std::lock_guard lock(mutex_);
  gpu_->within([&] {
    if (!handles_)
      handles_ = std::make_unique<Handles>(*gpu_, *allocator_, what);
    std::erase_if(kept_, [](const HostMemory &kept) {
      return kept.parts.empty() || (kept.end && kept.end->is_done());
    });
    HostMemory &host = kept_.emplace_back();
    SolverCall given{call, *gpu_, allocator_, handles_->solver, handles_->options, handles_->blas, what, host.parts};
    given.index = index;
    given.type = kTypes[index];
    given.real_type = kTypes[index % 2];
    given.element_bytes = kBytes[index];
    given.entries = entries;
    given.operands = entries_of(call.spec.operands, call.operands, entries);
    given.results = entries_of(call.spec.results, call.results, entries);
    gpu_->remember(std::make_shared<const std::vector<std::string>>(1, name));
    function.give(given);
    if (!host.parts.empty())
      host.end = gpu_->record();
  });
}

} // namespace disc::cuda
