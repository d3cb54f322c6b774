// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of library functions from compiled programs: FFT, products of groups, LAPACK, collectives, and functions that the user registered.
#pragma once

#include "core/communicator.h"
#include "core/thread_pool.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace disc {

/// One operand or result as the artifact's header declares it.
struct CallTensorSpec {
  std::string dtype; // as in headers, complex numbers being "c64" and "c128"
  int64_t rank = 0;
};

/// An attribute for a function that a user registered. A string is `count` elements of dtype "string".
struct CallAttribute {
  std::string name;
  std::string dtype;
  bool is_array = false;
  int64_t count = 0;
  std::vector<uint64_t> storage; // the elements' bytes, aligned; strings end with a zero

  const void *data() const { return storage.data(); }
};

/// Elements as texts, for JSON has neither 64-bit integers nor infinities: integers in decimal, floats as C writes them.
/// Throws Error(artifact) for an unknown type.
void store_values(CallAttribute &attribute, const std::vector<std::string> &values);

/// What a call site says of a function that a user registered.
struct CustomSpec {
  std::vector<CallAttribute> attributes;            // sorted by name
  std::vector<std::pair<size_t, size_t>> aliases;   // result, operand: the result starts as a copy of the operand
};

/// One call site, from the artifact's header.
struct CallSpec {
  std::string target;
  std::vector<CallTensorSpec> operands;
  std::vector<CallTensorSpec> results; // the last one is the workspace: bytes that nobody reads
  std::vector<std::pair<std::string, int64_t>> attributes;
  std::vector<std::vector<int64_t>> groups; // of a collective: participants
  std::string where;                        // the line of the user's program that it computes, or empty
  std::optional<CustomSpec> custom; // when the function is one that a user registered

  /// The value of an attribute; `otherwise` when the call has none of that name.
  int64_t attribute(std::string_view name, int64_t otherwise = 0) const;
};

/// The place of a collective in a program, which is call site `site`, and in its upper bits what it does there: processes
/// may have compiled different programs of one name.
int64_t place_of(const CallSpec &spec, int64_t site);

/// One operand or result at run time: contiguous and row-major. The dims live as long as the call.
struct CallTensor {
  void *data = nullptr;
  int64_t rank = 0;
  const int64_t *dims = nullptr;

  int64_t elements() const;
  int64_t size(int64_t axis) const { return dims[axis < 0 ? rank + axis : axis]; } // from the end when negative
  template <typename T> T *as() const { return static_cast<T *>(data); }
};

/// One call in progress.
struct Call {
  const CallSpec &spec;
  ThreadPool &pool;
  const CallTensor *operands;
  const CallTensor *results;
  int64_t site;               // the number of the call site
  Communicator *communicator; // null when the program runs on one device

  const CallTensor &workspace() const { return results[spec.results.size() - 1]; }

  /// The product of all dims of a tensor but the last `inner` ones.
  static int64_t batch(const CallTensor &tensor, int64_t inner);

  /// Runs `body(context, entry, scratch)` for each entry of a batch. Entries are divided over at most `kMostSlots`
  /// slots, each with its own part of the workspace; `work` is the rough number of operations of one entry.
  using EntryBody = void (*)(void *context, int64_t entry, char *scratch);
  void for_each_entry(int64_t entries, double work, EntryBody body, void *context) const;

  template <typename Body> void for_each_entry(int64_t entries, double work, Body body) const {
    auto run = [](void *context, int64_t entry, char *scratch) { (*static_cast<Body *>(context))(entry, scratch); };
    for_each_entry(entries, work, run, &body);
  }

  /// The bytes of workspace that one entry may use.
  int64_t scratch_bytes(int64_t entries) const;
};

/// The compiler makes workspaces as large as the part of one entry times the smaller of the batch and this.
constexpr int64_t kMostSlots = 16;

/// A function that a call site is bound to when its program is loaded.
class LibraryFunction {
public:
  virtual ~LibraryFunction() = default;
  virtual void run(const Call &call) const = 0;
};

/// Says that a library call of this thread's run has failed; the first message counts.
void report_failure(std::string message);

/// The same for one that had no memory. Allocates none.
void report_no_memory() noexcept;

/// Whether one has.
bool has_failed();

/// Throws the first failure since the last call, if there is one; the run that made it is over.
void throw_failure();

/// How a registered function is called: ShloDiscCustomCall, or XLA's FFI.
enum class Convention { c, ffi };

/// Makes a function known, to programs that are loaded from then on.
void register_custom_call(const std::string &target, void *function, Convention convention);

/// The function registered under the site's target. Throws Error(artifact) when there is none.
std::shared_ptr<const LibraryFunction> bind_custom_call(const CallSpec &spec);

/// A handler of XLA's FFI. Throws Error(artifact) when it was compiled for another version of the interface.
std::shared_ptr<const LibraryFunction> bind_ffi_handler(const CallSpec &spec, void *handler);

/// The function for a call site. Throws Error(artifact) when there is none in this process.
std::shared_ptr<const LibraryFunction> bind_library_function(const CallSpec &spec);

/// A call site with its function.
struct BoundCall {
  CallSpec spec;
  std::shared_ptr<const LibraryFunction> function;

  void run(ThreadPool &pool, const int64_t *words, int64_t site, Communicator *communicator) const;
};

/// A plain function of the runtime as a LibraryFunction.
using BuiltinFunction = void (*)(const Call &call);

/// A function of the runtime: how many operands and results it takes, the workspace not counted, and how many operands
/// may follow.
struct Builtin {
  BuiltinFunction function;
  size_t operands;
  size_t results;
  size_t more_operands = 0;
};

/// The function of LAPACK wrapped under `target` ("lapack_sgetrf"); null when there is none. Throws Error(artifact)
/// when LAPACK itself is missing from this process.
const Builtin *lapack_builtin(std::string_view target);

/// The Fourier transform under `target` ("fft_f32"); null when there is none.
const Builtin *fft_builtin(std::string_view target);

/// The collective under `target` ("collective_all_reduce"); null when there is none.
const Builtin *collective_builtin(std::string_view target);

/// `ragged_dot`; null for another target.
const Builtin *ragged_dot_builtin(std::string_view target);

/// `dequantized_dot`; null for another target.
const Builtin *dequantized_dot_builtin(std::string_view target);

} // namespace disc
