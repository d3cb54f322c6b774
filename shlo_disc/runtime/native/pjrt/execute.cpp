// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running a loaded executable: on the caller's thread, so that results are there when the call returns.
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

CallArguments read_arguments(const Code &code, PJRT_Buffer *const *buffers, size_t count) {
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
    arguments.elements.push_back(buffer.elements());
    arguments.dims.insert(arguments.dims.end(), buffer.dims.begin(), buffer.dims.end());
  }
  for (const std::shared_ptr<Block> &block : code.compiled.hidden)
    arguments.elements.push_back(storage_of(block));
  return arguments;
}

/// The plan that was made for the program's sizes, when the arguments have them; else the one for theirs.
std::shared_ptr<const Plan> plan_of(const Code &code, const CallArguments &arguments) {
  if (code.plan && std::equal(arguments.dims.begin(), arguments.dims.end(), code.plan->words.begin() + 1))
    return code.plan;
  if (!code.compiled.hidden.empty())
    fail_argument("an argument of '" + code.program().name + "' has another size than the program");
  return code.compiled.executable->plan(arguments.dims);
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

void run(const Code &code, PJRT_Memory *memory, PJRT_Buffer *const *buffers, size_t count, PJRT_Buffer **outputs) {
  const Executable &executable = *code.compiled.executable;
  CallArguments arguments = read_arguments(code, buffers, count);
  std::vector<void *> addresses;
  addresses.reserve(executable.buffer_count());
  for (const Storage &elements : arguments.elements)
    addresses.push_back(elements.get());
  PackedForms forms(executable.constant_forms());
  for (size_t i = 0; i < forms.size(); ++i)
    if (const PackSpec &spec = code.program().packs[i]; spec.buffer < count)
      forms[i] = buffers[spec.buffer]->forms.form(executable, spec, arguments.elements[spec.buffer].get());
  Results results = executable.run(plan_of(code, arguments), std::move(addresses), forms, executable.runtime());
  for (size_t i = 0; i < results.leaves.size(); ++i) {
    const ArraySpec &spec = code.program().results[i];
    Results::Leaf &leaf = results.leaves[i];
    outputs[i] = new PJRT_Buffer(storage_of(std::move(leaf.block)), spec.dtype,
                                 {leaf.shape, leaf.shape + spec.shape.size()}, memory);
  }
}

void execute(PJRT_LoadedExecutable_Execute_Args &args) {
  PJRT_LoadedExecutable &loaded = given(args.executable, "executable");
  std::shared_ptr<const Code> code = loaded.loaded();
  if (args.num_devices != 1)
    fail_argument("the program runs on one device, not on " + std::to_string(args.num_devices));
  PJRT_Buffer *const *buffers = given(args.argument_lists, "argument_lists");
  PJRT_Buffer **outputs = given(args.output_lists, "output_lists");
  PJRT_Device *device = args.execute_device ? args.execute_device : loaded.devices.front();
  std::vector<PJRT_Buffer *> donated = donated_arguments(*code, args.options, buffers, args.num_args);
  run(*code, device->default_memory(), buffers, args.num_args, outputs);
  for (PJRT_Buffer *buffer : donated)
    buffer->remove();
  if (args.device_complete_events)
    args.device_complete_events[0] = ready_event();
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
