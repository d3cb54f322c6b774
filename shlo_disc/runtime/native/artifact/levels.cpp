// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "levels.h"

#include "core/error.h"
#include "cpu_features.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace disc {

namespace {

/// A member of a header's target; null where there is none.
const Json *target_member(const Json &header, const char *key) {
  const Json *target = header.member("target");
  return target == nullptr ? nullptr : target->member(key);
}

/// The name that a level was given when it was compiled.
std::string cpu_of(const Json &header) {
  const Json *cpu = target_member(header, "cpu");
  const auto *name = cpu == nullptr ? nullptr : cpu->get<std::string>();
  return name == nullptr ? "" : *name;
}

/// The user's names of the arguments, such as "params['w']": their paths with the names of parameters for positions.
std::vector<std::string> argument_names(const Json &header, const std::vector<ArraySpec> &arguments) {
  const Json *pytree = header.member("pytree");
  const Json *member = pytree == nullptr ? nullptr : pytree->member("names");
  const auto *list = member == nullptr ? nullptr : member->get<Json::List>();
  std::vector<std::string> names;
  for (const ArraySpec &spec : arguments) {
    constexpr std::string_view kPosition = "args[";
    size_t end = spec.path.find(']'), position = 0;
    if (!spec.path.starts_with(kPosition) || end == std::string::npos) {
      names.push_back(spec.path);
      continue;
    }
    const char *digits = spec.path.data() + kPosition.size(), *close = spec.path.data() + end;
    auto [last, error] = std::from_chars(digits, close, position);
    bool is_known = error == std::errc() && last == close && list != nullptr && position < list->size();
    const std::string *name = is_known ? (*list)[position].get<std::string>() : nullptr;
    names.push_back(name == nullptr || name->empty() ? "" : *name + spec.path.substr(end + 1));
  }
  return names;
}

/// The features of a level's code that this processor lacks; none where the header does not state features.
std::optional<std::vector<std::string>> missing_here(const Json &header) {
  const Json *features = target_member(header, "features");
  const auto *list = features == nullptr ? nullptr : features->get<Json::List>();
  if (list == nullptr)
    return std::nullopt;
  std::vector<std::string> names;
  for (const Json &feature : *list) {
    const auto *name = feature.get<std::string>();
    if (name == nullptr)
      return std::nullopt;
    names.push_back(*name);
  }
  return missing_features(names);
}

/// Whether this processor has what the code of a level uses. A header that does not say so is not chosen.
bool runs_here(const Json &header) {
  auto missing = missing_here(header);
  return missing && missing->empty();
}

/// A level's constants: its own, or those of all.
std::string_view constants_of(const Sections &sections, size_t level) {
  std::string_view own = section_named(sections, level_section("consts", level));
  return own.empty() ? section_named(sections, "consts") : own;
}

} // namespace

std::string level_section(std::string_view name, size_t level) {
  return std::string(name) + (level == 0 ? "" : std::to_string(level));
}

std::vector<Json> level_headers(const Sections &sections) {
  std::vector<Json> headers;
  for (size_t level = 0; level < kMostLevels; ++level) {
    std::string name = level_section("header", level);
    auto found = std::ranges::find(sections, name, [](const auto &section) { return section.first; });
    if (found == sections.end())
      break;
    headers.push_back(parse_header(found->second));
  }
  return headers;
}

size_t choose_level(const std::vector<Json> &headers, std::string_view cpu, bool to_run) {
  if (cpu.empty()) {
    size_t level = headers.size() - 1;
    while (level > 0 && !runs_here(headers[level]))
      --level;
    return level;
  }
  std::string names, here; // of all levels, and of the best that runs here
  size_t chosen = headers.size();
  for (size_t level = 0; level < headers.size(); ++level) {
    std::string name = cpu_of(headers[level]);
    if (name == cpu && chosen == headers.size())
      chosen = level;
    name = name.empty() ? "the processor that compiled it" : "'" + name + "'";
    names += (level != 0 ? ", " : "") + name;
    if (runs_here(headers[level]))
      here = name;
  }
  std::string problem = "made for " + names + ", and not for '" + std::string(cpu) + "'";
  bool is_known = chosen != headers.size();
  if (is_known) {
    auto missing = missing_here(headers[chosen]);
    if (!to_run || here.empty() || !missing || missing->empty()) // read_header refuses what does not run
      return chosen;
    problem = "made for a processor with " + joined(*missing) + ", which this one lacks";
  } else if (here.empty()) { // so no other choice of a level helps
    bad_artifact(problem + ", and this processor runs no code that it has: " + kCompileForAll);
  }
  std::string python = "load it without cpu", c = "leave cpu of disc_load_options NULL";
  std::string other = ", which runs the code for " + here;
  if (!is_known)
    other += ", or compile the program for another level with Options(cpu=...)";
  python += other, c += other + (is_known ? "" : " or --cpu");
  bad_artifact(problem + ": ", {python.c_str(), c.c_str()});
}

Level read_level(const Sections &sections, const std::vector<Json> &headers, std::string_view cpu) {
  size_t level = choose_level(headers, cpu);
  Level read{read_header(headers[level]), cpu_of(headers[level]), {}, section_named(sections, level_section("object", level)),
             constants_of(sections, level), section_named(sections, level_section("packed", level))};
  if (!read.header.device.empty())
    bad_artifact("made for " + read.header.device,
                 {"; this client's device is the CPU",
                  ", and programs of the C API run on the CPU: compile the program by `python -m shlo_disc compile "
                  "PROGRAM --target cpu -o FILE`"});
  read.names = argument_names(headers[level], read.header.program.arguments);
  return read;
}

} // namespace disc
