// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "interpreted_program.h"

#include "bytecode/bytecode.h"
#include "interpreter/program.h"

namespace disc::pjrt {

namespace {

class InterpretedRun : public Interpretation {
public:
  InterpretedRun(std::shared_ptr<const interpreter::Program> program, std::shared_ptr<Hotness> hotness, int64_t most_work)
      : program_(std::move(program)), hotness_(std::move(hotness)), most_work_(most_work) {}

  int64_t arena_bytes() const override { return program_->memory_bytes(); }

  void run(void *const *arguments, void *const *results, void *arena) const override {
    try {
      hotness_->add(program_->run(arguments, results, arena, most_work_));
    } catch (const interpreter::Unsupported &) {
      hotness_->set_hot();
      throw;
    }
  }

private:
  std::shared_ptr<const interpreter::Program> program_;
  std::shared_ptr<Hotness> hotness_;
  int64_t most_work_;
};

std::vector<ArraySpec> arrays_of(const std::vector<interpreter::Type> &types, std::string_view name) {
  std::vector<ArraySpec> out;
  for (const interpreter::Type &type : types) {
    ArraySpec &array = out.emplace_back();
    array.path = std::string(name) + "[" + std::to_string(out.size() - 1) + "]";
    array.dtype = type.dtype;
    for (int64_t size : type.dims)
      array.shape.push_back({size, std::to_string(size)});
  }
  return out;
}

Program description_of(const interpreter::Program &program) {
  Program out;
  out.name = program.name;
  out.arguments = arrays_of(program.arguments, "args");
  out.results = arrays_of(program.results, "results");
  SegmentSpec segment;
  for (size_t i = 0; i < out.arguments.size(); ++i) {
    out.arguments[i].donated = program.donated[i];
    segment.plan_words += out.arguments[i].shape.size();
  }
  for (size_t i = 0; i < out.results.size(); ++i) {
    segment.results.push_back(i);
    segment.plan_words += out.results[i].shape.size();
  }
  out.segments.push_back(std::move(segment));
  return out;
}

} // namespace

std::optional<Interpreted> interpreted(std::string_view bytes, std::shared_ptr<Hotness> hotness,
                                       int64_t most_nanoseconds) {
  std::shared_ptr<const interpreter::Program> program;
  try {
    program = interpreter::Program::read(bytes, most_nanoseconds);
  } catch (const interpreter::Unsupported &) {
    return std::nullopt;
  } catch (const bytecode::Unreadable &) {
    return std::nullopt;
  }
  if (hotness->is_hot(program->op_count))
    return std::nullopt;
  auto run = std::make_shared<const InterpretedRun>(program, hotness, most_nanoseconds);
  auto executable = std::make_shared<const Executable>(default_device(), description_of(*program), std::move(run));
  return Interpreted{std::move(executable), std::move(hotness), program->op_count, program->may_stop};
}

} // namespace disc::pjrt
