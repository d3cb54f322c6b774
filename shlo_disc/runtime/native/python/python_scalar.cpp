// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "python_scalar.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace disc {

namespace {

template <typename T> void put(T value, void *element) { std::memcpy(element, &value, sizeof value); }

/// Round to nearest even on the upper half of the f32 pattern; NaN stays a (quiet) NaN.
uint16_t to_bfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value))
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

float from_bfloat16(uint16_t half) {
  uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Stores with rounding; returns the value that was stored.
double put_floating(double value, DType dtype, void *element) {
  switch (dtype) {
  case DType::f16: {
    auto half = static_cast<_Float16>(value);
    put(half, element);
    return static_cast<double>(half);
  }
  case DType::bf16: {
    uint16_t half = to_bfloat16(static_cast<float>(value));
    put(half, element);
    return from_bfloat16(half);
  }
  case DType::f32:
    put(static_cast<float>(value), element);
    return static_cast<float>(value);
  default:
    put(value, element);
    return value;
  }
}

/// The lowest `bits`; a byte that has more is filled with zeros.
void put_bytes(unsigned long long value, int bits, void *element) {
  if (bits < 8)
    value &= (1ULL << bits) - 1;
  std::memcpy(element, &value, static_cast<size_t>(bits < 8 ? 1 : bits / 8)); // little-endian: low bytes come first
}

std::string put_signed(long long value, int bits, void *element) {
  long long most = bits == 64 ? std::numeric_limits<long long>::max() : (1LL << (bits - 1)) - 1;
  if (value > most || value < -most - 1)
    return "the Python int " + std::to_string(value) + ", which it cannot hold";
  put_bytes(static_cast<unsigned long long>(value), bits, element);
  return "";
}

std::string put_unsigned(unsigned long long value, int bits, void *element) {
  if (bits < 64 && value >> bits)
    return "the Python int " + std::to_string(value) + ", which it cannot hold";
  put_bytes(value, bits, element);
  return "";
}

std::string put_integer(PyObject *value, DType dtype, void *element) {
  int bits = static_cast<int>(info(dtype).bits);
  std::string problem = "a Python int that it cannot hold";
  if (is_signed(dtype)) {
    long long number = PyLong_AsLongLong(value);
    if (!PyErr_Occurred())
      return put_signed(number, bits, element);
  } else {
    unsigned long long number = PyLong_AsUnsignedLongLong(value);
    if (!PyErr_Occurred())
      return put_unsigned(number, bits, element);
  }
  PyErr_Clear();
  return problem;
}

std::string put_integer_as_floating(PyObject *value, DType dtype, void *element) {
  double number = PyLong_AsDouble(value);
  bool exact = !PyErr_Occurred();
  PyErr_Clear();
  if (exact) {
    double stored = put_floating(number, dtype, element);
    PyObject *back = std::isfinite(stored) ? PyLong_FromDouble(stored) : nullptr;
    exact = back && PyObject_RichCompareBool(back, value, Py_EQ) == 1;
    Py_XDECREF(back);
  }
  return exact ? "" : "a Python int that it cannot hold exactly";
}

} // namespace

std::string store_python_scalar(PyObject *value, DType dtype, void *element) {
  if (PyBool_Check(value)) {
    put(static_cast<uint8_t>(value == Py_True), element);
    return dtype == DType::i1 ? "" : "a Python bool";
  }
  if (PyComplex_Check(value))
    return "a Python complex number";
  if (PyFloat_Check(value)) {
    if (!is_floating(dtype))
      return "a Python float";
    put_floating(PyFloat_AS_DOUBLE(value), dtype, element);
    return "";
  }
  if (is_integer(dtype))
    return put_integer(value, dtype, element);
  if (is_floating(dtype))
    return put_integer_as_floating(value, dtype, element);
  return "a Python int";
}

} // namespace disc
