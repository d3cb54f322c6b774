// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "executable.h"

#include "attention.h"
#include "convolution.h"
#include "dot.h"
#include "error.h"
#include "gemm.h"
#include "step_clock.h"
#include "without_gil.h"

#include <nanobind/stl/string.h>

#include <cstring>

namespace disc {

namespace {

struct LoopContext {
  DiscKernel kernel;
  const int64_t *args;
};

const RunContext &context_of(const DiscRuntime *runtime) { return *static_cast<const RunContext *>(runtime->opaque); }

ThreadPool &pool_of(const DiscRuntime *runtime) { return context_of(runtime).device->pool; }

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

void library_call(const DiscRuntime *runtime, int64_t index, const int64_t *words, int64_t) {
  context_of(runtime).calls[static_cast<size_t>(index)].run(pool_of(runtime), words);
}

constexpr uintptr_t kConstantAlignment = 64;

} // namespace

Executable::Code::Code(Program given, const std::string &bytes, int64_t memo_bytes)
    : program(std::move(given)), object(bytes) {
  auto share = memo_bytes / static_cast<int64_t>(program.segments.size());
  for (const SegmentSpec &segment : program.segments) {
    auto evaluate = reinterpret_cast<DiscPlan>(object.function(segment.plan_entry));
    planners.push_back(std::make_unique<Planner>(program, planners.size(), evaluate, share));
    runs.push_back(reinterpret_cast<DiscRun>(object.function(segment.run_entry)));
  }
}

Executable::Executable(std::shared_ptr<Device> device, Program program, const std::string &object,
                       nb::object constants, std::shared_ptr<Tree> in_tree, std::shared_ptr<Tree> out_tree,
                       ExecutableHooks hooks, int64_t memo_bytes, bool perf_map)
    : device_(std::move(device)), context_{device_.get(), {}},
      runtime_{launch, dot, &context_, library_call, convolution, attention},
      in_tree_(std::move(in_tree)), out_tree_(std::move(out_tree)), hooks_(std::move(hooks)) {
  if (PyObject_GetBuffer(constants.ptr(), &constants_view_, PyBUF_SIMPLE) != 0)
    throw nb::python_error();
  try {
    program.validate(constants_view_.len);
    if (in_tree_->leaves() != program.arguments.size() || out_tree_->leaves() != program.results.size())
      bad_artifact("header: the trees do not have as many leaves as there are arguments and results");
    for (const CallSpec &spec : program.calls)
      context_.calls.push_back({spec, bind_library_function(spec)});
    code_ = std::make_unique<Code>(std::move(program), object, memo_bytes);
    hold_constants(std::move(constants));
    if (perf_map)
      code_->object.write_perf_map();
  } catch (...) {
    PyBuffer_Release(&constants_view_);
    throw;
  }
}

Executable::~Executable() { PyBuffer_Release(&constants_view_); }

void Executable::hold_constants(nb::object constants) {
  char *base = static_cast<char *>(constants_view_.buf);
  if (reinterpret_cast<uintptr_t>(base) % kConstantAlignment != 0 || device_->allocator->guard_pages()) {
    constants_copy_ = std::make_shared<Block>(device_->allocator, constants_view_.len, BlockKind::constant);
    std::memcpy(constants_copy_->address(), base, static_cast<size_t>(constants_view_.len));
    base = static_cast<char *>(constants_copy_->address());
    PyBuffer_Release(&constants_view_);
  }
  constants_owner_ = std::move(constants);
  if (constants_copy_)
    constants_owner_.reset();
  for (const ConstantSpec &constant : code_->program.constants)
    constant_addresses_.push_back(base + constant.offset);
  size_t first = program().arguments.size() + program().results.size();
  for (const PackSpec &spec : program().packs)
    constant_forms_.push_back(spec.buffer < first ? nullptr : pack(spec, constant_addresses_[spec.buffer - first]));
}

std::vector<PyObject *> Executable::flatten(const nb::tuple &args, const nb::dict &kwargs,
                                            std::vector<nb::object> &owners) {
  std::vector<PyObject *> leaves;
  leaves.reserve(program().arguments.size());
  PyObject *both[] = {args.ptr(), kwargs.ptr()};
  if (!in_tree_->flatten_items(both, 2, leaves, owners))
    throw Error(ErrorKind::type, nb::cast<std::string>(hooks_.explain_structure(args, kwargs)));
  return leaves;
}

/// Allocates what a segment writes, and puts the addresses behind those of the arguments.
void Executable::allocate_results(size_t segment, const Plan &plan, std::vector<Result> &results,
                                  std::vector<void *> &buffers) const {
  const SegmentSpec &spec = program().segments[segment];
  const int64_t *shape = plan.words.data() + spec.result_word;
  for (size_t i = 0; i < spec.results.size(); ++i) {
    size_t leaf = spec.results[i];
    results[leaf].block = std::make_shared<Block>(device_->allocator, plan.result_bytes[i], BlockKind::result);
    results[leaf].shape = shape;
    buffers[program().arguments.size() + leaf] = results[leaf].block->address();
    shape += program().results[leaf].shape.size();
  }
}

/// Runs the segments of a program that reads sizes from data. A run puts what it reads into `symbols`, from which the
/// next segment is planned; its arena lives until the end, for later segments read it. `plans` has the first plan.
void Executable::run_segments(std::vector<std::shared_ptr<const Plan>> &plans, std::vector<Result> &results,
                              std::vector<void *> &buffers, const DiscRuntime &runtime) const {
  const std::vector<SegmentSpec> &segments = program().segments;
  std::vector<int64_t> symbols(plans.front()->symbols);
  symbols.resize(segments.back().symbols);
  buffers.push_back(symbols.data());
  size_t first_arena = buffers.size();
  buffers.resize(first_arena + segments.size());
  std::vector<std::unique_ptr<Block>> arenas;
  for (size_t k = 0; k < segments.size(); ++k) {
    if (k != 0) {
      plans.push_back(code_->planners[k]->plan_for(std::span(symbols).first(segments[k].symbols)));
      allocate_results(k, *plans[k], results, buffers);
    }
    arenas.push_back(std::make_unique<Block>(device_->allocator, plans[k]->arena_bytes, BlockKind::arena));
    void *arena = buffers[first_arena + k] = arenas.back()->address();
    run_segment(k, buffers.data(), *plans[k], arena, runtime);
  }
}

/// Runs one segment; what a registered function has to say about it becomes an error once it is over.
void Executable::run_segment(size_t segment, void *const *buffers, const Plan &plan, void *arena,
                             const DiscRuntime &runtime) const {
  std::optional<std::string> failure;
  without_gil([&] {
    code_->runs[segment](&runtime, buffers, plan.words.data(), arena);
    failure = take_failure();
  });
  if (failure)
    throw Error(ErrorKind::custom_call, *failure);
}

nb::object Executable::call(const nb::tuple &args, const nb::dict &kwargs, Output output) {
  return call_with(args, kwargs, output, runtime_);
}

std::vector<StepTime> Executable::profile(const nb::tuple &args, const nb::dict &kwargs) {
  StepClock clock(runtime_);
  call_with(args, kwargs, Output::buffer, clock.runtime());
  return clock.times();
}

nb::object Executable::call_with(const nb::tuple &args, const nb::dict &kwargs, Output output,
                                 const DiscRuntime &runtime) {
  std::vector<nb::object> owners;
  std::vector<PyObject *> leaves = flatten(args, kwargs, owners);
  Arguments arguments(program(), leaves);
  if (program().packs.empty())
    return run(arguments, output, {}, runtime);
  auto pack_argument = [&](size_t i) -> std::shared_ptr<Block> {
    const PackSpec &spec = program().packs[i];
    const ArrayView &view = arguments.view(spec.buffer);
    try {
      return view.usable_in_place() ? pack(spec, view.data) : nullptr;
    } catch (const AllocationFailure &) {
      return nullptr; // the call can do without
    }
  };
  return run(arguments, output, repeats_.forms(program(), leaves, constant_forms_, pack_argument), runtime);
}

/// Results that the caller has dropped give their memory to this call, not to the one after it.
void Executable::collect_dropped_results() const {
  if (collect_jax_.is_valid() && !collect_jax_.is_none())
    collect_jax_();
}

nb::object Executable::run(Arguments &arguments, Output output, const PackedForms &packed,
                           const DiscRuntime &runtime) {
  std::shared_ptr<const Plan> plan = code_->planners.front()->plan(arguments.dims());
  if (output == Output::automatic)
    output = arguments.any_jax() ? Output::jax : Output::numpy;
  if (output == Output::jax)
    collect_dropped_results();
  std::vector<Result> results(program().results.size());
  std::vector<void *> buffers(program().arguments.size() + results.size());
  allocate_results(0, *plan, results, buffers);
  arguments.addresses(device_->allocator, buffers.data());
  buffers.insert(buffers.end(), constant_addresses_.begin(), constant_addresses_.end());
  for (const std::shared_ptr<Block> &form : packed)
    buffers.push_back(form ? form->address() : nullptr);
  std::vector<std::shared_ptr<const Plan>> plans; // of a program that reads sizes from data
  if (program().segments.size() > 1) {
    plans.push_back(plan);
    run_segments(plans, results, buffers, runtime);
  } else {
    Block arena(device_->allocator, plan->arena_bytes, BlockKind::arena);
    run_segment(0, buffers.data(), *plan, arena.address(), runtime);
  }
  return make_results(std::move(results), output);
}

std::shared_ptr<Block> Executable::pack(const PackSpec &spec, const void *source) const {
  auto form = std::make_shared<Block>(device_->allocator, spec.bytes(), BlockKind::constant);
  DiscDot dot{};
  dot.format = spec.format, dot.n = spec.n, dot.k = spec.k, dot.b_k = spec.k_stride, dot.b_n = spec.n_stride;
  dot.b = source, dot.tile_columns = spec.columns;
  without_gil([&] { pack_right(device_->pool, dot, form->address()); });
  return form;
}

void Executable::pack_argument(size_t index, Arguments &arguments, PackedForms &forms) const {
  for (size_t i = 0; i < forms.size(); ++i)
    if (program().packs[i].buffer == index)
      forms[i] = pack(program().packs[i], arguments.elements(index, device_->allocator));
}

nb::object Executable::make_results(std::vector<Result> results, Output output) {
  std::vector<nb::object> leaves;
  leaves.reserve(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const ArraySpec &spec = program().results[i];
    leaves.push_back(make_result(spec.dtype, results[i].shape, spec.shape.size(), std::move(results[i].block), output));
  }
  nb::object *next = leaves.data();
  return out_tree_->unflatten(next);
}

nb::object Executable::make_result(DType dtype, const int64_t *shape, size_t rank, std::shared_ptr<Block> block,
                                   Output output) {
  if (output == Output::buffer)
    return nb::cast(Buffer(std::move(block), dtype, std::vector<int64_t>(shape, shape + rank)));
  nb::object array = numpy_array(std::move(block), dtype, shape, rank);
  if (output != Output::jax)
    return array;
  if (!to_jax_.is_valid()) {
    nb::tuple both = nb::cast<nb::tuple>(hooks_.jax_converter());
    collect_jax_ = both[1];
    to_jax_ = both[0];
  }
  return to_jax_(array);
}

CallPlan Executable::plan_for(const std::vector<int64_t> &symbols) const {
  const std::vector<SegmentSpec> &segments = program().segments;
  if (symbols.size() != segments.back().symbols)
    throw Error(ErrorKind::shape, "expected a value for each dimension variable");
  CallPlan plan;
  plan.results.resize(program().results.size());
  for (size_t k = 0; k < segments.size(); ++k) {
    plan.parts.push_back(code_->planners[k]->plan_for(std::span(symbols).first(segments[k].symbols)));
    const int64_t *shape = plan.parts[k]->words.data() + segments[k].result_word;
    for (size_t i = 0; i < segments[k].results.size(); ++i) {
      size_t leaf = segments[k].results[i];
      plan.results[leaf] = {shape, plan.parts[k]->result_bytes[i]};
      shape += program().results[leaf].shape.size();
    }
  }
  return plan;
}

void Executable::prepare(const std::vector<int64_t> &symbols) const {
  CallPlan plan = plan_for(symbols);
  std::vector<std::unique_ptr<Block>> blocks;
  for (const auto &part : plan.parts)
    blocks.push_back(std::make_unique<Block>(device_->allocator, part->arena_bytes, BlockKind::arena));
  for (const CallPlan::Result &result : plan.results)
    blocks.push_back(std::make_unique<Block>(device_->allocator, result.bytes, BlockKind::result));
  without_gil([&] {
    for (const auto &block : blocks)
      populate(block->address(), static_cast<size_t>(block->bytes()));
  });
}

int64_t Executable::memo_size() const {
  int64_t total = 0;
  for (const auto &planner : code_->planners)
    total += planner->memo().size();
  return total;
}

int64_t Executable::memo_bytes() const {
  int64_t total = 0;
  for (const auto &planner : code_->planners)
    total += planner->memo().bytes();
  return total;
}

} // namespace disc
