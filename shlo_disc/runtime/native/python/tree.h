// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trees of Python containers: taking a call's leaves out in JAX's order, and putting results back.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

namespace disc {

namespace nb = nanobind;

class Tree {
public:
  enum class Kind { leaf, none, tuple, list, dict, named_tuple, custom };

  Tree(Kind kind, std::vector<std::shared_ptr<Tree>> children, nb::object detail);

  size_t leaves() const { return leaves_; }

  /// Appends borrowed references to the leaves of `object`. False when its structure is another one. Custom nodes keep
  /// what they flatten to alive in `owners`.
  bool flatten(PyObject *object, std::vector<PyObject *> &out, std::vector<nb::object> &owners) const;

  /// The same for a node whose children are given as `count` items.
  bool flatten_items(PyObject *const *items, size_t count, std::vector<PyObject *> &out,
                     std::vector<nb::object> &owners) const;

  /// Builds the containers around `leaves`, taking as many as this tree has from the front.
  nb::object unflatten(nb::object *&leaves) const;

private:
  bool flatten_dict(PyObject *object, std::vector<PyObject *> &out, std::vector<nb::object> &owners) const;
  bool flatten_custom(PyObject *object, std::vector<PyObject *> &out, std::vector<nb::object> &owners) const;
  nb::object unflatten_tuple(nb::object *&leaves) const;

  Kind kind_;
  std::vector<std::shared_ptr<Tree>> children_;
  nb::tuple keys_;       // dict: the keys in JAX's (sorted) order
  nb::object type_;      // named_tuple, custom
  nb::object flatten_;   // custom: object -> tuple of children, or None when its metadata differ
  nb::object unflatten_; // custom: tuple of children -> object
  size_t leaves_ = 0;
};

} // namespace disc
