// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running a loaded executable: on the caller's thread, so that results are there when the call returns. Of several
// devices, each but the first has a thread of its own for the time of the call.
#include "collectives/participants.h"
#include "collectives/spanning_run.h"
#include "cuda/collectives.h"
#include "cuda/gpu_device.h"
#include "program/trace.h"
#include "executable.h"
#include "types.h"

#include <algorithm>

/// Frameworks pass data to custom calls in it; nothing here reads it.
struct PJRT_ExecuteContext {};

namespace disc::pjrt {

namespace {

/// The arguments of one call, with a share of their memory.
struct CallArguments {
  std::vector<Storage> elements;
  std::vector<int64_t> dims; // of all, in order
};

std::string shape_text(DType dtype, Sizes dims) {
  std::string text(info(dtype).numpy);
  text += "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

/// A copy of the elements in another order.
Storage relaid(const PJRT_Buffer &buffer, const Storage &elements, const Layout &order, const Executable &executable) {
  const std::shared_ptr<Processors> &host = default_device();
  auto block = std::make_shared<Block>(host->allocator, buffer.bytes(), BlockKind::argument);
  buffer.ordered(on_host(buffer, elements), order).copy_to(block->address());
  return moved(Storage(std::move(block)), buffer.bytes(), *host, *executable.device());
}

/// An array that lies otherwise than the program takes it is copied: a framework need not know how it lies.
CallArguments read_arguments(const Code &code, const Compiled &here, PJRT_Buffer *const *buffers, size_t count) {
  const Program &program = code.program();
  if (count != code.argument_count())
    fail_argument("the program '" + program.name + "' takes " + std::to_string(code.argument_count()) +
                  " arguments, not " + std::to_string(count));
  CallArguments arguments;
  arguments.elements.reserve(program.arguments.size());
  arguments.dims.reserve(program.argument_dims);
  for (size_t i = 0; i < count; ++i) {
    const PJRT_Buffer &buffer = given(buffers[i], "argument_lists");
    const ArraySpec &spec = program.arguments[i];
    if (buffer.dtype != spec.dtype || buffer.dims.size() != spec.shape.size())
      fail_argument("argument " + std::to_string(i) + " of '" + program.name + "' is " +
                    shape_text(buffer.dtype, buffer.dims) + "; the program takes " +
                    std::string(info(spec.dtype).numpy) + spec.shape_text());
    const Layout &layout = *code.argument_layouts[i];
    Storage elements = buffer.elements();
    bool lies_so = &buffer.layout == &layout;
    if (!lies_so)
      elements = relaid(buffer, elements, layout, *here.executable);
    else if (disc::Device &runs = *here.executable->device(); buffer.memory->place.get() != &runs)
      elements = moved(elements, buffer.bytes(), *buffer.memory->place, runs);
    arguments.elements.push_back(std::move(elements));
    for (size_t dim : layout.major_to_minor)
      arguments.dims.push_back(buffer.dims[dim]);
  }
  for (const std::shared_ptr<Block> &block : here.hidden)
    arguments.elements.push_back(Storage(block));
  return arguments;
}

/// The plan that was made for the program's sizes, when the arguments have them; else the one for theirs.
std::shared_ptr<const Plan> plan_of(const Code &code, const Placed &here, const CallArguments &arguments) {
  if (here.plan && std::equal(arguments.dims.begin(), arguments.dims.end(), here.plan->words.begin() + 1))
    return here.plan;
  if (!here.compiled.hidden.empty())
    fail_argument("an argument of '" + code.program().name + "' has another size than the program");
  return here.compiled.executable->plan(arguments.dims);
}

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

/// The results of one device, not yet the caller's.
struct Outputs {
  std::vector<std::unique_ptr<PJRT_Buffer>> buffers;
  std::shared_ptr<Signal> done; // null: all is done
};

/// Runs an executable; its steps are recorded when a profiler wants them.
Results run_traced(const Executable &executable, std::shared_ptr<const Plan> plan, std::vector<void *> addresses,
                   const PackedForms &forms, const DiscRuntime &runtime) {
  std::shared_ptr<Recording> recording = current_recording();
  if (!recording)
    return executable.run(std::move(plan), std::move(addresses), forms, runtime);
  SpanRecorder whole(recording, executable.program().name);
  StepRecorder steps(executable, runtime, recording);
  return executable.run(std::move(plan), std::move(addresses), forms, steps.runtime());
}

/// Runs the program on one device.
Outputs run(const Code &code, const Placed &here, PJRT_Device &device, std::span<PJRT_Buffer *const> buffers,
            const DiscRuntime &runtime) {
  const Executable &executable = *here.compiled.executable;
  CallArguments arguments = read_arguments(code, here.compiled, buffers.data(), buffers.size());
  std::vector<void *> addresses;
  addresses.reserve(executable.buffer_count());
  for (const Storage &elements : arguments.elements)
    addresses.push_back(elements.get());
  PackedForms forms(executable.constant_forms());
  for (size_t i = 0; i < forms.size(); ++i)
    if (const PackSpec &spec = code.program().packs[i]; spec.buffer < buffers.size() &&
        &buffers[spec.buffer]->layout == code.argument_layouts[spec.buffer])
      forms[i] = elements_of(buffers[spec.buffer]->forms.form(executable, spec, arguments.elements[spec.buffer]));
  Results results = run_traced(executable, plan_of(code, here, arguments), std::move(addresses), forms, runtime);
  Outputs outputs;
  outputs.buffers.reserve(results.leaves.size());
  if (results.done)
    outputs.done = device.worker.signal_of(results.done);
  for (size_t i = 0; i < results.leaves.size(); ++i) {
    const ArraySpec &spec = code.program().results[i];
    Results::Leaf &leaf = results.leaves[i];
    Layout &layout = *code.output_layouts[i];
    std::vector<int64_t> dims = array_sizes({leaf.shape, spec.shape.size()}, layout);
    PJRT_Memory *memory = device.memory_list[code.output_memories[i]];
    int64_t bytes = leaf.block->bytes();
    Storage elements = moved(Storage(std::move(leaf.block)), bytes, *executable.device(), *memory->place);
    outputs.buffers.push_back(std::make_unique<PJRT_Buffer>(std::move(elements), spec.dtype, std::move(dims), layout,
                                                            memory, nullptr, outputs.done));
  }
  return outputs;
}

/// A number for a program's name, the same in all processes.
uint64_t number_of(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  for (char letter : name)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

/// How the participants in this process reach each other and those in others.
std::unique_ptr<Run> run_of(PJRT_LoadedExecutable &loaded, const Code &code) {
  const Processes &processes = loaded.client.processes;
  if (!loaded.spans_processes() || !processes.transport)
    return std::make_unique<Rendezvous>(static_cast<int64_t>(loaded.device_ids.size()),
                                        static_cast<int64_t>(loaded.devices.size()));
  std::vector<SpanningRun::Place> places;
  for (int64_t id : loaded.device_ids) {
    const PJRT_DeviceDescription &device = *loaded.client.device(id).description;
    places.push_back({device.process, device.local_id});
  }
  return std::make_unique<SpanningRun>(*processes.transport, std::move(places), number_of(code.program().name),
                                       loaded.client.next_run(loaded.device_ids), processes.collective_timeout);
}

/// What a participant does; `position`: among the program's devices that are this process's.
using Participation = std::function<void(size_t position, Communicator &communicator)>;

/// Runs the program's participants in this process at once.
void run_all(PJRT_LoadedExecutable &loaded, const Code &code, const Participation &participate) {
  // Functions of others, such as a framework's callbacks, run where the caller's thread has no say.
  bool caller_waits = code.first.compiled.executable->calls_others();
  run_participants(*run_of(loaded, code), loaded.participants, caller_waits, [&](Communicator &communicator) {
    auto found = std::ranges::lower_bound(loaded.participants, communicator.participant());
    participate(static_cast<size_t>(found - loaded.participants.begin()), communicator);
  });
}

using Arguments = std::span<const std::span<PJRT_Buffer *const>>; // of each device

std::vector<Outputs> run_on_processors(PJRT_LoadedExecutable &loaded, const Code &code, Arguments buffers) {
  std::vector<Outputs> outputs(loaded.devices.size());
  run_all(loaded, code, [&](size_t i, Communicator &communicator) {
    ParticipantRuntime runtime(code.first.compiled.executable->runtime(), communicator);
    outputs[i] = run(code, code.first, *loaded.devices[i], buffers[i], runtime.runtime());
  });
  return outputs;
}

/// What one GPU has been given may wait for another one: after a failure, that is ended.
std::vector<Outputs> run_on_gpus(PJRT_LoadedExecutable &loaded, const Code &code, Arguments buffers) {
  cuda::Gpus gpus;
  for (PJRT_Device *device : loaded.devices)
    gpus.push_back(static_cast<cuda::GpuDevice &>(*device->runtime).gpu());
  cuda::GpuRun together(std::move(gpus), code.program().calls);
  std::vector<Outputs> outputs(loaded.devices.size());
  try {
    run_all(loaded, code, [&](size_t i, Communicator &communicator) {
      const Placed &here = code.on(*loaded.devices[i]);
      cuda::GpuParticipant participant(together, communicator, here.compiled.executable->runtime());
      outputs[i] = run(code, here, *loaded.devices[i], buffers[i], participant.runtime());
    });
    together.check();
  } catch (...) {
    together.abort();
    throw;
  }
  return outputs;
}

std::vector<Outputs> run_on(PJRT_LoadedExecutable &loaded, const Code &code, PJRT_Device *device, Arguments buffers) {
  if (loaded.device_ids.size() > 1)
    return loaded.client.has_gpus() ? run_on_gpus(loaded, code, buffers) : run_on_processors(loaded, code, buffers);
  PJRT_Device &chosen = device ? *device : *loaded.devices.front();
  const Placed &here = code.on(chosen);
  std::vector<Outputs> outputs;
  outputs.push_back(run(code, here, chosen, buffers.front(), here.compiled.executable->runtime()));
  return outputs;
}

void execute(PJRT_LoadedExecutable_Execute_Args &args) {
  PJRT_LoadedExecutable &loaded = given(args.executable, "executable");
  std::shared_ptr<const Code> code = loaded.loaded();
  if (args.num_devices != loaded.devices.size())
    fail_argument("the program runs on " + std::to_string(loaded.devices.size()) + " devices, not on " +
                  std::to_string(args.num_devices));
  std::vector<std::span<PJRT_Buffer *const>> buffers;
  for (size_t i = 0; i < args.num_devices; ++i)
    buffers.push_back(given((&given(args.argument_lists, "argument_lists"))[i], args.num_args, "argument_lists"));
  for (PJRT_Buffer **outputs : given(args.output_lists, args.num_devices, "output_lists"))
    given(outputs, code->program().results.size(), "output_lists");
  std::vector<PJRT_Buffer *> donated;
  for (std::span<PJRT_Buffer *const> given_buffers : buffers) {
    std::vector<PJRT_Buffer *> more =
        donated_arguments(*code, args.options, given_buffers.data(), given_buffers.size());
    donated.insert(donated.end(), more.begin(), more.end());
  }
  if (const std::shared_ptr<CallCount> &calls = code->first.compiled.calls)
    ++calls->value;
  std::vector<Outputs> outputs = run_on(loaded, *code, args.execute_device, buffers);
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
