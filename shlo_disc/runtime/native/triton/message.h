// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages of the server, which are JSON.
#pragma once

#include "artifact/json.h"
#include "triton/server_api.h"

#include <memory>
#include <string>

namespace disc::triton {

struct DeleteMessage {
  void operator()(TRITONSERVER_Message *message) const;
};
using MessagePointer = std::unique_ptr<TRITONSERVER_Message, DeleteMessage>;

/// What a message says. Throws Failure.
Json json_of(TRITONSERVER_Message *message);

/// A message that says `text`. Throws Failure.
MessagePointer message_of(const std::string &text);

/// The text of an object's member; "" where there is no object, no such member, or one that is no text.
std::string text_of(const Json *object, const char *name);

} // namespace disc::triton
