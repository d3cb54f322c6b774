// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "header_digest.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

namespace disc {

namespace {

constexpr std::string_view kConstants = "constants";
constexpr std::string_view kChangedLater[] = {kConstants, "prepacked", "pjrt"};

using Members = std::map<std::string_view, const Json *>;

/// The last one of a name counts, as everywhere.
Members members_of(const Json::Object &object) {
  Members members;
  for (const auto &[name, value] : object)
    members[name] = &value;
  return members;
}

void append_number(std::string &out, char kind, uint64_t bits) {
  out += kind;
  for (int shift = 0; shift < 64; shift += 8)
    out += static_cast<char>(bits >> shift);
}

void append_text(std::string &out, std::string_view text) {
  append_number(out, 's', text.size());
  out += text;
}

void append(std::string &out, const Json &json);

void append_members(std::string &out, const Members &members) {
  append_number(out, 'o', members.size());
  for (const auto &[name, value] : members) {
    append_text(out, name);
    append(out, *value);
  }
}

/// Each value begins with its kind, and with its length where it has one, so that no two are written alike.
void append(std::string &out, const Json &json) {
  if (const auto *object = json.get<Json::Object>())
    return append_members(out, members_of(*object));
  if (const auto *text = json.get<std::string>())
    return append_text(out, *text);
  if (const auto *number = json.get<int64_t>())
    return append_number(out, 'i', static_cast<uint64_t>(*number));
  if (const auto *list = json.get<Json::List>()) {
    append_number(out, 'l', list->size());
    for (const Json &item : *list)
      append(out, item);
  } else if (const auto *number = json.get<double>()) {
    uint64_t bits = 0;
    std::memcpy(&bits, number, sizeof bits);
    append_number(out, 'd', bits);
  } else if (const auto *flag = json.get<bool>()) {
    out += *flag ? 't' : 'f';
  } else {
    out += 'n';
  }
}

} // namespace

Digest header_digest(const Json &header) {
  Members members = members_of(*header.get<Json::Object>());
  const Json *constants = members.contains(kConstants) ? members[kConstants] : nullptr;
  const auto *rows = constants != nullptr ? constants->get<Json::List>() : nullptr;
  for (std::string_view name : kChangedLater)
    members.erase(name);
  std::string text;
  append_number(text, 'c', rows != nullptr ? rows->size() : 0);
  append_members(text, members);
  return sha256(text);
}

} // namespace disc
