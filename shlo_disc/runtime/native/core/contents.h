// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What some memory holds that others may write, to be compared with what it holds later.
#pragma once

#include "fingerprint.h"
#include "write_watch.h"

#include <optional>

namespace disc {

/// The bytes of some memory at one time: by a watch over its pages where there is one, by a fingerprint elsewhere. The
/// memory stays where it is. Comparing is safe from several threads.
class Contents {
public:
  enum class By { fingerprint, watch };

  /// With By::watch what holds is what a reader finds who begins after this; with By::fingerprint, who has ended before.
  Contents(ThreadPool &pool, const void *data, int64_t bytes, By by);

  /// Whether the memory holds the same. Without a watch this reads all of it.
  bool hold(ThreadPool &pool) const;

  /// Where the memory is.
  const void *data() const { return data_; }

  /// Whether comparing reads all of the memory.
  bool are_read() const { return watch_ == nullptr; }

private:
  const void *data_;
  int64_t bytes_;
  std::shared_ptr<WriteWatch> watch_;
  std::optional<Fingerprint> fingerprint_; // without a watch
};

} // namespace disc
