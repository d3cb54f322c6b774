// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fingerprint.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace disc {

namespace {

constexpr size_t kWords = Fingerprint::kBlockBytes / sizeof(uint64_t);
constexpr size_t kLine = 8; // words of a cache line
constexpr int64_t kBlocksToShare = 64; // that pay for handing them to another thread

using Keys = std::array<uint64_t, kWords>;

const Keys &keys() {
  static const Keys drawn = [] {
    std::random_device source;
    Keys result;
    for (uint64_t &key : result)
      key = uint64_t{source()} << 32 | source();
    return result;
  }();
  return drawn;
}

std::array<uint64_t, 2> sum_of_block(const char *data, const Keys &keys) {
  unsigned __int128 even = 0, odd = 0; // two sums, so that no addition waits for the one before it
  for (size_t i = 0; i < kWords; i += kLine) {
    const char *line = data + i * sizeof(uint64_t);
    __builtin_prefetch(line + Fingerprint::kBlockBytes); // of the next page, where processors do not look ahead
    uint64_t words[kLine];
    std::memcpy(words, line, sizeof words);
    for (size_t j = 0; j < kLine; j += 4) {
      even += static_cast<unsigned __int128>(words[j] + keys[i + j]) * (words[j + 1] + keys[i + j + 1]);
      odd += static_cast<unsigned __int128>(words[j + 2] + keys[i + j + 2]) * (words[j + 3] + keys[i + j + 3]);
    }
  }
  unsigned __int128 sum = even + odd;
  return {static_cast<uint64_t>(sum), static_cast<uint64_t>(sum >> 64)};
}

} // namespace

Fingerprint::Fingerprint(ThreadPool &pool, const void *data, int64_t bytes)
    : sums_(static_cast<size_t>((bytes + kBlockBytes - 1) / kBlockBytes)) {
  struct Job {
    const char *data;
    int64_t bytes;
    const Keys &keys;
    std::array<uint64_t, 2> *sums;
  } job{static_cast<const char *>(data), bytes, keys(), sums_.data()};
  auto body = [](void *opaque, int64_t begin, int64_t end) {
    const Job &job = *static_cast<const Job *>(opaque);
    for (int64_t i = begin; i < end; ++i) {
      const char *block = job.data + i * kBlockBytes;
      char last[kBlockBytes] = {};
      if (int64_t left = job.bytes - i * kBlockBytes; left < kBlockBytes)
        block = static_cast<char *>(std::memcpy(last, block, static_cast<size_t>(left)));
      job.sums[i] = sum_of_block(block, job.keys);
    }
  };
  pool.run(body, &job, static_cast<int64_t>(sums_.size()), kBlocksToShare);
}

} // namespace disc
