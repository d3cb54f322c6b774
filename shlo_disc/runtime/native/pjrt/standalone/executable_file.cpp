// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "executable_file.h"

#include "artifact/levels.h"
#include "artifact/sections.h"
#include "base64.h"
#include "core/aligned.h"
#include "core/error.h"

namespace disc::pjrt {

namespace {

constexpr int64_t kMemoBytes = int64_t{4} << 20;

/// What the plugin's header has beside the program's.
struct Extra {
  std::string options;
  std::vector<int64_t> symbols;
  std::vector<std::string> hidden;
};

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

} // namespace

Deserialized load_artifact(ArtifactBytes given, const std::function<void(int64_t, const std::string &)> &check) {
  auto read = std::make_shared<ArtifactBytes>(std::move(given));
  if (!read->owner) {
    read->owner = aligned_copy(read->bytes);
    read->bytes = {read->owner.get(), read->bytes.size()};
  }
  Sections sections = read_sections(read->bytes);
  std::vector<Json> headers = level_headers(sections);
  Extra extra = extra_of(headers.front());
  Level level = read_level(sections, headers, "");
  read->options = extra.options;
  check(level.header.replicas, extra.options);
  Deserialized result;
  result.compiled.executable = std::make_shared<const Executable>(
      default_device(), std::move(level.header.program), ProgramCode{level.object},
      ConstantBlock{level.constants.data(), static_cast<int64_t>(level.constants.size()), read->owner, level.packed},
      kMemoBytes, false);
  result.compiled.symbols = std::move(extra.symbols);
  for (const std::string &argument : extra.hidden)
    result.compiled.hidden.push_back(block_of(*result.compiled.executable, argument));
  result.program = section_named(sections, "portable");
  result.options = std::move(extra.options);
  result.compiled.artifact = std::move(read);
  return result;
}

} // namespace disc::pjrt
