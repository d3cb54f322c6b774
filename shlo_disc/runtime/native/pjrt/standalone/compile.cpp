// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The functions of compile.h in a process without Python: another process compiles, and serialized executables are read
// here.
#include "pjrt/compile.h"

#include "artifact/levels.h"
#include "artifact/sections.h"
#include "artifact/sha256.h"
#include "compiler.h"
#include "executable_file.h"
#include "kernels/library_call.h"
#include "pjrt/compile_options.h"
#include "pjrt/error.h"

#include <cstdlib>

namespace disc::pjrt {

namespace {

[[noreturn]] void fail_on_gpus() { fail_unimplemented("running on GPUs without Python"); }

Compiler &compiler_of(const Purpose &purpose) {
  return *(purpose.compiler ? purpose.compiler : compiler_without_client());
}

/// How many devices run a program together is in its header or, of the plugin's, in its options alone.
void check_devices(int64_t replicas, const std::string &options) {
  CompileOptions parsed(options);
  if (replicas > 1 && parsed.replicas * parsed.partitions != replicas)
    fail_argument("the program runs on " + std::to_string(replicas) +
                  " devices: give compile options with as many replicas when it is loaded");
}

} // namespace

std::shared_ptr<Compiler> make_compiler(const std::string &command, std::chrono::seconds limit) {
  return std::make_shared<Compiler>(command, limit);
}

void require_compiler() {} // it is in another process

bool trusts_executables() {
  const char *said = std::getenv("SHLO_DISC_TRUST");
  return said && std::string_view(said) == "1";
}

/// The process that compiles reads programs, which it does not trust.
std::string read_untrusted(std::string_view program, const Purpose &) { return std::string(program); }

Compiled compile(std::string_view program, const Purpose &purpose) {
  return compiler_of(purpose).compile(program, purpose.max_programs, purpose.most_interpreted);
}

std::pair<Compiled, std::string> compile_for_devices(std::string_view program, int64_t replicas, int64_t partitions,
                                                     const Purpose &purpose) {
  return compiler_of(purpose).compile_for_devices(program, replicas, partitions, purpose.max_programs);
}

std::shared_ptr<Device> gpu_device(int) { fail_on_gpus(); }

Compiled loaded_on(const Compiled &, int) { fail_on_gpus(); }

/// Expressions of sizes are Python's to evaluate; a number needs no evaluation.
std::optional<double> count_flops(const Compiled &compiled) {
  const auto &read = *static_cast<const ArtifactBytes *>(compiled.artifact.get());
  std::vector<Json> headers = level_headers(read_sections(read.bytes));
  const Json *flops = headers.front().member("flops");
  const auto *text = flops ? flops->get<std::string>() : nullptr;
  if (!text || text->empty() || text->find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::strtod(text->c_str(), nullptr);
}

void register_function(const std::string &name, void *handler) {
  register_custom_call(name, handler, Convention::ffi);
  add_function(name);
}

std::string serialize(const Compiled &compiled, std::string_view program, std::string_view options) {
  const auto &read = *static_cast<const ArtifactBytes *>(compiled.artifact.get());
  if (std::shared_ptr<Compiler> compiler = read.compiler.lock())
    return compiler->serialize(compiled, program, options);
  if (options != read.options)
    throw Failure(PJRT_Error_Code_UNIMPLEMENTED,
                  "the executable was loaded with other compile options than its own, which cannot be written down here: "
                  "keep the bytes that it was loaded from");
  return std::string(read.bytes);
}

Deserialized deserialize(std::string_view bytes, std::string options,
                         const std::function<int(const std::string &options)> &) {
  auto check = [&](int64_t replicas, const std::string &written) {
    check_devices(replicas, options.empty() ? written : options);
  };
  Deserialized result = load_artifact({.owner = nullptr, .bytes = bytes, .options = {}, .compiler = {}}, check);
  if (!options.empty())
    result.options = std::move(options);
  if (result.program.empty()) {
    Digest digest = sha256(bytes);
    result.compiled.identity.assign(digest.begin(), digest.end());
  }
  return result;
}

} // namespace disc::pjrt
