// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program without its sizes, and its sizes. Two programs of one skeleton differ in nothing but their numbers.
#pragma once

#include "bytecode/elements.h"

namespace disc::pjrt {

using namespace bytecode;

/// A constant of a program: its first number, and a view of its elements in the bytes that were read.
struct ProgramConstant {
  size_t number;
  size_t number_count;
  std::string_view bytes;
  int element_bits;
  bool is_splat;
  std::vector<int64_t> sizes;
  bool names_function = false; // one of `StaticProgram::functions`
};

/// What a number is, for whoever looks at the program with MLIR. Ops are counted in pre-order.
struct NumberPlace {
  enum Kind : uint8_t { result, block_argument, attribute, element, operand };
  Kind kind;
  uint32_t op;
  uint32_t index;       // of the result, the operand or the block argument
  uint32_t axis;        // of the type, or the position in the attribute
  uint32_t region;      // of a block argument
  std::string_view name; // of an attribute
};

/// `skeleton` is everything that must be equal; locations and the module's name do not count. Broadcasts that keep the
/// rank and slices from the start are no ops: each operand has the sizes with which it is used. `numbers` are the sizes
/// in types, the integers of attributes that state sizes, and the elements of constants: of a splat their bits, of others
/// 128 bits that depend on all of them. Calls of Python find their functions by numbers, which each process and each trace
/// has of its own: they are in `functions`, and what `numbers` has is their position there.
struct StaticProgram {
  std::string skeleton;
  std::vector<int64_t> numbers;
  std::vector<ProgramConstant> constants;
  std::vector<int64_t> functions; // each once, in the order of the program
  size_t first_size = 0, last_size = 0; // the numbers between are the sizes of the arguments of the first function
  std::vector<NumberPlace> places; // filled on request
  std::vector<std::string> ops;    // likewise
  std::vector<size_t> starts;      // likewise: where each op begins in `skeleton`
};

/// Reads a portable artifact; the result refers to its bytes. Throws Unreadable for what it does not know, which is no
/// error: such a program is compiled as it is.
StaticProgram read_program(std::string_view bytes, bool with_places = false);

} // namespace disc::pjrt
