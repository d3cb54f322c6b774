// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "event.h"

/// Without a signal: it has happened.
struct PJRT_Event {
  std::shared_ptr<disc::pjrt::Signal> signal;
};

namespace disc::pjrt {

namespace {

PJRT_Error *error_of(const std::optional<Failure> &failure) {
  return failure ? new PJRT_Error(failure->code, failure->what()) : nullptr;
}

} // namespace

std::optional<Failure> failure_of(const std::function<void()> &task) {
  try {
    task();
    return std::nullopt;
  } catch (...) {
    return current_failure();
  }
}

void Signal::set(std::optional<Failure> failure) {
  std::vector<Continuation> continuations;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::open)
      throw Failure(PJRT_Error_Code_FAILED_PRECONDITION, "the event has been set before");
    failure_ = std::move(failure);
    state_.store(failure_ ? State::failed : State::succeeded, std::memory_order_release);
    continuations.swap(continuations_);
  }
  changed_.notify_all();
  for (const Continuation &continuation : continuations)
    continuation(failure_);
}

/// Waits; the failure.
std::optional<Failure> Signal::wait() const {
  if (has_succeeded())
    return std::nullopt;
  if (state_.load(std::memory_order_acquire) == State::open && is_lost())
    return Failure(PJRT_Error_Code_CANCELLED, "the array was not ready when the process was forked");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_ != State::open; });
  return failure_;
}

void Signal::check() const {
  if (std::optional<Failure> failure = wait())
    throw *failure;
}

PJRT_Error *Signal::error() const { return error_of(wait()); }

void Signal::then(Continuation continuation) {
  if (!is_set()) {
    std::lock_guard lock(mutex_);
    if (state_ == State::open) {
      continuations_.push_back(std::move(continuation));
      return;
    }
  }
  continuation(wait());
}

PJRT_Event *ready_event() { return new PJRT_Event; }

PJRT_Event *event_of(std::shared_ptr<Signal> signal) { return new PJRT_Event{std::move(signal)}; }

namespace {

void event_destroy(PJRT_Event_Destroy_Args &args) { delete args.event; }

void event_is_ready(PJRT_Event_IsReady_Args &args) {
  const PJRT_Event &event = given(args.event, "event");
  args.is_ready = !event.signal || event.signal->is_set();
}

/// The failure itself is what these two return.
template <typename Args> PJRT_Error *event_failure(Args *args) {
  if (!args || !args->event)
    return new PJRT_Error(PJRT_Error_Code_INVALID_ARGUMENT, "the argument 'event' is null");
  return args->event->signal ? args->event->signal->error() : nullptr;
}

void event_on_ready(PJRT_Event_OnReady_Args &args) {
  const PJRT_Event &event = given(args.event, "event");
  given(args.callback, "callback");
  if (event.signal)
    event.signal->then([callback = args.callback, argument = args.user_arg](const std::optional<Failure> &failure) {
      callback(error_of(failure), argument);
    });
  else
    args.callback(nullptr, args.user_arg);
}

void event_create(PJRT_Event_Create_Args &args) { args.event = event_of(std::make_shared<Signal>()); }

void event_set(PJRT_Event_Set_Args &args) {
  std::shared_ptr<Signal> signal = given(args.event, "event").signal;
  if (!signal)
    throw Failure(PJRT_Error_Code_FAILED_PRECONDITION, "the event has been set before");
  if (args.error_code == PJRT_Error_Code_OK)
    return signal->set();
  signal->set(Failure(args.error_code, given_text(args.error_message, args.error_message_size, "error_message")));
}

} // namespace

void add_event_functions(PJRT_Api &api) {
  api.PJRT_Event_Destroy = entry<event_destroy>;
  api.PJRT_Event_IsReady = entry<event_is_ready>;
  api.PJRT_Event_Error = event_failure<PJRT_Event_Error_Args>;
  api.PJRT_Event_Await = event_failure<PJRT_Event_Await_Args>;
  api.PJRT_Event_OnReady = entry<event_on_ready>;
  api.PJRT_Event_Create = entry<event_create>;
  api.PJRT_Event_Set = entry<event_set>;
}

} // namespace disc::pjrt
