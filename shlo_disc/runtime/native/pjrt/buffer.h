// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arrays of a framework: memory with a type, sizes and a place.
#pragma once

#include "core/dtype.h"
#include "core/memory.h"
#include "device.h"
#include "event.h"
#include "layout.h"
#include "packed_forms.h"
#include "storage.h"

#include <memory>
#include <vector>

namespace disc::pjrt {

/// The bytes of an array; throws INVALID_ARGUMENT when a size is negative or they do not fit 64 bits.
int64_t checked_bytes(Sizes dims, DType dtype);

/// Dims from the arguments of a function.
inline Sizes sizes_of(const int64_t *dims, size_t count) {
  return given(dims, count, "dims");
}

/// The memory that a caller means by a memory, or by a device.
PJRT_Memory &chosen_memory(PJRT_Memory *memory, PJRT_Device *device);

/// Elements for another place: themselves where that has the same memory, else a copy.
Storage moved(const Storage &elements, int64_t bytes, disc::Device &from, disc::Device &to);

/// A share of a buffer's elements, or a copy, in the machine's memory. Waits for the work that makes them.
Storage on_host(const PJRT_Buffer &buffer, const Storage &elements);

/// Does `task` with the elements of a buffer once they are there; the event tells when it is done, or has failed.
PJRT_Event *event_after(const PJRT_Buffer &buffer, std::function<void(const Storage &elements)> task);

/// The end of the work that a memory's device has been given; null where work is done when it is given.
std::shared_ptr<Signal> signal_of_work(PJRT_Memory &memory);

void add_buffer_functions(PJRT_Api &api);
void add_host_buffer_functions(PJRT_Api &api);
void add_transfer_manager_functions(PJRT_Api &api);

} // namespace disc::pjrt

struct PJRT_Buffer {
  PJRT_Buffer(disc::pjrt::Storage storage, disc::DType dtype, std::vector<int64_t> dims, disc::pjrt::Layout &layout,
              PJRT_Memory *memory, std::shared_ptr<disc::pjrt::Signal> ready = nullptr,
              std::shared_ptr<disc::pjrt::Signal> done = nullptr)
      : dtype(dtype), dims(std::move(dims)), layout(layout), memory(memory), ready(std::move(ready)),
        done(std::move(done)), storage_(std::move(storage)) {}

  /// The elements, once they are there, or on a GPU once what makes them was given to it. Throws after deletion and
  /// donation, and when they will never be.
  disc::pjrt::Storage elements() const;

  /// The elements' address for somebody outside, for good.
  void *expose();

  /// A share of the elements, which may not be there yet.
  disc::pjrt::Storage share() const;

  /// The packed forms of the elements.
  std::shared_ptr<disc::pjrt::ArrayForms> forms();

  /// Releases the elements, unless an external reference still needs them.
  void remove();
  bool is_deleted() const;
  void add_external_reference();
  void drop_external_reference();

  int64_t bytes() const { return disc::pjrt::checked_bytes(dims, dtype); }

  /// The elements, once they are there, seen in the order of a layout.
  disc::pjrt::OrderedElements ordered(const disc::pjrt::Storage &elements, const disc::pjrt::Layout &order) const;

  /// Another buffer of the same elements.
  std::unique_ptr<PJRT_Buffer> shared() const;

  const disc::DType dtype;
  const std::vector<int64_t> dims;
  disc::pjrt::Layout &layout;
  PJRT_Memory *const memory;
  const std::shared_ptr<disc::pjrt::Signal> ready; // null: the elements are there, or
  const std::shared_ptr<disc::pjrt::Signal> done;  // a GPU has been given the work that makes them

private:
  void clear_forms();

  mutable std::mutex mutex_;
  disc::pjrt::Storage storage_;
  std::shared_ptr<disc::pjrt::ArrayForms> forms_; // null before somebody asks for them
  bool is_deleted_ = false;
  int64_t external_references_ = 0;
};
