// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The collectives of compiled programs. Elements are combined in the order of a group's members, so that results are
// the same in every run and on every member.
#include "core/dtype.h"
#include "kernels/library_call.h"
#include "pieces.h"
#include "reducers.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace disc {

namespace {

constexpr int64_t kSmall = 1 << 14; // elements up to which every member combines all of them

using Parts = std::span<const void *const>;

/// One collective in progress on one participant.
struct Collective {
  const Call &call;
  const CallTensor &source = call.operands[0];
  const CallTensor &target = call.results[0];
  const DTypeInfo &dtype;

  int64_t participant() const { return call.communicator->participant(); }
  std::vector<int64_t> source_dims() const { return {source.dims, source.dims + source.rank}; }
  std::vector<int64_t> target_dims() const { return {target.dims, target.dims + target.rank}; }
  char *to(int64_t element) const { return target.as<char>() + element * dtype.size; }
  const char *of(const void *part, int64_t element) const {
    return static_cast<const char *>(part) + element * dtype.size;
  }

  /// The group of this participant; null when it is in none.
  const std::vector<int64_t> *group() const {
    for (const std::vector<int64_t> &group : call.spec.groups)
      if (std::find(group.begin(), group.end(), participant()) != group.end())
        return &group;
    return nullptr;
  }

  const std::vector<int64_t> &required_group() const {
    const std::vector<int64_t> *found = group();
    if (!found)
      throw ExchangeFailure("participant " + std::to_string(participant()) + " is in none of a collective's groups");
    return *found;
  }

  int64_t position_in(const std::vector<int64_t> &group) const {
    return std::find(group.begin(), group.end(), participant()) - group.begin();
  }

  Reducer reducer() const {
    Reducer found = reducer_of(static_cast<Reduction>(call.spec.attribute("reduction")), dtype.dtype);
    if (!found)
      throw ExchangeFailure("a collective combines elements of type '" + std::string(dtype.name) + "'");
    return found;
  }

  /// `needs` in elements.
  void exchange(const std::vector<int64_t> &members, const CallTensor &mine, const Needs &needs,
                const Communicator::Reader &read) const {
    Needs bytes = [&](size_t owner, size_t reader) {
      auto [begin, end] = needs(owner, reader);
      return std::pair(begin * dtype.size, end * dtype.size);
    };
    call.communicator->exchange({place_of(call.spec, call.site), members, mine.data, mine.elements() * dtype.size, bytes}, read);
  }

  void zero() const { std::memset(target.data, 0, static_cast<size_t>(target.elements() * dtype.size)); }
  void copy(const void *part) const {
    std::memcpy(target.data, part, static_cast<size_t>(target.elements() * dtype.size));
  }
};

constexpr std::pair<int64_t, int64_t> kNothing(0, 0);

/// Every reader needs all elements of every owner.
Needs all_of(const CallTensor &tensor) {
  return [elements = tensor.elements()](size_t, size_t) { return std::pair(int64_t{0}, elements); };
}

/// Elements [begin, end) of all parts, combined.
void combine(const Collective &c, Parts parts, int64_t begin, int64_t end) {
  Reducer reducer = c.reducer();
  std::memcpy(c.to(begin), c.of(parts[0], begin), static_cast<size_t>((end - begin) * c.dtype.size));
  for (const void *part : parts.subspan(1))
    reducer(c.to(begin), c.of(part, begin), end - begin);
}

/// Of many elements each member combines a share, which the others then copy.
void all_reduce(const Collective &c) {
  const std::vector<int64_t> &group = c.required_group();
  int64_t total = c.target.elements(), count = static_cast<int64_t>(group.size()), mine = c.position_in(group);
  if (total <= kSmall) {
    c.exchange(group, c.source, all_of(c.source), [&](Parts parts) { combine(c, parts, 0, total); });
    return;
  }
  auto begin = [&](int64_t position) { return total / count * position + std::min(total % count, position); };
  auto share = [&](size_t position) {
    return std::pair(begin(static_cast<int64_t>(position)), begin(static_cast<int64_t>(position) + 1));
  };
  c.exchange(
      group, c.source, [&](size_t, size_t reader) { return share(reader); },
      [&](Parts parts) { combine(c, parts, begin(mine), begin(mine + 1)); });
  auto shares = [&](size_t owner, size_t) { return share(owner); };
  c.exchange(group, c.target, shares, [&](Parts parts) {
    for (int64_t i = 0; i < count; ++i)
      if (i != mine)
        std::memcpy(c.to(begin(i)), c.of(parts[static_cast<size_t>(i)], begin(i)),
                    static_cast<size_t>((begin(i + 1) - begin(i)) * c.dtype.size));
  });
}

/// Refuses arrays that a group of this size does not cut into the pieces that the program states.
void check_pieces(const Piece &source, const Piece &target) {
  auto divides = [](const Piece &piece) {
    return piece.dims.empty() || piece.dims[static_cast<size_t>(piece.axis)] % piece.count == 0;
  };
  if (!divides(source) || !divides(target) || source.sizes() != target.sizes())
    throw ExchangeFailure("the sizes of a collective's arrays do not go with the size of its groups");
}

/// Puts a piece of each member's array into a piece of the result, or combines it with what is there.
void gather_pieces(const Collective &c, const std::vector<int64_t> &group, Piece from, Piece into, Reducer reducer) {
  check_pieces(from, into);
  auto needs = [&](size_t, size_t reader) {
    Piece piece = from;
    piece.index = from.count == 1 ? 0 : static_cast<int64_t>(reader);
    return piece.extent();
  };
  c.exchange(group, c.source, needs, [&](Parts parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      into.index = into.count == 1 ? 0 : static_cast<int64_t>(i);
      for_each_run(from, into, [&](int64_t source, int64_t target, int64_t elements) {
        if (i > 0 && reducer)
          reducer(c.to(target), c.of(parts[i], source), elements);
        else
          std::memcpy(c.to(target), c.of(parts[i], source), static_cast<size_t>(elements * c.dtype.size));
      });
    }
  });
}

void all_gather(const Collective &c) {
  const std::vector<int64_t> &group = c.required_group();
  int64_t axis = c.call.spec.attribute("axis"), count = static_cast<int64_t>(group.size());
  gather_pieces(c, group, {c.source_dims(), axis, 1, 0}, {c.target_dims(), axis, count, 0}, nullptr);
}

void reduce_scatter(const Collective &c) {
  const std::vector<int64_t> &group = c.required_group();
  int64_t axis = c.call.spec.attribute("axis"), count = static_cast<int64_t>(group.size());
  gather_pieces(c, group, {c.source_dims(), axis, count, c.position_in(group)}, {c.target_dims(), axis, 1, 0},
                c.reducer());
}

void all_to_all(const Collective &c) {
  const std::vector<int64_t> &group = c.required_group();
  int64_t count = static_cast<int64_t>(group.size());
  gather_pieces(c, group, {c.source_dims(), c.call.spec.attribute("split"), count, c.position_in(group)},
                {c.target_dims(), c.call.spec.attribute("axis"), count, 0}, nullptr);
}

/// The groups are pairs of a source and a target. Whoever is no target gets zeros.
void permute(const Collective &c) {
  std::vector<int64_t> members;
  int64_t source = -1;
  for (const std::vector<int64_t> &pair : c.call.spec.groups) {
    members.insert(members.end(), pair.begin(), pair.end());
    if (pair.back() == c.participant())
      source = pair.front();
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  if (source < 0)
    c.zero();
  if (!std::binary_search(members.begin(), members.end(), c.participant()))
    return;
  auto needs = [&](size_t owner, size_t reader) {
    bool sends = std::ranges::any_of(c.call.spec.groups, [&](const std::vector<int64_t> &pair) {
      return pair.front() == members[owner] && pair.back() == members[reader];
    });
    return sends ? std::pair(int64_t{0}, c.source.elements()) : kNothing;
  };
  c.exchange(members, c.source, needs, [&](Parts parts) {
    if (source >= 0)
      c.copy(parts[static_cast<size_t>(std::lower_bound(members.begin(), members.end(), source) - members.begin())]);
  });
}

/// The first member's elements. Whoever is in no group gets zeros.
void broadcast(const Collective &c) {
  auto needs = [&](size_t owner, size_t) { return owner == 0 ? std::pair(int64_t{0}, c.source.elements()) : kNothing; };
  if (const std::vector<int64_t> *group = c.group())
    c.exchange(*group, c.source, needs, [&](Parts parts) { c.copy(parts[0]); });
  else
    c.zero();
}

/// A collective that cannot take place fails the run; its result is zeros until that is over.
template <void (*Function)(const Collective &)> void collective(const Call &call) {
  const DTypeInfo *dtype = dtype_named(call.spec.results[0].dtype);
  if (!dtype) {
    report_failure("a collective has elements of the unknown type '" + call.spec.results[0].dtype + "'");
    return;
  }
  Collective here{.call = call, .dtype = *dtype};
  try {
    if (has_failed())
      throw ExchangeFailure("nothing is exchanged after a failure");
    if (!call.communicator)
      throw ExchangeFailure("the program is for several devices and was called for one");
    Function(here);
  } catch (const ExchangeFailure &failure) {
    here.zero();
    report_failure(failure.what());
  }
}

/// () -> (a coordinate of this participant's number). Attributes: divisor, modulus.
void participant(const Call &call) {
  int64_t number = call.communicator ? call.communicator->participant() : 0;
  *call.results[0].as<uint32_t>() =
      static_cast<uint32_t>(number / call.spec.attribute("divisor", 1) % call.spec.attribute("modulus", 1));
}

} // namespace

const Builtin *collective_builtin(std::string_view target) {
  static const std::unordered_map<std::string_view, Builtin> functions = {
      {"collective_all_gather", {collective<all_gather>, 1, 1}},
      {"collective_all_reduce", {collective<all_reduce>, 1, 1}},
      {"collective_all_to_all", {collective<all_to_all>, 1, 1}},
      {"collective_broadcast", {collective<broadcast>, 1, 1}},
      {"collective_participant", {participant, 0, 1}},
      {"collective_permute", {collective<permute>, 1, 1}},
      {"collective_reduce_scatter", {collective<reduce_scatter>, 1, 1}},
  };
  auto found = functions.find(target);
  return found == functions.end() ? nullptr : &found->second;
}

} // namespace disc
