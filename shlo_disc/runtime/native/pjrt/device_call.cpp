// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_call.h"

#include "program/trace.h"
#include "types.h"

#include <algorithm>

namespace disc::pjrt {

namespace {

std::string shape_text(DType dtype, Sizes dims) {
  std::string text(info(dtype).numpy);
  text += "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

/// A copy of the elements in another order.
Storage relaid(const PJRT_Buffer &buffer, const Storage &elements, const Layout &order, disc::Device &runs) {
  const std::shared_ptr<Processors> &host = default_device();
  auto block = std::make_shared<Block>(host->allocator, buffer.bytes(), BlockKind::argument);
  buffer.ordered(on_host(buffer, elements), order).copy_to(block->address());
  return moved(Storage(std::move(block)), buffer.bytes(), *host, runs);
}

/// Whether the arrays, as a program takes them, have these sizes, which follow each other.
bool have_sizes(std::span<PJRT_Buffer *const> buffers, const std::vector<Layout *> &layouts, const int64_t *sizes) {
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t dim : layouts[i]->major_to_minor)
      if (buffers[i]->dims[dim] != *sizes++)
        return false;
  return true;
}

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

} // namespace

DeviceCall::DeviceCall(const Code &code, PJRT_Device &device, std::span<PJRT_Buffer *const> buffers)
    : code_(code), here_(code.on(device)), device_(device) {
  const Program &program = code_.program();
  if (buffers.size() != code_.argument_count())
    fail_argument("the program '" + program.name + "' takes " + std::to_string(code_.argument_count()) +
                  " arguments, not " + std::to_string(buffers.size()));
  elements_.reserve(program.arguments.size());
  for (size_t i = 0; i < buffers.size(); ++i)
    read(given(buffers[i], "argument_lists"), i);
  for (const std::shared_ptr<Block> &block : here_.compiled.hidden)
    elements_.push_back(Storage(block));
  forms_.resize(program.packs.size());
  for (size_t i = 0; i < forms_.size(); ++i)
    if (size_t argument = program.packs[i].buffer; argument < buffers.size() &&
        &buffers[argument]->layout == code_.argument_layouts[argument])
      forms_[i] = buffers[argument]->forms();
  plan_ = plan_for(buffers);
}

void DeviceCall::read(PJRT_Buffer &buffer, size_t index) {
  const ArraySpec &spec = code_.program().arguments[index];
  if (buffer.dtype != spec.dtype || buffer.dims.size() != spec.shape.size())
    fail_argument("argument " + std::to_string(index) + " of '" + code_.program().name + "' is " +
                  shape_text(buffer.dtype, buffer.dims) + "; the program takes " +
                  std::string(info(spec.dtype).numpy) + spec.shape_text());
  const Layout &layout = *code_.argument_layouts[index];
  elements_.push_back(elements_of(buffer, layout));
  reads_foreign_memory_ |= elements_.back().is_foreign();
}

/// An array that lies otherwise than the program takes it is copied: a framework need not know how it lies.
Storage DeviceCall::elements_of(PJRT_Buffer &buffer, const Layout &layout) {
  disc::Device &runs = *here_.compiled.executable->device();
  if (&buffer.layout != &layout)
    return relaid(buffer, buffer.elements(), layout, runs);
  if (buffer.memory->place.get() != &runs)
    return moved(buffer.elements(), buffer.bytes(), *buffer.memory->place, runs);
  if (!runs.is_host())
    return buffer.elements();
  if (buffer.ready && !buffer.ready->has_succeeded())
    awaited_.push_back(buffer.ready);
  return buffer.share();
}

/// The plan that was made for the program's sizes, when the arguments have them; else the one for theirs.
std::shared_ptr<const Plan> DeviceCall::plan_for(std::span<PJRT_Buffer *const> buffers) const {
  if (here_.plan && have_sizes(buffers, code_.argument_layouts, here_.plan->words.data() + 1))
    return here_.plan;
  if (!here_.compiled.hidden.empty())
    fail_argument("an argument of '" + code_.program().name + "' has another size than the program");
  std::vector<int64_t> dims; // of all, in order
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t dim : code_.argument_layouts[i]->major_to_minor)
      dims.push_back(buffers[i]->dims[dim]);
  return here_.compiled.executable->plan(dims);
}

void DeviceCall::wait() const {
  for (const std::shared_ptr<Signal> &signal : awaited_)
    signal->check();
}

void DeviceCall::run(const DiscRuntime &runtime) {
  const Executable &executable = *here_.compiled.executable;
  std::vector<void *> addresses;
  addresses.reserve(executable.buffer_count());
  for (const Storage &elements : elements_)
    addresses.push_back(elements.get());
  PackedForms forms(executable.constant_forms());
  std::vector<std::shared_ptr<ArrayForm>> arrays;
  std::vector<OfferedForm *> offered;
  for (size_t i = 0; i < forms.size(); ++i) {
    if (!forms_[i])
      continue;
    const PackSpec &spec = code_.program().packs[i];
    arrays.push_back(std::make_shared<ArrayForm>(*forms_[i], spec, elements_[spec.buffer]));
    offered.push_back(arrays.back().get());
    forms[i] = {arrays.back(), offered.back()};
  }
  if (offered.empty()) {
    results = run_traced(executable, plan_, std::move(addresses), forms, runtime);
    return;
  }
  CheckingRuntime checking(runtime, executable, std::move(offered));
  results = run_traced(executable, plan_, std::move(addresses), forms, checking.runtime());
}

std::vector<std::vector<int64_t>> DeviceCall::result_dims() const {
  const Program &program = code_.program();
  const SegmentSpec &segment = program.segments.front();
  std::vector<std::vector<int64_t>> dims(program.results.size());
  const int64_t *stored = plan_->words.data() + segment.result_word;
  for (size_t leaf : segment.results) {
    size_t rank = program.results[leaf].shape.size();
    dims[leaf] = array_sizes({stored, rank}, *code_.output_layouts[leaf]);
    stored += rank;
  }
  return dims;
}

std::unique_ptr<PJRT_Buffer> DeviceCall::take_result(size_t index, std::shared_ptr<Signal> done) {
  Results::Leaf &leaf = results.leaves[index];
  const ArraySpec &spec = code_.program().results[index];
  Layout &layout = *code_.output_layouts[index];
  std::vector<int64_t> dims = array_sizes({leaf.shape, spec.shape.size()}, layout);
  PJRT_Memory *memory = device_.memory_list[code_.output_memories[index]];
  int64_t bytes = leaf.block->bytes();
  Storage elements = moved(Storage(std::move(leaf.block)), bytes, *here_.compiled.executable->device(), *memory->place);
  return std::make_unique<PJRT_Buffer>(std::move(elements), spec.dtype, std::move(dims), layout, memory, nullptr,
                                       std::move(done));
}

std::unique_ptr<PJRT_Buffer> DeviceCall::result_to_come(size_t index, Storage elements, std::vector<int64_t> dims,
                                                        std::shared_ptr<Signal> ready) const {
  PJRT_Memory *memory = device_.memory_list[code_.output_memories[index]];
  return std::make_unique<PJRT_Buffer>(std::move(elements), code_.program().results[index].dtype, std::move(dims),
                                       *code_.output_layouts[index], memory, std::move(ready));
}

} // namespace disc::pjrt
