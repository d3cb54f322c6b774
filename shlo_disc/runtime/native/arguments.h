// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arguments of one call: described first, checked against the signature, and copied only when they must be.
#pragma once

#include "array_view.h"
#include "dlpack.h"
#include "memory.h"
#include "program.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <vector>

namespace disc {

namespace nb = nanobind;

/// Python objects that describing unusual arguments needs; set once by the Python face.
struct ArgumentHooks {
  nb::object jax_array_type; // None until JAX is loaded
  nb::object adapt;          // (object, path) -> ndarray | an object with __dlpack__ | raises ArgumentTypeError
};
ArgumentHooks &argument_hooks();

/// Lives for one call; keeps the callers' objects and the copies alive until the results are there.
class Arguments {
public:
  /// `bound`: the program's first arguments, described before; `leaves` are those that follow them.
  Arguments(const Program &program, const std::vector<PyObject *> &leaves, const Arguments *bound = nullptr);

  /// Arguments to be bound: the program's first ones. Those marked in `shape_only` are not kept alive, and their
  /// addresses are null.
  Arguments(const Program &program, const std::vector<PyObject *> &leaves, const std::vector<bool> &shape_only);
  ~Arguments();
  Arguments(const Arguments &) = delete;
  Arguments &operator=(const Arguments &) = delete;

  /// Sizes of all dimensions, in order. Ranks, dtypes and static sizes have been checked.
  std::span<const int64_t> dims() const { return dims_; }
  bool any_jax() const { return any_jax_; }
  const ArrayView &view(size_t index) const { return views_[index]; }

  /// Puts the address of every argument's elements into `out`, copying what generated code cannot read in place.
  void addresses(const std::shared_ptr<Allocator> &allocator, void **out);

private:
  void describe_all(const std::vector<PyObject *> &leaves, size_t first, const std::vector<bool> *shape_only);
  void disown(size_t index, size_t owners, size_t buffers, size_t blocks);
  void describe(size_t index, PyObject *leaf);
  void describe_numpy(size_t index, PyObject *array);
  bool describe_buffer(size_t index, PyObject *leaf);
  bool describe_jax(size_t index, PyObject *leaf);
  bool describe_scalar(size_t index, PyObject *leaf);
  void describe_by_numpy(size_t index, PyObject *number);
  void describe_other(size_t index, PyObject *leaf);
  void describe_dlpack(size_t index, nb::handle leaf);
  void describe_tensor(size_t index, const DLTensor &tensor);

  void check_dtype(size_t index, std::optional<DType> actual, nb::handle name) const;
  void add_dims(size_t index, const int64_t *shape, size_t rank);
  [[noreturn]] void fail_dtype(size_t index, const std::string &called) const;
  [[noreturn]] void fail_shape(size_t index, const int64_t *shape, size_t rank, const std::string &what) const;

  const Program &program_;
  std::vector<ArrayView> views_;
  std::vector<int64_t> dims_;
  std::vector<uint64_t> scalars_; // elements of Python numbers
  std::vector<nb::object> owners_;
  std::vector<Py_buffer> py_buffers_;
  std::vector<std::shared_ptr<Block>> blocks_; // Buffers' memory and copies
  bool any_jax_ = false;
};

} // namespace disc
