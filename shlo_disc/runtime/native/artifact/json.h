// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// JSON (RFC 8259) as headers have it: strict, and bounded in depth.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace disc {

/// A value. Numbers that are no 64-bit integers are floats.
class Json {
public:
  using List = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string, List, Object>;

  Json() = default;
  explicit Json(Value value) : value_(std::move(value)) {}
  Json(Json &&) noexcept = default; // not copied: a header may be large
  Json &operator=(Json &&) noexcept = default;

  /// Reads a text. Throws Error(artifact) with the position of what is not JSON.
  static Json parse(std::string_view text);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }

  /// Null where the value is of another kind.
  template <typename T> const T *get() const { return std::get_if<T>(&value_); }

  /// The member of an object; null where there is none. The last one counts, as in Python.
  const Json *member(std::string_view name) const;

private:
  Value value_;
};

} // namespace disc
