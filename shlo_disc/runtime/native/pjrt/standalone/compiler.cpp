// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler.h"

#include "executable_file.h"
#include "kept_answers.h"
#include "pjrt/error.h"
#include "pjrt/served_program.h"

#include <algorithm>

namespace disc::pjrt {

namespace {

constexpr size_t kMostSymbolic = 8; // kept of one skeleton

std::mutex functions_mutex;

std::vector<std::string> &registered_functions() {
  static auto *names = new std::vector<std::string>();
  return *names;
}

std::vector<std::string> functions() {
  std::lock_guard lock(functions_mutex);
  return registered_functions();
}

/// Whether the table can read a program as it came: a portable artifact for one device, in row-major order.
bool is_plain(std::string_view program) {
  constexpr std::string_view magic = "ML\xef" "R", producer = "StableHLO_v";
  if (program.size() <= magic.size() || !program.starts_with(magic)) // a version of bytecode follows, in one byte
    return false;
  return program.substr(magic.size() + 1).starts_with(producer) && !states_placement(program);
}

const std::string &part(const Answer &answer, size_t index) {
  if (index >= answer.parts.size())
    fail_at_answer();
  return answer.parts[index];
}

/// A list of numbers of an answer.
template <typename T> std::vector<T> numbers_in(const Answer &answer, std::string_view name) {
  const Json *member = answer.header.member(name);
  const auto *list = member ? member->get<Json::List>() : nullptr;
  std::vector<T> numbers;
  for (size_t i = 0; list && i < list->size(); ++i) {
    const int64_t *value = (*list)[i].get<int64_t>();
    if (!value)
      fail_at_answer();
    numbers.push_back(static_cast<T>(*value));
  }
  return numbers;
}

/// The key of a program as it is: of what the table compares, so that locations do not count; else of its bytes.
std::string static_key(std::string_view program, int64_t participants) {
  if (!keeps_answers())
    return "";
  std::string devices = std::to_string(participants);
  try {
    StaticProgram read = read_program(program);
    auto bytes = reinterpret_cast<const char *>(read.numbers.data());
    return answer_key("compile", {read.skeleton, {bytes, read.numbers.size() * sizeof(int64_t)}, devices}, functions());
  } catch (const Unreadable &) {
    return answer_key("compile", {program, devices}, functions());
  }
}

std::string symbolic_key(std::string_view skeleton, size_t number, int64_t participants) {
  return answer_key("generalize", {skeleton, std::to_string(number), std::to_string(participants)}, functions());
}

} // namespace

void add_function(const std::string &name) {
  std::lock_guard lock(functions_mutex);
  registered_functions().push_back(name);
}

const std::shared_ptr<Compiler> &compiler_without_client() {
  static const auto *compiler = new std::shared_ptr<Compiler>(new Compiler("", std::chrono::seconds(0)));
  return *compiler; // its process ends with this one
}

/// The answer of the compile cache, or else of the compiler.
Answer Compiler::ask(Request request) {
  request.functions = functions();
  if (std::optional<Answer> kept = kept_answer(request.key))
    return *std::move(kept);
  return process_.ask(request);
}

Compiled Compiler::load(std::string_view artifact) {
  ArtifactBytes read{.owner = nullptr, .bytes = artifact, .options = {}, .compiler = weak_from_this()};
  return load_artifact(std::move(read), [](int64_t, const std::string &) {}).compiled;
}

std::optional<SymbolicProgram> Compiler::symbolic_program(const Answer &answer) {
  if (answer.parts.empty())
    return std::nullopt;
  SymbolicProgram out;
  out.compiled = table_executable(load(part(answer, 0)));
  out.symbols = numbers_in<uint32_t>(answer, "symbols");
  std::vector<int64_t> steps = numbers_in<int64_t>(answer, "steps");
  for (size_t i = 0; i + 2 < steps.size(); i += 3)
    out.steps.push_back({steps[i], steps[i + 1], steps[i + 2]});
  for (int64_t step : numbers_in<int64_t>(answer, "expected"))
    out.expected.push_back(step < 0 ? SymbolicProgram::any : static_cast<uint32_t>(step));
  out.hidden = numbers_in<uint32_t>(answer, "hidden");
  out.least = numbers_in<int64_t>(answer, "least");
  out.given = numbers_in<uint32_t>(answer, "given");
  return out;
}

std::optional<SymbolicProgram> Compiler::generalize(const std::vector<std::string_view> &programs, int max_programs,
                                                    int64_t participants) {
  std::string skeleton = read_program(programs.back()).skeleton, key;
  for (size_t number = 0; number < kMostSymbolic; ++number) {
    key = symbolic_key(skeleton, number, participants);
    if (!kept_answer(key))
      break;
  }
  Request request{.task = "generalize",
                  .numbers = {{"max_programs", max_programs}, {"participants", participants}},
                  .parts = programs,
                  .key = key};
  request.functions = functions();
  return symbolic_program(process_.ask(request));
}

std::vector<SymbolicProgram> Compiler::kept_symbolic(std::string_view skeleton, int64_t participants) {
  std::vector<SymbolicProgram> found;
  for (size_t number = 0; number < kMostSymbolic; ++number) {
    std::optional<Answer> kept = kept_answer(symbolic_key(skeleton, number, participants));
    std::optional<SymbolicProgram> symbolic = kept ? symbolic_program(*kept) : std::nullopt;
    if (!symbolic)
      break;
    found.push_back(*std::move(symbolic));
  }
  return found;
}

/// participants: how many devices run the program together.
ProgramCompiler Compiler::in_process(int max_programs, int64_t participants, int64_t most_interpreted) {
  ProgramCompiler out;
  out.most_interpreted = most_interpreted;
  out.compile = [=, this](std::string_view program, std::string_view) {
    Answer answer = ask({.task = "compile",
                         .numbers = {{"max_programs", max_programs}, {"participants", participants}},
                         .parts = {program},
                         .key = static_key(program, participants)});
    return table_executable(load(part(answer, 0)));
  };
  out.generalize = [=, this](const std::vector<std::string_view> &programs, std::string_view) {
    return generalize(programs, max_programs, participants);
  };
  out.kept = [=, this](std::string_view program) -> std::optional<TableExecutable> {
    std::optional<Answer> kept = kept_answer(static_key(program, participants));
    return kept ? std::optional(table_executable(load(part(*kept, 0)))) : std::nullopt;
  };
  out.kept_symbolic = [=, this](std::string_view skeleton) { return kept_symbolic(skeleton, participants); };
  return out;
}

Compiled Compiler::compile(std::string_view program, int max_programs, int64_t most_interpreted) {
  Answer read;
  if (!is_plain(program)) {
    read = ask({.task = "read", .parts = {program}, .key = answer_key("read", {program}, functions())});
    program = part(read, 0);
  }
  Served served = programs_.compile(program, "1", in_process(max_programs, 1, most_interpreted));
  auto compile = [program = served.not_compiled ? std::string(program) : std::string(), max_programs,
                  compiler = weak_from_this()] {
    std::shared_ptr<Compiler> self = compiler.lock();
    if (!self)
      throw Failure(PJRT_Error_Code_FAILED_PRECONDITION, "the client of a program is gone");
    return self->compile(program, max_programs, 0);
  };
  return compiled_of(std::move(served), std::move(compile));
}

std::pair<Compiled, std::string> Compiler::compile_for_devices(std::string_view program, int64_t replicas,
                                                               int64_t partitions, int max_programs) {
  std::string counts = std::to_string(replicas) + " " + std::to_string(partitions);
  Answer answer = ask({.task = "for_devices",
                       .numbers = {{"replicas", replicas}, {"partitions", partitions}},
                       .parts = {program},
                       .key = answer_key("for_devices", {program, counts}, functions())});
  const std::string &each = part(answer, 0);
  int64_t participants = replicas * partitions;
  std::string options = std::to_string(participants);
  Compiled compiled = compiled_of(programs_.compile(each, options, in_process(max_programs, participants, 0)), nullptr);
  const Json *attributes = answer.header.member("attributes");
  const auto *text = attributes ? attributes->get<std::string>() : nullptr;
  compiled.of_devices = text ? *text : std::string();
  return {std::move(compiled), each};
}

std::string Compiler::serialize(const Compiled &compiled, std::string_view program, std::string_view options) {
  const auto &read = *static_cast<const ArtifactBytes *>(compiled.artifact.get());
  Request request{.task = "serialize", .symbols = compiled.symbols, .parts = {read.bytes, program, options}};
  for (const std::shared_ptr<Block> &block : compiled.hidden)
    request.parts.emplace_back(reinterpret_cast<const char *>(block->address()), static_cast<size_t>(block->bytes()));
  return part(process_.ask(request), 0);
}

} // namespace disc::pjrt
