// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arguments of one call: described first, checked against the signature, and copied only when they must be.
#pragma once

#include "core/array_view.h"
#include "core/device.h"
#include "core/dlpack.h"
#include "core/memory.h"
#include "program/program.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace disc {

namespace nb = nanobind;

/// Python objects that describing unusual arguments needs; set once by the Python face.
struct ArgumentHooks {
  nb::object jax_array_type; // None until JAX is loaded
  nb::object jax_elements;   // jax.Array -> ndarray of what its elements are now
  nb::object adapt;          // (object, path, key) -> ndarray | jax.Array | an object with __dlpack__ | raises
                             // ArgumentTypeError; `key` as in ArraySpec
};
ArgumentHooks &argument_hooks();

/// Lives for one call; keeps the callers' objects and the copies alive until the results are there.
class Arguments {
public:
  /// `device`: where the program runs. `bound`: its first arguments, described before; `leaves` are those that follow.
  Arguments(const Program &program, Device &device, const std::vector<PyObject *> &leaves,
            const Arguments *bound = nullptr);

  /// For the program's first `count` arguments, which are to be added one by one.
  Arguments(const Program &program, Device &device, size_t count);
  ~Arguments();
  Arguments(const Arguments &) = delete;
  Arguments &operator=(const Arguments &) = delete;

  /// Sizes of all dimensions, in order. Ranks, dtypes and static sizes have been checked.
  std::span<const int64_t> dims() const { return dims_; }
  bool any_jax() const { return any_jax_; }

  /// Whether one of JAX's arrays lies where the program runs, and that is no processor.
  bool any_jax_on_device() const { return any_jax_on_device_; }

  /// Whether other libraries own some of what the device reads, so that its work has to be waited for.
  bool any_foreign() const { return any_foreign_; }
  const ArrayView &view(size_t index) const { return views_[index]; }

  void add(PyObject *leaf);

  /// Releases what was added last: only its sizes are remembered, and its address is null.
  void forget_last();

  /// Makes what was added last independent of its owner: a copy of its elements is kept on the device, or what is kept
  /// for argument `same`, which is the same object.
  void keep_last(std::optional<size_t> same);

  /// The elements of an argument in C order, copied where the program cannot read them in place.
  const void *elements(size_t index);

  /// Puts the address of every argument's elements into `out`, copying what the program cannot read in place.
  void addresses(void **out);

  /// Whether the program reads an argument where it lies.
  bool is_usable(size_t index) const;

private:
  /// What is held, in numbers.
  struct Held {
    size_t owners = 0, buffers = 0, blocks = 0;
    bool foreign = false;
  };

  void release_last();
  void release_buffers(size_t count);
  const int64_t *shape_of(size_t index) const;
  std::shared_ptr<Block> copy_of(size_t index, const int64_t *shape, BlockKind kind) const;
  std::shared_ptr<Block> copy_on_device(size_t index, const int64_t *shape, BlockKind kind) const;
  void *usable(size_t index, const int64_t *shape);
  void check_dlpack_device(size_t index, DLDevice device) const;
  void describe(size_t index, PyObject *leaf);
  void describe_numpy(size_t index, PyObject *array);
  bool describe_buffer(size_t index, PyObject *leaf);
  bool describe_jax(size_t index, PyObject *leaf);
  bool describe_jax_on_device(size_t index, nb::handle leaf);
  bool describe_array_interface(size_t index, PyObject *leaf);
  void check_owner(size_t index, const void *data) const;
  bool describe_scalar(size_t index, PyObject *leaf);
  void describe_by_numpy(size_t index, PyObject *number);
  void describe_other(size_t index, PyObject *leaf);
  void describe_dlpack(size_t index, nb::handle leaf);
  void describe_tensor(size_t index, const DLTensor &tensor);

  void check_dtype(size_t index, std::optional<DType> actual, nb::handle name) const;
  void add_dims(size_t index, const int64_t *shape, size_t rank);
  [[noreturn]] void fail_dtype(size_t index, const std::string &called) const;

  const Program &program_;
  Device &device_;
  std::vector<ArrayView> views_;
  std::vector<int64_t> dims_;
  std::vector<uint64_t> scalars_; // elements of Python numbers
  std::vector<nb::object> owners_;
  std::vector<Py_buffer> py_buffers_;
  std::vector<std::shared_ptr<Block>> blocks_; // Buffers' memory and copies
  bool any_jax_ = false;
  bool any_jax_on_device_ = false;
  bool any_foreign_ = false;
  size_t added_ = 0;
  Held before_last_;
};

} // namespace disc
