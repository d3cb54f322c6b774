// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "errors.h"
#include "objects.h"
#include "program/argument_checks.h"
#include "tensors.h"

#include <algorithm>
#include <cstring>
#include <ranges>

namespace disc::capi {

namespace {

constexpr uintptr_t kResultAlignment = 64;

/// A number of things that were given.
std::string were_given(size_t count) { return std::to_string(count) + (count == 1 ? " was given" : " were given"); }

/// What is said of the arguments of a program that do not count: those that are bound.
std::string besides_bound(const disc_program &program) {
  size_t bound = program.bound->addresses.size();
  return bound == 0 ? "" : " besides the " + std::to_string(bound) + " that disc_bind has fixed";
}

/// The sizes that disc_plan takes: "args[0] of (b, s), args[1] of (b,)". Of many arguments the first ones.
std::string sizes_taken(const disc_program &program) {
  constexpr size_t most = 8;
  const std::vector<ArraySpec> &arguments = program.loaded->program().arguments;
  std::string text;
  size_t first = program.bound->addresses.size(), end = std::min(arguments.size(), first + most);
  for (size_t i = first; i < end; ++i)
    text += (i == first ? "" : ", ") + arguments[i].path + " of " + arguments[i].shape_text();
  if (end < arguments.size())
    text += " and " + counted(arguments.size() - end, "more argument");
  return text;
}

/// The names of all symbols: "b, s".
std::string symbols_of(const Program &program) {
  std::string text;
  for (const SymbolSpec &symbol : program.symbols)
    text += (text.empty() ? "" : ", ") + symbol.name;
  return text;
}

[[noreturn]] void fail_arguments(const disc_program &program, size_t given) {
  throw Error(ErrorKind::type, "'" + program.loaded->program().name + "' has " +
                                   counted(disc_argument_count(&program), "argument") + besides_bound(program) +
                                   ", and " + were_given(given));
}

using Given = std::span<const ::DLTensor>;

/// The tensors of a call, one for each argument that is not bound.
Tensors tensors_of(const disc_program &program, Given arguments) {
  if (arguments.size() != disc_argument_count(&program))
    fail_arguments(program, arguments.size());
  return Tensors(*program.loaded->executable, program.bound->addresses.size(), arguments);
}

std::vector<int64_t> all_dims(const Bound &bound, std::span<const int64_t> dims) {
  std::vector<int64_t> all(bound.dims);
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

/// The addresses of all arguments, as many behind them reserved as a run needs.
std::vector<void *> argument_addresses(const disc_program &program, Tensors &tensors) {
  std::vector<void *> buffers;
  buffers.reserve(program.loaded->executable->buffer_count());
  buffers = program.bound->addresses;
  for (size_t i = 0, count = disc_argument_count(&program); i < count; ++i)
    buffers.push_back(tensors.elements(i));
  return buffers;
}

/// The sizes of results that depend on data are known to calls alone.
void check_planned(const Program &program) {
  if (program.segments.size() > 1)
    bad_value("the sizes of the results of '" + program.name + "' depend on data: call it by disc_call");
}

/// The shapes of consecutive arrays, the sizes of which begin at `sizes`.
template <typename Leaves>
std::vector<const int64_t *> shapes_of(const std::vector<ArraySpec> &arrays, const int64_t *sizes,
                                       const Leaves &order) {
  std::vector<const int64_t *> shapes(arrays.size());
  for (size_t leaf : order) {
    shapes[leaf] = sizes;
    sizes += arrays[leaf].shape.size();
  }
  return shapes;
}

std::unique_ptr<disc_plan_t> make_plan(const disc_program &program, std::vector<int64_t> dims,
                                       std::shared_ptr<const Plan> found) {
  const Program &spec = program.loaded->program();
  const SegmentSpec &segment = spec.segments.front();
  auto results = shapes_of(spec.results, found->words.data() + segment.result_word, segment.results);
  disc_plan_t plan{program, std::move(dims), std::move(found), {}, std::move(results)};
  auto made = std::make_unique<disc_plan_t>(std::move(plan));
  auto in_order = std::views::iota(size_t{0}, spec.arguments.size());
  made->argument_shapes = shapes_of(spec.arguments, made->dims.data(), in_order);
  return made;
}

std::unique_ptr<disc_plan_t> plan(const disc_program &program, std::span<const int64_t> dims) {
  const Program &spec = program.loaded->program();
  size_t count = spec.argument_dims - program.bound->dims.size();
  if (dims.size() != count)
    bad_value("disc_plan: the arguments" + besides_bound(program) + " have " + counted(count, "size") + " in all" +
              (count == 0 ? "" : " (" + sizes_taken(program) + ")") + ", and " + were_given(dims.size()));
  check_planned(spec);
  std::vector<int64_t> all = all_dims(*program.bound, dims);
  const int64_t *size = all.data();
  for (const ArraySpec &argument : spec.arguments) { // the sizes that are constants, and none below 0
    try {
      check_shape(argument, size, argument.shape.size());
    } catch (Error &error) {
      error.argument = argument.path;
      throw;
    }
    for (size_t i = 0; i < argument.shape.size(); ++i, ++size)
      if (*size < 0) {
        Error error(ErrorKind::shape, "The size of dimension " + std::to_string(i) + " of " + argument.path +
                                          " is negative (" + std::to_string(*size) + ").");
        error.argument = argument.path;
        throw error;
      }
  }
  auto found = program.loaded->executable->plan(all);
  return make_plan(program, std::move(all), std::move(found));
}

std::unique_ptr<disc_plan_t> plan_symbols(const disc_program &program, std::span<const int64_t> values) {
  const Program &spec = program.loaded->program();
  if (!program.bound->addresses.empty())
    bad_value("disc_plan_symbols: arguments of '" + spec.name + "' are bound: give disc_plan the sizes of the others");
  if (values.size() != spec.symbols.size())
    bad_value("disc_plan_symbols: '" + spec.name + "' has " + counted(spec.symbols.size(), "symbol") +
              (spec.symbols.empty() ? "" : " (" + symbols_of(spec) + ")") + ", and " + counted(values.size(), "value") +
              (values.size() == 1 ? " was given" : " were given"));
  check_planned(spec);
  auto found = program.loaded->executable->first_plan(values);
  return plan(program, {found->words.data() + 1, spec.argument_dims});
}

int64_t result_bytes(const disc_plan_t &plan, size_t index) {
  const std::vector<size_t> &leaves = plan.program.loaded->program().segments.front().results;
  auto place = std::ranges::find(leaves, index) - leaves.begin();
  return plan.plan->result_bytes[static_cast<size_t>(place)];
}

/// The caller's memory of a result, and where the program writes it.
struct ResultMemory {
  char *given;
  int64_t bytes;
  std::shared_ptr<Block> aside; // null where it is the same

  void *address() const { return aside ? aside->address() : given; }
};

std::vector<ResultMemory> result_memories(const disc_plan_t &plan, const Tensors &tensors,
                                          Given results) {
  const disc_program &program = plan.program;
  std::vector<ResultMemory> memories;
  for (size_t i = 0; i < results.size(); ++i) {
    const ArraySpec &spec = program.loaded->program().results[i];
    char *given = result_memory(spec, plan.result_shapes[i], results[i]);
    int64_t bytes = result_bytes(plan, i);
    auto shared = std::ranges::find_if(memories, [&](const ResultMemory &other) {
      return bytes > 0 && other.bytes > 0 && given < other.given + other.bytes && other.given < given + bytes;
    });
    const ArraySpec *other = tensors.overlapped(given, bytes);
    if (shared != memories.end())
      other = &program.loaded->program().results[static_cast<size_t>(shared - memories.begin())];
    if (other != nullptr)
      bad_value("the memory for " + spec.path + " overlaps that of " + other->path);
    memories.push_back({given, bytes, nullptr});
  }
  for (ResultMemory &memory : memories)
    if (reinterpret_cast<uintptr_t>(memory.given) % kResultAlignment != 0)
      memory.aside = std::make_shared<Block>(program.loaded->executable->allocator(), memory.bytes, BlockKind::result);
  return memories;
}

/// Throws where the arguments do not have the sizes of the plan.
void check_planned_sizes(const disc_plan_t &plan, const std::vector<int64_t> &dims) {
  size_t first = 0;
  for (const ArraySpec &argument : plan.program.loaded->program().arguments) {
    for (size_t i = 0; i < argument.shape.size(); ++i)
      if (dims[first + i] != plan.dims[first + i]) {
        Error error(ErrorKind::shape, "the plan has a size of " + std::to_string(plan.dims[first + i]) +
                                          " for dimension " + std::to_string(i) + " of " + argument.path +
                                          ", and the array has " + std::to_string(dims[first + i]) +
                                          ": make a plan for these sizes, or use disc_call");
        error.argument = argument.path;
        throw error;
      }
    first += argument.shape.size();
  }
}

void run(const disc_plan_t &plan, Given arguments, Given results) {
  const disc_program &program = plan.program;
  const Executable &executable = *program.loaded->executable;
  Tensors tensors = tensors_of(program, arguments);
  if (results.size() != disc_result_count(&program))
    throw Error(ErrorKind::type, "'" + executable.program().name + "' has " +
                                     counted(disc_result_count(&program), "result") + ", and " +
                                     were_given(results.size()));
  check_planned_sizes(plan, all_dims(*program.bound, tensors.dims()));
  std::vector<ResultMemory> memories = result_memories(plan, tensors, results);
  std::vector<void *> buffers = argument_addresses(program, tensors);
  for (const ResultMemory &memory : memories)
    buffers.push_back(memory.address());
  executable.run_into(*plan.plan, std::move(buffers), program.bound->forms, executable.runtime());
  for (const ResultMemory &memory : memories)
    if (memory.aside && memory.bytes > 0)
      std::memcpy(memory.given, memory.address(), static_cast<size_t>(memory.bytes));
}

std::unique_ptr<disc_results> call(const disc_program &program, Given arguments) {
  const Executable &executable = *program.loaded->executable;
  Tensors tensors = tensors_of(program, arguments);
  auto found = executable.plan(all_dims(*program.bound, tensors.dims()));
  auto out = std::make_unique<disc_results>();
  out->loaded = program.loaded;
  out->results = executable.run(std::move(found), argument_addresses(program, tensors), program.bound->forms,
                                executable.runtime());
  const std::vector<ArraySpec> &specs = executable.program().results;
  for (size_t i = 0; i < specs.size(); ++i)
    out->shapes.emplace_back(out->results.leaves[i].shape, out->results.leaves[i].shape + specs[i].shape.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    ::DLTensor tensor{};
    tensor.data = out->results.leaves[i].block->address();
    tensor.device.device_type = ::kDLCPU;
    tensor.ndim = static_cast<int32_t>(specs[i].shape.size());
    tensor.dtype = data_type(specs[i].dtype);
    tensor.shape = out->shapes[i].data();
    out->tensors.push_back(tensor);
  }
  return out;
}

/// The bound arguments with those that follow: packed for the products that read them, and copied where anything else
/// does.
std::shared_ptr<const Bound> bind(const disc_program &program, Given arguments) {
  const Executable &executable = *program.loaded->executable;
  const Program &spec = executable.program();
  auto bound = std::make_shared<Bound>(*program.bound);
  size_t first = bound->addresses.size();
  Tensors tensors(executable, first, arguments);
  for (size_t i = 0; i < arguments.size(); ++i) {
    size_t index = first + i;
    for (size_t k = 0; k < spec.packs.size(); ++k)
      if (spec.packs[k].buffer == index)
        bound->forms[k] = elements_of(executable.pack(spec.packs[k], tensors.elements(i)));
    bool is_packed_only = std::ranges::find(spec.packed_only, index) != spec.packed_only.end();
    bound->addresses.push_back(nullptr);
    if (is_packed_only)
      continue;
    bound->blocks.push_back(tensors.copy(i, BlockKind::constant));
    bound->addresses.back() = bound->blocks.back()->address();
  }
  bound->dims.insert(bound->dims.end(), tensors.dims().begin(), tensors.dims().end());
  return bound;
}

} // namespace

} // namespace disc::capi

using namespace disc::capi;

disc_error_t *disc_bind(const disc_program_t *program, const DLTensor *arguments, size_t count, disc_program_t **bound) {
  return guarded([&] {
    const disc_program &from = given(program, "disc_bind: program");
    disc_program_t *&out = given(bound, "disc_bind: bound");
    if (count > disc_argument_count(program))
      fail_arguments(from, count);
    out = new disc_program{from.loaded, bind(from, given(arguments, count, "disc_bind: arguments"))};
  });
}

disc_error_t *disc_check_parameter(const void *pointer, const char *parameter) {
  return guarded([&] { given(static_cast<const char *>(pointer), parameter); });
}

disc_error_t *disc_check_plan(const disc_plan_t *plan, const disc_program_t *program, const char *function) {
  return guarded([&] {
    const std::string name = function;
    const disc_program &of = given(plan, (name + ": plan").c_str()).program, &wanted = *program;
    if (of.loaded == wanted.loaded)
      return;
    const disc::Program &other = of.loaded->program(), &own = wanted.loaded->program();
    const std::string remedy = "make it by " + name.substr(0, name.rfind('_')) + "_plan";
    if (other.digest == own.digest)
      bad_value(name + ": the plan is of another load of '" + own.name + "': " + remedy);
    bad_value(name + ": the plan is of another program, '" + other.name + "', and not of '" + own.name + "': " + remedy);
  });
}

disc_error_t *disc_plan(const disc_program_t *program, const int64_t *dims, size_t count, disc_plan_t **out) {
  return guarded([&] {
    const disc_program &of = given(program, "disc_plan: program");
    disc_plan_t *&made = given(out, "disc_plan: plan");
    made = plan(of, given(dims, count, "disc_plan: dims")).release();
  });
}

disc_error_t *disc_plan_symbols(const disc_program_t *program, const int64_t *values, size_t count, disc_plan_t **out) {
  return guarded([&] {
    const disc_program &of = given(program, "disc_plan_symbols: program");
    disc_plan_t *&made = given(out, "disc_plan_symbols: plan");
    made = plan_symbols(of, given(values, count, "disc_plan_symbols: values")).release();
  });
}

const int64_t *disc_plan_argument_shape(const disc_plan_t *plan, size_t index) {
  if (plan == nullptr)
    return nullptr;
  index += plan->program.bound->addresses.size();
  return index < plan->argument_shapes.size() ? plan->argument_shapes[index] : nullptr;
}

int64_t disc_plan_arena_bytes(const disc_plan_t *plan) { return plan != nullptr ? plan->plan->arena_bytes : -1; }

const int64_t *disc_plan_result_shape(const disc_plan_t *plan, size_t index) {
  return plan != nullptr && index < plan->result_shapes.size() ? plan->result_shapes[index] : nullptr;
}

int64_t disc_plan_result_bytes(const disc_plan_t *plan, size_t index) {
  return plan != nullptr && index < plan->result_shapes.size() ? result_bytes(*plan, index) : -1;
}

void disc_free_plan(disc_plan_t *plan) { delete plan; }

disc_error_t *disc_run(const disc_plan_t *plan, const DLTensor *arguments, size_t argument_count, DLTensor *results,
                       size_t result_count) {
  return guarded([&] {
    const disc_plan_t &of = given(plan, "disc_run: plan");
    Given taken = given(arguments, argument_count, "disc_run: arguments");
    run(of, taken, given(results, result_count, "disc_run: results"));
  });
}

disc_error_t *disc_call(const disc_program_t *program, const DLTensor *arguments, size_t count,
                        disc_results_t **results) {
  return guarded([&] {
    const disc_program &of = given(program, "disc_call: program");
    disc_results_t *&made = given(results, "disc_call: results");
    made = call(of, given(arguments, count, "disc_call: arguments")).release();
  });
}

const DLTensor *disc_result(const disc_results_t *results, size_t index) {
  return results != nullptr && index < results->tensors.size() ? &results->tensors[index] : nullptr;
}

void disc_free_results(disc_results_t *results) { delete results; }

disc_error_t *disc_register_custom_call(const char *name, ShloDiscCustomCall function) {
  return guarded([&] {
    given(name, "disc_register_custom_call: name");
    given(function, "disc_register_custom_call: function");
    disc::register_custom_call(name, reinterpret_cast<void *>(function), disc::Convention::c);
  });
}
