// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "executable.h"

#include "core/error.h"

#include <algorithm>
#include <cstring>

namespace disc {

namespace {

constexpr uintptr_t kConstantAlignment = 64;
constexpr int64_t kInterpretedMemoBytes = 1 << 16; // there is one plan

} // namespace

Executable::Code::Code(Program given, std::string_view bytes, int64_t memo_bytes)
    : program(std::move(given)), object(std::make_unique<ObjectCode>(bytes)) {
  auto share = memo_bytes / static_cast<int64_t>(program.segments.size());
  for (const SegmentSpec &segment : program.segments) {
    auto evaluate = reinterpret_cast<DiscPlan>(object->function(segment.plan_entry));
    planners.push_back(std::make_unique<Planner>(program, planners.size(), evaluate, share));
    runs.push_back(reinterpret_cast<DiscRun>(object->function(segment.run_entry)));
  }
}

Executable::Executable(std::shared_ptr<Device> device, Program program, ProgramCode code, ConstantBlock constants,
                       int64_t memo_bytes, bool perf_map)
    : device_(std::move(device)) {
  program.validate(constants.bytes);
  if (!device_->is_host() && !program.packs.empty())
    bad_artifact("header: packed forms are for processors");
  commands_ = device_->commands(program.calls, program.kernels, code.device);
  code_ = std::make_unique<Code>(std::move(program), code.object, memo_bytes);
  if (std::string_view digest = code_->object->constant(kHeaderDigest); !digest.empty())
    code_->program.check_digest(digest, constants.bytes);
  hold_constants(std::move(constants));
  if (perf_map)
    code_->object->write_perf_map();
}

/// The sizes of arguments and results, which follow each other in the plan.
Executable::Code::Code(Program given, std::shared_ptr<const Interpretation> given_interpretation)
    : program(std::move(given)), interpretation(std::move(given_interpretation)) {
  auto evaluate = [this](const int64_t *, int64_t *words) {
    *words++ = interpretation->arena_bytes();
    for (const std::vector<ArraySpec> *arrays : {&program.arguments, &program.results})
      for (const ArraySpec &array : *arrays)
        for (const DimSpec &dim : array.shape)
          *words++ = dim.size;
    return int64_t{0};
  };
  planners.push_back(std::make_unique<Planner>(program, 0, evaluate, kInterpretedMemoBytes));
}

Executable::Executable(std::shared_ptr<Device> device, Program program,
                       std::shared_ptr<const Interpretation> interpretation)
    : device_(std::move(device)) {
  program.validate(0);
  commands_ = device_->commands(program.calls, program.kernels, {});
  code_ = std::make_unique<Code>(std::move(program), std::move(interpretation));
  hold_constants({});
}

ThreadPool &Executable::pool() const { return static_cast<Processors &>(*device_).pool; }

/// On the device.
std::shared_ptr<Block> Executable::copied(std::string_view bytes) {
  auto copy = std::make_shared<Block>(allocator(), static_cast<int64_t>(bytes.size()), BlockKind::constant);
  if (!bytes.empty())
    device_->write(copy->address(), bytes.data(), copy->bytes());
  return copy;
}

void Executable::hold_constants(ConstantBlock constants) {
  const char *base = constants.data;
  constant_bytes_ = constants.bytes;
  bool is_aligned = reinterpret_cast<uintptr_t>(base) % kConstantAlignment == 0;
  bool in_place = device_->is_host() && is_aligned && !allocator()->guard_pages();
  if (!in_place) {
    constants_copy_ = copied({base, static_cast<size_t>(constants.bytes)});
    base = static_cast<const char *>(constants_copy_->address());
  } else {
    constants_owner_ = constants.owner;
  }
  for (const ConstantSpec &constant : program().constants)
    constant_addresses_.push_back(const_cast<char *>(base) + constant.offset);
  size_t first = program().arguments.size() + program().results.size();
  for (size_t buffer : program().packed_only) // null, so that kernels see that there is the packed form alone
    if (program().is_prepacked && buffer >= first)
      constant_addresses_[buffer - first] = nullptr;
  hold_packed(constants, in_place);
  constexpr size_t sizes_read = 1; // what a program of several segments passes on, before their arenas
  buffer_count_ = first + constant_addresses_.size() + constant_forms_.size();
  if (size_t segments = program().segments.size(); segments > 1)
    buffer_count_ += sizes_read + segments;
}

/// Takes the packed forms of constants from the artifact, or packs them.
void Executable::hold_packed(const ConstantBlock &constants, bool in_place) {
  std::string_view packed = constants.packed;
  std::shared_ptr<void> owner = std::const_pointer_cast<void>(constants.owner);
  if (program().is_prepacked) {
    check_packed(program(), packed);
    if (!in_place || reinterpret_cast<uintptr_t>(packed.data()) % kConstantAlignment != 0) {
      owner = elements_of(copied(packed));
      packed = {static_cast<const char *>(owner.get()), packed.size()};
    }
  }
  size_t first = program().arguments.size() + program().results.size();
  int64_t offset = 0;
  for (const PackSpec &spec : program().packs) {
    std::shared_ptr<void> form;
    if (spec.buffer >= first && program().is_prepacked) {
      form = {owner, const_cast<char *>(packed.data()) + offset};
      offset += packed_room(spec);
    } else if (spec.buffer >= first) {
      form = elements_of(pack(spec, constant_addresses_[spec.buffer - first]));
    }
    constant_forms_.push_back(std::move(form));
  }
}

/// Allocates what a segment writes, and puts the addresses behind those of the arguments.
void Executable::allocate_results(size_t segment, const Plan &plan, std::vector<Results::Leaf> &results,
                                  std::vector<void *> &buffers) const {
  const SegmentSpec &spec = program().segments[segment];
  const int64_t *shape = plan.words.data() + spec.result_word;
  for (size_t i = 0; i < spec.results.size(); ++i) {
    size_t leaf = spec.results[i];
    results[leaf].block = std::make_shared<Block>(allocator(), plan.result_bytes[i], BlockKind::result);
    results[leaf].shape = shape;
    buffers[program().arguments.size() + leaf] = results[leaf].block->address();
    shape += program().results[leaf].shape.size();
  }
}

/// Puts the addresses of the constants and of the packed forms behind those of the results.
void Executable::add_constants(std::vector<void *> &buffers, const PackedForms &packed) const {
  buffers.insert(buffers.end(), constant_addresses_.begin(), constant_addresses_.end());
  for (const std::shared_ptr<void> &form : packed)
    buffers.push_back(form.get());
}

void Executable::run_into(const Plan &plan, std::vector<void *> buffers, const PackedForms &packed,
                          const DiscRuntime &runtime) const {
  add_constants(buffers, packed);
  Block arena(allocator(), plan.arena_bytes, BlockKind::arena);
  run_segment(0, buffers, plan, arena.address(), runtime, nullptr);
}

Results Executable::run(std::shared_ptr<const Plan> plan, std::vector<void *> buffers, const PackedForms &packed,
                        const DiscRuntime &runtime, IsInterrupted is_interrupted) const {
  Results results;
  results.leaves.resize(program().results.size());
  results.plan = std::move(plan);
  buffers.resize(program().arguments.size() + results.leaves.size());
  allocate_results(0, *results.plan, results.leaves, buffers);
  add_constants(buffers, packed);
  if (program().segments.size() > 1) {
    run_segments(results, buffers, runtime, is_interrupted);
  } else {
    Block arena(allocator(), results.plan->arena_bytes, BlockKind::arena);
    run_segment(0, buffers, *results.plan, arena.address(), runtime, is_interrupted);
  }
  results.done = device_->record();
  return results;
}

/// Runs the segments of a program that reads sizes from data. A run puts what it reads into `symbols`, from which the
/// next segment is planned; its arena lives until the end, for later segments read it.
void Executable::run_segments(Results &results, std::vector<void *> &buffers, const DiscRuntime &runtime,
                              IsInterrupted is_interrupted) const {
  const std::vector<SegmentSpec> &segments = program().segments;
  std::vector<int64_t> symbols(results.plan->symbols);
  symbols.resize(segments.back().symbols);
  buffers.push_back(symbols.data());
  size_t first_arena = buffers.size();
  buffers.resize(first_arena + segments.size());
  std::vector<std::unique_ptr<Block>> arenas;
  for (size_t k = 0; k < segments.size(); ++k) {
    if (k != 0) {
      results.others.push_back(code_->planners[k]->plan_for(std::span(symbols).first(segments[k].symbols)));
      allocate_results(k, *results.others.back(), results.leaves, buffers);
    }
    const Plan &plan = k == 0 ? *results.plan : *results.others.back();
    arenas.push_back(std::make_unique<Block>(allocator(), plan.arena_bytes, BlockKind::arena));
    void *arena = buffers[first_arena + k] = arenas.back()->address();
    run_segment(k, buffers, plan, arena, runtime, is_interrupted);
  }
}

/// Runs one segment; what commands have failed with becomes an error once it is over.
void Executable::run_segment(size_t segment, std::span<void *const> buffers, const Plan &plan, void *arena,
                             const DiscRuntime &runtime, IsInterrupted is_interrupted) const {
  if (code_->interpretation)
    return code_->interpretation->run(buffers.data(), buffers.data() + program().arguments.size(), arena);
  SegmentRun run{code_->runs[segment], &runtime, buffers, plan.words, arena};
  if (is_interrupted && device_->is_host())
    InterruptibleRun(run, is_interrupted).run(*commands_);
  else
    commands_->run(run);
}

std::shared_ptr<Block> Executable::pack(const PackSpec &spec, const void *source) const {
  auto form = std::make_shared<Block>(allocator(), spec.bytes(), BlockKind::constant);
  pack_form(pool(), spec, source, form->address());
  return form;
}

bool Executable::calls_others() const {
  return std::ranges::any_of(program().calls, [](const CallSpec &call) { return call.custom.has_value(); });
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
    blocks.push_back(std::make_unique<Block>(allocator(), part->arena_bytes, BlockKind::arena));
  for (const CallPlan::Result &result : plan.results)
    blocks.push_back(std::make_unique<Block>(allocator(), result.bytes, BlockKind::result));
  for (const auto &block : blocks)
    if (device_->is_host())
      populate(block->address(), static_cast<size_t>(block->bytes()));
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
