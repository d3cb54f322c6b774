// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kept_answers.h"

#include "artifact/sha256.h"
#include "compiler_command.h"
#include "pjrt/error.h"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

namespace disc::pjrt {

namespace {

namespace fs = std::filesystem;

constexpr const char *kVariable = "SHLO_DISC_CACHE_DIR";
constexpr const char *kCpuVariable = "SHLO_DISC_CPU";
constexpr const char *kFormat = "shlo_disc answer 1";
constexpr size_t kLengths = 16; // bytes, of the header and of the data

/// Closes a file.
struct Descriptor {
  explicit Descriptor(int number) : number(number) {}
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  const int number;
};

/// The directory of the cache; empty without one. "~" is the user's home, as in Python.
std::string cache_directory() {
  const char *said = std::getenv(kVariable), *home = std::getenv("HOME");
  std::string directory = said ? said : "";
  bool is_below_home = directory == "~" || directory.starts_with("~/");
  return is_below_home && home ? home + directory.substr(1) : directory;
}

std::string hexadecimal(const Digest &digest) {
  constexpr const char *digits = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest)
    for (int shift : {4, 0})
      text += digits[byte >> shift & 15];
  return text;
}

void append(std::string &text, std::string_view part) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}

std::string contents_of(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// This plugin's file: the code that it loads is compiled for it.
const std::string &plugin_digest() {
  static const std::string digest = hexadecimal(sha256(contents_of(plugin_path())));
  return digest;
}

/// The processor that is compiled for: a level that the user has named, or this one with all that it can.
const std::string &processor() {
  static const std::string text = [] {
    const char *level = std::getenv(kCpuVariable);
    if (level && *level && std::string_view(level) != "host")
      return std::string(level);
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("flags"))
        return line;
    return std::string();
  }();
  return text;
}

/// The digest of the sources of the compiler beside this plugin, by `package_digest` of shlo_disc/driver/cache/key.py; empty
/// where the plugin lies alone.
const std::string &compiler_digest() {
  static const std::string digest = [] {
    std::string package = package_folder();
    if (package.empty())
      return std::string();
    std::vector<std::string> names;
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(package))
      if (entry.path().extension() == ".py")
        names.push_back(entry.path().lexically_relative(package).string());
    std::ranges::sort(names);
    std::string all;
    for (const std::string &name : names) {
      append(all, name);
      append(all, contents_of(fs::path(package) / name));
    }
    return hexadecimal(sha256(all));
  }();
  return digest;
}

void check_owner(int descriptor, const std::string &name) {
  struct stat found{};
  std::string problem;
  if (fstat(descriptor, &found) != 0 || (found.st_uid != geteuid() && found.st_uid != 0))
    problem = "'" + name + "' belongs to another user";
  else if (found.st_mode & (S_IWGRP | S_IWOTH))
    problem = "other users may write to '" + name + "': chmod go-w";
  if (!problem.empty())
    fail_argument("the compile cache holds native code, and " + problem + " [DISC-O103]");
}

/// The bytes behind their digest; nothing where there is no such file, or it is damaged.
std::optional<std::string> checked_contents(const std::string &key) {
  std::string directory = cache_directory(), name = key + ".answer";
  Descriptor folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number < 0)
    return std::nullopt;
  check_owner(folder.number, directory);
  Descriptor file(openat(folder.number, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found{};
  if (file.number < 0 || fstat(file.number, &found) != 0 || !S_ISREG(found.st_mode))
    return std::nullopt;
  check_owner(file.number, directory + "/" + name);
  futimens(file.number, nullptr); // what was used longest ago is removed first; a directory to read only serves as well
  std::string bytes(static_cast<size_t>(found.st_size), '\0');
  for (size_t place = 0; place < bytes.size();) {
    ssize_t more = read(file.number, bytes.data() + place, bytes.size() - place);
    if (more <= 0)
      return std::nullopt;
    place += static_cast<size_t>(more);
  }
  Digest digest;
  if (bytes.size() < digest.size() + kLengths)
    return std::nullopt;
  digest = sha256(std::string_view(bytes).substr(digest.size()));
  if (!std::equal(digest.begin(), digest.end(), reinterpret_cast<const uint8_t *>(bytes.data())))
    return std::nullopt;
  return bytes.substr(digest.size());
}

} // namespace

bool keeps_answers() { return !cache_directory().empty(); }

std::string answer_key(std::string_view task, const std::vector<std::string_view> &parts,
                       const std::vector<std::string> &functions) {
  if (!keeps_answers())
    return "";
  std::string text;
  for (std::string_view part : {std::string_view(kFormat), std::string_view(plugin_digest()),
                                std::string_view(processor()), task})
    append(text, part);
  for (std::string_view part : parts)
    append(text, part);
  for (const std::string &function : functions)
    if (std::ranges::any_of(parts, [&](std::string_view part) { return part.find(function) != part.npos; }))
      append(text, function);
  return hexadecimal(sha256(text));
}

std::optional<Answer> kept_answer(const std::string &key) {
  std::optional<std::string> bytes = key.empty() ? std::nullopt : checked_contents(key);
  if (!bytes)
    return std::nullopt;
  std::string_view rest = *bytes;
  uint64_t header = read_length(rest), data = read_length(rest);
  if (header > rest.size() || data != rest.size() - header)
    return std::nullopt;
  Answer answer = read_answer(rest.substr(0, header), rest.substr(header));
  const Json *said = answer.header.member("compiler");
  const auto *compiler = said ? said->get<std::string>() : nullptr;
  if (!compiler_digest().empty() && (!compiler || *compiler != compiler_digest()))
    return std::nullopt;
  return answer;
}

} // namespace disc::pjrt
