// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "combine.h"

#include <cstring>

namespace disc::interpreter {

void require_combiner(const Body &body, const std::vector<Type> &types) {
  size_t count = types.size();
  Op::require(body.run && body.arguments.size() == 2 * count && body.results.size() == count);
  if (count > most_reduced)
    throw Unsupported("too many arrays are reduced at a time");
  for (size_t k = 0; k < count; ++k) {
    Type element{types[k].dtype, {}};
    Op::require(body.arguments[k] == element && body.arguments[count + k] == element && body.results[k] == element);
  }
}

BodyCall::BodyCall(const Op &op, size_t body, const std::vector<Type> &types) : body_(op.body(body).run) {
  require_combiner(op.body(body), types);
  for (const Type &type : types)
    widths_.push_back(type.element_bytes());
}

void BodyCall::run(Outputs accumulated, Inputs others) const {
  const void *given[2 * most_reduced];
  void *made[most_reduced];
  alignas(16) char memory[most_reduced * most_element_bytes];
  size_t count = widths_.size();
  for (size_t k = 0; k < count; ++k) {
    given[k] = accumulated[k];
    given[count + k] = others[k];
    made[k] = memory + k * most_element_bytes;
  }
  body_(given, made);
  for (size_t k = 0; k < count; ++k)
    std::memcpy(accumulated[k], made[k], static_cast<size_t>(widths_[k]));
}

void BodyCall::run_row(Outputs accumulated, Row to, Inputs others, Row from, int64_t size) const {
  void *targets[most_reduced];
  const void *elements[most_reduced];
  for (int64_t i = 0; i < size; ++i) {
    for (size_t k = 0; k < widths_.size(); ++k) {
      targets[k] = static_cast<char *>(accumulated[k]) + (to.start + i * to.step) * widths_[k];
      elements[k] = static_cast<const char *>(others[k]) + (from.start + i * from.step) * widths_[k];
    }
    run(targets, elements);
  }
}

void fill(const Type &type, void *array, const void *element) {
  BoxCopy({{type.count(), {0, 1}}}, type.element_bytes()).run(element, 0, array, 0);
}

} // namespace disc::interpreter
