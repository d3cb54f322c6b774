// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trace.h"

#include <atomic>
#include <sys/syscall.h>
#include <unistd.h>

namespace disc {

namespace {

std::atomic<bool> is_recording{false}; // whether it is worth to ask for the recording
std::mutex current_mutex;
std::shared_ptr<Recording> current;

} // namespace

void Recording::add(std::string name, std::chrono::system_clock::time_point start, std::chrono::nanoseconds taken) {
  std::chrono::nanoseconds since_epoch = start.time_since_epoch();
  Span span{std::move(name), syscall(SYS_gettid), since_epoch.count(), taken.count()};
  std::lock_guard lock(mutex_);
  spans_.push_back(std::move(span));
}

std::vector<Span> Recording::spans() const {
  std::lock_guard lock(mutex_);
  return spans_;
}

std::shared_ptr<Recording> current_recording() {
  if (!is_recording.load(std::memory_order_relaxed))
    return nullptr;
  std::lock_guard lock(current_mutex);
  return current;
}

void set_current_recording(std::shared_ptr<Recording> recording) {
  std::lock_guard lock(current_mutex);
  current = std::move(recording);
  is_recording = current != nullptr;
}

void StepRecorder::note(const CommandRun &run) {
  const Program &program = executable_.program();
  std::string name = run.kernel            ? executable_.function_at(reinterpret_cast<const void *>(run.kernel))
                     : run.gpu_kernel >= 0 ? program.kernels[static_cast<size_t>(run.gpu_kernel)].name
                     : run.call >= 0       ? program.calls[static_cast<size_t>(run.call)].target
                                           : run.kind;
  recording_->add(std::move(name), run.start, run.taken);
}

} // namespace disc
