// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a framework's profiler asks of a plugin: the programs and kernels that have run, as an XSpace of XLA's
// (xplane.proto), which is written here by hand.
#include "program/trace.h"
#include "error.h"
#include "extensions.h"

#include <cstring>
#include <map>

struct PLUGIN_Profiler_Error {
  int32_t code;
  std::string message;
};

struct PLUGIN_Profiler {
  std::shared_ptr<disc::Recording> recording = std::make_shared<disc::Recording>();
  std::string collected;
};

namespace disc::pjrt {

namespace {

constexpr char kPlaneName[] = "/device:CUSTOM:shlo_disc";
constexpr int64_t kPicoseconds = 1000; // in a nanosecond

/// A message of protocol buffers that grows field by field.
class Message {
public:
  Message &number(uint64_t field, int64_t value) {
    varint(field << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message &bytes(uint64_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    contents_ += value;
    return *this;
  }
  const std::string &contents() const { return contents_; }

private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      contents_ += static_cast<char>(value | 0x80);
    contents_ += static_cast<char>(value);
  }

  std::string contents_;
};

/// One plane, with a line for each thread.
std::string space_of(const std::vector<Span> &spans) {
  std::map<std::string_view, int64_t> names;
  std::map<int64_t, std::vector<const Span *>> threads;
  for (const Span &span : spans) {
    names.emplace(span.name, static_cast<int64_t>(names.size()) + 1);
    threads[span.thread].push_back(&span);
  }
  Message plane;
  plane.number(1, 1).bytes(2, kPlaneName);
  for (const auto &[thread, of_thread] : threads) {
    int64_t first = of_thread.front()->start;
    for (const Span *span : of_thread)
      first = std::min(first, span->start);
    Message line;
    line.number(1, thread).bytes(2, "shlo_disc/" + std::to_string(thread)).number(3, first);
    for (const Span *span : of_thread)
      line.bytes(4, Message()
                        .number(1, names[span->name])
                        .number(2, (span->start - first) * kPicoseconds)
                        .number(3, span->nanoseconds * kPicoseconds)
                        .contents());
    plane.bytes(3, line.contents());
  }
  for (const auto &[name, id] : names) {
    std::string metadata = Message().number(1, id).bytes(2, name).contents();
    plane.bytes(4, Message().number(1, id).bytes(2, metadata).contents());
  }
  return Message().bytes(1, plane.contents()).contents();
}

void error_destroy(PLUGIN_Profiler_Error_Destroy_Args *args) {
  if (args)
    delete args->error;
}

void error_message(PLUGIN_Profiler_Error_Message_Args *args) {
  if (!args)
    return;
  args->message = args->error ? args->error->message.data() : "";
  args->message_size = args->error ? args->error->message.size() : 0;
}

PLUGIN_Profiler_Error *error_code(PLUGIN_Profiler_Error_GetCode_Args *args) {
  if (args)
    args->code = args->error ? args->error->code : PJRT_Error_Code_OK;
  return nullptr;
}

void create(PLUGIN_Profiler_Create_Args &args) { args.profiler = new PLUGIN_Profiler; }

void stop(PLUGIN_Profiler &profiler) {
  if (current_recording() == profiler.recording)
    set_current_recording(nullptr);
}

void destroy(PLUGIN_Profiler_Destroy_Args &args) {
  if (args.profiler)
    stop(*args.profiler);
  delete args.profiler;
}

void start_recording(PLUGIN_Profiler_Start_Args &args) {
  PLUGIN_Profiler &profiler = given(args.profiler, "profiler");
  profiler.recording = std::make_shared<Recording>();
  set_current_recording(profiler.recording);
}

void stop_recording(PLUGIN_Profiler_Stop_Args &args) { stop(given(args.profiler, "profiler")); }

/// Lends the data, or copies it to the caller's place for it.
void collect_data(PLUGIN_Profiler_CollectData_Args &args) {
  PLUGIN_Profiler &profiler = given(args.profiler, "profiler");
  profiler.collected = space_of(profiler.recording->spans());
  if (args.buffer && args.buffer_size_in_bytes >= profiler.collected.size())
    std::memcpy(args.buffer, profiler.collected.data(), profiler.collected.size());
  else
    args.buffer = reinterpret_cast<uint8_t *>(profiler.collected.data());
  args.buffer_size_in_bytes = profiler.collected.size();
}

/// A function of the table that reports what it throws.
template <auto Function> struct Checked;
template <typename Args, void (*Function)(Args &)> struct Checked<Function> {
  static PLUGIN_Profiler_Error *call(Args *args) noexcept {
    try {
      Function(given(args, "args"));
      return nullptr;
    } catch (const Failure &failure) {
      return new PLUGIN_Profiler_Error{static_cast<int32_t>(failure.code), failure.what()};
    } catch (const std::exception &error) {
      return new PLUGIN_Profiler_Error{PJRT_Error_Code_INTERNAL, error.what()};
    }
  }
};

} // namespace

PJRT_Extension_Base *profiler_extension(PJRT_Extension_Base *next) {
  static PLUGIN_Profiler_Api functions{sizeof(PLUGIN_Profiler_Api),
                                       nullptr,
                                       error_destroy,
                                       error_message,
                                       error_code,
                                       Checked<create>::call,
                                       Checked<destroy>::call,
                                       Checked<start_recording>::call,
                                       Checked<stop_recording>::call,
                                       Checked<collect_data>::call};
  static PJRT_Profiler_Extension extension{
      {sizeof(PJRT_Profiler_Extension), PJRT_Extension_Type_Profiler, next}, &functions, 0};
  return &extension.base;
}

} // namespace disc::pjrt
