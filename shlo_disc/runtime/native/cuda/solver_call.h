// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One call of a function of LAPACK, while it is given to a GPU.
#pragma once

#include "core/memory.h"
#include "gpu.h"
#include "kernels/library_call.h"
#include "solver_library.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace disc::cuda {

/// The parts of an operand or result that the entries of a batch have.
struct Entries {
  char *first = nullptr;
  int64_t bytes = 0; // of one

  void *operator[](int64_t entry) const { return first + entry * bytes; }
};

/// Memory that a function takes beside its operands: on the device, on the host, and for a number that nobody reads.
struct Workspace {
  void *device = nullptr;
  size_t device_bytes = 0;
  int elements = 0; // of `device`, where it was asked for so
  void *host = nullptr;
  size_t host_bytes = 0;
  int *info = nullptr;
};

/// A call, as it is given to the libraries. Entries of a batch are given one after the other.
struct SolverCall {
  const Call &call;
  const Gpu &gpu;
  const std::shared_ptr<Allocator> &allocator;
  SolverHandle solver;
  SolverOptions options;
  CublasHandle blas;
  std::string what;                                 // what is asked of the libraries, for errors
  std::vector<std::unique_ptr<char[]>> &host_parts; // memory that lives until the work is done
  const SolverLibrary &library = SolverLibrary::instance();
  const CublasLibrary &cublas = CublasLibrary::instance();
  size_t index = 0;     // of the type in `ByType`
  DataType type{};      // of the matrices
  DataType real_type{}; // of their absolute values
  int64_t element_bytes = 0;
  int64_t entries = 0;
  std::vector<Entries> operands{}, results{};
  std::vector<std::unique_ptr<Block>> blocks{};

  char letter(std::string_view attribute) const { return static_cast<char>(call.spec.attribute(attribute)); }

  /// The workspace of an operation, which `ask(device_bytes, host_bytes)` tells the size of.
  template <typename Ask> Workspace workspace(Ask ask) {
    size_t device_bytes = 0, host_bytes = 0;
    check(library, [&] { return ask(&device_bytes, &host_bytes); });
    return workspace_of(device_bytes, host_bytes);
  }

  /// The same, of functions that `ask(elements)` tells the elements of.
  template <typename Ask> Workspace workspace_in_elements(Ask ask) {
    int elements = 0;
    check(library, [&] { return ask(&elements); });
    Workspace made = workspace_of(static_cast<size_t>(elements * element_bytes), 0);
    made.elements = elements;
    return made;
  }

  /// Memory of the device until the work is done.
  void *memory(int64_t bytes);

  /// Copies an operand of some entries to a result, where it is overwritten.
  void copy(size_t operand, size_t result, int64_t entry, int64_t count = 1) const;

  /// Whether one call gives all entries: a small matrix alone does not keep a GPU busy.
  bool is_batch(int64_t order) const { return entries > 1 && order <= 128; }

  /// The addresses of all entries, in memory of the device.
  void **addresses(const Entries &of);

  /// Has `give()`, a function of a library that returns a status, give the work of all entries. operand: what becomes
  /// the first result.
  template <typename Library, typename Give> void give_batch(const Library &by, size_t operand, Give give) const {
    check(by, [&] {
      copy(operand, 0, 0, entries);
      return give();
    });
  }

  /// Has `give(entry)` give the work of each entry.
  template <typename Library, typename Give> void give_each(const Library &by, Give give) const {
    for (int64_t entry = 0; entry < entries; ++entry)
      check(by, [&] { return give(entry); });
  }

private:
  template <typename Library, typename Ask> void check(const Library &by, Ask ask) const {
    by.check(with_released_memory(*allocator, by.no_memory, ask), what);
  }

  Workspace workspace_of(size_t device_bytes, size_t host_bytes);
};

/// A function of LAPACK as GPUs have it. operands, results: a letter for each matrix (M), vector (V) or number (N),
/// followed by its type: that of the call (t), its real one (r), or a 32-bit integer (i).
struct LapackFunction {
  std::string_view name; // without the letter of its type: "getrf"
  std::string_view operands, results;
  const char *shown; // in errors: "an LU factorization"
  void (*give)(SolverCall &call);
};

/// The function of that name; null where GPUs have none.
const LapackFunction *lapack_function(std::string_view name);

} // namespace disc::cuda
