// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fragment.h"

#include <algorithm>
#include <alloca.h>
#include <cstring>

namespace disc::interpreter {

namespace {

constexpr int64_t alignment = 64;

} // namespace

int64_t Fragment::run(Inputs arguments, Outputs into, void *memory, int64_t most_work) const {
  auto **addresses = static_cast<void **>(alloca(places.size() * sizeof(void *) + 1));
  for (size_t value = 0; value < places.size(); ++value) {
    const Place &place = places[value];
    if (place.kind == Place::memory)
      addresses[value] = static_cast<char *>(memory) + place.number;
    else
      addresses[value] = const_cast<void *>(place.kind == Place::argument ? arguments[place.number] : place.address);
  }
  Run run{addresses, most_work};
  run_all(steps, run);
  for (size_t i = 0; i < results.size(); ++i)
    if (result_bytes[i] != 0)
      std::memcpy(into[i], addresses[results[i]], static_cast<size_t>(result_bytes[i]));
  return most_work - run.work_left;
}

int64_t place_values(std::vector<Lifetime> lifetimes, std::vector<Place> &places) {
  struct Held {
    int64_t offset, bytes, end;
  };
  std::vector<Held> held; // by offset
  std::ranges::stable_sort(lifetimes, {}, &Lifetime::begin);
  int64_t total = 0;
  for (const Lifetime &life : lifetimes) {
    std::erase_if(held, [&](const Held &one) { return one.end < life.begin; });
    int64_t bytes = (std::max<int64_t>(life.bytes, 1) + alignment - 1) / alignment * alignment, offset = 0;
    auto place = held.begin();
    for (; place != held.end() && place->offset < offset + bytes; ++place)
      offset = place->offset + place->bytes;
    held.insert(place, {offset, bytes, life.end});
    places[life.value].number = offset;
    total = std::max(total, offset + bytes);
  }
  return total;
}

} // namespace disc::interpreter
