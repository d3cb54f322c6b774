// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tree.h"

namespace disc {

Tree::Tree(Kind kind, std::vector<std::shared_ptr<Tree>> children, nb::object detail)
    : kind_(kind), children_(std::move(children)) {
  leaves_ = kind == Kind::leaf ? 1 : 0;
  for (const auto &child : children_)
    leaves_ += child->leaves();
  if (kind == Kind::dict)
    keys_ = nb::cast<nb::tuple>(detail);
  if (kind == Kind::dict && keys_.size() != children_.size())
    throw nb::value_error("a dict needs one key a child");
  if (kind == Kind::named_tuple)
    type_ = detail;
  if (kind == Kind::custom) {
    nb::tuple parts = nb::cast<nb::tuple>(detail);
    type_ = parts[0];
    flatten_ = parts[1];
    unflatten_ = parts[2];
  }
}

bool Tree::flatten(PyObject *object, std::vector<PyObject *> &out, std::vector<nb::object> &owners) const {
  switch (kind_) {
  case Kind::leaf:
    if (object == Py_None || PyTuple_Check(object) || PyList_Check(object) || PyDict_Check(object))
      return false;
    out.push_back(object);
    return true;
  case Kind::none:
    return object == Py_None;
  case Kind::tuple:
    return PyTuple_CheckExact(object) &&
           flatten_items(PySequence_Fast_ITEMS(object), static_cast<size_t>(PyTuple_GET_SIZE(object)), out, owners);
  case Kind::list:
    return PyList_CheckExact(object) &&
           flatten_items(PySequence_Fast_ITEMS(object), static_cast<size_t>(PyList_GET_SIZE(object)), out, owners);
  case Kind::named_tuple:
    return reinterpret_cast<PyObject *>(Py_TYPE(object)) == type_.ptr() &&
           flatten_items(PySequence_Fast_ITEMS(object), static_cast<size_t>(PyTuple_GET_SIZE(object)), out, owners);
  case Kind::dict:
    return PyDict_CheckExact(object) && flatten_dict(object, out, owners);
  default:
    return flatten_custom(object, out, owners);
  }
}

bool Tree::flatten_items(PyObject *const *items, size_t count, std::vector<PyObject *> &out,
                         std::vector<nb::object> &owners) const {
  if (count != children_.size())
    return false;
  for (size_t i = 0; i < count; ++i)
    if (!children_[i]->flatten(items[i], out, owners))
      return false;
  return true;
}

bool Tree::flatten_dict(PyObject *object, std::vector<PyObject *> &out, std::vector<nb::object> &owners) const {
  if (static_cast<size_t>(PyDict_GET_SIZE(object)) != children_.size())
    return false;
  for (size_t i = 0; i < children_.size(); ++i) {
    PyObject *value = PyDict_GetItemWithError(object, keys_[i].ptr());
    if (!value) {
      if (PyErr_Occurred())
        throw nb::python_error();
      return false;
    }
    if (!children_[i]->flatten(value, out, owners))
      return false;
  }
  return true;
}

bool Tree::flatten_custom(PyObject *object, std::vector<PyObject *> &out, std::vector<nb::object> &owners) const {
  if (reinterpret_cast<PyObject *>(Py_TYPE(object)) != type_.ptr())
    return false;
  nb::object children = flatten_(nb::handle(object));
  if (!PyTuple_Check(children.ptr()))
    return false;
  owners.push_back(children);
  return flatten_items(PySequence_Fast_ITEMS(children.ptr()), nb::len(children), out, owners);
}

nb::object Tree::unflatten_tuple(nb::object *&leaves) const {
  nb::object result = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(children_.size())));
  if (!result.is_valid())
    throw nb::python_error();
  for (size_t i = 0; i < children_.size(); ++i)
    PyTuple_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), children_[i]->unflatten(leaves).release().ptr());
  return result;
}

nb::object Tree::unflatten(nb::object *&leaves) const {
  switch (kind_) {
  case Kind::leaf:
    return *leaves++;
  case Kind::none:
    return nb::none();
  case Kind::tuple:
    return unflatten_tuple(leaves);
  case Kind::list:
    return nb::list(unflatten_tuple(leaves));
  case Kind::named_tuple:
    return type_(*nb::tuple(unflatten_tuple(leaves)));
  case Kind::dict: {
    nb::dict result;
    for (size_t i = 0; i < children_.size(); ++i)
      result[keys_[i]] = children_[i]->unflatten(leaves);
    return result;
  }
  default:
    return unflatten_(unflatten_tuple(leaves));
  }
}

} // namespace disc
