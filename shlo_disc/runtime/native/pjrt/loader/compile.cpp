// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Executables without a compiler: what `serialize` of the plugin in Python wrote, and files of Executable.save.
#include "pjrt/compile.h"

#include "artifact/levels.h"
#include "artifact/sections.h"
#include "artifact/sha256.h"
#include "base64.h"
#include "core/aligned.h"
#include "kernels/library_call.h"
#include "pjrt/compile_options.h"
#include "pjrt/error.h"

#include <cstdlib>

namespace disc::pjrt {

namespace {

constexpr int64_t kMemoBytes = int64_t{4} << 20;

/// What an executable was read from, which is what it is serialized to.
struct Read {
  std::shared_ptr<const char> owner;
  std::string_view bytes;
  std::string options;
};

/// What the plugin's header has beside the program's.
struct Extra {
  std::string options;
  std::vector<int64_t> symbols;
  std::vector<std::string> hidden;
};

[[noreturn]] void fail_without_compiler() {
  throw Failure(PJRT_Error_Code_UNIMPLEMENTED,
                "this plugin has no compiler: compile with `python -m shlo_disc compile` or shlo_disc.compile(...).save, or "
                "serialize an executable of the plugin in the Python package, and give the bytes to "
                "PJRT_Executable_DeserializeAndLoad");
}

[[noreturn]] void fail_on_gpus() { fail_unimplemented("running on GPUs without Python"); }

std::string bytes_in(const Json *text) {
  const auto *encoded = text ? text->get<std::string>() : nullptr;
  std::optional<std::string> bytes = encoded ? decode_base64(*encoded) : std::nullopt;
  if (!bytes)
    bad_artifact("the artifact's 'pjrt' has something that is not base 64");
  return *std::move(bytes);
}

const Json::List &list_in(const Json *value) {
  const auto *list = value ? value->get<Json::List>() : nullptr;
  if (!list)
    bad_artifact("the artifact's 'pjrt' lacks a list");
  return *list;
}

/// Nothing is in the header of a file that Executable.save wrote: its sizes come with the arguments.
Extra extra_of(const Json &header) {
  Extra extra;
  const Json *ours = header.member("pjrt");
  if (!ours)
    return extra;
  extra.options = bytes_in(ours->member("options"));
  for (const Json &size : list_in(ours->member("symbols"))) {
    if (!size.get<int64_t>())
      bad_artifact("the artifact's 'pjrt' has a size that is no integer");
    extra.symbols.push_back(*size.get<int64_t>());
  }
  for (const Json &argument : list_in(ours->member("hidden")))
    extra.hidden.push_back(bytes_in(&argument));
  return extra;
}

/// How many devices run a program together is in its header or, of the plugin's, in its options alone.
void check_devices(int64_t replicas, const std::string &options) {
  CompileOptions parsed(options);
  if (replicas > 1 && parsed.replicas * parsed.partitions != replicas)
    fail_argument("the program runs on " + std::to_string(replicas) +
                  " devices: give compile options with as many replicas when it is loaded");
}

} // namespace

void require_compiler() { fail_without_compiler(); }

bool trusts_executables() {
  const char *said = std::getenv("SHLO_DISC_TRUST");
  return said && std::string_view(said) == "1";
}

std::string read_untrusted(std::string_view, std::string_view) { fail_without_compiler(); }

Compiled compile(std::string_view, std::string_view, const Purpose &) { fail_without_compiler(); }

std::pair<Compiled, std::string> compile_for_devices(std::string_view, std::string_view, int64_t, int64_t,
                                                     const Purpose &) {
  fail_without_compiler();
}

std::shared_ptr<Device> gpu_device(int) { fail_on_gpus(); }

Compiled loaded_on(const Compiled &, int) { fail_on_gpus(); }

/// Expressions of sizes are Python's to evaluate; a number needs no evaluation.
std::optional<double> count_flops(const Compiled &compiled) {
  const auto &read = *static_cast<const Read *>(compiled.artifact.get());
  std::vector<Json> headers = level_headers(read_sections(read.bytes));
  const Json *flops = headers.front().member("flops");
  const auto *text = flops ? flops->get<std::string>() : nullptr;
  if (!text || text->empty() || text->find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::strtod(text->c_str(), nullptr);
}

void register_function(const std::string &name, void *handler) {
  register_custom_call(name, handler, Convention::ffi);
}

std::string serialize(const Compiled &compiled, std::string_view, std::string_view options) {
  const auto &read = *static_cast<const Read *>(compiled.artifact.get());
  if (options != read.options)
    throw Failure(PJRT_Error_Code_UNIMPLEMENTED, "the executable was loaded with other compile options than its own, which "
                                                 "cannot be written down here: keep the bytes that it was loaded from");
  return std::string(read.bytes);
}

Deserialized deserialize(std::string_view given, std::string options,
                         const std::function<int(const std::string &options)> &) {
  std::shared_ptr<const char> held = aligned_copy(given);
  std::string_view bytes(held.get(), given.size());
  Sections sections = read_sections(bytes);
  std::vector<Json> headers = level_headers(sections);
  Extra extra = extra_of(headers.front());
  Level level = read_level(sections, headers, "");
  auto read = std::make_shared<Read>(Read{held, bytes, extra.options});
  if (options.empty())
    options = extra.options;
  check_devices(level.header.replicas, options);
  Deserialized result;
  result.compiled.executable = std::make_shared<const Executable>(
      default_device(), std::move(level.header.program), ProgramCode{level.object},
      ConstantBlock{level.constants.data(), static_cast<int64_t>(level.constants.size()), held, level.packed}, kMemoBytes,
      false);
  result.compiled.symbols = std::move(extra.symbols);
  for (const std::string &argument : extra.hidden)
    result.compiled.hidden.push_back(block_of(*result.compiled.executable, argument));
  result.compiled.artifact = std::move(read);
  result.program = section_named(sections, "portable");
  if (result.program.empty()) {
    Digest digest = sha256(bytes);
    result.compiled.identity.assign(digest.begin(), digest.end());
  }
  result.options = std::move(options);
  return result;
}

} // namespace disc::pjrt
