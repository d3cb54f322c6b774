// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running the participants of one run, each on a thread of its own.
#pragma once

#include "communicator.h"

#include <functional>

namespace disc {

/// What one participant does; its number is the communicator's.
using ParticipantBody = std::function<void(Communicator &communicator)>;

/// Runs `count` participants at once and returns when all have ended. The first failure ends the others' waiting, and is
/// thrown. The caller's thread is a participant, unless `caller_waits`.
void run_participants(int64_t count, bool caller_waits, const ParticipantBody &body);

} // namespace disc
