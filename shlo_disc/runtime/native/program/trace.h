// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What runs when, for profilers.
#pragma once

#include "executable.h"
#include "core/command_clock.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace disc {

/// Something that a thread did. Times are nanoseconds, of the system's clock.
struct Span {
  std::string name;
  int64_t thread = 0;
  int64_t start = 0;
  int64_t nanoseconds = 0;
};

/// The spans of some time. Thread-safe.
class Recording {
public:
  void add(std::string name, std::chrono::system_clock::time_point start, std::chrono::nanoseconds taken);
  std::vector<Span> spans() const;

private:
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
};

/// What everybody records to; null most of the time.
std::shared_ptr<Recording> current_recording();
void set_current_recording(std::shared_ptr<Recording> recording);

/// Records how long it lives.
class SpanRecorder {
public:
  SpanRecorder(std::shared_ptr<Recording> recording, std::string name)
      : recording_(std::move(recording)), name_(std::move(name)), start_(std::chrono::system_clock::now()) {}
  ~SpanRecorder() {
    if (recording_)
      recording_->add(std::move(name_), start_, std::chrono::system_clock::now() - start_);
  }
  SpanRecorder(const SpanRecorder &) = delete;
  SpanRecorder &operator=(const SpanRecorder &) = delete;

private:
  std::shared_ptr<Recording> recording_; // null: nothing is recorded
  std::string name_;
  std::chrono::system_clock::time_point start_;
};

/// The runtime of a call whose commands are recorded.
class StepRecorder final : public ObservedRuntime {
public:
  StepRecorder(const Executable &executable, const DiscRuntime &runtime, std::shared_ptr<Recording> recording)
      : ObservedRuntime(runtime), executable_(executable), recording_(std::move(recording)) {}

private:
  void note(const CommandRun &run) override;

  const Executable &executable_;
  std::shared_ptr<Recording> recording_;
};

} // namespace disc
