// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random bits by the counter-based generators ThreeFry-2x32 and Philox-4x32 (Salmon, Moraes, Dror, Shaw, "Parallel
// Random Numbers: As Easy as 1, 2, 3", SC 2011). Which counter and which word an element gets, and the state that is
// left, are XLA's.
#include "element_types.h"
#include "library.h"

#include <algorithm>
#include <array>

namespace disc::interpreter {

namespace {

constexpr int64_t three_fry = 1; // in VHLO; the others are Philox, and the default, which is Philox on XLA's CPU

uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
uint64_t joined(uint32_t low, uint32_t high) { return low | static_cast<uint64_t>(high) << 32; }

/// 20 rounds; words of the key are added after every fourth.
std::array<uint32_t, 2> three_fry_block(uint64_t key, uint64_t counter) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t keys[3] = {low(key), high(key), low(key) ^ high(key) ^ 0x1BD11BDA};
  uint32_t x = low(counter) + keys[0], y = high(counter) + keys[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int distance : rotations[group % 2]) {
      x += y;
      y = x ^ std::rotl(y, distance);
    }
    x += keys[(group + 1) % 3];
    y += keys[(group + 2) % 3] + group + 1;
  }
  return {x, y};
}

/// 10 rounds.
std::array<uint32_t, 4> philox_block(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  std::array<uint32_t, 4> x{low(counter_low), high(counter_low), low(counter_high), high(counter_high)};
  uint32_t keys[2] = {low(key), high(key)};
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t{0xD2511F53} * x[0], second = uint64_t{0xCD9E8D57} * x[2];
    x = {high(second) ^ x[1] ^ keys[0], low(second), high(first) ^ x[3] ^ keys[1], low(first)};
    keys[0] += 0x9E3779B9;
    keys[1] += 0xBB67AE85;
  }
  return x;
}

/// An array of words as XLA's ThreeFry sees it: the two words of a block are neighbours along an axis that is split.
struct SplitAxis {
  int64_t outer = 1, size = 1, inner = 1;

  /// It is the first axis whose size is even, or else the first one of the largest.
  explicit SplitAxis(const Dims &dims) {
    if (dims.empty())
      return;
    auto axis = std::ranges::find_if(dims, [](int64_t size) { return size % 2 == 0; });
    if (axis == dims.end())
      axis = std::ranges::max_element(dims);
    size = *axis;
    for (auto i = dims.begin(); i != axis; ++i)
      outer *= *i;
    for (auto i = axis + 1; i != dims.end(); ++i)
      inner *= *i;
    outer = inner == 0 ? 0 : outer;
  }
};

template <typename T> void three_fry_words(const uint64_t *state, const SplitAxis &split, uint64_t *after, T *bits) {
  uint64_t counter = state[1];
  for (int64_t i = 0; i < split.outer; ++i)
    for (int64_t j = 0; j < split.size; j += 2)
      for (int64_t k = 0; k < split.inner; ++k) {
        std::array<uint32_t, 2> words = three_fry_block(state[0], counter++);
        T *place = bits + (i * split.size + j) * split.inner + k;
        place[0] = static_cast<T>(words[0]);
        if (j + 1 < split.size)
          place[split.inner] = static_cast<T>(words[1]);
      }
  after[0] = state[0];
  after[1] = counter;
}

void three_fry_pairs(const uint64_t *state, int64_t count, uint64_t *after, uint64_t *bits) {
  for (int64_t i = 0; i < count; ++i) {
    std::array<uint32_t, 2> words = three_fry_block(state[0], state[1] + static_cast<uint64_t>(i));
    bits[i] = joined(words[0], words[1]);
  }
  after[0] = state[0];
  after[1] = state[1] + static_cast<uint64_t>(count);
}

/// A state of two numbers has no upper half of the counter: the key stands for it.
template <typename T>
void philox(const uint64_t *state, size_t state_size, int64_t count, uint64_t *after, T *bits) {
  constexpr int64_t words = sizeof(T) == 8 ? 2 : 4; // of a block
  uint64_t key = state[0], counter = state[1], upper = state_size == 3 ? state[2] : state[0];
  for (int64_t i = 0; i < count; i += words) {
    std::array<uint32_t, 4> block = philox_block(key, counter, upper);
    for (int64_t k = 0; k < std::min(words, count - i); ++k) {
      auto word = static_cast<size_t>(k);
      bits[i + k] = static_cast<T>(words == 2 ? joined(block[2 * word], block[2 * word + 1]) : block[word]);
    }
    upper += ++counter == 0;
  }
  after[0] = key;
  after[1] = counter;
  if (state_size == 3)
    after[2] = upper;
}

template <typename T> Kernel generator(int64_t algorithm, size_t state_size, const Dims &dims, int64_t count) {
  SplitAxis split(dims);
  return [=](Inputs inputs, Outputs outputs) {
    const auto *state = static_cast<const uint64_t *>(inputs[0]);
    auto *after = static_cast<uint64_t *>(outputs[0]);
    T *bits = static_cast<T *>(outputs[1]);
    if (algorithm != three_fry)
      philox(state, state_size, count, after, bits);
    else if constexpr (sizeof(T) == 8)
      three_fry_pairs(state, count, after, bits);
    else
      three_fry_words(state, split, after, bits);
  };
}

} // namespace

Kernel rng_bit_generator(const Op &op) {
  Op::require(op.operands.size() == 1 && op.results.size() == 2 && op.operand(0) == op.result(0));
  const Type &state = op.operand(0), &bits = op.result(1);
  int64_t algorithm = op.integer("rng_algorithm"), state_size = state.rank() == 1 ? state.dims[0] : 0;
  Op::require(state.dtype == DType::u64 && algorithm >= 0 && algorithm <= 2);
  Op::require(state_size == 2 || (state_size == 3 && algorithm != three_fry));
  auto size = static_cast<size_t>(state_size);
  return with_type(bits.dtype, [&](auto element) -> Kernel {
    using T = decltype(element);
    if constexpr (is_bool<T> || is_complex<T>)
      throw Unsupported("random booleans or complex numbers");
    else if constexpr (sizeof(T) == 1)
      return generator<uint8_t>(algorithm, size, bits.dims, bits.count());
    else if constexpr (sizeof(T) == 2)
      return generator<uint16_t>(algorithm, size, bits.dims, bits.count());
    else if constexpr (sizeof(T) == 4)
      return generator<uint32_t>(algorithm, size, bits.dims, bits.count());
    else
      return generator<uint64_t>(algorithm, size, bits.dims, bits.count());
  });
}

} // namespace disc::interpreter
