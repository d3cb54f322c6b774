// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "processors.h"

#include "core/error.h"
#include "kernels/attention.h"
#include "kernels/attention_gradient.h"
#include "kernels/blas.h"
#include "kernels/convolution.h"
#include "kernels/dot.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

namespace disc {

namespace {

struct LoopContext {
  DiscKernel kernel;
  const int64_t *args;
};

const RunContext &context_of(const DiscRuntime *runtime) { return *static_cast<const RunContext *>(runtime->opaque); }

ThreadPool &pool_of(const DiscRuntime *runtime) { return *context_of(runtime).pool; }

void launch(const DiscRuntime *runtime, DiscKernel kernel, const int64_t *args, int64_t total, int64_t grain,
            int64_t) {
  LoopContext context{kernel, args};
  auto body = [](void *opaque, int64_t begin, int64_t end) {
    auto *loop = static_cast<LoopContext *>(opaque);
    loop->kernel(loop->args, begin, end);
  };
  pool_of(runtime).run(body, &context, total, grain);
}

void dot(const DiscRuntime *runtime, const DiscDot *problem, int64_t) { run_dot(pool_of(runtime), *problem); }

void convolution(const DiscRuntime *runtime, const DiscConvolution *problem, int64_t) {
  run_convolution(pool_of(runtime), *problem);
}

void attention(const DiscRuntime *runtime, const DiscAttention *problem, int64_t) {
  run_attention(pool_of(runtime), *problem);
}

void attention_gradient(const DiscRuntime *runtime, const DiscAttentionGradient *problem, int64_t) {
  run_attention_gradient(pool_of(runtime), *problem);
}

void library_call(const DiscRuntime *runtime, int64_t index, const int64_t *words, int64_t) {
  const RunContext &context = context_of(runtime);
  try { // nothing is thrown through compiled code
    (*context.calls)[static_cast<size_t>(index)].run(*context.pool, words, index, context.communicator);
  } catch (const std::bad_alloc &) {
    report_no_memory();
  }
}

class ProcessorCommands : public Commands {
public:
  ProcessorCommands(ThreadPool &pool, const std::vector<CallSpec> &calls) : context_{&pool, &calls_, nullptr} {
    Blas::instance(); // is made now: a run must not throw
    for (const CallSpec &spec : calls)
      calls_.push_back({spec, bind_library_function(spec)});
    runtime_.launch = launch, runtime_.dot = dot, runtime_.opaque = &context_, runtime_.call = library_call;
    runtime_.convolution = convolution, runtime_.attention = attention;
    runtime_.attention_gradient = attention_gradient;
  }

protected:
  void check() const override { throw_failure(); }

private:
  std::vector<BoundCall> calls_;
  RunContext context_;
};

} // namespace

void Processors::write(void *to, const void *from, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }

void Processors::copy_rows(void *to, const void *from, const Rows &rows) {
  for (int64_t i = 0; i < rows.count; ++i)
    std::memcpy(static_cast<char *>(to) + i * rows.bytes, static_cast<const char *>(from) + i * rows.step,
                static_cast<size_t>(rows.bytes));
}

ThreadPool &Processors::share(size_t parts, size_t part) {
  if (parts == 1)
    return pool;
  {
    std::lock_guard lock(mutex_);
    if (auto found = shares_.find(parts); found != shares_.end())
      return *found->second[part];
  }
  Shares made; // without the lock: a pool takes another one
  while (made.size() < parts)
    made.push_back(std::make_unique<ThreadPool>(std::max(1, pool.size() / static_cast<int>(parts))));
  std::lock_guard lock(mutex_);
  return *shares_.try_emplace(parts, std::move(made)).first->second[part]; // another thread's, where it was first
}

std::unique_ptr<Commands> Processors::commands(const std::vector<CallSpec> &calls,
                                               const std::vector<KernelSpec> &kernels, std::string_view) {
  if (!kernels.empty())
    bad_artifact("the program is for a GPU, and is loaded for the CPU");
  return std::make_unique<ProcessorCommands>(pool, calls);
}

const std::shared_ptr<Processors> &default_device() {
  constexpr int64_t cache_limit = int64_t{1} << 30;
  static const auto *device =
      new std::shared_ptr<Processors>(std::make_shared<Processors>(0, 0, cache_limit, false));
  return *device;
}

ParticipantRuntime::ParticipantRuntime(const DiscRuntime &plain, ThreadPool &pool, Communicator &communicator)
    : context_(context_of(&plain)), runtime_(plain) {
  context_.pool = &pool;
  context_.communicator = &communicator;
  runtime_.opaque = &context_;
}

} // namespace disc
