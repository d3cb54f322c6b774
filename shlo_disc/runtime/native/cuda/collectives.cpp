// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collectives.h"

#include "core/abi.h"
#include "core/dtype.h"
#include "gpu_run.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace disc::cuda {

namespace {

using Members = std::vector<int64_t>;

Address address_of(const void *pointer) { return reinterpret_cast<Address>(pointer); }

std::string_view kind_of(const CallSpec &spec) {
  constexpr std::string_view prefix = "collective_";
  std::string_view target = spec.target;
  return target.starts_with(prefix) ? target.substr(prefix.size()) : std::string_view();
}

bool is_permutation(const CallSpec &spec) { return kind_of(spec) == "permute"; }

/// All that send to another one by a permutation's pairs, or receive.
Members participants_of(const std::vector<Members> &pairs) {
  Members members;
  for (const Members &pair : pairs)
    if (pair.front() != pair.back())
      members.insert(members.end(), pair.begin(), pair.end());
  std::ranges::sort(members);
  members.erase(std::ranges::unique(members).begin(), members.end());
  return members;
}

/// How elements are combined: a complex number is two.
struct Combined {
  NcclType type;
  size_t numbers;
};

const Combined *combined_of(std::string_view dtype) {
  static const std::unordered_map<std::string_view, Combined> types = {
      {"i32", {NcclType::i32, 1}}, {"u32", {NcclType::u32, 1}}, {"i64", {NcclType::i64, 1}}, {"u64", {NcclType::u64, 1}},
      {"f32", {NcclType::f32, 1}}, {"f64", {NcclType::f64, 1}}, {"c64", {NcclType::f32, 2}}, {"c128", {NcclType::f64, 2}},
  };
  auto found = types.find(dtype);
  return found == types.end() ? nullptr : &found->second;
}

/// Sums of complex numbers are those of their parts. NCCL's maxima and minima of floats are not StableHLO's: they pass
/// over NaN.
bool can_combine(int64_t reduction, std::string_view dtype) {
  bool is_integer = dtype.starts_with('i') || dtype.starts_with('u');
  switch (static_cast<NcclReduction>(reduction)) {
  case NcclReduction::sum:
    return combined_of(dtype) != nullptr;
  case NcclReduction::product:
    return combined_of(dtype) && combined_of(dtype)->numbers == 1;
  case NcclReduction::maximum:
  case NcclReduction::minimum:
    return combined_of(dtype) && is_integer;
  }
  return false;
}

/// One collective on one participant.
class Collective {
public:
  Collective(const Gpu &gpu, const CallSpec &spec, int64_t site, const int64_t *words)
      : gpu_(gpu), spec_(spec), site_(site), what_(kind_of(spec)) {
    if (!spec.where.empty())
      what_ += " (" + spec.where + ")";
    auto tensor = [&](int64_t rank) {
      CallTensor found{reinterpret_cast<void *>(words[0]), rank, words + 1};
      words += 1 + rank;
      return found;
    };
    if (!spec.operands.empty())
      source_ = tensor(spec.operands[0].rank);
    target_ = tensor(spec.results[0].rank);
    size_ = static_cast<size_t>(dtype_named(spec.results[0].dtype)->size);
  }

  void run();

private:
  size_t source_bytes() const { return static_cast<size_t>(source_.elements()) * size_; }
  size_t target_bytes() const { return static_cast<size_t>(target_.elements()) * size_; }

  const GpuParticipant &me() const {
    if (const GpuParticipant *found = GpuParticipant::current())
      return *found;
    throw Error(ErrorKind::custom_call, "the program is for several devices and was called for one");
  }

  void write_participant() const {
    const GpuParticipant *here = GpuParticipant::current();
    int64_t number = here ? here->communicator().participant() : 0;
    auto found = static_cast<uint32_t>(number / spec_.attribute("divisor", 1) % spec_.attribute("modulus", 1));
    gpu_.write(address_of(target_.data), &found, sizeof found);
  }

  void zero() const {
    if (target_bytes() > 0)
      gpu_.fill(address_of(target_.data), 0, target_bytes());
  }

  void copy(size_t to, size_t from, size_t bytes) const {
    if (bytes > 0)
      gpu_.copy(address_of(target_.as<char>() + to), address_of(source_.as<char>() + from), bytes);
  }

  /// The group of this participant; none where it is in none.
  Members group() const {
    for (const Members &group : spec_.groups)
      if (std::ranges::find(group, me().communicator().participant()) != group.end())
        return group;
    return {};
  }

  size_t position_in(const Members &members) const {
    auto found = std::ranges::find(members, me().communicator().participant());
    return static_cast<size_t>(found - members.begin());
  }

  void expect(bool fits) const {
    if (!fits)
      throw Error(ErrorKind::custom_call, what_ + ": the sizes of its arrays do not go with the size of its groups");
  }

  void meet(const Members &members) const;
  template <typename Body> void enqueue(const Members &members, const Body &body) const;
  void in_group();
  void combine(const Members &members) const;
  void exchange(const Members &members) const;
  void permute() const;

  const Gpu &gpu_;
  const CallSpec &spec_;
  int64_t site_;
  std::string what_; // as errors call it
  CallTensor source_, target_;
  size_t size_ = 0; // of an element
};

/// Returns when all members have come here with as many bytes. On the GPU they would otherwise wait for ever for one
/// that has taken another way.
void Collective::meet(const Members &members) const {
  me().communicator().exchange(
      {place_of(spec_, site_), members, this, static_cast<int64_t>(source_bytes()), me().run().needs(members, 1)}, [](auto) {});
}

/// body(library, communicator, stream) gives work to the stream, and returns a status.
template <typename Body> void Collective::enqueue(const Members &members, const Body &body) const {
  try {
    meet(members);
    if (source_bytes() == 0)
      return;
    const NcclLibrary &nccl = NcclLibrary::instance();
    me().run().give(gpu_, members, me().communicator().participant(),
                    "give " + what_ + " to GPU " + std::to_string(gpu_.ordinal()),
                    [&](NcclComm comm) { return body(nccl, comm, gpu_.stream()); });
  } catch (const ExchangeFailure &failure) {
    throw Error(ErrorKind::custom_call, what_ + ": " + failure.what());
  }
  gpu_.remember(std::make_shared<const std::vector<std::string>>(1, what_));
}

void Collective::combine(const Members &members) const {
  bool scatters = kind_of(spec_) == "reduce_scatter";
  const Combined &as = *combined_of(spec_.results[0].dtype);
  auto reduction = static_cast<NcclReduction>(spec_.attribute("reduction"));
  size_t count = static_cast<size_t>(target_.elements()) * as.numbers;
  expect(source_bytes() == target_bytes() * (scatters ? members.size() : 1));
  enqueue(members, [&](const NcclLibrary &nccl, NcclComm comm, void *stream) {
    auto function = scatters ? nccl.reduce_scatter : nccl.all_reduce;
    return function(source_.data, target_.data, count, as.type, reduction, comm, stream);
  });
}

/// Every member's piece for every other one.
void Collective::exchange(const Members &members) const {
  expect(source_bytes() == target_bytes() && source_bytes() % members.size() == 0);
  size_t piece = source_bytes() / members.size(), mine = position_in(members);
  enqueue(members, [&](const NcclLibrary &nccl, NcclComm comm, void *stream) {
    return together(nccl, [&] {
      NcclStatus status = kNcclSuccess;
      for (size_t i = 0; i < members.size() && !nccl_failed(status); ++i) {
        if (i == mine)
          continue;
        auto peer = static_cast<int>(i);
        status = nccl.send(source_.as<char>() + i * piece, piece, NcclType::u8, peer, comm, stream);
        if (!nccl_failed(status))
          status = nccl.receive(target_.as<char>() + i * piece, piece, NcclType::u8, peer, comm, stream);
      }
      return status;
    });
  });
  copy(mine * piece, mine * piece, piece);
}

/// The groups are pairs of a source and a target. Whoever is no target gets zeros.
void Collective::permute() const {
  int64_t number = me().communicator().participant(), source = -1;
  Members targets;
  for (const Members &pair : spec_.groups) {
    if (pair.back() == number)
      source = pair.front();
    if (pair.front() == number)
      targets.push_back(pair.back());
  }
  expect(source_bytes() == target_bytes());
  if (source < 0)
    zero();
  if (source == number)
    copy(0, 0, target_bytes());
  Members members = participants_of(spec_.groups);
  if (members.size() < 2 || !std::ranges::binary_search(members, number))
    return;
  auto rank = [&](int64_t member) {
    return static_cast<int>(std::ranges::lower_bound(members, member) - members.begin());
  };
  enqueue(members, [&](const NcclLibrary &nccl, NcclComm comm, void *stream) {
    return together(nccl, [&] {
      NcclStatus status = kNcclSuccess;
      for (int64_t target : targets)
        if (target != number && !nccl_failed(status))
          status = nccl.send(source_.data, source_bytes(), NcclType::u8, rank(target), comm, stream);
      if (source >= 0 && source != number && !nccl_failed(status))
        status = nccl.receive(target_.data, target_bytes(), NcclType::u8, rank(source), comm, stream);
      return status;
    });
  });
}

void Collective::in_group() {
  std::string_view kind = kind_of(spec_);
  Members members = group();
  if (members.empty() && kind == "broadcast")
    return zero();
  if (members.empty())
    throw Error(ErrorKind::custom_call, "participant " + std::to_string(me().communicator().participant()) +
                                            " is in no group of " + what_);
  if (members.size() == 1) {
    expect(source_bytes() == target_bytes());
    return copy(0, 0, target_bytes());
  }
  if (kind == "all_to_all")
    return exchange(members);
  if (kind == "all_reduce" || kind == "reduce_scatter")
    return combine(members);
  bool gathers = kind == "all_gather";
  expect(target_bytes() == source_bytes() * (gathers ? members.size() : 1));
  enqueue(members, [&](const NcclLibrary &nccl, NcclComm comm, void *stream) {
    if (gathers)
      return nccl.all_gather(source_.data, target_.data, source_bytes(), NcclType::u8, comm, stream);
    return nccl.broadcast(source_.data, target_.data, source_bytes(), NcclType::u8, 0, comm, stream);
  });
}

void Collective::run() {
  if (kind_of(spec_) == "participant")
    return write_participant();
  if (is_permutation(spec_))
    return permute();
  in_group();
}

} // namespace

std::vector<Members> groups_of(const CallSpec &spec) {
  return is_permutation(spec) ? std::vector<Members>{participants_of(spec.groups)} : spec.groups;
}

void check_collective(const CallSpec &spec) {
  static constexpr std::string_view kinds[] = {"all_gather", "all_reduce", "all_to_all", "broadcast",
                                               "participant", "permute",   "reduce_scatter"};
  std::string_view kind = kind_of(spec);
  if (std::ranges::find(kinds, kind) == std::end(kinds))
    bad_artifact("programs for GPUs have no library function '" + spec.target + "'");
  size_t operands = kind == "participant" ? 0 : 1;
  if (spec.operands.size() != operands || spec.results.size() != 2 || !dtype_named(spec.results[0].dtype) ||
      (operands == 1 && spec.operands[0].dtype != spec.results[0].dtype))
    bad_artifact("header: the call of '" + spec.target + "' has wrong operands or results");
  bool divides = spec.attribute("divisor", 1) >= 1 && spec.attribute("modulus", 1) >= 1;
  if (kind == "participant" && (spec.results[0].dtype != "u32" || !divides))
    bad_artifact("header: the call of '" + spec.target + "' is for no participant");
  if (spec.attribute("axis") != 0 || spec.attribute("split") != 0)
    bad_artifact("header: the call of '" + spec.target + "' is along another axis than the first");
  if ((kind == "all_reduce" || kind == "reduce_scatter") &&
      !can_combine(spec.attribute("reduction"), spec.results[0].dtype))
    bad_artifact("header: '" + spec.target + "' does not combine elements of type '" + spec.results[0].dtype + "' so");
  for (const Members &group : spec.groups)
    if (group.empty() || (kind == "permute" && group.size() != 2))
      bad_artifact("header: the groups of '" + spec.target + "' are malformed");
}

void run_collective(const Gpu &gpu, const CallSpec &spec, int64_t site, const int64_t *words) {
  Collective(gpu, spec, site, words).run();
}

} // namespace disc::cuda
