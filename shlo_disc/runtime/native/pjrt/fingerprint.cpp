// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fingerprint.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace disc::pjrt {

namespace {

struct Secret {
  uint64_t words[6];
};

const Secret &secret() {
  static const Secret made = [] {
    std::random_device source;
    Secret out;
    for (uint64_t &word : out.words)
      word = (static_cast<uint64_t>(source()) << 32) | source() | 1;
    return out;
  }();
  return made;
}

/// Both halves of a product, folded: each bit of the result depends on all bits of both factors.
uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

} // namespace

Fingerprint fingerprint(std::string_view bytes) {
  const uint64_t *key = secret().words;
  uint64_t low = key[0] ^ bytes.size(), high = key[1] + bytes.size();
  for (size_t place = 0; place < bytes.size(); place += 16) {
    uint64_t words[2] = {};
    std::memcpy(words, bytes.data() + place, std::min<size_t>(bytes.size() - place, sizeof words));
    low = fold(words[0] ^ key[2] ^ low, words[1] ^ key[3]) + low;
    high = fold(words[1] ^ key[4] ^ high, words[0] ^ key[5]) + high;
  }
  return {fold(low ^ key[4], key[2]), fold(high ^ key[3], key[5])};
}

} // namespace disc::pjrt
