// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "contents.h"

namespace disc {

Contents::Contents(ThreadPool &pool, const void *data, int64_t bytes, By by) : data_(data), bytes_(bytes) {
  if (by == By::watch)
    watch_ = WriteWatch::of(data_, bytes_);
  if (!watch_)
    fingerprint_.emplace(pool, data_, bytes_);
}

bool Contents::hold(ThreadPool &pool) const {
  return watch_ ? watch_->is_unwritten() : Fingerprint(pool, data_, bytes_) == *fingerprint_;
}

} // namespace disc
