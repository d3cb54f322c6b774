// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "few_rows.h"

#include "core/strided_copy.h"
#include "gemm.h"
#include "gemm_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <immintrin.h>

#define DISC_AVX2 __attribute__((target("avx2,fma")))

namespace disc {

namespace {

using namespace gemm;

constexpr int64_t kVectorBytes = 32;      // enough to be as fast as memory is, with wider registers as well
constexpr int64_t kWorkToShare = 1 << 17; // multiply-adds that pay for handing a range to another thread
constexpr int64_t kItemsPerThread = 4;    // enough to even out a thread that loses its processor

// Products of dense vectors: a row of A and a column of B.
constexpr int64_t kMostDots = 18;         // rows of A; from there on packing B pays
constexpr int64_t kFewestTerms = 128;     // of a sum; shorter ones take no longer by tiles
constexpr int64_t kDotRows = 4;           // of A, together
constexpr int64_t kDotColumns = 12;       // of B, which stay in the cache for all rows of A
constexpr int64_t kChunkBytes = 16 << 10; // of a row of A used together
static_assert(kMostDots * kChunkBytes <= kBlockBytes);

// Sums of rows of B.
constexpr int64_t kMostSums = 4;           // rows of A; more take no longer by tiles
constexpr int64_t kLargeBytes = 8 << 20;   // of B, beyond the second cache
constexpr int64_t kWideTileBytes = 128;    // of a row of B in a tile: whole lines of the cache
constexpr int64_t kFewestColumns = 64;     // of B
constexpr int64_t kSumRows = 3;            // of A, together
constexpr int64_t kStreams = 4;            // rows of B, together: their factors fit the registers
constexpr int64_t kMoreStreams = 8;        // with one row of A
constexpr int64_t kRowBytes = 8 << 10;     // of a row of B, read in one go where there are as many
static_assert(kMostSums * kRowBytes <= kBlockBytes);

template <typename T> struct Vector;
template <> struct Vector<float> {
  using Type = __m256;
  DISC_AVX2 static Type load(const float *from) { return _mm256_loadu_ps(from); }
  DISC_AVX2 static Type repeat(float value) { return _mm256_set1_ps(value); }
  DISC_AVX2 static void store(float *to, Type value) { _mm256_storeu_ps(to, value); }
  DISC_AVX2 static Type add_product(Type a, Type b, Type sum) { return _mm256_fmadd_ps(a, b, sum); }
};
template <> struct Vector<double> {
  using Type = __m256d;
  DISC_AVX2 static Type load(const double *from) { return _mm256_loadu_pd(from); }
  DISC_AVX2 static Type repeat(double value) { return _mm256_set1_pd(value); }
  DISC_AVX2 static void store(double *to, Type value) { _mm256_storeu_pd(to, value); }
  DISC_AVX2 static Type add_product(Type a, Type b, Type sum) { return _mm256_fmadd_pd(a, b, sum); }
};

template <typename T> constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));

// ---- products of vectors ----------------------------------------------------------------------------------------------

/// How many columns are used together with so many rows: sums for each pair, and a row, fit the registers.
constexpr int64_t columns_of(int64_t rows) { return rows == kDotRows ? 3 : 4; }

/// Some rows of A, some columns of B, and where their results are; distances in elements.
template <typename T> struct Block {
  const T *a;
  int64_t a_step;
  const T *b;
  int64_t b_step;
  T *c;
  int64_t c_m, c_n, k;
  bool adds; // to what is in C
};

template <typename T, int64_t rows, int64_t columns> DISC_AVX2 void multiply(const Block<T> &block) {
  using V = Vector<T>;
  constexpr int64_t lanes = kLanes<T>;
  typename V::Type sums[rows][columns] = {};
  int64_t k = 0;
  for (; k + lanes <= block.k; k += lanes) {
    typename V::Type right[columns];
#pragma GCC unroll 4
    for (int64_t j = 0; j < columns; ++j)
      right[j] = V::load(block.b + j * block.b_step + k);
#pragma GCC unroll 4
    for (int64_t i = 0; i < rows; ++i) {
      typename V::Type left = V::load(block.a + i * block.a_step + k);
#pragma GCC unroll 4
      for (int64_t j = 0; j < columns; ++j)
        sums[i][j] = V::add_product(left, right[j], sums[i][j]);
    }
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      T parts[lanes], sum = 0;
      std::memcpy(parts, &sums[i][j], sizeof parts);
      for (int64_t half = lanes / 2; half > 0; half /= 2)
        for (int64_t lane = 0; lane < half; ++lane)
          parts[lane] += parts[lane + half];
      for (int64_t rest = k; rest < block.k; ++rest)
        sum += block.a[i * block.a_step + rest] * block.b[j * block.b_step + rest];
      T &result = block.c[i * block.c_m + j * block.c_n];
      result = block.adds ? result + (parts[0] + sum) : parts[0] + sum;
    }
}

/// `count` columns, as many together as the registers allow.
template <typename T, int64_t rows> void multiply_columns(Block<T> block, int64_t count) {
  constexpr int64_t together = columns_of(rows);
  for (int64_t step; count > 0; count -= step, block.b += step * block.b_step, block.c += step * block.c_n) {
    step = count >= together ? together : 1;
    step == together ? multiply<T, rows, together>(block) : multiply<T, rows, 1>(block);
  }
}

template <typename T> using MultiplyColumns = void (*)(Block<T>, int64_t);
template <typename T>
constexpr std::array<MultiplyColumns<T>, kDotRows> kMultiply = {multiply_columns<T, 1>, multiply_columns<T, 2>,
                                                                     multiply_columns<T, 3>, multiply_columns<T, 4>};

// ---- sums of rows -----------------------------------------------------------------------------------------------------

/// Some neighbouring elements of rows of B, those of A that they are multiplied by, and dense sums.
template <typename T> struct Stream {
  const T *a;
  int64_t a_m, a_k;
  const T *b;
  int64_t b_step;
  T *sums;
  int64_t sums_step, count;
};

template <typename T, int64_t rows, int64_t streams> DISC_AVX2 void add(const Stream<T> &stream) {
  using V = Vector<T>;
  typename V::Type factors[rows][streams];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < streams; ++k)
      factors[i][k] = V::repeat(stream.a[i * stream.a_m + k * stream.a_k]);
  int64_t j = 0;
  for (; j + kLanes<T> <= stream.count; j += kLanes<T>) {
    typename V::Type sums[rows];
#pragma GCC unroll 4
    for (int64_t i = 0; i < rows; ++i)
      sums[i] = V::load(stream.sums + i * stream.sums_step + j);
#pragma GCC unroll 4
    for (int64_t k = 0; k < streams; ++k) {
      typename V::Type right = V::load(stream.b + k * stream.b_step + j);
#pragma GCC unroll 4
      for (int64_t i = 0; i < rows; ++i)
        sums[i] = V::add_product(factors[i][k], right, sums[i]);
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < rows; ++i)
      V::store(stream.sums + i * stream.sums_step + j, sums[i]);
  }
  for (; j < stream.count; ++j)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = 0; k < streams; ++k)
        stream.sums[i * stream.sums_step + j] +=
            stream.a[i * stream.a_m + k * stream.a_k] * stream.b[k * stream.b_step + j];
}

template <typename T> using Add = void (*)(const Stream<T> &);
template <typename T> constexpr std::array<Add<T>, kSumRows> kAdd = {add<T, 1, kMoreStreams>, add<T, 2, kStreams>,
                                                                     add<T, 3, kStreams>};
template <typename T> constexpr std::array<Add<T>, kSumRows> kAddOne = {add<T, 1, 1>, add<T, 2, 1>, add<T, 3, 1>};

// ---- both -------------------------------------------------------------------------------------------------------------

bool has_dense_columns(const DiscDot &dot) { return dot.b_k == 1 && dot.k >= kFewestTerms && dot.m <= kMostDots; }

/// Where B is in the second cache, tiles take no longer than more than one walk through it, and wide ones than two sums.
bool has_dense_rows(const DiscDot &dot) {
  int64_t size = dot.format == 0 ? 4 : 8;
  bool is_large = dot.k * dot.n * size >= kLargeBytes, has_wide_tiles = dot.tile_columns * size >= kWideTileBytes;
  int64_t most = is_large ? kMostSums : has_wide_tiles ? 1 : kSumRows;
  return dot.b_n == 1 && dot.n >= kFewestColumns && dot.m <= most;
}

/// A product cut into items: a batch entry and a group of columns each.
template <typename T> class FewRows {
public:
  FewRows(const DiscDot &dot, int threads) : dot_(dot), entries_(entries_of(dot)), by_dots_(has_dense_columns(dot)) {
    double work = static_cast<double>(dot.m) * static_cast<double>(dot.n) * static_cast<double>(dot.k);
    int64_t wanted = divide_up(kItemsPerThread * threads, std::max<int64_t>(1, entries_));
    if (!by_dots_)
      wanted = std::min(wanted, divide_up(divide_up(dot.n * kSize, kRowBytes), threads) * threads);
    auto worth = static_cast<int64_t>(std::min(work / kWorkToShare, 1e6));
    groups_ = threads == 1 ? 1 : std::clamp<int64_t>(std::min(wanted, worth), 1, divide_up(dot.n, kDotColumns));
    work_ = std::max<int64_t>(1, static_cast<int64_t>(std::min(work / static_cast<double>(groups_), 1e15)));
  }

  void run(ThreadPool &pool) const {
    auto body = [](void *self, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        static_cast<const FewRows *>(self)->run_item(i);
    };
    pool.run(body, const_cast<FewRows *>(this), entries_ * groups_, std::max<int64_t>(1, kWorkToShare / work_));
  }

private:
  static constexpr int64_t kSize = sizeof(T);

  void run_item(int64_t item) const {
    Scratch scratch;
    int64_t entry = item / groups_, group = item % groups_;
    int64_t first = share(dot_.n, groups_, group), past = share(dot_.n, groups_, group + 1);
    const T *a = static_cast<const T *>(dot_.a) + batch_offset(dot_, entry, dot_.a_batch);
    const T *b = static_cast<const T *>(dot_.b) + batch_offset(dot_, entry, dot_.b_batch) + first * dot_.b_n;
    T *c = static_cast<T *>(dot_.c) + batch_offset(dot_, entry, dot_.c_batch) + first * dot_.c_n;
    by_dots_ ? multiply_vectors(a, b, c, past - first, scratch) : add_rows(a, b, c, past - first, scratch);
  }

  void multiply_vectors(const T *a, const T *b, T *c, int64_t columns, const Scratch &scratch) const {
    constexpr int64_t chunk = kChunkBytes / kSize;
    for (int64_t k = 0; k < dot_.k; k += chunk) {
      int64_t depth = std::min(chunk, dot_.k - k);
      Block<T> block{a + k * dot_.a_k, dot_.a_m, b + k, dot_.b_n, c, dot_.c_m, dot_.c_n, depth, k > 0};
      if (dot_.a_k != 1) {
        copy_matrix(block.a, dot_.a_m, dot_.a_k, scratch.block<T>(), depth, dot_.m, depth);
        block.a = scratch.block<T>(), block.a_step = depth;
      }
      multiply_chunk(block, columns);
    }
  }

  void multiply_chunk(Block<T> block, int64_t columns) const {
    int64_t parts = divide_up(dot_.m, kDotRows);
    for (; columns > 0; columns -= kDotColumns, block.b += kDotColumns * dot_.b_n, block.c += kDotColumns * dot_.c_n)
      for (int64_t part = 0; part < parts; ++part) {
        int64_t row = share(dot_.m, parts, part), rows = share(dot_.m, parts, part + 1) - row;
        Block<T> rows_of_a = block;
        rows_of_a.a += row * block.a_step, rows_of_a.c += row * dot_.c_m;
        kMultiply<T>[static_cast<size_t>(rows - 1)](rows_of_a, std::min(columns, kDotColumns));
      }
  }

  void add_rows(const T *a, const T *b, T *c, int64_t columns, const Scratch &scratch) const {
    constexpr int64_t most = kRowBytes / kSize;
    int64_t together = dot_.m == 1 ? kMoreStreams : kStreams;
    T *sums = scratch.block<T>();
    for (int64_t first = 0; first < columns; first += most) {
      int64_t count = std::min(most, columns - first);
      std::memset(sums, 0, static_cast<size_t>(dot_.m * most * kSize));
      for (int64_t k = 0, streams; k < dot_.k; k += streams) {
        streams = dot_.k - k < together ? 1 : together;
        add_to_sums({a + k * dot_.a_k, dot_.a_m, dot_.a_k, b + k * dot_.b_k + first, dot_.b_k, sums, most, count},
                    streams == 1 ? kAddOne<T> : kAdd<T>);
      }
      for (int64_t i = 0; i < dot_.m; ++i)
        for (int64_t j = 0; j < count; ++j)
          c[i * dot_.c_m + (first + j) * dot_.c_n] = sums[i * most + j];
    }
  }

  void add_to_sums(Stream<T> stream, const std::array<Add<T>, kSumRows> &kernels) const {
    int64_t parts = divide_up(dot_.m, kSumRows);
    const T *a = stream.a;
    T *sums = stream.sums;
    for (int64_t part = 0; part < parts; ++part) {
      int64_t row = share(dot_.m, parts, part), rows = share(dot_.m, parts, part + 1) - row;
      stream.a = a + row * dot_.a_m, stream.sums = sums + row * stream.sums_step;
      kernels[static_cast<size_t>(rows - 1)](stream);
    }
  }

  const DiscDot &dot_;
  int64_t entries_;
  bool by_dots_;
  int64_t groups_ = 1, work_ = 1; // multiply-adds of an item
};

bool has_instructions() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}

} // namespace

bool has_few_rows(const DiscDot &dot) {
  bool is_float = dot.format <= 1 && dot.packed == nullptr && dot.k > 0 && dot.m <= dot.n;
  bool is_wide = dot.tile_columns * (dot.format == 0 ? 4 : 8) >= 2 * kVectorBytes;
  return is_float && is_wide && (has_dense_columns(dot) || has_dense_rows(dot)) && has_instructions();
}

void run_few_rows(ThreadPool &pool, const DiscDot &dot) {
  dot.format == 0 ? FewRows<float>(dot, pool.size()).run(pool) : FewRows<double>(dot, pool.size()).run(pool);
}

} // namespace disc
