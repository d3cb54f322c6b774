// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cpu_features.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>

namespace disc {

namespace {

const std::unordered_map<std::string_view, std::string_view> kLinuxNames = {
    {"64bit", "lm"},
    {"bmi", "bmi1"},
    {"crc32", "sse4_2"},
    {"lzcnt", "abm"},
    {"pclmul", "pclmulqdq"},
    {"prfchw", "3dnowprefetch"},
    {"rdrnd", "rdrand"},
    {"sahf", "lahf_lm"},
    {"sha", "sha_ni"},
    {"sse3", "pni"},
    {"x87", "fpu"},
    {"avxvnni", "avx_vnni"},
    {"avxifma", "avx_ifma"},
    {"avxneconvert", "avx_ne_convert"},
    {"avxvnniint8", "avx_vnni_int8"},
    {"avxvnniint16", "avx_vnni_int16"},
    {"avx512bf16", "avx512_bf16"},
    {"avx512bitalg", "avx512_bitalg"},
    {"avx512fp16", "avx512_fp16"},
    {"avx512vbmi2", "avx512_vbmi2"},
    {"avx512vnni", "avx512_vnni"},
    {"avx512vp2intersect", "avx512_vp2intersect"},
    {"avx512vpopcntdq", "avx512_vpopcntdq"},
};

/// System, hint, key and seed instructions, which numeric code never contains and Linux does not list all of.
const std::unordered_set<std::string_view> kWithoutEffect = {
    "cldemote", "enqcmd", "hreset",    "invpcid", "kl",    "pconfig",  "pku",     "prefetchi", "ptwrite",  "rdpru",
    "rdseed",   "sgx",    "serialize", "shstk",   "uintr", "tsxldtrk", "usermsr", "waitpkg",  "wbnoinvd", "widekl",
};

std::unordered_set<std::string> read_flags() {
  std::ifstream file("/proc/cpuinfo");
  std::unordered_set<std::string> flags;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags"))
      continue;
    std::istringstream words(line.substr(std::min(line.size(), line.find(':') + 1)));
    for (std::string word; words >> word;)
      flags.insert(word);
    break;
  }
  return flags;
}

bool has_flag(const std::string &name) {
  static const auto *flags = new std::unordered_set<std::string>(read_flags());
  return flags->contains(name);
}

/// Asks Linux, once, for room for the tile registers of AMX in this process; whether it is granted.
bool may_use_tiles() {
  constexpr long arch_prctl_number = 158, request_permission = 0x1023, tile_data = 18;
  static const bool granted = has_flag("amx_tile") && syscall(arch_prctl_number, request_permission, tile_data) == 0;
  return granted;
}

bool has(const std::string &feature) {
  std::string plain = feature;
  for (char &c : plain)
    if (c == '.' || c == '-')
      c = '_';
  auto found = kLinuxNames.find(feature);
  bool is_there = has_flag(plain) || (found != kLinuxNames.end() && has_flag(std::string(found->second)));
  return is_there && (!feature.starts_with("amx-") || may_use_tiles());
}

} // namespace

std::vector<std::string> missing_features(const std::vector<std::string> &features) {
  std::set<std::string> missing;
  for (std::string name : features) {
    if (name.starts_with("-"))
      continue;
    if (name.starts_with("+"))
      name.erase(0, 1);
    if (!kWithoutEffect.contains(name) && !has(name))
      missing.insert(name);
  }
  return {missing.begin(), missing.end()};
}

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

} // namespace disc
