// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "event.h"

/// Without a signal: it has happened.
struct PJRT_Event {
  std::shared_ptr<disc::pjrt::Signal> signal;
};

namespace disc::pjrt {

void Signal::set(std::optional<Failure> failure) {
  std::vector<Waiter> waiters;
  {
    std::lock_guard lock(mutex_);
    if (is_set_)
      throw Failure(PJRT_Error_Code_FAILED_PRECONDITION, "the event has been set before");
    is_set_ = true;
    failure_ = std::move(failure);
    waiters.swap(waiters_);
  }
  changed_.notify_all();
  for (const Waiter &waiter : waiters)
    waiter.callback(make_error(), waiter.argument);
}

bool Signal::is_set() const {
  std::lock_guard lock(mutex_);
  return is_set_;
}

void Signal::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_set_; });
}

void Signal::check() const {
  wait();
  if (failure_)
    throw *failure_;
}

PJRT_Error *Signal::error() const {
  wait();
  return make_error();
}

void Signal::when_set(PJRT_Event_OnReadyCallback callback, void *argument) {
  {
    std::lock_guard lock(mutex_);
    if (!is_set_) {
      waiters_.push_back({callback, argument});
      return;
    }
  }
  callback(make_error(), argument);
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
    event.signal->when_set(args.callback, args.user_arg);
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
