// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running a loaded executable. On processors, a run that takes a while is handed to the device's worker, and the caller
// goes on with buffers that are not ready yet; a short one is over before a thread would have woken up. Of several
// devices, each has a thread for the time of the call, and its share of the pool.
#include "collectives/participants.h"
#include "collectives/spanning_run.h"
#include "cuda/gpu_device.h"
#include "cuda/gpu_run.h"
#include "device_call.h"
#include "interpreter/op.h"
#include "program/processors.h"

#include <algorithm>
#include <cstdio>
#include <x86intrin.h>

/// Frameworks pass data to custom calls in it; nothing here reads it.
struct PJRT_ExecuteContext {};

namespace disc::pjrt {

namespace {

constexpr size_t kMostRuns = 32; // of a device that have not ended: what their arguments keep is bounded

/// The arguments of a call that the caller gives away. Throws when one of them is an argument twice.
std::vector<PJRT_Buffer *> donated_arguments(const Code &code, const PJRT_ExecuteOptions *options,
                                             PJRT_Buffer *const *buffers, size_t count) {
  std::vector<PJRT_Buffer *> donated;
  const int64_t *kept = options ? options->non_donatable_input_indices : nullptr;
  const int64_t *end = kept ? kept + options->num_non_donatable_input_indices : nullptr;
  for (size_t i : code.donated)
    if (i < count && std::find(kept, end, static_cast<int64_t>(i)) == end)
      donated.push_back(buffers[i]);
  if (donated.empty())
    return donated;
  std::vector<PJRT_Buffer *> all(buffers, buffers + count);
  std::ranges::sort(all);
  for (PJRT_Buffer *buffer : donated)
    if (std::ranges::equal_range(all, buffer).size() > 1)
      fail_argument("a buffer is donated to '" + code.program().name + "' and is another of its arguments as well");
  return donated;
}

/// A number for a program's name, the same in all processes.
uint64_t number_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  for (char letter : name)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

/// One call on all devices, with all that its run needs.
struct Execution {
  std::shared_ptr<const Code> code;
  std::shared_ptr<const Placement> placement;
  std::vector<DeviceCall> calls; // one a device

  bool has_several_devices() const { return placement->device_ids.size() > 1; }
  bool is_on_gpus() const { return placement->client.has_gpus(); }

  /// Waits for the arguments, then runs the program.
  void run();
};

/// How the participants in this process reach those in others; null where there are none, or they do not exchange data.
std::unique_ptr<SpanningRun> spanning_run_of(const Placement &placement, const Code &code) {
  PJRT_Client &client = placement.client;
  const Processes &processes = client.processes;
  if (!placement.spans_processes() || !processes.transport)
    return nullptr;
  std::vector<SpanningRun::Place> places;
  for (int64_t id : placement.device_ids) {
    const PJRT_DeviceDescription &device = *client.device(id).description;
    places.push_back({device.process, device.local_id});
  }
  return std::make_unique<SpanningRun>(*processes.transport, std::move(places), number_of(code.program().name),
                                       client.next_run(placement.device_ids), processes.collective_timeout);
}

/// What a participant does; `position`: among the program's devices that are this process's.
using Participation = std::function<void(size_t position, Communicator &communicator)>;

/// Runs the program's participants in this process at once. spanning: how they reach those in others, or null.
void run_all(const Execution &execution, SpanningRun *spanning, const Participation &participate) {
  const std::vector<int64_t> &participants = execution.placement->participants;
  // Functions of others, such as a framework's callbacks, run where the caller's thread has no say.
  bool caller_waits = execution.code->calls_others;
  Rendezvous here(static_cast<int64_t>(execution.placement->device_ids.size()),
                  static_cast<int64_t>(participants.size()));
  Run &run = spanning ? static_cast<Run &>(*spanning) : here;
  run_participants(run, participants, caller_waits, [&](Communicator &communicator) {
    auto found = std::ranges::lower_bound(participants, communicator.participant());
    participate(static_cast<size_t>(found - participants.begin()), communicator);
  });
}

void run_on_processors(Execution &execution) {
  std::unique_ptr<SpanningRun> spanning = spanning_run_of(*execution.placement, *execution.code);
  run_all(execution, spanning.get(), [&](size_t i, Communicator &communicator) {
    auto &processors = static_cast<Processors &>(*execution.placement->devices[i]->runtime);
    ThreadPool &pool = processors.share(execution.calls.size(), i);
    ParticipantRuntime runtime(execution.calls[i].runtime(), pool, communicator);
    execution.calls[i].run(runtime.runtime());
  });
}

/// The GPUs of all participants; null for those in other processes.
cuda::Gpus gpus_of(const Placement &placement) {
  cuda::Gpus gpus(placement.device_ids.size());
  for (size_t i = 0; i < placement.devices.size(); ++i)
    gpus[static_cast<size_t>(placement.participants[i])] =
        static_cast<cuda::GpuDevice &>(*placement.devices[i]->runtime).gpu();
  return gpus;
}

/// What one GPU has been given may wait for another one: after a failure, that is ended.
void run_on(cuda::GpuRun &together, SpanningRun *spanning, Execution &execution) {
  try {
    run_all(execution, spanning, [&](size_t i, Communicator &communicator) {
      cuda::GpuParticipant participant(together, communicator, execution.calls[i].runtime());
      execution.calls[i].run(participant.runtime());
      together.finish(communicator, execution.calls[i].results.done.get());
    });
    if (!spanning)
      together.check();
  } catch (...) {
    together.abort();
    throw;
  }
}

void run_on_gpus(Execution &execution) {
  const Placement &placement = *execution.placement;
  const std::vector<CallSpec> &calls = execution.code->program().calls;
  if (std::unique_ptr<SpanningRun> spanning = spanning_run_of(placement, *execution.code)) {
    cuda::GpuRun together(gpus_of(placement), calls, *spanning, placement.device_ids, placement.client.groups);
    return run_on(together, spanning.get(), execution);
  }
  cuda::GpuRun together(gpus_of(placement), calls);
  run_on(together, nullptr, execution);
}

void Execution::run() {
  for (const DeviceCall &call : calls)
    call.wait();
  uint64_t start = __rdtsc();
  if (!has_several_devices())
    calls.front().run(calls.front().runtime());
  else
    is_on_gpus() ? run_on_gpus(*this) : run_on_processors(*this);
  code->run_time.set(__rdtsc() - start);
}

/// The results of one device, not yet the caller's.
struct Outputs {
  std::vector<std::unique_ptr<PJRT_Buffer>> buffers;
  std::shared_ptr<Signal> done; // null: all is done
};

/// The results of the run.
std::vector<Outputs> delivered(Execution &execution) {
  std::vector<Outputs> all(execution.calls.size());
  for (size_t i = 0; i < all.size(); ++i) {
    DeviceCall &call = execution.calls[i];
    if (call.results.done)
      all[i].done = call.device().worker.signal_of(call.results.done);
    all[i].buffers.reserve(call.results.leaves.size());
    for (size_t k = 0; k < call.results.leaves.size(); ++k)
      all[i].buffers.push_back(call.take_result(k, all[i].done));
  }
  return all;
}

using Promised = std::vector<std::vector<Storage>>; // elements to come, by device and result

/// Results to come, at the latest when `done` is set.
std::vector<Outputs> promised(const Execution &execution, Promised &elements, const std::shared_ptr<Signal> &done) {
  std::vector<Outputs> all(execution.calls.size());
  elements.resize(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].done = done;
    for (std::vector<int64_t> &dims : execution.calls[i].result_dims()) {
      elements[i].push_back(Storage::pending());
      all[i].buffers.push_back(execution.calls[i].result_to_come(all[i].buffers.size(), elements[i].back(),
                                                                 std::move(dims), done));
    }
  }
  return all;
}

void fill(const Promised &elements, Execution &execution) {
  for (size_t i = 0; i < elements.size(); ++i)
    for (size_t k = 0; k < elements[i].size(); ++k)
      elements[i][k].fill(std::move(execution.calls[i].results.leaves[k].block));
}

/// Whether the caller's thread runs the program.
///
/// It does where nobody else can: where results have sizes that only the run tells, where functions of others are called,
/// which may depend on the thread and wait for other calls, and where processes must run programs in one order. It waits
/// for runs that read memory which the caller may write. It is faster where the last run was short.
bool runs_here(const Execution &execution) {
  const Code &code = *execution.code;
  const PJRT_Client &client = execution.placement->client;
  if (client.has_gpus() || !client.is_asynchronous || !code.plans_results() || code.calls_others ||
      execution.placement->spans_processes() ||
      std::ranges::any_of(execution.calls, &DeviceCall::reads_foreign_memory))
    return true;
  bool is_short = code.not_compiled() || code.run_time.is_short();
  return is_short && std::ranges::none_of(execution.calls, &DeviceCall::awaits);
}

/// What a run fails with is the failure of its results, wherever it ran; where there are none to have it, of the call.
/// Throws interpreter::Unsupported for a program that is to be compiled.
std::vector<Outputs> run_here(Execution &execution) {
  try {
    execution.run();
    return delivered(execution);
  } catch (const interpreter::Unsupported &) {
    throw;
  } catch (...) {
    if (execution.is_on_gpus() || !execution.placement->client.is_asynchronous || !execution.code->plans_results())
      throw;
    auto done = std::make_shared<Signal>();
    done->set(current_failure());
    Promised nothing;
    return promised(execution, nothing, done);
  }
}

/// Has the worker of the first device run the program.
std::vector<Outputs> run_by_worker(Execution given) {
  auto execution = std::make_shared<Execution>(std::move(given));
  auto done = std::make_shared<Signal>();
  Promised elements;
  std::vector<Outputs> outputs = promised(*execution, elements, done);
  Worker &worker = execution->calls.front().device().worker;
  worker.give_within(kMostRuns, [execution = std::move(execution), elements = std::move(elements), done]() mutable {
    std::optional<Failure> failure = failure_of([&] {
      execution->run();
      fill(elements, *execution);
    });
    execution = nullptr; // whoever waits finds the memory of donated arguments free
    elements.clear();
    done->set(std::move(failure));
  });
  return outputs;
}

Execution execution_of(const PJRT_LoadedExecutable_Execute_Args &args, const PJRT_LoadedExecutable &loaded,
                       std::shared_ptr<const Code> code) {
  Execution execution{std::move(code), loaded.placement, {}};
  execution.calls.reserve(args.num_devices);
  for (size_t i = 0; i < args.num_devices; ++i) {
    bool is_chosen = args.execute_device && !execution.has_several_devices();
    PJRT_Device &device = is_chosen ? *args.execute_device : *loaded.placement->devices[i];
    execution.calls.emplace_back(*execution.code, device, std::span(args.argument_lists[i], args.num_args));
  }
  return execution;
}

std::vector<Outputs> run(const PJRT_LoadedExecutable_Execute_Args &args, PJRT_LoadedExecutable &loaded,
                         std::shared_ptr<const Code> code) {
  Execution execution = execution_of(args, loaded, std::move(code));
  if (const NotCompiled *not_compiled = execution.code->not_compiled();
      not_compiled && not_compiled->interpreted.may_stop) {
    try {
      return run_here(execution);
    } catch (const interpreter::Unsupported &) { // the run has changed nothing
      execution = execution_of(args, loaded, loaded.compiled());
    }
  }
  return runs_here(execution) ? run_here(execution) : run_by_worker(std::move(execution));
}

/// A hot program with code, or as it is where the compiler does not support it: what has run goes on.
std::shared_ptr<const Code> compiled_if_supported(PJRT_LoadedExecutable &loaded, std::shared_ptr<const Code> code) {
  try {
    return loaded.compiled();
  } catch (const Failure &failure) {
    if (failure.code != PJRT_Error_Code_UNIMPLEMENTED)
      throw;
    if (!code->not_compiled()->is_refused.exchange(true))
      std::fprintf(stderr, "shlo_disc: '%s' stays interpreted: %s\n", code->program().name.c_str(), failure.what());
    return code;
  }
}

void execute(PJRT_LoadedExecutable_Execute_Args &args) {
  PJRT_LoadedExecutable &loaded = given(args.executable, "executable");
  std::shared_ptr<const Code> code = loaded.loaded();
  if (code->is_hot())
    code = compiled_if_supported(loaded, std::move(code));
  size_t devices = loaded.placement->devices.size();
  if (args.num_devices != devices)
    fail_argument("the program runs on " + std::to_string(devices) + " devices, not on " +
                  std::to_string(args.num_devices));
  std::vector<PJRT_Buffer *> donated;
  for (PJRT_Buffer *const *list : given(args.argument_lists, args.num_devices, "argument_lists")) {
    std::span<PJRT_Buffer *const> buffers = given(list, args.num_args, "argument_lists");
    std::vector<PJRT_Buffer *> more = donated_arguments(*code, args.options, buffers.data(), buffers.size());
    donated.insert(donated.end(), more.begin(), more.end());
  }
  for (PJRT_Buffer **outputs : given(args.output_lists, args.num_devices, "output_lists"))
    given(outputs, code->program().results.size(), "output_lists");
  if (const std::shared_ptr<CallCount> &calls = code->first.compiled.calls)
    ++calls->value;
  std::vector<Outputs> outputs = run(args, loaded, std::move(code));
  for (size_t i = 0; i < args.num_devices; ++i) {
    for (size_t k = 0; k < outputs[i].buffers.size(); ++k)
      args.output_lists[i][k] = outputs[i].buffers[k].release();
    if (args.device_complete_events)
      args.device_complete_events[i] = outputs[i].done ? event_of(outputs[i].done) : ready_event();
  }
  for (PJRT_Buffer *buffer : donated)
    buffer->remove();
}

void context_create(PJRT_ExecuteContext_Create_Args &args) { args.context = new PJRT_ExecuteContext; }
void context_destroy(PJRT_ExecuteContext_Destroy_Args &args) { delete args.context; }

} // namespace

void add_execute_function(PJRT_Api &api) {
  api.PJRT_LoadedExecutable_Execute = entry<execute>;
  api.PJRT_ExecuteContext_Create = entry<context_create>;
  api.PJRT_ExecuteContext_Destroy = entry<context_destroy>;
}

} // namespace disc::pjrt
