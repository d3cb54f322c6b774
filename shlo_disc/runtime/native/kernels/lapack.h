// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The LAPACK that SciPy already carries, reached through the function pointers of scipy.linalg.cython_lapack and
// cython_blas.
#pragma once

#include "library_call.h"

#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace disc {

/// The process's LAPACK, by name ("sgetrf"). Empty until `install`, which takes all functions that the runtime uses.
class Lapack {
public:
  static Lapack &instance();
  void install(std::unordered_map<std::string, void *> functions);

  /// The functions that the runtime uses.
  static std::vector<std::string> names();

  bool available() const { return !functions_.empty(); }
  void *find(const std::string &name) const { return functions_.at(name); }

private:
  std::unordered_map<std::string, void *> functions_;
};

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

template <typename T> struct Scalar;
template <> struct Scalar<float> {
  using Real = float;
  static constexpr char prefix = 's';
  static constexpr bool is_complex = false;
};
template <> struct Scalar<double> {
  using Real = double;
  static constexpr char prefix = 'd';
  static constexpr bool is_complex = false;
};
template <> struct Scalar<Complex64> {
  using Real = float;
  static constexpr char prefix = 'c';
  static constexpr bool is_complex = true;
};
template <> struct Scalar<Complex128> {
  using Real = double;
  static constexpr char prefix = 'z';
  static constexpr bool is_complex = true;
};
template <typename T> using RealOf = typename Scalar<T>::Real;

/// A Fortran function: every argument by address, integers of 32 bits. `name` is without its first letter.
template <typename T> class Fortran {
public:
  explicit Fortran(const char *name)
      : address_(Lapack::instance().find(std::string(1, Scalar<T>::prefix).append(name))) {}
  Fortran(const char *real, const char *complex) : Fortran(Scalar<T>::is_complex ? complex : real) {}

  template <typename... Arguments> void operator()(Arguments... arguments) const {
    reinterpret_cast<void (*)(Arguments...)>(address_)(arguments...);
  }

private:
  void *address_;
};

/// The workspace of one entry, handed out piece by piece.
class Scratch {
public:
  Scratch(char *begin, int64_t bytes) : next_(begin), end_(begin + bytes) {}

  template <typename T> T *take(int64_t count) {
    char *begin = next_;
    next_ += (count * static_cast<int64_t>(sizeof(T)) + 15) / 16 * 16;
    return reinterpret_cast<T *>(begin);
  }
  /// How many elements are left.
  template <typename T> int left() const { return static_cast<int>((end_ - next_) / static_cast<int64_t>(sizeof(T))); }

private:
  char *next_;
  char *end_;
};

inline int as_int(int64_t value) { return static_cast<int>(value); }
/// A leading dimension: at least 1.
inline int leading(int64_t rows) { return static_cast<int>(rows < 1 ? 1 : rows); }

/// Copies an operand into the result that LAPACK then overwrites.
template <typename T> void copy_entry(const CallTensor &from, const CallTensor &to, int64_t entry, int64_t size) {
  if (size > 0 && from.data != to.data)
    std::memcpy(to.as<T>() + entry * size, from.as<T>() + entry * size, static_cast<size_t>(size) * sizeof(T));
}

/// The functions of lapack_factor.cpp and lapack_spectral.cpp, each under its name without the dtype ("getrf").
using BuiltinTable = std::unordered_map<std::string_view, Builtin>;
template <typename T> void add_factorisations(BuiltinTable &table);
template <typename T> void add_spectral(BuiltinTable &table);

} // namespace disc
