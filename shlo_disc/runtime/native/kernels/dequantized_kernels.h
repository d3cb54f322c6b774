// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of few rows with a matrix of narrow integers, which are dequantised in registers: (q - zero) * scale, or
// q * scale + zero.
//
// A byte holds one element or two, which are its halves: low bits first. The elements of each half are rows of their
// own, with rows of A, scales and zero points of their own.
#pragma once

#include "vectors.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace disc::dequantized {

/// The integers of bytes: all bits, the low 4, or two of 4 bits; or floats of 8 bits (OCP OFP8). Of a table of 16 floats,
/// which the program has: places of 4 bits, one in a byte or two; bytes that are no less than 0 (U8) or -16 (I8), of which
/// the last 16 are the places from the end, and no more than 15, or are taken to be.
enum class Code { kI8, kU8, kI4, kU4, kI4Pairs, kU4Pairs, kE4M3, kE5M2, kPlaces, kPlacesPairs, kPlacesU8, kPlacesI8 };

constexpr size_t kCodes = 12;
constexpr int64_t kMostRows = 8;        // of A, together
constexpr int64_t kMostByColumns = 4;   // the same where columns are dense
constexpr int64_t kMostColumns = 4;     // dense ones, together
constexpr int64_t kTileColumnsTogether = 3; // sums of four rows fit the registers
constexpr int64_t kStreams = 8;         // rows of bytes that are read together
constexpr int64_t kWidest = 16;         // lanes: what lies behind a row of sums, scales and zero points is as long
constexpr int64_t kLineBytes = 64;      // of the cache
constexpr int64_t kNibbles = 8;         // of 4 bits, of a word
constexpr float kOfE4M3 = 256;          // what its exponent is less by than that of f16

constexpr int64_t halves_of(Code code) {
  return code == Code::kI4Pairs || code == Code::kU4Pairs || code == Code::kPlacesPairs ? 2 : 1;
}
constexpr bool is_place(Code code) { return code >= Code::kPlaces; }
constexpr bool is_of_4_bits(Code code) { return code >= Code::kI4 && code <= Code::kU4Pairs; }
constexpr bool is_float(Code code) { return code == Code::kE4M3 || code == Code::kE5M2; }
/// The largest number of rows with a kernel of their own, 1 to 4 or 8, that is no larger.
constexpr int64_t rows_together(int64_t rows) { return rows >= kMostRows ? kMostRows : rows < 4 ? rows : 4; }

/// An element, of the half that is `half`. The bits of a float of 8 bits begin one of f16, which has a multiple of it.
template <Code code> inline float decoded(uint8_t byte, int64_t half) {
  if constexpr (is_float(code)) {
    constexpr bool is_e4m3 = code == Code::kE4M3;
    if (is_e4m3 && (byte & 0x7F) == 0x7F)
      return std::numeric_limits<float>::quiet_NaN();
    int32_t bits = is_e4m3 ? (byte & 0x80) << 8 | (byte & 0x7F) << 7 : byte << 8;
    return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits))) * (is_e4m3 ? kOfE4M3 : 1);
  }
  if constexpr (code == Code::kI8)
    return static_cast<float>(static_cast<int8_t>(byte));
  if constexpr (code == Code::kU8)
    return byte;
  int32_t bits = half == 0 ? byte & 15 : byte >> 4;
  return static_cast<float>(code == Code::kI4 || code == Code::kI4Pairs ? (bits ^ 8) - 8 : bits);
}

/// The place in its table of a byte, or of the half that is `half`.
constexpr int64_t place_of(Code code, uint8_t byte, int64_t half) {
  if (code == Code::kPlacesU8)
    return byte < 15 ? byte : 15;
  if (code == Code::kPlacesI8)
    return (static_cast<int8_t>(byte) < -16 ? -16 : static_cast<int8_t>(byte) > 15 ? 15 : byte) & 15;
  return half == 0 ? byte & 15 : byte >> 4;
}

/// What is taken off integers, or added to them when they have been scaled.
enum class Zeros { kNone, kBefore, kAfter };

constexpr size_t kZeros = 3;

/// What weights are rounded to when they have been multiplied by their scales, in the program's type of them.
enum class Rounding { kNone, kBf16, kF16 };

constexpr size_t kRoundings = 3;

/// Of the halves of a byte.
using Pair = std::array<const float *, 2>;

/// What 4 bits stand for, less a zero point, which kernels for AVX-512 look up: the others know of none.
using Table = std::array<float, 16>;

constexpr Table table_of(Code code, float zero) {
  Table table{};
  bool is_signed = code == Code::kI4 || code == Code::kI4Pairs;
  for (int32_t bits = 0; bits < 16; ++bits)
    table[static_cast<size_t>(bits)] = static_cast<float>(is_signed ? (bits ^ 8) - 8 : bits) - zero;
  return table;
}

/// Rows of bytes, `q_step` apart, with an element of A's rows for each, and what belongs to their columns.
struct Rows {
  const uint8_t *q;
  int64_t q_step;
  Pair x; // A's rows are `x_step` apart
  int64_t x_step;
  Pair scale, zero; // of each column
  const float *table;                       // of `table_of`
  float *sums; // one row for each of A's, `sums_step` apart
  int64_t sums_step, count;
};

/// Dense columns of `count` bytes, `q_step` apart. A group of `group` bytes has a scale and a zero point for each half,
/// those of a column `scale_step` and `zero_step` behind those of the column before; `first`: bytes of the first group.
/// Kernels of words take terms of x[0] in the order of `copy_word_terms`, and scales and zero points of the first half.
struct Columns {
  const uint8_t *q;
  int64_t q_step;
  Pair x;
  int64_t x_step;
  Pair scale, zero;
  const float *table;
  int64_t scale_step, zero_step, first, group;
  float *sums; // of each row of A and each column
  int64_t sums_step, count;
};

/// Some dense rows of A, and weights of one column or of kTileColumnsTogether, `step` apart, as floats.
struct Tile {
  const float *left;
  int64_t left_step;
  const float *weights;
  int64_t step, terms;
  float *sums; // of each row and column
  int64_t sums_step;
};

using MultiplyTile = void (*)(const Tile &); // adds to the sums
using AddRows = void (*)(const Rows &);
using AddColumns = void (*)(const Columns &);
/// target[i] = (q[i] - zero[i]) * scale[i], or q[i] * scale[i] + zero[i], of each half.
using Dequantise = void (*)(const uint8_t *q, Pair scale, Pair zero, const float *table, int64_t count,
                            std::array<float *, 2> target);
/// The same for a column's bytes, of all their groups; what `columns` has of A and of sums is not read.
using DequantiseColumn = void (*)(const Columns &columns, std::array<float *, 2> target);

/// Kernels of dense columns by rows of A, less one: of several columns, or of one; null where one counts as several.
struct ByColumns {
  int64_t (*columns_of)(int64_t rows); // that are used together
  std::array<AddColumns, kMostByColumns> add_columns, add_column;
};

/// The kernels of a code for zero points, or for none; for those that are added, only what makes floats. By rows of A, less one: of several rows of bytes, or of one. By
/// rounding: what makes floats of integers.
struct Kernels {
  std::array<AddRows, kMostRows> add_streams, add_row;
  ByColumns columns, words; // words: of pairs alone
  std::array<Dequantise, kRoundings> dequantise;
  std::array<DequantiseColumn, kRoundings> dequantise_column;
  bool has_zeros;
};

/// By code, and by zero points.
using ByCode = std::array<std::array<Kernels, kZeros>, kCodes>;

namespace avx2 {

using V = Vector256<float>;

/// Bytes, each in a lane of 32 bits.
struct Lanes {
  using Type = __m256i;
  DISC_AVX2 static Type load(const uint8_t *from) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from)));
  }
  DISC_AVX2 static Type load_signed(const uint8_t *from) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from)));
  }
  DISC_AVX2 static V::Type floats(Type v) { return _mm256_cvtepi32_ps(v); }
  /// Floats in place of integers.
  DISC_AVX2 static Type load_e5m2(const uint8_t *from) {
    __m128i bytes = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from)));
    return _mm256_castps_si256(_mm256_cvtph_ps(_mm_slli_epi16(bytes, 8)));
  }
  DISC_AVX2 static Type load_e4m3(const uint8_t *from) {
    __m128i bytes = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from)));
    __m128i bits = _mm_and_si128(_mm_slli_epi16(bytes, 7), _mm_set1_epi16(static_cast<int16_t>(0xBFFF)));
    __m128i most = _mm_set1_epi16(0x7F), is_nan = _mm_cmpeq_epi16(_mm_and_si128(bytes, most), most);
    __m128i halves = _mm_or_si128(bits, _mm_and_si128(is_nan, _mm_set1_epi16(0x7E00)));
    return _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(kOfE4M3)));
  }
  DISC_AVX2 static V::Type as_floats(Type v) { return _mm256_castsi256_ps(v); }
  struct Table {
    V::Type low, high;
  };
  DISC_AVX2 static Table table(const float *from) { return {V::load(from), V::load(from + V::kLanes)}; }
  /// What the table has at the place that the low 4 bits say.
  DISC_AVX2 static V::Type looked_up(Type v, Table table) {
    __m256 low = _mm256_permutevar8x32_ps(table.low, v), high = _mm256_permutevar8x32_ps(table.high, v);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(v, 28)));
  }
  template <int number> DISC_AVX2 static Type shifted(Type v) { return _mm256_srli_epi32(v, number); }
  DISC_AVX2 static Type limited(Type v, int least) {
    return _mm256_max_epi32(_mm256_min_epi32(v, _mm256_set1_epi32(15)), _mm256_set1_epi32(least));
  }
  DISC_AVX2 static V::Type low(Type v, Table) { return floats(_mm256_and_si256(v, _mm256_set1_epi32(15))); }
  DISC_AVX2 static V::Type high(Type v, Table) { return floats(_mm256_srli_epi32(v, 4)); }
  DISC_AVX2 static V::Type signed_low(Type v, Table) {
    return floats(_mm256_srai_epi32(_mm256_slli_epi32(v, 28), 28));
  }
  DISC_AVX2 static V::Type signed_high(Type v, Table) { return floats(_mm256_srai_epi32(v, 4)); }

  static constexpr int64_t kWordBytes = 32; // of a register
  DISC_AVX2 static Type load_words(const uint8_t *from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
  }
  template <int64_t number, bool is_signed> DISC_AVX2 static V::Type nibble(Type words, Table) {
    constexpr int to_top = 28 - 4 * number;
    if constexpr (is_signed)
      return floats(_mm256_srai_epi32(_mm256_slli_epi32(words, to_top), 28));
    return floats(_mm256_and_si256(_mm256_srli_epi32(words, 4 * number), _mm256_set1_epi32(15)));
  }
  using Places = __m256i;
  DISC_AVX2 static Places places(const int32_t *from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
  }
  DISC_AVX2 static V::Type spread(V::Type v, Places places) { return _mm256_permutevar8x32_ps(v, places); }
};

constexpr int64_t kSumsInRegisters = 8, kSumsOfColumns = 8, kFactorsInRegisters = 0;
constexpr int64_t columns_of(int64_t rows) { return rows <= 2 ? kMostColumns : 2; } // sums fit the registers
constexpr int64_t columns_of_words(int64_t rows) { return rows == 1 ? kMostColumns : rows <= 3 ? 2 : 1; }
constexpr int64_t kMostRowsOfWords = kMostByColumns;
DISC_AVX2 inline V::Type subtracted(V::Type a, V::Type b) { return _mm256_sub_ps(a, b); }
DISC_AVX2 inline V::Type added(V::Type a, V::Type b) { return _mm256_add_ps(a, b); }
DISC_AVX2 inline V::Type multiplied(V::Type a, V::Type b) { return _mm256_mul_ps(a, b); }
DISC_AVX2 inline V::Type kept(V::Mask mask, V::Type v) { return _mm256_and_ps(_mm256_castsi256_ps(mask), v); }
DISC_AVX2 inline float total(V::Type v) { return V::total(v); }
/// To the nearest, and to the even one of two; NaNs stay as they are.
DISC_AVX2 inline V::Type rounded_to_bf16(V::Type v) {
  __m256i bits = _mm256_castps_si256(v), last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i raised = _mm256_add_epi32(_mm256_add_epi32(bits, last), _mm256_set1_epi32(0x7FFF));
  __m256 nearest = _mm256_castsi256_ps(_mm256_and_si256(raised, _mm256_set1_epi32(-0x10000)));
  return _mm256_blendv_ps(nearest, v, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}
DISC_AVX2 inline V::Type rounded_to_f16(V::Type v) {
  return _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

#define DISC_TARGET DISC_AVX2
#include "dequantized_kernels.inc"
#undef DISC_TARGET

} // namespace avx2

namespace avx512 {

using V = Vector512<float>;

/// The same, where 4 bits choose from a table of floats. Intrinsics have a mask of all lanes: those without have
/// undefined operands, of which GCC warns.
struct Lanes {
  using Type = __m512i;
  static constexpr __mmask16 kAll = 0xFFFF;
  DISC_AVX512 static Type load(const uint8_t *from) {
    return _mm512_maskz_cvtepu8_epi32(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
  }
  DISC_AVX512 static Type load_signed(const uint8_t *from) {
    return _mm512_maskz_cvtepi8_epi32(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
  }
  DISC_AVX512 static V::Type floats(Type v) { return _mm512_maskz_cvtepi32_ps(kAll, v); }
  DISC_AVX512 static Type load_e5m2(const uint8_t *from) {
    __m256i bytes = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
    return _mm512_castps_si512(_mm512_maskz_cvtph_ps(kAll, _mm256_slli_epi16(bytes, 8)));
  }
  DISC_AVX512 static Type load_e4m3(const uint8_t *from) {
    __m256i bytes = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
    __m256i bits = _mm256_and_si256(_mm256_slli_epi16(bytes, 7), _mm256_set1_epi16(static_cast<int16_t>(0xBFFF)));
    __m256i most = _mm256_set1_epi16(0x7F), is_nan = _mm256_cmpeq_epi16(_mm256_and_si256(bytes, most), most);
    __m256i halves = _mm256_or_si256(bits, _mm256_and_si256(is_nan, _mm256_set1_epi16(0x7E00)));
    return _mm512_castps_si512(_mm512_mul_ps(_mm512_maskz_cvtph_ps(kAll, halves), _mm512_set1_ps(kOfE4M3)));
  }
  DISC_AVX512 static V::Type as_floats(Type v) { return _mm512_castsi512_ps(v); }
  using Table = V::Type;
  DISC_AVX512 static Table table(const float *from) { return V::load(from); }
  DISC_AVX512 static V::Type looked_up(Type v, Table table) { return low(v, table); }
  template <unsigned number> DISC_AVX512 static Type shifted(Type v) { return _mm512_maskz_srli_epi32(kAll, v, number); }
  DISC_AVX512 static Type limited(Type v, int least) {
    __m512i most = _mm512_maskz_min_epi32(kAll, v, _mm512_set1_epi32(15));
    return _mm512_maskz_max_epi32(kAll, most, _mm512_set1_epi32(least));
  }
  DISC_AVX512 static V::Type low(Type v, Table table) { return _mm512_maskz_permutexvar_ps(kAll, v, table); }
  DISC_AVX512 static V::Type high(Type v, Table table) { return low(_mm512_maskz_srli_epi32(kAll, v, 4), table); }
  DISC_AVX512 static V::Type signed_low(Type v, Table table) { return low(v, table); }
  DISC_AVX512 static V::Type signed_high(Type v, Table table) { return high(v, table); }

  static constexpr int64_t kWordBytes = 64;
  DISC_AVX512 static Type load_words(const uint8_t *from) { return _mm512_loadu_si512(from); }
  template <int64_t number, bool> DISC_AVX512 static V::Type nibble(Type words, Table table) {
    return low(number == 0 ? words : _mm512_maskz_srli_epi32(kAll, words, 4 * number), table);
  }
  using Places = __m512i;
  DISC_AVX512 static Places places(const int32_t *from) { return _mm512_loadu_si512(from); }
  DISC_AVX512 static V::Type spread(V::Type v, Places places) { return low(places, v); }
};

constexpr int64_t kSumsInRegisters = 16, kSumsOfColumns = 24, kFactorsInRegisters = 16;
constexpr int64_t columns_of(int64_t) { return kMostColumns; }
constexpr int64_t columns_of_words(int64_t) { return kMostColumns; }
constexpr int64_t kMostRowsOfWords = 3; // more sums of as many columns do not fit the registers
DISC_AVX512 inline V::Type subtracted(V::Type a, V::Type b) { return _mm512_sub_ps(a, b); }
DISC_AVX512 inline V::Type added(V::Type a, V::Type b) { return _mm512_add_ps(a, b); }
DISC_AVX512 inline V::Type multiplied(V::Type a, V::Type b) { return _mm512_mul_ps(a, b); }
DISC_AVX512 inline V::Type kept(V::Mask mask, V::Type v) { return _mm512_maskz_mov_ps(mask, v); }
DISC_AVX512 inline V::Type rounded_to_bf16(V::Type v) {
  __m512i bits = _mm512_castps_si512(v), raised = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF));
  __mmask16 is_odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  raised = _mm512_mask_add_epi32(raised, is_odd, raised, _mm512_set1_epi32(1));
  __mmask16 is_number = _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q);
  return _mm512_castsi512_ps(_mm512_mask_and_epi32(bits, is_number, raised, _mm512_set1_epi32(-0x10000)));
}
DISC_AVX512 inline V::Type rounded_to_f16(V::Type v) {
  __m256i halves = _mm512_maskz_cvtps_ph(Lanes::kAll, v, _MM_FROUND_TO_NEAREST_INT);
  return _mm512_maskz_cvtph_ps(Lanes::kAll, halves);
}
DISC_AVX512 inline float total(V::Type v) {
  float lanes[V::kLanes];
  V::store(lanes, v);
  return avx2::V::total(_mm256_add_ps(_mm256_loadu_ps(lanes), _mm256_loadu_ps(lanes + avx2::V::kLanes)));
}

#define DISC_TARGET DISC_AVX512
#include "dequantized_kernels.inc"
#undef DISC_TARGET

} // namespace avx512

} // namespace disc::dequantized
