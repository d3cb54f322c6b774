// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory of arrays, and whether anybody else can write it.
#pragma once

#include "core/memory.h"

#include <atomic>
#include <memory>

namespace disc::pjrt {

/// A share of elements without gaps: a block of the runtime's, or memory of somebody else. They never change by what a
/// framework does. Whoever has their address from outside of it, such as another library that a view was given to, may
/// write them nevertheless.
class Storage {
public:
  Storage() = default;

  /// A block that nobody else knows.
  explicit Storage(std::shared_ptr<Block> block) : Storage(of(block->address(), block)) {}

  /// Memory of somebody else; `release` is called with its address when the last share is gone.
  template <typename Release> Storage(void *address, Release release)
      : Storage(of(address, std::shared_ptr<void>(address, std::move(release)))) {
    place_->is_foreign = true;
    add_viewer();
  }

  /// Elements whose memory is not there yet. It comes with `fill`, before anybody asks for the address.
  static Storage pending() { return Storage(of(nullptr, nullptr)); }
  void fill(std::shared_ptr<Block> block) const {
    place_->address = block->address();
    place_->owner = std::move(block);
  }

  /// Whether this is memory of somebody else, who may write it.
  bool is_foreign() const { return place_->is_foreign; }

  void *get() const { return place_ ? place_->address : nullptr; }
  void swap(Storage &other) { place_.swap(other.place_); }

  /// Somebody outside has the address, until `drop_viewer`.
  void add_viewer() const {
    ++place_->viewers;
    ++place_->exposures;
  }
  void drop_viewer() const { --place_->viewers; }

  /// Whether somebody outside has the address.
  bool has_viewers() const { return place_->viewers != 0; }

  /// How often somebody outside has come to have it. While this stays the same and there are no viewers, the elements
  /// have not changed.
  int64_t exposures() const { return place_->exposures; }

private:
  struct Place {
    void *address;
    std::shared_ptr<void> owner;
    bool is_foreign = false;
    std::atomic<int64_t> viewers{0}, exposures{0};
    Place(void *address, std::shared_ptr<void> owner) : address(address), owner(std::move(owner)) {}
  };

  static std::shared_ptr<Place> of(void *address, std::shared_ptr<void> owner) {
    return std::make_shared<Place>(address, std::move(owner));
  }
  explicit Storage(std::shared_ptr<Place> place) : place_(std::move(place)) {}

  std::shared_ptr<Place> place_;
};

} // namespace disc::pjrt
