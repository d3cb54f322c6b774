// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sharded_run.h"

#include "collectives/participants.h"
#include "cuda/gpu_device.h"
#include "cuda/gpu_run.h"

#include <utility>

namespace disc {

namespace {

using Body = std::function<Results(size_t position, Communicator &communicator)>;

std::vector<Results> run_all(const ShardedRun &run, const Body &body) {
  std::vector<Results> results(run.cores.size());
  bool calls_others = run.cores.front()->calls_others();
  run_participants(static_cast<int64_t>(results.size()), calls_others, [&](Communicator &communicator) {
    auto position = static_cast<size_t>(communicator.participant());
    results[position] = body(position, communicator);
  });
  return results;
}

std::vector<Results> run_on_processors(ShardedRun &run) {
  return run_all(run, [&](size_t i, Communicator &communicator) {
    ThreadPool &pool = static_cast<Processors &>(*run.cores[i]->device()).share(run.cores.size(), i);
    ParticipantRuntime runtime(run.cores[i]->runtime(), pool, communicator);
    return run.cores[i]->run(run.plans[i], std::move(run.buffers[i]), run.cores[i]->constant_forms(), runtime.runtime());
  });
}

/// On one GPU alone there are no collectives.
std::vector<Results> run_on_one_gpu(ShardedRun &run) {
  Executable &core = *run.cores.front();
  std::vector<Results> results;
  results.push_back(core.run(run.plans.front(), std::move(run.buffers.front()), {}, core.runtime()));
  return results;
}

/// What one GPU has been given may wait for another one: after a failure, that is ended.
std::vector<Results> run_on_gpus(ShardedRun &run) {
  cuda::Gpus gpus;
  for (const std::shared_ptr<Executable> &core : run.cores)
    gpus.push_back(static_cast<cuda::GpuDevice &>(*core->device()).gpu());
  cuda::GpuRun together(std::move(gpus), run.cores.front()->program().calls);
  try {
    std::vector<Results> results = run_all(run, [&](size_t i, Communicator &communicator) {
      cuda::GpuParticipant here(together, communicator, run.cores[i]->runtime());
      return run.cores[i]->run(run.plans[i], std::move(run.buffers[i]), {}, here.runtime());
    });
    together.check();
    return results;
  } catch (...) {
    together.abort();
    throw;
  }
}

} // namespace

std::vector<Results> run_sharded(ShardedRun run) {
  if (run.cores.front()->device()->is_host())
    return run_on_processors(run);
  std::vector<Results> results = run.cores.size() == 1 ? run_on_one_gpu(run) : run_on_gpus(run);
  for (size_t i = 0; i < results.size(); ++i)
    if (run.waits[i])
      results[i].done->wait();
  return results;
}

} // namespace disc
