// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gemm_formats.h"

#include "gemm_blocks.h"
#include "vectors.h"
#include "core/strided_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <emmintrin.h>

namespace disc::gemm {

namespace {

using Word = uint32_t;
template <typename T> constexpr int64_t kElements = sizeof(Word) / sizeof(T);

/// The word of `count` elements.
template <typename T> Word word_of(const T *source, int64_t stride, int64_t count) {
  Word word = 0;
  for (int64_t i = 0; i < count; ++i)
    word |= static_cast<Word>(source[i * stride]) << (8 * sizeof(T) * static_cast<size_t>(i));
  return word;
}

// ---- elements that keep their type ------------------------------------------------------------------------------------

/// `flip` changes all words: for bytes, 0x80808080 adds 128 to each.
template <typename T, Word flip = 0>
void pack_neighbour_rows(const void *from, int64_t row_stride, int64_t k_stride, int64_t rows, int64_t depth, void *to) {
  const auto *a = static_cast<const T *>(from);
  auto *target = static_cast<Word *>(to);
  constexpr int64_t elements = kElements<T>, block = kDepth * elements;
  for (int64_t k = 0; k < depth; k += block, target += rows * kDepth) {
    int64_t count = std::min(block, depth - k), words = divide_up(count, elements);
    for (int64_t r = 0; r < rows; ++r) {
      const T *row = a + r * row_stride + k * k_stride;
      Word *place = target + r * kDepth;
      if (k_stride == 1) {
        place[words - 1] = 0;
        std::memcpy(place, row, static_cast<size_t>(count) * sizeof(T));
      } else {
        for (int64_t w = 0; w < words; ++w)
          place[w] = word_of(row + w * elements * k_stride, k_stride, std::min(elements, count - w * elements));
      }
      for (int64_t w = 0; w < words && flip != 0; ++w)
        place[w] ^= flip;
    }
  }
}

constexpr int64_t kRowsFetched = 16;   // before they are packed: each may lie on a page of its own
constexpr int64_t kColumnsFetched = 2; // the same of dense columns, of which more is read at a time

/// Fetches a part of a row.
template <typename T> void fetch(const T *row, int64_t width) {
  for (int64_t j = 0; j < width; j += 64 / static_cast<int64_t>(sizeof(T)))
    __builtin_prefetch(row + j);
}

/// Columns of two rows side by side.
void zip(const uint16_t *row, int64_t stride, int64_t width, Word *target) {
  int64_t j = 0;
  for (; j + 8 <= width; j += 8) {
    __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(row + j));
    __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(row + stride + j));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(target + j), _mm_unpacklo_epi16(a, b));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(target + j + 4), _mm_unpackhi_epi16(a, b));
  }
  for (; j < width; ++j)
    target[j] = word_of(row + j, stride, 2);
}

/// Columns of four rows side by side.
void zip(const uint8_t *row, int64_t stride, int64_t width, Word *target) {
  int64_t j = 0;
  for (; j + 16 <= width; j += 16) {
    __m128i rows[4];
    for (int64_t i = 0; i < 4; ++i)
      rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(row + i * stride + j));
    __m128i low[2] = {_mm_unpacklo_epi8(rows[0], rows[1]), _mm_unpackhi_epi8(rows[0], rows[1])};
    __m128i high[2] = {_mm_unpacklo_epi8(rows[2], rows[3]), _mm_unpackhi_epi8(rows[2], rows[3])};
    auto *place = reinterpret_cast<__m128i *>(target + j);
    for (int64_t i = 0; i < 2; ++i) {
      _mm_storeu_si128(place + 2 * i, _mm_unpacklo_epi16(low[i], high[i]));
      _mm_storeu_si128(place + 2 * i + 1, _mm_unpackhi_epi16(low[i], high[i]));
    }
  }
  for (; j < width; ++j)
    target[j] = word_of(row + j, stride, 4);
}

template <typename T>
void pack_neighbour_panel(const void *from, int64_t k_stride, int64_t column_stride, int64_t depth, int64_t width,
                          int64_t columns, void *to) {
  const auto *b = static_cast<const T *>(from);
  auto *target = static_cast<Word *>(to);
  constexpr int64_t elements = kElements<T>;
  int64_t whole = depth / elements, words = divide_up(depth, elements);
  if (width < columns)
    std::memset(target, 0, static_cast<size_t>(words * columns) * sizeof(Word));
  if (k_stride == 1) {
    transpose_words(b, column_stride * static_cast<int64_t>(sizeof(T)), target, columns, whole, width);
  } else if (column_stride == 1) {
    for (int64_t w = 0; w < whole; ++w) {
      const T *rows = b + w * elements * k_stride;
      for (int64_t i = 0; i < elements && w * elements + kRowsFetched + i < depth; ++i)
        fetch(rows + (kRowsFetched + i) * k_stride, width);
      zip(rows, k_stride, width, target + w * columns);
    }
  } else {
    for (int64_t w = 0; w < whole; ++w)
      for (int64_t j = 0; j < width; ++j)
        target[w * columns + j] = word_of(b + w * elements * k_stride + j * column_stride, k_stride, elements);
  }
  for (int64_t j = 0; whole < words && j < width; ++j)
    target[whole * columns + j] =
        word_of(b + whole * elements * k_stride + j * column_stride, k_stride, depth - whole * elements);
}

// ---- elements that get a wider type -----------------------------------------------------------------------------------

struct BF16 {
  uint16_t bits;
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

struct F16 {
  uint16_t bits;
  operator float() const {
    uint32_t magnitude = static_cast<uint32_t>(bits & 0x7FFF) << 13;
    uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
    uint32_t result = magnitude >= 0x7C00u << 13 ? magnitude | 0x7F800000u : finite;
    return std::bit_cast<float>(result | static_cast<uint32_t>(bits & 0x8000) << 16);
  }
};

/// The first ones, a vector at a time; returns how many.
DISC_AVX2 int64_t widen_vectors(const F16 *source, int64_t count, float *target) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(target + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(source + i))));
  return i;
}

int64_t widen_first(const F16 *source, int64_t count, float *target) {
  return has_avx2() ? widen_vectors(source, count, target) : 0;
}

/// Other elements take few instructions of any processor.
template <typename From, typename To> int64_t widen_first(const From *, int64_t, To *) { return 0; }

template <typename From, typename To> void widen(const From *source, int64_t stride, int64_t count, To *target) {
  constexpr int64_t together = 16; // a constant number, so that the compiler makes vectors of them
  int64_t i = stride == 1 ? widen_first(source, count, target) : 0;
  for (; stride == 1 && i + together <= count; i += together)
    for (int64_t j = 0; j < together; ++j)
      target[i + j] = static_cast<To>(source[i + j]);
  for (; i < count; ++i)
    target[i] = static_cast<To>(source[i * stride]);
}

template <typename To>
void pack_wide_panel(const To *b, int64_t k_stride, int64_t column_stride, int64_t depth, int64_t width, int64_t columns,
                     void *target) {
  if constexpr (sizeof(To) == sizeof(Word))
    pack_panel(b, k_stride, column_stride, depth, width, columns, static_cast<To *>(target));
  else
    pack_neighbour_panel<uint16_t>(b, k_stride, column_stride, depth, width, columns, target);
}

constexpr int64_t kWide = 8192; // elements widened together: a panel has at most 4,096 columns

template <typename From, typename To>
void pack_widened_rows(const void *from, int64_t row_stride, int64_t k_stride, int64_t rows, int64_t depth, void *to) {
  const auto *a = static_cast<const From *>(from);
  auto *target = static_cast<char *>(to);
  constexpr int64_t block = kDepth * kElements<To>, bytes = kDepth * static_cast<int64_t>(sizeof(Word));
  for (int64_t k = 0; k < depth; k += block, target += rows * bytes) {
    int64_t count = std::min(block, depth - k);
    for (int64_t r = 0; r < rows; ++r) {
      To wide[block];
      widen(a + r * row_stride + k * k_stride, k_stride, count, wide);
      std::fill(wide + count, wide + divide_up(count, kElements<To>) * kElements<To>, To{0});
      std::memcpy(target + r * bytes, wide, static_cast<size_t>(divide_up(count, kElements<To>)) * sizeof(Word));
    }
  }
}

/// Some rows at a time are widened, in the order in which they lie, then packed as what they have become.
template <typename From, typename To>
void pack_widened_panel(const void *from, int64_t k_stride, int64_t column_stride, int64_t depth, int64_t width,
                        int64_t columns, void *to) {
  const auto *b = static_cast<const From *>(from);
  auto *target = static_cast<Word *>(to);
  constexpr int64_t elements = kElements<To>;
  int64_t step = kWide / width / elements * elements;
  bool by_columns = k_stride == 1 && column_stride != 1;
  int64_t stride = by_columns ? column_stride : k_stride, other = by_columns ? k_stride : column_stride;
  int64_t ahead = by_columns ? kColumnsFetched : kRowsFetched;
  for (int64_t k = 0; k < depth; k += step, target += step / elements * columns) {
    int64_t count = std::min(step, depth - k), lines = by_columns ? width : count, length = by_columns ? count : width;
    To wide[kWide];
    for (int64_t i = 0; i < lines; ++i) {
      const From *line = b + k * k_stride + i * stride;
      if (other == 1 && i + ahead < lines)
        fetch(line + ahead * stride, length);
      widen(line, other, length, wide + i * length);
    }
    pack_wide_panel(wide, by_columns ? 1 : length, by_columns ? length : 1, count, width, columns, target);
  }
}

// ---- the table --------------------------------------------------------------------------------------------------------

template <typename T>
void pack_plain_rows(const void *a, int64_t row_stride, int64_t k_stride, int64_t rows, int64_t depth, void *target) {
  pack_rows(static_cast<const T *>(a), row_stride, k_stride, rows, depth, static_cast<T *>(target));
}

template <typename T>
void pack_plain_panel(const void *b, int64_t k_stride, int64_t column_stride, int64_t depth, int64_t width,
                      int64_t columns, void *target) {
  pack_panel(static_cast<const T *>(b), k_stride, column_stride, depth, width, columns, static_cast<T *>(target));
}

template <typename T> double load(const void *base, int64_t index) {
  return static_cast<double>(static_cast<const T *>(base)[index]);
}

constexpr Word kOffset = 0x80808080; // signed bytes plus 128 are unsigned ones

constexpr Format kTable[kFormats] = {
    {4, 4, 1, true, pack_plain_rows<float>, pack_plain_panel<float>, load<float>},
    {8, 8, 1, true, pack_plain_rows<double>, pack_plain_panel<double>, load<double>},
    {2, 4, 2, false, pack_neighbour_rows<uint16_t>, pack_neighbour_panel<uint16_t>, load<BF16>},
    {2, 4, 2, false, pack_neighbour_rows<uint16_t>, pack_neighbour_panel<uint16_t>, load<BF16>},
    {2, 4, 1, false, pack_widened_rows<BF16, float>, pack_widened_panel<BF16, float>, load<BF16>},
    {2, 4, 1, false, pack_widened_rows<F16, float>, pack_widened_panel<F16, float>, load<F16>},
    {1, 4, 4, false, pack_neighbour_rows<uint8_t>, pack_neighbour_panel<uint8_t>, load<int8_t>},
    {1, 4, 4, false, pack_neighbour_rows<uint8_t, kOffset>, pack_neighbour_panel<uint8_t>, load<int8_t>},
    {1, 4, 2, false, pack_widened_rows<int8_t, int16_t>, pack_widened_panel<int8_t, int16_t>, load<int8_t>},
    {1, 4, 4, false, pack_neighbour_rows<uint8_t>, pack_neighbour_panel<uint8_t>, load<uint8_t>},
    {1, 4, 2, false, pack_widened_rows<uint8_t, int16_t>, pack_widened_panel<uint8_t, int16_t>, load<uint8_t>},
    {4, 4, 1, true, pack_plain_rows<float>, pack_plain_panel<float>, load<int32_t>},
};

} // namespace

const Format &format_of(int64_t number) { return kTable[number]; }

} // namespace disc::gemm
