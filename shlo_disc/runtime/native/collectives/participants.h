// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running the participants of one run, each on a thread of its own.
#pragma once

#include "core/communicator.h"

#include <functional>

namespace disc {

/// What one participant does; its number is the communicator's.
using ParticipantBody = std::function<void(Communicator &communicator)>;

/// Runs participants at once, those of a run that are in this process, and returns when all have ended. The first
/// failure ends the others' waiting, and is thrown. The caller's thread is a participant, unless `caller_waits`.
void run_participants(Run &run, std::span<const int64_t> participants, bool caller_waits, const ParticipantBody &body);

/// The same for a run of `count` participants, all of which are in this process.
void run_participants(int64_t count, bool caller_waits, const ParticipantBody &body);

} // namespace disc
