// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jax_call.h"

#include "core/error.h"
#include "program/argument_checks.h"
#include "program/ffi.h"
#include "python_executable.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace disc {

namespace {

constexpr std::string_view kNumber = "program"; // the attribute by which a call says which program it is
constexpr uintptr_t kResultAlignment = 64;

/// The codes of errors in XLA's FFI.
enum ErrorCode : int32_t { kInvalidArgument = 3, kNotFound = 5, kResourceExhausted = 8, kInternal = 13 };

/// The programs that JAX's programs may call, by number. Each is here as long as Python holds its CallableFromJax.
struct Table {
  std::mutex mutex;
  std::unordered_map<int64_t, std::weak_ptr<Executable>> programs;

  std::shared_ptr<Executable> find(int64_t number) {
    std::lock_guard lock(mutex);
    auto found = programs.find(number);
    return found == programs.end() ? nullptr : found->second.lock();
  }
};

Table &table() {
  static auto *instance = new Table;
  return *instance;
}

class CallableFromJax {
public:
  CallableFromJax(const PythonExecutable &executable, int64_t number) : core_(executable.core()), number_(number) {
    if (!core_->device()->is_host() || core_->program().segments.size() > 1)
      throw Error(ErrorKind::state, "JAX calls programs for the CPU whose results have sizes that follow from arguments'");
    std::lock_guard lock(table().mutex);
    table().programs[number] = core_;
  }
  ~CallableFromJax() {
    std::lock_guard lock(table().mutex);
    table().programs.erase(number_);
  }
  CallableFromJax(const CallableFromJax &) = delete;

private:
  std::shared_ptr<Executable> core_;
  int64_t number_;
};

std::optional<int64_t> number_of(const ffi::Attributes &attributes) {
  for (int64_t i = 0; i < attributes.size; ++i) {
    std::string_view name(attributes.names[i]->data, attributes.names[i]->size);
    if (name == kNumber && attributes.types[i] == ffi::kScalar)
      return *static_cast<const int64_t *>(static_cast<const ffi::Scalar *>(attributes.values[i])->value);
  }
  return std::nullopt;
}

const ffi::Buffer &buffer(const ffi::Arguments &arguments, size_t index) {
  return *static_cast<const ffi::Buffer *>(arguments.values[index]);
}

void check_count(const char *what, int64_t given, size_t expected) {
  if (given != static_cast<int64_t>(expected))
    throw Error(ErrorKind::type, "the call has " + std::to_string(given) + " " + what + ", and the program " +
                                     std::to_string(expected));
}

void check_dtype(const ArraySpec &spec, const ffi::Buffer &given) {
  if (given.dtype != ffi::dtype_number(std::string(info(spec.dtype).name)))
    fail_dtype(spec, "XLA's type number " + std::to_string(given.dtype));
}

/// The addresses of a call's arguments and results, for its program to run on. What the program cannot use where it lies
/// is copied.
class Call {
public:
  Call(const Executable &executable, const ffi::CallFrame &frame) : executable_(executable), frame_(frame) {
    check_count("arguments", frame.operands.size, program().arguments.size());
    check_count("results", frame.results.size, program().results.size());
    buffers_.reserve(executable.buffer_count());
    for (size_t i = 0; i < program().arguments.size(); ++i)
      add_argument(program().arguments[i], buffer(frame.operands, i));
  }

  void run() {
    std::shared_ptr<const Plan> plan = executable_.plan(dims_);
    const SegmentSpec &segment = program().segments.front();
    const int64_t *sizes = plan->words.data() + segment.result_word;
    buffers_.resize(buffers_.size() + program().results.size());
    for (size_t i = 0; i < segment.results.size(); ++i) {
      add_result(segment.results[i], plan->result_bytes[i], sizes);
      sizes += program().results[segment.results[i]].shape.size();
    }
    executable_.run_into(*plan, buffers_, executable_.constant_forms(), executable_.runtime());
    for (const auto &[block, target] : aside_)
      std::memcpy(target, block->address(), static_cast<size_t>(block->bytes()));
  }

private:
  const Program &program() const { return executable_.program(); }

  void add_argument(const ArraySpec &spec, const ffi::Buffer &given) {
    check_dtype(spec, given);
    auto rank = static_cast<size_t>(given.rank);
    check_shape(spec, given.dims, rank);
    dims_.insert(dims_.end(), given.dims, given.dims + rank);
    ArrayView view;
    view.data = static_cast<const char *>(given.data);
    view.dtype = spec.dtype;
    if (!view.usable_in_place()) {
      int64_t bytes = byte_count(given.dims, rank, info(spec.dtype).size);
      copies_.push_back(std::make_unique<Block>(executable_.allocator(), bytes, BlockKind::argument));
      std::memcpy(copies_.back()->address(), given.data, static_cast<size_t>(bytes));
      view.data = static_cast<const char *>(copies_.back()->address());
    }
    buffers_.push_back(const_cast<char *>(view.data));
  }

  void add_result(size_t index, int64_t bytes, const int64_t *sizes) {
    const ArraySpec &spec = program().results[index];
    const ffi::Buffer &given = buffer(frame_.results, index);
    check_dtype(spec, given);
    if (static_cast<size_t>(given.rank) != spec.shape.size() ||
        !std::equal(given.dims, given.dims + given.rank, sizes))
      throw Error(ErrorKind::shape, "the call has other sizes for " + spec.path + " than the program's");
    void *address = given.data;
    if (bytes > 0 && reinterpret_cast<uintptr_t>(address) % kResultAlignment != 0) {
      aside_.emplace_back(std::make_unique<Block>(executable_.allocator(), bytes, BlockKind::result), address);
      address = aside_.back().first->address();
    }
    buffers_[program().arguments.size() + index] = address;
  }

  const Executable &executable_;
  const ffi::CallFrame &frame_;
  std::vector<int64_t> dims_;
  std::vector<void *> buffers_;
  std::vector<std::unique_ptr<Block>> copies_;
  std::vector<std::pair<std::unique_ptr<Block>, void *>> aside_; // results, and where they belong
};

ffi::Error *error(const ffi::CallFrame &frame, ErrorCode code, const std::string &text) {
  ffi::ErrorCreate arguments{{sizeof(ffi::ErrorCreate), nullptr}, text.c_str(), code};
  return frame.api->error_create(&arguments);
}

/// Says which version of the interface this is compiled for.
void describe(ffi::Extension *extension) {
  auto *metadata = reinterpret_cast<ffi::MetadataExtension *>(extension)->metadata;
  metadata->version = {sizeof(ffi::Version), nullptr, ffi::kMajorVersion, ffi::kMinorVersion};
}

/// Nothing is thrown through XLA's code.
ffi::Error *handle(ffi::CallFrame *frame) noexcept {
  if (frame->extensions != nullptr && frame->extensions->type == ffi::kMetadata) {
    describe(frame->extensions);
    return nullptr;
  }
  try {
    std::optional<int64_t> number = number_of(frame->attributes);
    std::shared_ptr<Executable> executable = number ? table().find(*number) : nullptr;
    if (!executable)
      return error(*frame, kNotFound, "the program that is called is gone, or belongs to another process: trace the "
                                      "function again here");
    Call(*executable, *frame).run();
    return nullptr;
  } catch (const AllocationFailure &failure) {
    return error(*frame, kResourceExhausted, std::string("shlo_disc.AllocationError: ") + failure.what());
  } catch (const Error &failure) {
    const char *name = class_name(failure.kind);
    return error(*frame, name ? kInvalidArgument : kInternal,
                 std::string("shlo_disc.") + (name ? name : "RuntimeError") + ": " + failure.what());
  } catch (const std::exception &failure) { // std::bad_alloc, of tables
    return error(*frame, kResourceExhausted, std::string("shlo_disc: ") + failure.what());
  }
}

} // namespace

void bind_jax_call(nb::module_ &module) {
  nb::class_<CallableFromJax>(module, "CallableFromJax", "A program that JAX's programs may call by its number.")
      .def(nb::init<const PythonExecutable &, int64_t>(), nb::arg("executable"), nb::arg("number"));
  module.def(
      "jax_call_handler", [] { return reinterpret_cast<uintptr_t>(&handle); },
      "The address of the handler of XLA's FFI that calls programs.");
}

} // namespace disc
