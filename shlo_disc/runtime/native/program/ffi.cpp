// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ffi.h"

#include "core/error.h"
#include "kernels/library_call.h"

#include <string>

namespace disc {

namespace ffi {

struct Error {
  std::string message;
};

struct Context {
  ThreadPool *pool;
};

namespace {

Error *error_create(ErrorCreate *arguments) { return new Error{arguments->message}; }
void error_message(ErrorMessage *arguments) { arguments->message = arguments->error->message.c_str(); }
void error_destroy(ErrorDestroy *arguments) { delete arguments->error; }

Error *unsupported(Head *) { return new Error{"this part of XLA's FFI is not supported"}; }

/// A task may run in the caller.
Error *schedule(Schedule *arguments) {
  arguments->task(arguments->data);
  return nullptr;
}

Error *thread_count(ThreadCount *arguments) {
  *arguments->count = arguments->context->pool->size();
  return nullptr;
}

Error *run_id(RunId *arguments) {
  arguments->id = 0;
  return nullptr;
}

Error *device_ordinal(DeviceOrdinal *arguments) {
  arguments->ordinal = 0;
  return nullptr;
}

const Api kApi{sizeof(Api),   nullptr,     {sizeof(Version), nullptr, kMajorVersion, kMinorVersion},
               nullptr,       error_create, error_message,    error_destroy,
               unsupported,   unsupported, unsupported,      unsupported,
               unsupported,   unsupported, unsupported,      unsupported,
               schedule,      thread_count, unsupported,     unsupported,
               unsupported,   run_id,      device_ordinal};

} // namespace

int32_t dtype_number(const std::string &name) {
  static const std::pair<const char *, int32_t> numbers[] = {
      {"i1", 1},   {"i8", 2},    {"i16", 3},     {"i32", 4},           {"i64", 5},         {"u8", 6},
      {"u16", 7},  {"u32", 8},   {"u64", 9},     {"f16", 10},          {"f32", 11},        {"f64", 12},
      {"c64", 15}, {"bf16", 16}, {"c128", 18},   {"f8e5m2", 19},       {"f8e4m3fn", 20},   {"i4", 21},
      {"u4", 22},  {"f8e4m3b11fnuz", 23},        {"f8e5m2fnuz", 24},   {"f8e4m3fnuz", 25}, {"i2", 26},
      {"u2", 27},  {"f8e4m3", 28}, {"f8e3m4", 29}, {"f4e2m1fn", 32},   {"f8e8m0fnu", 33},
  };
  for (auto [known, number] : numbers)
    if (name == known)
      return number;
  return 0;
}

namespace {

/// A call site's attributes in the form of the interface, made once. At a fixed address.
class BoundAttributes {
public:
  explicit BoundAttributes(const std::vector<CallAttribute> &attributes) : attributes_(attributes) {
    size_t count = attributes_.size();
    names_.resize(count), values_.resize(count), types_.resize(count), name_pointers_.resize(count);
    strings_.resize(count), scalars_.resize(count), arrays_.resize(count);
    for (size_t i = 0; i < count; ++i)
      bind(i);
  }
  BoundAttributes(const BoundAttributes &) = delete;

  Attributes frame() {
    return {sizeof(Attributes), nullptr,           static_cast<int64_t>(types_.size()),
            types_.data(),      name_pointers_.data(), values_.data()};
  }

private:
  void bind(size_t i) {
    const CallAttribute &attribute = attributes_[i];
    names_[i] = {attribute.name.data(), attribute.name.size()};
    name_pointers_[i] = &names_[i];
    if (attribute.dtype == "string") {
      strings_[i] = {static_cast<const char *>(attribute.data()), static_cast<size_t>(attribute.count)};
      types_[i] = kString, values_[i] = &strings_[i];
    } else if (attribute.is_array) {
      arrays_[i] = {dtype_number(attribute.dtype), static_cast<size_t>(attribute.count), attribute.data()};
      types_[i] = kArray, values_[i] = &arrays_[i];
    } else {
      scalars_[i] = {dtype_number(attribute.dtype), attribute.data()};
      types_[i] = kScalar, values_[i] = &scalars_[i];
    }
  }

  std::vector<CallAttribute> attributes_;
  std::vector<Bytes> names_, strings_;
  std::vector<Bytes *> name_pointers_;
  std::vector<Scalar> scalars_;
  std::vector<Array> arrays_;
  std::vector<int32_t> types_;
  std::vector<void *> values_;
};

std::vector<Buffer> buffers_of(const CallTensor *tensors, const std::vector<CallTensorSpec> &specs, size_t count) {
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < count; ++i)
    buffers.push_back({sizeof(Buffer), nullptr, dtype_number(specs[i].dtype), tensors[i].data, tensors[i].rank,
                       tensors[i].dims});
  return buffers;
}

std::vector<void *> addresses_of(std::vector<Buffer> &buffers) {
  std::vector<void *> addresses;
  for (Buffer &buffer : buffers)
    addresses.push_back(&buffer);
  return addresses;
}

std::string take_message(Error *error) {
  std::string message = error->message;
  delete error;
  return message;
}

class HandlerCall : public LibraryFunction {
public:
  HandlerCall(Handler *handler, const CustomSpec &spec)
      : handler_(handler), attributes_(std::make_unique<BoundAttributes>(spec.attributes)) {}

  void run(const Call &call) const override {
    std::vector<Buffer> operands = buffers_of(call.operands, call.spec.operands, call.spec.operands.size());
    std::vector<Buffer> results = buffers_of(call.results, call.spec.results, call.spec.results.size() - 1);
    std::vector<void *> operand_values = addresses_of(operands), result_values = addresses_of(results);
    std::vector<int32_t> types(std::max(operands.size(), results.size()), kBuffer);
    auto arguments = [&](std::vector<void *> &values) {
      return Arguments{sizeof(Arguments), nullptr, static_cast<int64_t>(values.size()), types.data(), values.data()};
    };
    Context context{&call.pool};
    CallFrame frame{kCallFrameSize,            nullptr,  &kApi, &context, kExecute, arguments(operand_values),
                    arguments(result_values), attributes_->frame(), nullptr};
    if (Error *error = handler_(&frame))
      report_failure("the custom call '" + call.spec.target + "' failed: " + take_message(error));
    else if (frame.future)
      report_failure("the custom call '" + call.spec.target + "' answered with a future, which is not supported");
  }

private:
  Handler *handler_;
  std::unique_ptr<BoundAttributes> attributes_;
};

/// Asks a handler for the version it was compiled for.
void check_version(const std::string &target, Handler *handler) {
  Metadata metadata{kMetadataSize, {sizeof(Version), nullptr, -1, -1}, 0, 0};
  MetadataExtension extension{{sizeof(MetadataExtension), kMetadata, nullptr}, &metadata};
  CallFrame frame{};
  frame.struct_size = kCallFrameSize;
  frame.extensions = &extension.base;
  frame.api = &kApi;
  frame.stage = kExecute;
  if (Error *error = handler(&frame))
    bad_artifact("the custom call '" + target + "' is no FFI handler: " + take_message(error));
  if (metadata.version.major != kMajorVersion)
    bad_artifact("the custom call '" + target + "' was compiled for version " +
                 std::to_string(metadata.version.major) + " of XLA's FFI; this release has version " +
                 std::to_string(kMajorVersion));
}

} // namespace

} // namespace ffi

std::shared_ptr<const LibraryFunction> bind_ffi_handler(const CallSpec &spec, void *handler) {
  auto *function = reinterpret_cast<ffi::Handler *>(handler);
  ffi::check_version(spec.target, function);
  return std::make_shared<ffi::HandlerCall>(function, *spec.custom);
}

} // namespace disc
