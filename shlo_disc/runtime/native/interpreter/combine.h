// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How elements are combined by the bodies of ops.
#pragma once

#include "elementwise.h"
#include "walk.h"

namespace disc::interpreter {

/// The loop of a body that has one op, which takes both of its arguments: what `made` gives for the op's function and
/// an element of the type that it computes. Null for other bodies.
template <typename Loop, typename Made> Loop loop_of_body(const Body &body, DType dtype, const Made &made) {
  bool takes_both = body.only_operands == std::vector<size_t>{0, 1} || body.only_operands == std::vector<size_t>{1, 0};
  if (body.arguments.size() != 2 || !takes_both)
    return nullptr;
  return with_type(dtype, [&]<typename T>(T) -> Loop {
    auto loop = [&]<typename Function>(Function function) -> Loop {
      using Element = typename LoopType<Function, T>::type;
      if constexpr (requires(Computed<Element> x) { Function::of(x, x); })
        return made(function, Element{});
      return nullptr;
    };
    if (body.only_op == "add")
      return loop(Add{});
    if (body.only_op == "multiply")
      return loop(Multiply{});
    if (body.only_op == "maximum")
      return loop(Maximum{});
    if (body.only_op == "minimum")
      return loop(Minimum{});
    if (body.only_op == "and")
      return loop(And{});
    return body.only_op == "or" ? loop(Or{}) : nullptr;
  });
}

constexpr size_t most_reduced = 16; // arrays
constexpr size_t most_element_bytes = 16;

/// Throws Unsupported unless a body combines so many elements with as many others, of these types.
void require_combiner(const Body &body, const std::vector<Type> &types);

/// Calls a body for elements, and puts what it returns in place of the first ones.
class BodyCall {
public:
  BodyCall(const Op &op, size_t body, const std::vector<Type> &types);

  /// accumulated, others: as many addresses as types.
  void run(Outputs accumulated, Inputs others) const;

  /// Elements of arrays: where the first one is, and the step to the next.
  struct Row {
    int64_t start, step;
  };
  /// The same for rows of elements of as many arrays.
  void run_row(Outputs accumulated, Row to, Inputs others, Row from, int64_t size) const;

private:
  Kernel body_;
  Dims widths_;
};

/// Fills an array with one element.
void fill(const Type &type, void *array, const void *element);

} // namespace disc::interpreter
