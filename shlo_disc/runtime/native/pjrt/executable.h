// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Executables of the C API: what a program became, and that loaded onto devices.
#pragma once

#include "buffer.h"
#include "client.h"
#include "compile.h"
#include "compile_options.h"
#include "extensions.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace disc::pjrt {

/// A program on one device, and its plan where sizes are known before a call.
struct Placed {
  Compiled compiled;
  std::shared_ptr<const Plan> plan; // null when they are not
};

/// How long runs of a program take, by the processor's clock. Thread-safe.
class RunTime {
public:
  /// Whether its last run was so short that handing one to another thread is not worth it.
  bool is_short() const { return last_.load(std::memory_order_relaxed) < kShort; }
  void set(uint64_t last) { last_.store(last, std::memory_order_relaxed); }

private:
  static constexpr uint64_t kShort = uint64_t{1} << 18; // some 100 us

  std::atomic<uint64_t> last_{~uint64_t{0}}; // before the first run
};

/// A compiled program with what frameworks ask about it. Immutable, but for what is measured.
class Code {
public:
  Code(Compiled compiled, std::string program, std::string options);

  const Program &program() const { return first.compiled.executable->program(); }

  /// The arguments that callers give; the hidden ones follow them.
  size_t argument_count() const { return program().arguments.size() - first.compiled.hidden.size(); }

  /// The program on a device, where it is loaded if it is not yet. Throws Failure.
  const Placed &on(const PJRT_Device &device) const;

  /// Whether the sizes of results are known before a call.
  bool knows_sizes() const { return first.plan && plans_results(); }

  /// Throws UNIMPLEMENTED when they are not.
  const Plan &known_plan() const;

  /// Whether the sizes of results are known once those of arguments are.
  bool plans_results() const { return program().segments.size() == 1; }

  /// Null where the program has code; else it is interpreted.
  const NotCompiled *not_compiled() const { return first.compiled.not_compiled.get(); }

  /// Whether an interpreted program is to be compiled.
  bool is_hot() const { return not_compiled() && not_compiled()->is_hot(); }

  /// The same program with code, which lives as long as this: an interpreted one is compiled by the first call. Throws
  /// Failure.
  const std::shared_ptr<const Code> &compiled(const std::shared_ptr<const Code> &self) const;

  /// What a run costs, as far as sizes are known. Counted by the first call.
  std::span<const PJRT_NamedValue> cost() const;

  const Placed first; // on the first device
  const std::string source;  // the program as it came
  const std::string options; // a CompileOptionsProto
  const CompileOptions parsed_options;
  const std::string fingerprint;
  const bool calls_others; // functions that are registered in this process
  const std::vector<size_t> donated; // the arguments that callers give away
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<const char *> output_memory_kinds, argument_memory_kinds;
  std::vector<size_t> output_memory_kind_sizes, argument_memory_kind_sizes;
  std::vector<size_t> output_memories; // the number of the kind
  std::vector<int64_t> output_dims, argument_dims; // of all, as frameworks see them; none if they are not known
  std::vector<size_t> output_ranks;
  std::vector<Layout *> output_layouts, argument_layouts;
  mutable RunTime run_time;

private:
  void describe_arrays();
  void describe_memories();
  std::vector<PJRT_NamedValue> count_cost() const;

  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Code> compiled_;              // of an interpreted program
  mutable std::vector<PJRT_NamedValue> cost_;                 // empty before the first call
  mutable std::map<const disc::Device *, Placed> elsewhere_;  // on other devices
};

/// Where a program is loaded. Throws Failure where it cannot run there.
struct Placement {
  Placement(PJRT_Client &client, const Code &code);

  bool spans_processes() const { return devices.size() < device_ids.size(); }

  PJRT_Client &client;
  const std::vector<int64_t> device_ids; // by participant
  std::vector<int64_t> participants;     // those in this process
  std::vector<PJRT_Device *> devices;    // theirs
  std::vector<PJRT_LogicalDeviceIds> logical_ids;
};

void add_executable_functions(PJRT_Api &api);
void add_loaded_executable_functions(PJRT_Api &api);
void add_execute_function(PJRT_Api &api);

} // namespace disc::pjrt

struct PJRT_Executable {
  std::shared_ptr<const disc::pjrt::Code> code;
};

struct PJRT_LoadedExecutable {
  PJRT_LoadedExecutable(PJRT_Client &client, std::shared_ptr<const disc::pjrt::Code> code);

  /// Throws after deletion.
  std::shared_ptr<const disc::pjrt::Code> loaded() const;
  /// The same, with code from now on. Throws Failure.
  std::shared_ptr<const disc::pjrt::Code> compiled();
  void remove();
  bool is_deleted() const;

  const std::shared_ptr<disc::pjrt::Placement> placement;

private:
  mutable std::mutex mutex_;
  std::shared_ptr<const disc::pjrt::Code> code_; // null after deletion
};
