// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "triton/message.h"

#include "triton/errors.h"

namespace disc::triton {

void DeleteMessage::operator()(TRITONSERVER_Message *message) const {
  log_failure(TRITONSERVER_MessageDelete(message));
}

Json json_of(TRITONSERVER_Message *message) {
  const char *text = nullptr;
  size_t size = 0;
  check(TRITONSERVER_MessageSerializeToJson(message, &text, &size));
  return Json::parse({text, size});
}

MessagePointer message_of(const std::string &text) {
  TRITONSERVER_Message *message = nullptr;
  check(TRITONSERVER_MessageNewFromSerializedJson(&message, text.data(), text.size()));
  return MessagePointer(message);
}

std::string text_of(const Json *object, const char *name) {
  const Json *member = object != nullptr ? object->member(name) : nullptr;
  const auto *text = member != nullptr ? member->get<std::string>() : nullptr;
  return text != nullptr ? *text : "";
}

} // namespace disc::triton
