// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sha256.h"

#include <bit>
#include <cpuid.h>
#include <cstring>
#include <immintrin.h>

namespace disc {

namespace {

constexpr size_t kBlock = 64;
using State = std::array<uint32_t, 8>;

constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

uint32_t big_endian(const uint8_t *bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

void add_block(State &state, const uint8_t *block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = big_endian(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    uint32_t low = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t high = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    uint32_t sum = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    uint32_t other = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + sum, d = c, c = b, b = a, a = sum + other;
  }
  State sums{a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i)
    state[i] += sums[i];
}

void add_blocks(State &state, const uint8_t *blocks, size_t count) {
  for (size_t i = 0; i < count; ++i)
    add_block(state, blocks + i * kBlock);
}

bool has_sha_instructions() {
  constexpr unsigned sha_bit = 1u << 29; // of ebx, leaf 7
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & sha_bit) != 0;
}

/// The same by the processor's instructions, which hold the state as the words (a, b, e, f) and (c, d, g, h), the first
/// one on top. `first`, `second`: the words 0 to 3 and 4 to 7 of the state.
__attribute__((target("sha,sse4.1"))) void add_blocks_by_instructions(State &state, const uint8_t *blocks,
                                                                      size_t count) {
  const __m128i big_endian_words = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto *words = reinterpret_cast<__m128i *>(state.data());
  __m128i first = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xB1);
  __m128i second = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1B);
  __m128i abef = _mm_alignr_epi8(first, second, 8), cdgh = _mm_blend_epi16(second, first, 0xF0);
  for (size_t block = 0; block < count; ++block) {
    const auto *data = reinterpret_cast<const __m128i *>(blocks + block * kBlock);
    __m128i abef_before = abef, cdgh_before = cdgh, w[16];
    for (int i = 0; i < 16; ++i) { // of four rounds each
      if (i < 4) {
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128(data + i), big_endian_words);
      } else {
        __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[i - 4], w[i - 3]), _mm_alignr_epi8(w[i - 1], w[i - 2], 4));
        w[i] = _mm_sha256msg2_epu32(sum, w[i - 1]);
      }
      __m128i input = _mm_add_epi32(w[i], _mm_loadu_si128(reinterpret_cast<const __m128i *>(kRounds + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, input);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(input, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before), cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  first = _mm_shuffle_epi32(abef, 0x1B), second = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(words, _mm_blend_epi16(first, second, 0xF0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(second, first, 8));
}

} // namespace

Digest sha256(std::string_view bytes) {
  State state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  size_t whole = bytes.size() / kBlock * kBlock, rest = bytes.size() - whole;
  static const auto add = has_sha_instructions() ? add_blocks_by_instructions : add_blocks;
  add(state, data, whole / kBlock);
  uint8_t tail[2 * kBlock] = {};
  if (rest != 0)
    std::memcpy(tail, data + whole, rest);
  tail[rest] = 0x80;
  size_t end = rest + 9 <= kBlock ? kBlock : 2 * kBlock;
  for (size_t i = 0; i < 8; ++i)
    tail[end - 1 - i] = static_cast<uint8_t>(uint64_t{bytes.size()} * 8 >> (8 * i));
  add(state, tail, end / kBlock);
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

} // namespace disc
