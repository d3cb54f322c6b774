// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sections.h"

#include "core/error.h"
#include "sha256.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace disc {

namespace {

constexpr std::string_view kMagic = "SHLODISC", kHeader = "header";
constexpr uint32_t kVersion = 1, kMostSections = 64;
constexpr uint64_t kAlignment = 64, kPrefixBytes = 24, kRowBytes = 56, kDigestBytes = 32, kNameBytes = 8;

const std::string kCopyAgain = ": copy the file again, or compile the program again";

template <typename T> T number_at(std::string_view bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value)); // both are little-endian
  return value;
}

bool has_digest(std::string_view contents, std::string_view digest) {
  Digest actual = sha256(contents);
  return std::memcmp(actual.data(), digest.data(), actual.size()) == 0;
}

std::string name_of(std::string_view row) {
  std::string name(row.substr(0, kNameBytes));
  name.resize(name.find_last_not_of('\0') + 1);
  std::string text;
  for (char c : name)
    text += static_cast<uint8_t>(c) < 0x80 ? std::string(1, c) : "\xEF\xBF\xBD";
  return text;
}

/// The contents of the section of `row`, which must follow the one that ended at `end`.
std::string_view read_section(std::string_view bytes, std::string_view row, const std::string &name, uint64_t &end) {
  auto offset = number_at<uint64_t>(row, 8), length = number_at<uint64_t>(row, 16);
  std::string called = "section '" + name + "'";
  uint64_t expected = (end + kAlignment - 1) / kAlignment * kAlignment;
  if (offset != expected || offset > bytes.size() || length > bytes.size() - offset)
    bad_artifact("the artifact's " + called + " lies outside the file" + kCopyAgain);
  if (bytes.substr(end, offset - end).find_first_not_of('\0') != std::string_view::npos)
    bad_artifact("the artifact's padding before " + called + " is damaged" + kCopyAgain);
  std::string_view contents = bytes.substr(offset, length);
  if (!has_digest(contents, row.substr(24)))
    bad_artifact("the artifact's " + called + " is damaged: its checksum does not match" + kCopyAgain);
  end = offset + length;
  return contents;
}

/// Files of other kinds, by what they begin with.
constexpr std::pair<std::string_view, const char *> kOtherFiles[] = {
    {"PK\x03\x04", "a zip archive: if torch.export.save wrote it, call shlo_disc.compile(torch.export.load(file)) in "
                   "Python, and save what that returns"},
    {"\x7f" "ELF", "a library or another binary in ELF: if Executable.export_library wrote it, link with it or open it by "
                 "dlopen, and call the functions of its header"},
    {"\x1f\x8b", "a gzip archive: unpack it"},
    {"version https://git-lfs", "a Git LFS pointer, in place of a file that `git lfs pull` fetches"},
};

/// Whether bytes are a zip archive whose first entry is an array of NumPy's.
bool is_npz(std::string_view bytes) {
  constexpr size_t name_start = 30;
  if (!bytes.starts_with("PK\x03\x04") || bytes.size() < name_start)
    return false;
  return bytes.substr(name_start, number_at<uint16_t>(bytes, 26)).ends_with(".npy");
}

/// What bytes that are a program seem to be, one that is still to be compiled; null where they are something else.
const char *uncompiled_program(std::string_view bytes) {
  constexpr size_t most_searched = size_t{1} << 20;
  constexpr std::string_view bytecode = "ML\xefR";
  if (bytes.starts_with(bytecode))
    return "MLIR bytecode";
  std::string_view start = bytes.substr(0, most_searched);
  if (start.find(bytecode) != std::string_view::npos)
    return "a program of jax.export";
  auto has = [&](std::string_view word) { return start.find(word) != std::string_view::npos; };
  bool is_text = start.find('\0') == std::string_view::npos;
  return is_text && (has("func.func") || has("stablehlo.")) ? "MLIR as text" : nullptr;
}

[[noreturn]] void fail_other_file(std::string_view bytes) {
  const std::string expected =
      "not a shlo_disc artifact, as Executable.save and `python -m shlo_disc compile` write them";
  if (is_npz(bytes))
    bad_artifact(expected + ", but an .npz file of arrays, which holds weights and no program: ",
                 {"load the program that `save` wrote, and bind the weights by bind(weights=...)",
                  "disc_load reads the program, and disc_bind takes arrays in memory: write those of "
                  "run.weights(as_taken=True) in Python, by tobytes(), to a file that the C program reads"});
  for (const auto &[start, name] : kOtherFiles)
    if (bytes.starts_with(start))
      bad_artifact(expected + ", but " + name);
  if (const char *program = uncompiled_program(bytes))
    bad_artifact(expected + ", but " + program + ", which is not compiled yet: ",
                 {"compile the program by shlo_disc.compile",
                  "compile it by `python -m shlo_disc compile PROGRAM -o FILE`, and load FILE"});
  bad_artifact(expected + ": ", {"compile a program by shlo_disc.compile",
                                 "compile a program by `python -m shlo_disc compile PROGRAM -o FILE`, and load FILE"});
}

/// The number of sections, once the table is known to be what was written.
uint32_t check_table(std::string_view bytes) {
  if (bytes.empty())
    bad_artifact("the artifact is empty, it has 0 bytes" + kCopyAgain);
  if (bytes.substr(0, kMagic.size()) != kMagic.substr(0, bytes.size()))
    fail_other_file(bytes);
  if (bytes.size() < kPrefixBytes)
    bad_artifact("the artifact is truncated, it has " + std::to_string(bytes.size()) + " bytes" + kCopyAgain);
  auto version = number_at<uint32_t>(bytes, 8), count = number_at<uint32_t>(bytes, 12);
  auto length = number_at<uint64_t>(bytes, 16);
  if (version != kVersion)
    bad_artifact("artifact format " + std::to_string(version) + "; this release reads format " +
                 std::to_string(kVersion));
  uint64_t table_end = kPrefixBytes + kRowBytes * count;
  if (length != bytes.size())
    bad_artifact(std::string("the artifact ") + (bytes.size() < length ? "is truncated" : "has bytes added") + ", it has " +
                 std::to_string(bytes.size()) + " bytes instead of " + std::to_string(length) + kCopyAgain);
  if (count == 0 || count > kMostSections || length < table_end + kDigestBytes)
    bad_artifact("the artifact's section table is damaged" + kCopyAgain);
  if (!has_digest(bytes.substr(0, table_end), bytes.substr(table_end)))
    bad_artifact("the artifact's section table is damaged" + kCopyAgain);
  return count;
}

} // namespace

Sections read_sections(std::string_view bytes) {
  uint32_t count = check_table(bytes);
  uint64_t end = kPrefixBytes + kRowBytes * count + kDigestBytes;
  Sections sections;
  for (uint32_t i = 0; i < count; ++i) {
    std::string_view row = bytes.substr(kPrefixBytes + kRowBytes * i, kRowBytes);
    std::string name = name_of(row);
    bool is_there = std::ranges::any_of(sections, [&](const auto &section) { return section.first == name; });
    if (is_there || (name == kHeader) != (i == 0))
      bad_artifact("the artifact's section '" + name + "' is out of place" + kCopyAgain);
    sections.emplace_back(name, read_section(bytes, row, name, end));
  }
  if (end != bytes.size())
    bad_artifact("the artifact has bytes after its last section" + kCopyAgain);
  return sections;
}

std::string_view section_named(const Sections &sections, std::string_view name) {
  for (const auto &[found, contents] : sections)
    if (found == name)
      return contents;
  return {};
}

} // namespace disc
