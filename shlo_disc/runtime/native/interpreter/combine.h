// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ops by which reductions combine elements, where a body has nothing else.
#pragma once

#include "complex_functions.h"
#include "elementwise.h"

namespace disc::interpreter {

/// Sums and products of integers wrap around; those of booleans are "or" and "and".
struct Sum {
  template <typename T> static T of(T a, T b) {
    if constexpr (Boolean<T>)
      return a || b;
    else if constexpr (Integer<T>)
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
};

struct Product {
  template <typename T> static T of(T a, T b) {
    if constexpr (Boolean<T>)
      return a && b;
    else if constexpr (Integer<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else if constexpr (is_complex<T>)
      return complex_product(a, b);
    else
      return a * b;
  }
};

struct Conjunction {
  template <typename T> static T of(T a, T b) { return static_cast<T>(a & b); }
};

struct Disjunction {
  template <typename T> static T of(T a, T b) { return static_cast<T>(a | b); }
};

/// The loop of a body that has one op, which takes both of its arguments: what `made` gives for the C++ types of the op
/// and of the elements. Null for other bodies.
template <typename Loop, typename Made> Loop loop_of_body(const Body &body, DType dtype, const Made &made) {
  bool takes_both = body.only_operands == std::vector<size_t>{0, 1} || body.only_operands == std::vector<size_t>{1, 0};
  if (body.arguments.size() != 2 || !takes_both)
    return nullptr;
  return with_type(dtype, [&]<typename T>(T) -> Loop {
    using Number = Computed<T>;
    if (body.only_op == "add")
      return made(Sum{}, T{});
    if constexpr (!is_complex<Number>) {
      if (body.only_op == "maximum")
        return made(Maximum{}, T{});
      if (body.only_op == "minimum")
        return made(Minimum{}, T{});
    }
    if (body.only_op == "multiply")
      return made(Product{}, T{});
    if constexpr (Integer<Number>) {
      if (body.only_op == "and")
        return made(Conjunction{}, T{});
      if (body.only_op == "or")
        return made(Disjunction{}, T{});
    } else if constexpr (Boolean<Number>) {
      if (body.only_op == "and")
        return made(Product{}, T{});
      if (body.only_op == "or")
        return made(Sum{}, T{});
    }
    return nullptr;
  });
}

constexpr size_t most_reduced = 16; // arrays
constexpr size_t most_element_bytes = 16;

/// Throws Unsupported unless a body combines so many elements with as many others, of these types.
void require_combiner(const Body &body, const std::vector<Type> &types);

/// Calls a body for elements, and puts what it returns in place of the first ones.
class BodyCall {
public:
  explicit BodyCall(const Op &op, size_t body, const std::vector<Type> &types);

  /// accumulated, others: as many addresses as types.
  void run(Outputs accumulated, Inputs others) const;

private:
  Kernel body_;
  Dims widths_;
};

/// Fills an array with one element.
void fill(const Type &type, void *array, const void *element);

} // namespace disc::interpreter
