// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the sizes of one call to a checked plan: solve the symbols, evaluate the compiled plan once for each set of
// values, compare every dimension.
#pragma once

#include "core/abi.h"
#include "core/forks.h"
#include "plan_messages.h"
#include "program.h"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace disc {

/// A segment's plan for one set of symbol values; immutable.
struct Plan {
  std::vector<int64_t> symbols;
  std::vector<int64_t> words;
  std::vector<int64_t> result_bytes;
  int64_t arena_bytes = 0;

  int64_t memory() const; // bytes held, for the memo's limit
};

/// Plans by symbol values, the least recently used thrown out beyond a number of bytes. Thread-safe.
class PlanMemo {
public:
  explicit PlanMemo(int64_t byte_limit) : byte_limit_(byte_limit) {}

  std::shared_ptr<const Plan> find(std::span<const int64_t> symbols);
  void insert(std::shared_ptr<const Plan> plan);
  int64_t size() const;
  int64_t bytes() const;

  /// The values of the symbols that are remembered, most recent first.
  std::vector<std::vector<int64_t>> symbols() const;

private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::span<const int64_t> key) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::span<const int64_t> a, std::span<const int64_t> b) const;
  };
  using Order = std::list<std::shared_ptr<const Plan>>;

  mutable ForkMutex mutex_;
  Order order_; // most recent first; owns the keys
  std::unordered_map<std::span<const int64_t>, Order::iterator, Hash, Equal> index_;
  int64_t bytes_ = 0;
  int64_t byte_limit_;
};

/// As DiscPlan.
using EvaluatePlan = std::function<int64_t(const int64_t *symbols, int64_t *words)>;

class Planner {
public:
  /// Plans segment number `segment`.
  Planner(const Program &program, size_t segment, EvaluatePlan evaluate, int64_t memo_bytes);

  /// The plan for a call. Throws Error(shape) with jax.export's wording when the sizes are not admissible.
  std::shared_ptr<const Plan> plan(Dims dims) const;

  /// The plan for given values of the symbols that are known here, without arguments to compare with.
  std::shared_ptr<const Plan> plan_for(std::span<const int64_t> symbols) const;

  PlanMemo &memo() const { return memo_; }

private:
  void solve(Dims dims, std::span<int64_t> values) const;
  void check_least(std::span<const int64_t> values, size_t end, Dims dims) const;
  int64_t difference_of(Dims dims, std::span<const int64_t> values, size_t index) const;
  std::shared_ptr<const Plan> evaluate(std::span<const int64_t> values, Dims dims) const;
  [[noreturn]] void explain_refusal(std::span<const int64_t> values, Dims dims, std::span<const int64_t> words,
                                    int64_t code) const;
  void check_ranges(std::span<const int64_t> values, Dims dims) const;
  void check_dims(const int64_t *expected, Dims dims, std::span<const int64_t> values) const;
  void fill_sizes(Plan &plan) const;

  const Program &program_;
  const SegmentSpec &segment_;
  bool is_first_;
  EvaluatePlan evaluate_;
  std::vector<size_t> symbol_dim_; // the flat dimension each symbol is solved from
  mutable PlanMemo memo_;
};

} // namespace disc
