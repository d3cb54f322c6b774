// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "executable.h"

#include "core/array_view.h"
#include "bytes.h"
#include "kernel_program.h"
#include "types.h"

#include <algorithm>
#include <cstring>

namespace disc::pjrt {

namespace {

constexpr std::string_view kFormat = "mlir";

/// Two lanes of FNV-1a over words: tells programs apart, not attackers.
std::string fingerprint_of(std::string_view program, std::string_view options, std::string_view identity) {
  uint64_t lanes[] = {0xcbf29ce484222325u, 0x84222325cbf29ce4u};
  for (std::string_view text : {program, options, identity}) {
    for (size_t i = 0; i < text.size(); i += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min(sizeof word, text.size() - i));
      lanes[0] = (lanes[0] ^ word) * 0x100000001b3u;
      lanes[1] = (lanes[1] + (word ^ lanes[0] >> 29)) * 0x9e3779b97f4a7c15u;
    }
    lanes[0] ^= text.size();
  }
  return {reinterpret_cast<const char *>(lanes), sizeof lanes};
}

/// Hidden arguments are the last ones, and have the sizes of the plan. Throws Error(artifact) where what was read from
/// outside is another program's.
void check_hidden(const Compiled &compiled, const Plan *plan) {
  const std::vector<ArraySpec> &arguments = compiled.executable->program().arguments;
  size_t count = compiled.hidden.size();
  bool fits = count <= arguments.size() && (plan || (count == 0 && compiled.symbols.empty()));
  const int64_t *dim = plan ? plan->words.data() + 1 : nullptr;
  for (size_t i = 0; i < arguments.size() && fits && count > 0; ++i) {
    size_t rank = arguments[i].shape.size(), first = arguments.size() - count;
    fits = i < first || compiled.hidden[i - first]->bytes() == byte_count(dim, rank, info(arguments[i].dtype).size);
    dim += rank;
  }
  if (!fits)
    bad_artifact("the artifact's 'pjrt' is not that of its program");
}

/// Sizes are known unless they come with the arguments, or out of data.
Placed placed(Compiled compiled) {
  const Executable &executable = *compiled.executable;
  bool is_known = compiled.symbols.size() == executable.program().symbols.size();
  auto plan = is_known ? executable.first_plan(compiled.symbols) : nullptr;
  check_hidden(compiled, plan.get());
  return {std::move(compiled), std::move(plan)};
}

std::vector<size_t> donated_of(const Program &program, size_t count) {
  std::vector<size_t> donated;
  for (size_t i = 0; i < count; ++i)
    if (program.arguments[i].donated)
      donated.push_back(i);
  return donated;
}

/// The number of the memory that an array is to lie in.
size_t memory_kind_of(const ArraySpec &array) {
  auto found = std::ranges::find(kMemoryKinds, std::string_view(array.memory));
  if (!array.memory.empty() && found == std::end(kMemoryKinds))
    fail_unimplemented("memory of the kind '" + array.memory + "'");
  return array.memory.empty() ? 0 : static_cast<size_t>(found - std::begin(kMemoryKinds));
}

PJRT_NamedValue number(const char *name, float value) {
  PJRT_NamedValue result{};
  result.struct_size = sizeof result;
  result.name = name;
  result.name_size = std::strlen(name);
  result.type = PJRT_NamedValue_kFloat;
  result.float_value = value;
  result.value_size = 1;
  return result;
}

/// The bytes of arrays whose dims follow each other in a plan.
int64_t bytes_of(const std::vector<ArraySpec> &arrays, size_t count, const int64_t *dim) {
  int64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t rank = arrays[i].shape.size();
    bytes += byte_count(dim, rank, info(arrays[i].dtype).size);
    dim += rank;
  }
  return bytes;
}

std::vector<Layout *> layouts_of(const std::vector<ArraySpec> &arrays, size_t count) {
  std::vector<Layout *> layouts;
  for (size_t i = 0; i < count; ++i) {
    Layout &layout = arrays[i].layout.empty() ? row_major(arrays[i].shape.size()) : layout_of(arrays[i].layout);
    if (layout.major_to_minor.size() != arrays[i].shape.size())
      fail_argument("the layout of " + arrays[i].path + " has not as many dimensions as the array");
    layouts.push_back(&layout);
  }
  return layouts;
}

/// The sizes of arrays whose stored sizes follow each other in a plan.
std::vector<int64_t> dims_of(const std::vector<Layout *> &layouts, const int64_t *stored) {
  std::vector<int64_t> all;
  for (const Layout *layout : layouts) {
    size_t rank = layout->major_to_minor.size();
    std::vector<int64_t> dims = array_sizes({stored, rank}, *layout);
    all.insert(all.end(), dims.begin(), dims.end());
    stored += rank;
  }
  return all;
}

} // namespace

Code::Code(Compiled given_compiled, std::string program_text, std::string options_text)
    : first(placed(std::move(given_compiled))), source(std::move(program_text)), options(std::move(options_text)),
      parsed_options(options), fingerprint(fingerprint_of(source, options, first.compiled.identity)),
      calls_others(first.compiled.executable->calls_others()), donated(donated_of(program(), argument_count())) {
  describe_arrays();
  describe_memories();
}

const Placed &Code::on(const PJRT_Device &device) const {
  const disc::Device *place = device.runtime.get();
  if (device.runtime->is_host() || place == first.compiled.executable->device().get())
    return first;
  {
    std::lock_guard lock(mutex_);
    if (auto found = elsewhere_.find(place); found != elsewhere_.end())
      return found->second;
  }
  Placed there = placed(loaded_on(first.compiled, device.client->gpu_of(device.description->id))); // waits for Python
  std::lock_guard lock(mutex_);
  return elsewhere_.emplace(place, std::move(there)).first->second;
}

const std::shared_ptr<const Code> &Code::compiled(const std::shared_ptr<const Code> &self) const {
  if (!not_compiled())
    return self;
  {
    std::lock_guard lock(mutex_);
    if (compiled_)
      return compiled_;
  }
  auto made = std::make_shared<const Code>(not_compiled()->compile(), source, options); // waits for Python
  std::lock_guard lock(mutex_);
  if (!compiled_)
    compiled_ = std::move(made);
  return compiled_;
}

const Plan &Code::known_plan() const {
  if (!knows_sizes())
    fail_unimplemented("the sizes of results that depend on a call's arguments");
  return *first.plan;
}

void Code::describe_arrays() {
  const Program &code = program();
  for (const ArraySpec &result : code.results) {
    output_types.push_back(buffer_type_of(result.dtype));
    output_ranks.push_back(result.shape.size());
  }
  output_layouts = layouts_of(code.results, code.results.size());
  argument_layouts = layouts_of(code.arguments, argument_count());
  if (!knows_sizes())
    return;
  argument_dims = dims_of(argument_layouts, first.plan->words.data() + 1);
  output_dims = dims_of(output_layouts, first.plan->words.data() + code.segments.front().result_word);
}

void Code::describe_memories() {
  for (const ArraySpec &result : program().results) {
    output_memories.push_back(memory_kind_of(result));
    output_memory_kinds.push_back(kMemoryKinds[output_memories.back()]);
    output_memory_kind_sizes.push_back(std::strlen(output_memory_kinds.back()));
  }
  for (size_t i = 0; i < argument_count(); ++i) {
    argument_memory_kinds.push_back(kMemoryKinds[memory_kind_of(program().arguments[i])]);
    argument_memory_kind_sizes.push_back(std::strlen(argument_memory_kinds.back()));
  }
}

std::span<const PJRT_NamedValue> Code::cost() const {
  if (!first.plan)
    return {};
  {
    std::lock_guard lock(mutex_);
    if (!cost_.empty())
      return cost_;
  }
  std::vector<PJRT_NamedValue> counted = count_cost(); // without the lock: it waits for Python's
  std::lock_guard lock(mutex_);
  if (cost_.empty())
    cost_ = std::move(counted);
  return cost_;
}

/// The bytes that a run must read and write at least, and its arithmetic.
std::vector<PJRT_NamedValue> Code::count_cost() const {
  int64_t bytes = bytes_of(program().arguments, argument_count(), first.plan->words.data() + 1);
  for (int64_t result : first.plan->result_bytes)
    bytes += result;
  std::vector<PJRT_NamedValue> counted = {number("bytes accessed", static_cast<float>(bytes))};
  if (std::optional<double> flops = count_flops(first.compiled))
    counted.push_back(number("flops", static_cast<float>(*flops)));
  return counted;
}

namespace {

const Code &code_of(PJRT_Executable *executable) { return *given(executable, "executable").code; }

/// For those who ask what code there is: an interpreted program is compiled.
const Code &compiled_code_of(PJRT_Executable *executable) {
  const std::shared_ptr<const Code> &code = given(executable, "executable").code;
  return *code->compiled(code);
}

void executable_destroy(PJRT_Executable_Destroy_Args &args) { delete args.executable; }

void executable_name(PJRT_Executable_Name_Args &args) {
  lend(code_of(args.executable).program().name, args.executable_name, args.executable_name_size);
}

void executable_replicas(PJRT_Executable_NumReplicas_Args &args) {
  args.num_replicas = static_cast<size_t>(code_of(args.executable).parsed_options.replicas);
}

void executable_partitions(PJRT_Executable_NumPartitions_Args &args) {
  args.num_partitions = static_cast<size_t>(code_of(args.executable).parsed_options.partitions);
}

void executable_outputs(PJRT_Executable_NumOutputs_Args &args) {
  args.num_outputs = code_of(args.executable).output_types.size();
}

void executable_code_size(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args &args) {
  args.size_in_bytes = code_of(args.executable).first.compiled.executable->code_bytes();
}

void executable_cost(PJRT_Executable_GetCostAnalysis_Args &args) {
  std::span<const PJRT_NamedValue> cost = compiled_code_of(args.executable).cost();
  args.properties = cost.data();
  args.num_properties = cost.size();
}

void executable_output_memory_kinds(PJRT_Executable_OutputMemoryKinds_Args &args) {
  const Code &code = code_of(args.executable);
  args.num_outputs = code.output_memory_kinds.size();
  args.memory_kinds = code.output_memory_kinds.data();
  args.memory_kind_sizes = code.output_memory_kind_sizes.data();
}

void executable_parameter_memory_kinds(PJRT_Executable_ParameterMemoryKinds_Args &args) {
  const Code &code = code_of(args.executable);
  args.num_parameters = code.argument_memory_kinds.size();
  args.memory_kinds = code.argument_memory_kinds.data();
  args.memory_kind_sizes = code.argument_memory_kind_sizes.data();
}

void executable_output_types(PJRT_Executable_OutputElementTypes_Args &args) {
  args.output_types = code_of(args.executable).output_types.data();
  args.num_output_types = args.executable->code->output_types.size();
}

void executable_output_dimensions(PJRT_Executable_OutputDimensions_Args &args) {
  const Code &code = code_of(args.executable);
  code.known_plan();
  args.num_outputs = code.output_ranks.size();
  args.dims = code.output_dims.data();
  args.dim_sizes = code.output_ranks.data();
}

/// The first call asks for the size, the second one brings the place. XLA asks about each program that it is given, so
/// that one that is interpreted remains so.
void executable_optimized_program(PJRT_Executable_OptimizedProgram_Args &args) {
  const Code &code = code_of(args.executable);
  PJRT_Program &program = given(args.program, "program");
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  bool runs_alone = code.parsed_options.replicas * code.parsed_options.partitions == 1;
  bool is_told = code.knows_sizes() && (runs_alone || !code.first.compiled.of_devices.empty());
  std::string text = is_told ? kernel_program(code) : code.source; // which says how arrays lie
  if (program.code) {
    if (program.code_size < text.size())
      fail_argument("the place for the program is too small");
    std::memcpy(program.code, text.data(), text.size());
  }
  program.code_size = text.size();
}

void executable_serialize(PJRT_Executable_Serialize_Args &args) {
  const Code &code = compiled_code_of(args.executable);
  args.serialized_executable = new PJRT_Bytes{serialize(code.first.compiled, code.source, code.options)};
  args.serialized_executable_deleter = delete_bytes;
  lend(args.serialized_executable->contents, args.serialized_bytes, args.serialized_bytes_size);
}

void executable_compile_options(PJRT_Executable_GetCompileOptions_Args &args) {
  args.serialized_compile_options = new PJRT_Bytes{code_of(args.executable).options};
  args.serialized_compile_options_deleter = delete_bytes;
  lend(args.serialized_compile_options->contents, args.serialized_bytes, args.serialized_bytes_size);
}

void executable_fingerprint(PJRT_Executable_Fingerprint_Args &args) {
  lend(code_of(args.executable).fingerprint, args.executable_fingerprint, args.executable_fingerprint_size);
}

void executable_memory_stats(PJRT_Executable_GetCompiledMemoryStats_Args &args) {
  const Code &code = compiled_code_of(args.executable);
  const Plan &plan = code.known_plan();
  int64_t outputs = 0;
  for (int64_t result : plan.result_bytes)
    outputs += result;
  args.generated_code_size_in_bytes = code.first.compiled.executable->code_bytes();
  args.argument_size_in_bytes = bytes_of(code.program().arguments, code.argument_count(), plan.words.data() + 1);
  args.output_size_in_bytes = outputs;
  args.alias_size_in_bytes = 0;
  args.temp_size_in_bytes = plan.arena_bytes;
  args.host_generated_code_size_in_bytes = args.host_argument_size_in_bytes = args.host_output_size_in_bytes = 0;
  args.host_alias_size_in_bytes = args.host_temp_size_in_bytes = 0;
  if (has_field(args, args.peak_memory_in_bytes))
    args.peak_memory_in_bytes = args.argument_size_in_bytes + outputs + plan.arena_bytes;
  if (has_field(args, args.total_size_in_bytes))
    args.total_size_in_bytes = args.argument_size_in_bytes + outputs + plan.arena_bytes;
  if (has_field(args, args.total_allocation_bytes))
    args.total_allocation_bytes = outputs + plan.arena_bytes;
  if (has_field(args, args.indefinite_allocations))
    args.indefinite_allocations = 0;
  if (has_field(args, args.peak_unpadded_heap_bytes))
    args.peak_unpadded_heap_bytes = plan.arena_bytes;
}

} // namespace

void add_executable_functions(PJRT_Api &api) {
  api.PJRT_Executable_Destroy = entry<executable_destroy>;
  api.PJRT_Executable_Name = entry<executable_name>;
  api.PJRT_Executable_NumReplicas = entry<executable_replicas>;
  api.PJRT_Executable_NumPartitions = entry<executable_partitions>;
  api.PJRT_Executable_NumOutputs = entry<executable_outputs>;
  api.PJRT_Executable_SizeOfGeneratedCodeInBytes = entry<executable_code_size>;
  api.PJRT_Executable_GetCostAnalysis = entry<executable_cost>;
  api.PJRT_Executable_OutputMemoryKinds = entry<executable_output_memory_kinds>;
  api.PJRT_Executable_ParameterMemoryKinds = entry<executable_parameter_memory_kinds>;
  api.PJRT_Executable_OutputElementTypes = entry<executable_output_types>;
  api.PJRT_Executable_OutputDimensions = entry<executable_output_dimensions>;
  api.PJRT_Executable_OptimizedProgram = entry<executable_optimized_program>;
  api.PJRT_Executable_Serialize = entry<executable_serialize>;
  api.PJRT_Executable_GetCompileOptions = entry<executable_compile_options>;
  api.PJRT_Executable_Fingerprint = entry<executable_fingerprint>;
  api.PJRT_Executable_GetCompiledMemoryStats =
      entry_up_to<executable_memory_stats, &PJRT_Executable_GetCompiledMemoryStats_Args::host_temp_size_in_bytes>;
}

} // namespace disc::pjrt
