// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An artifact's header as the call path needs it, checked once when it is loaded.
#pragma once

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/library_call.h"
#include "size_steps.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace disc {

/// The symbol of an object that has the digest of the header that it was compiled with. Objects of the first releases have
/// none.
constexpr const char *kHeaderDigest = "disc_header_digest";

struct DimSpec {
  int64_t size = -1; // -1: not static
  std::string text;  // as written in the specification
};

struct ArraySpec {
  std::string path;
  DType dtype = DType::f32;
  std::vector<DimSpec> shape;
  bool donated = false;
  std::string key;    // not empty: the data of PRNG keys of this implementation, the last dim being that of a key
  std::string memory; // the kind that a framework wants it in; empty where it does not say
  std::vector<size_t> layout; // for each dim the one that it is to the framework; empty: itself

  std::string shape_text() const; // "(b, 768)"
};

/// size == scale * value + offset + less, read from dimension `dim` of argument `argument`. `less`, 0 where it has no
/// steps, is made of symbols before this one and of sizes of arguments.
struct SymbolSpec {
  std::string name;
  int64_t minimum = 0;
  std::optional<int64_t> maximum;
  size_t argument = 0;
  size_t dim = 0;
  int64_t scale = 1;
  int64_t offset = 0;
  std::vector<SizeStep> less;
};

struct CheckSpec {
  std::string kind;
  std::string message; // "{b}" stands for a symbol's value, "{0}" for operand 0
  std::vector<size_t> operands;
};

struct ConstantSpec {
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// A packed form that the right-hand side of products, an argument or a constant, may have: k x n elements at `buffer`.
struct PackSpec {
  size_t buffer = 0; // index among arguments, results and constants
  DType dtype = DType::f32;
  int64_t format = 0; // of the products, as in gemm_formats.h
  int64_t k = 0, n = 0, k_stride = 0, n_stride = 0;
  int64_t columns = 1; // of a panel

  int64_t bytes() const;        // of the packed form
  int64_t source_bytes() const; // of the array, from its first element to its last

  /// Whether the packed forms are the same, of one array.
  bool is_same_form(const PackSpec &other) const;
};

/// A part of a call. Programs that read sizes from data have several; each but the first needs what earlier ones read.
struct SegmentSpec {
  std::vector<CheckSpec> checks;
  size_t plan_words = 1;
  std::string plan_entry = "disc_plan";
  std::string run_entry = "disc_run";
  std::vector<size_t> results; // the leaves that it writes; their dims follow the first words of its plan
  std::vector<std::string> symbols_read; // those that are known in addition to those of the segment before

  size_t symbols = 0;     // known symbols in all
  size_t result_word = 1; // where the dims of its results start
};

struct Program {
  std::string name;
  std::vector<SymbolSpec> symbols; // those solved from the arguments
  std::vector<ArraySpec> arguments;
  std::vector<ArraySpec> results;
  std::vector<ConstantSpec> constants;
  std::vector<SegmentSpec> segments; // at least one
  std::vector<CallSpec> calls;       // the library calls of all segments, by index
  std::vector<KernelSpec> kernels;   // those of a device that is apart from the processor, by number
  std::vector<PackSpec> packs;       // the packed forms, whose places follow the constants'
  std::vector<size_t> packed_only;   // buffers that are not read where all of their packed forms are at hand
  std::array<uint8_t, 32> digest{};    // of the header, as its code may have it
  bool is_prepacked = false;           // its packed constants come with it, and those that are packed only do not

  size_t argument_dims = 0; // dims of all arguments together

  /// Derives the sums above and checks every index; throws Error(artifact).
  void validate(int64_t constant_bytes);

  /// Throws Error(artifact) where code was compiled with another header: `expected` is the digest that it has of its own.
  void check_digest(std::string_view expected, int64_t constant_bytes) const;

private:
  void validate_sizes() const;
  void validate_segments();
  void validate_packs() const;
};

} // namespace disc
