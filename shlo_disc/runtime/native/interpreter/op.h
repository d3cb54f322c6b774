// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An op of a program whose sizes are all known, as the interpreter's kernels see it.
#pragma once

#include "core/dtype.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace disc::interpreter {

/// Something that the interpreter has no kernel for: the program is to be compiled.
class Unsupported : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

using Dims = std::vector<int64_t>;

/// The type of an array, whose elements lie in row-major order. An element of i1 is a byte, 0 or 1.
struct Type {
  DType dtype = DType::f32;
  Dims dims;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t count() const {
    int64_t total = 1;
    for (int64_t size : dims)
      total *= size;
    return total;
  }
  int64_t element_bytes() const { return info(dtype).size; }
  int64_t bytes() const { return count() * element_bytes(); }
  bool operator==(const Type &other) const = default;
};

/// How many elements lie between neighbours along each axis.
inline Dims strides_of(const Dims &dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t axis = dims.size(); axis-- > 0; stride *= dims[axis])
    strides[axis] = stride;
  return strides;
}

/// Addresses of arrays, as many as an op has operands or results. Results overlap nothing.
using Inputs = const void *const *;
using Outputs = void *const *;

/// What computes the results of one op. May be called by several threads at a time.
using Kernel = std::function<void(Inputs inputs, Outputs outputs)>;

/// The region of an op that combines elements: its arguments and its results are arrays without axes.
struct Body {
  std::vector<Type> arguments, results;
  Kernel run;
  int64_t work = 0; // roughly nanoseconds
  /// Where the region has one op besides its return, whose operands are arguments of the region: its name, and which
  /// arguments these are.
  std::string_view only_op;
  std::vector<size_t> only_operands;
};

/// An attribute. Enumerations have their number in VHLO; of a type there is 1, or 0 for none.
struct Attribute {
  std::vector<int64_t> integers; // of an array, or one number
  std::string_view text;
};

/// An op of StableHLO. The program's reader has checked nothing of it but its types: kernels are made for what they have
/// checked, and throw Unsupported else.
struct Op {
  std::string_view name; // without dialect and version: "broadcast_in_dim"
  std::vector<Type> operands, results;
  std::map<std::string_view, Attribute> attributes;
  std::vector<Body> bodies;

  const Type &operand(size_t index) const { return at(operands, index); }
  const Type &result(size_t index = 0) const { return at(results, index); }
  const Body &body(size_t index = 0) const { return at(bodies, index); }
  const Attribute &attribute(std::string_view attribute) const {
    auto found = attributes.find(attribute);
    if (found == attributes.end())
      throw Unsupported("an op has not an attribute that it should have");
    return found->second;
  }
  const std::vector<int64_t> &integers(std::string_view name) const { return attribute(name).integers; }
  /// Throws Unsupported unless there are as many integers.
  const std::vector<int64_t> &integers(std::string_view name, size_t count) const {
    const std::vector<int64_t> &found = integers(name);
    require(found.size() == count);
    return found;
  }
  int64_t integer(std::string_view name) const { return integers(name, 1)[0]; }
  static void require(bool holds) {
    if (!holds)
      throw Unsupported("an op is not as it should be");
  }

private:
  template <typename T> static const T &at(const std::vector<T> &all, size_t index) {
    require(index < all.size());
    return all[index];
  }
};

/// Makes the kernel of an op. Throws Unsupported.
using KernelMaker = Kernel (*)(const Op &op);

/// Those of each family, by the names of ops.
using KernelTable = std::map<std::string_view, KernelMaker>;
const KernelTable &elementwise_kernels(); // elementwise.cpp
const KernelTable &movement_kernels();    // movement.cpp
const KernelTable &indexing_kernels();    // indexing.cpp
const KernelTable &reduction_kernels();   // reduction.cpp
const KernelTable &product_kernels();     // products.cpp
const KernelTable &library_kernels();     // library.cpp

/// Of an op of any family. Throws Unsupported.
Kernel kernel_of(const Op &op);

} // namespace disc::interpreter
