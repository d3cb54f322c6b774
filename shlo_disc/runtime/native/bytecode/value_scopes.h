// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The values that operands of MLIR bytecode refer to by number. Numbers start anew in each region that is isolated.
#pragma once

#include "bytecode.h"

#include <algorithm>

namespace disc::bytecode {

/// A value of a program: the same id for a value and for its prefixes and broadcasts.
struct ProgramValue {
  uint32_t id = 0;     // counted from 1; 0 before the value is defined
  uint64_t type = 0;
  uint64_t origin = 0; // the type of the value that it is a prefix or a broadcast of
  size_t constant = 0; // of a splat, its number counted from 1
};

class ValueScopes {
public:
  explicit ValueScopes(size_t most_values) : most_values_(most_values) {}

  void enter_isolated() { scopes_.emplace_back(); }
  void leave_isolated() { scopes_.pop_back(); }

  /// A region that says how many values it defines.
  void enter_region(uint64_t count) {
    Scope &scope = scopes_.back();
    if (count > most_values_ - std::min(most_values_, scope.values.size()))
      throw Unreadable("a region defines too many values");
    scope.regions.push_back({scope.values.size(), scope.values.size()});
    scope.values.resize(scope.values.size() + count);
  }

  void leave_region() {
    Scope &scope = scopes_.back();
    scope.values.resize(scope.regions.back().first);
    scope.regions.pop_back();
  }

  void define(ProgramValue value) {
    Scope &scope = scopes_.back();
    if (scope.regions.empty() || scope.regions.back().next == scope.values.size())
      throw Unreadable("a region defines more values than it says");
    scope.values[scope.regions.back().next++] = value;
  }

  ProgramValue operator[](uint64_t number) const {
    ProgramValue value = at(scopes_.back().values, number);
    if (value.id == 0)
      throw Unreadable("a value is used before it is defined");
    return value;
  }

  uint32_t new_id() { return ++ids_; }

  /// How many numbers the regions around have, up to the one that is isolated; and whether that one is the first.
  size_t size() const { return scopes_.back().values.size(); }
  bool is_outermost() const { return scopes_.size() == 1; }

private:
  struct Region {
    size_t first, next;
  };
  struct Scope {
    std::vector<ProgramValue> values;
    std::vector<Region> regions;
  };

  size_t most_values_;
  std::vector<Scope> scopes_;
  uint32_t ids_ = 0;
};

} // namespace disc::bytecode
