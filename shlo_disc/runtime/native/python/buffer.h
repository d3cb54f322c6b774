// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A result on the device (PJRT's Buffer): memory, type and shape, with every way out of it.
#pragma once

#include "core/device.h"
#include "core/dtype.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

namespace disc {

namespace nb = nanobind;

class Buffer {
public:
  /// `memory`: the Python face's object for where it lies. `device`: whose memory it is, where that is not the host's.
  /// `ready`: from when on the elements are there, null for from now on.
  Buffer(std::shared_ptr<Block> block, DType dtype, std::vector<int64_t> shape, nb::object memory,
         std::shared_ptr<Device> device, std::shared_ptr<const Event> ready = nullptr)
      : block_(std::move(block)), dtype_(dtype), shape_(std::move(shape)), memory_(std::move(memory)),
        device_(device->is_host() ? nullptr : std::move(device)), ready_(std::move(ready)) {}

  DType dtype() const { return dtype_; }
  const std::vector<int64_t> &shape() const { return shape_; }
  const nb::object &memory() const { return memory_; }
  bool is_deleted() const { return block_ == nullptr; }

  /// Gives the memory up, or forgets it until the Buffer ends, where it was lent and nobody but the Buffer owns it.
  void remove() { block_.reset(); }

  /// Notes that others know the address, and read it as long as the Buffer lives.
  void lend();

  /// Whose memory it is; null: the host's.
  const std::shared_ptr<Device> &device() const { return device_; }

  /// The same elements, said to lie in another memory.
  Buffer in_memory(nb::object memory) const;

  /// Waits for the elements. Throws Error(state) after delete(), Error(device) when the work before them has failed.
  void wait() const;
  bool is_ready() const;

  /// The elements in the host's memory, where they may be already.
  std::shared_ptr<Block> host_block() const;

  /// The memory; throws Error(state) after delete().
  const std::shared_ptr<Block> &block() const;
  int64_t byte_size() const;

  /// A DLPack capsule that shares the memory and keeps it alive; versioned when the consumer asked for version 1.
  /// `stream`: of a GPU, the one in which it will be read, None or an int as the array API standard has it.
  nb::object dlpack(bool versioned, nb::handle stream) const;

private:
  void wait_for_consumer(nb::handle stream) const;

  std::shared_ptr<Block> block_;
  std::shared_ptr<Block> lent_; // the same, once others know its address
  DType dtype_;
  std::vector<int64_t> shape_;
  nb::object memory_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<const Event> ready_;
};

/// A new NumPy array over `block`, which it keeps alive.
nb::object numpy_array(std::shared_ptr<Block> block, DType dtype, const int64_t *shape, size_t rank);

/// A copy of a C-contiguous NumPy array. Throws Error(type) for element types that programs do not have.
Buffer make_buffer(const std::shared_ptr<Device> &device, nb::handle array, nb::object memory);

/// What a Buffer is by the CUDA array interface. Throws nb::attribute_error for one on the host, and for elements that the
/// interface does not name.
nb::dict array_interface(Buffer &buffer);

nb::tuple shape_tuple(const int64_t *shape, size_t rank);

/// Adds the class to the module.
void bind_buffer(nb::module_ &module);

} // namespace disc
