// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program_table.h"

#include <algorithm>

namespace disc::pjrt {

namespace {

constexpr size_t most_samples = 8;        // of one skeleton, to generalise from
constexpr size_t most_symbolic = 8;       // programs of one skeleton
constexpr size_t eager_failures = 3;      // to generalise one skeleton, before programs are awaited that tell more
constexpr size_t most_doublings = 6;      // of the number of those programs
constexpr size_t sample_bytes = 64 << 20; // of a program that is kept to generalise from

} // namespace

/// A program that was compiled as it is, or one that a symbolic program has served: then without an executable.
struct ProgramTable::Sample {
  std::vector<int64_t> numbers;
  std::string program;
  TableExecutable compiled;

  int64_t bytes() const {
    return static_cast<int64_t>(program.size() + numbers.size() * sizeof(int64_t) + compiled.bytes);
  }
};

/// All programs of one skeleton.
struct ProgramTable::Entry {
  std::string skeleton, options;
  uint64_t key;
  const std::shared_ptr<Hotness> hotness = std::make_shared<Hotness>();
  std::mutex compiling; // held by the one who compiles
  bool is_recalled = false; // by the one who compiles: what is kept of the skeleton was looked for
  std::mutex mutex;     // of what follows
  std::vector<Sample> samples;
  std::vector<SymbolicProgram> symbolic; // the one used last in front
  size_t failures = 0;                   // to generalise
  size_t since_failure = 0;              // programs that were compiled as they are
  size_t bytes = 0;                      // under the table's mutex

  /// The more often it has failed, the more programs are awaited; but some program may show what the others did not.
  bool waits() const {
    return failures >= eager_failures && since_failure >> std::min(failures - eager_failures + 1, most_doublings) == 0;
  }
};

std::optional<std::vector<int64_t>> SymbolicProgram::sizes_of(const StaticProgram &program) const {
  if (program.numbers.size() != expected.size())
    return std::nullopt;
  std::vector<int64_t> sizes, values;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] >= program.numbers.size() || i >= least.size() || program.numbers[symbols[i]] < least[i])
      return std::nullopt;
    sizes.push_back(program.numbers[symbols[i]]);
  }
  if (!evaluate(steps, sizes, values))
    return std::nullopt;
  for (size_t i = 0; i < expected.size(); ++i)
    if (expected[i] != any && (expected[i] >= values.size() || values[expected[i]] != program.numbers[i]))
      return std::nullopt;
  for (uint32_t constant : hidden)
    if (constant >= program.constants.size())
      return std::nullopt;
  for (uint32_t symbol : given)
    if (symbol >= sizes.size())
      return std::nullopt;
  return sizes;
}

namespace {

HiddenArgument hidden_argument(const ProgramConstant &constant) {
  HiddenArgument out{std::string(constant.bytes), constant.is_splat ? std::vector<int64_t>{} : constant.sizes};
  if (constant.element_bits != 1)
    return out;
  size_t count = 1;
  for (int64_t size : out.sizes)
    count *= static_cast<size_t>(size);
  out.bytes.resize(count);
  for (size_t i = 0; i < count; ++i)
    out.bytes[i] = static_cast<char>((static_cast<uint8_t>(constant.bytes[i / 8]) >> (i % 8)) & 1);
  return out;
}

/// Without elements, and thus without bytes.
HiddenArgument given_sizes(const std::vector<uint32_t> &given, const std::vector<int64_t> &symbols) {
  HiddenArgument out;
  for (uint32_t symbol : given)
    out.sizes.push_back(symbols[symbol]);
  out.sizes.push_back(0);
  return out;
}

/// The arguments of a program that is compiled as it is, behind those of its callers.
std::vector<HiddenArgument> functions_of(const StaticProgram &program) {
  std::vector<HiddenArgument> out;
  for (const int64_t &number : program.functions)
    out.push_back({std::string(reinterpret_cast<const char *>(&number), sizeof number), {}});
  return out;
}

std::optional<Served> instance_of(const SymbolicProgram &symbolic, const StaticProgram &program, Served::How how) {
  std::optional<std::vector<int64_t>> sizes = symbolic.sizes_of(program);
  if (!sizes || (symbolic.compiled.runs_at && !symbolic.compiled.runs_at(*sizes)))
    return std::nullopt;
  Served out{symbolic.compiled.executable, how, std::move(*sizes), {}, {}};
  for (uint32_t i : symbolic.hidden)
    out.hidden.push_back(hidden_argument(program.constants[i]));
  if (!symbolic.given.empty())
    out.hidden.push_back(given_sizes(symbolic.given, out.symbols));
  return out;
}

/// Whether the same arguments have no elements in both. Symbols are at least 1: where an argument has elements in one
/// program only, no symbolic program has both as instances.
bool are_alike(const StaticProgram &program, const std::vector<int64_t> &numbers) {
  for (size_t i = program.first_size; i < program.last_size; ++i)
    if ((program.numbers[i] == 0) != (numbers[i] == 0))
      return false;
  return true;
}

} // namespace

Served ProgramTable::compile(std::string_view bytes, std::string_view options, const ProgramCompiler &compiler) {
  StaticProgram program;
  try {
    program = read_program(bytes);
  } catch (const Unreadable &reason) {
    ++counts_.unreadable;
    return {compiler.compile(bytes, options).executable, Served::compiled, {}, {}, reason.what()};
  }
  std::shared_ptr<Entry> entry = entry_of(program, options);
  if (std::optional<Served> served = serve(entry, program, bytes))
    return *served;
  if (std::optional<Served> served = interpret(entry, program, bytes, compiler))
    return *served;
  std::lock_guard<std::mutex> compiling(entry->compiling);
  if (std::optional<Served> served = serve(entry, program, bytes)) // compiled while this thread waited
    return *served;
  if (std::optional<Served> served = recall(entry, program, bytes, compiler))
    return *served;
  if (std::optional<Served> served = generalize(entry, program, bytes, compiler))
    return *served;
  TableExecutable made = compiler.compile(bytes, entry->options);
  ++counts_.compiled;
  keep_static(entry, program, bytes, made);
  return {made.executable, Served::compiled, {}, functions_of(program), {}};
}

/// The program is kept to generalise from, as one that was served by another.
std::optional<Served> ProgramTable::interpret(const std::shared_ptr<Entry> &entry, const StaticProgram &program,
                                              std::string_view bytes, const ProgramCompiler &compiler) {
  if (compiler.most_interpreted == 0)
    return std::nullopt;
  std::optional<Interpreted> found = interpreted(bytes, entry->hotness, compiler.most_interpreted);
  if (!found)
    return std::nullopt;
  ++counts_.interpreted;
  int64_t more = 0;
  {
    std::lock_guard<std::mutex> lock(entry->mutex);
    more = add_sample(entry->samples, {program.numbers, std::string(bytes), {}});
  }
  note_bytes(entry, more);
  return Served{nullptr, Served::interpreted, {}, {}, {}, std::move(found)};
}

/// Serves a program by what other processes have compiled. Symbolic programs are looked for once.
std::optional<Served> ProgramTable::recall(const std::shared_ptr<Entry> &entry, const StaticProgram &program,
                                           std::string_view bytes, const ProgramCompiler &compiler) {
  std::optional<TableExecutable> kept = compiler.kept ? compiler.kept(bytes) : std::nullopt;
  if (kept) {
    keep_static(entry, program, bytes, *kept);
    ++counts_.known;
    return Served{kept->executable, Served::known, {}, functions_of(program), {}};
  }
  if (!compiler.kept_symbolic || entry->is_recalled)
    return std::nullopt;
  entry->is_recalled = true;
  int64_t more = 0;
  for (SymbolicProgram &symbolic : compiler.kept_symbolic(program.skeleton)) {
    std::lock_guard<std::mutex> lock(entry->mutex);
    more += add_symbolic(entry->symbolic, std::move(symbolic));
  }
  note_bytes(entry, more);
  return serve(entry, program, bytes);
}

std::shared_ptr<ProgramTable::Entry> ProgramTable::entry_of(const StaticProgram &program, std::string_view options) {
  uint64_t key = fingerprint(program.skeleton).low;
  std::lock_guard<std::mutex> lock(mutex_);
  auto [first, last] = entries_.equal_range(key);
  for (auto found = first; found != last; ++found) {
    auto place = found->second;
    if ((*place)->skeleton == program.skeleton && (*place)->options == options) {
      order_.splice(order_.begin(), order_, place);
      return *place;
    }
  }
  auto entry = std::make_shared<Entry>();
  entry->skeleton = program.skeleton;
  entry->options = options;
  entry->key = key;
  entry->bytes = program.skeleton.size();
  bytes_ += entry->bytes;
  order_.push_front(entry);
  entries_.emplace(key, order_.begin());
  return entry;
}

/// Accounts for what an entry has come to hold, and forgets others where that is too much.
void ProgramTable::note_bytes(const std::shared_ptr<Entry> &entry, int64_t more) {
  std::list<std::shared_ptr<Entry>> forgotten; // destroyed without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  bool is_kept = std::find(order_.begin(), order_.end(), entry) != order_.end();
  if (!is_kept)
    return;
  entry->bytes += static_cast<size_t>(more);
  bytes_ += static_cast<size_t>(more);
  while (bytes_ > limit_ && !order_.empty()) {
    auto place = std::prev(order_.end());
    auto [first, last] = entries_.equal_range((*place)->key);
    entries_.erase(std::find_if(first, last, [&](const auto &known) { return known.second == place; }));
    bytes_ -= (*place)->bytes;
    forgotten.splice(forgotten.end(), order_, place);
  }
}

std::optional<Served> ProgramTable::serve(const std::shared_ptr<Entry> &entry, const StaticProgram &program,
                                          std::string_view bytes) {
  std::optional<Served> served;
  int64_t more = 0;
  {
    std::lock_guard<std::mutex> lock(entry->mutex);
    for (const Sample &sample : entry->samples)
      if (sample.compiled.executable && sample.numbers == program.numbers) {
        ++counts_.known;
        return Served{sample.compiled.executable, Served::known, {}, functions_of(program), {}};
      }
    std::vector<SymbolicProgram> &all = entry->symbolic;
    for (auto symbolic = all.begin(); symbolic != all.end() && !served; ++symbolic)
      if ((served = instance_of(*symbolic, program, Served::instance)))
        std::rotate(all.begin(), symbolic, symbolic + 1);
    if (!served)
      return std::nullopt;
    bool is_kept = std::any_of(entry->samples.begin(), entry->samples.end(),
                               [&](const Sample &one) { return one.numbers == program.numbers; });
    if (!is_kept && entry->samples.size() < most_samples && bytes.size() <= sample_bytes)
      more = add_sample(entry->samples, {program.numbers, std::string(bytes), {}});
  }
  ++counts_.instances;
  if (more != 0)
    note_bytes(entry, more);
  return served;
}

/// Keeps a program for later. Where there are too many the one kept longest goes, one without an executable first. The
/// bytes that it takes more.
int64_t ProgramTable::add_sample(std::vector<Sample> &samples, Sample sample) {
  int64_t more = sample.bytes();
  auto is_same = [&](const Sample &one) { return one.numbers == sample.numbers; };
  auto is_only_served = [](const Sample &one) { return !one.compiled.executable; };
  auto gone = std::find_if(samples.begin(), samples.end(), is_same);
  if (gone == samples.end() && samples.size() == most_samples) {
    gone = std::find_if(samples.begin(), samples.end(), is_only_served);
    gone = gone == samples.end() ? samples.begin() : gone;
  }
  if (gone != samples.end()) {
    more -= gone->bytes();
    samples.erase(gone);
  }
  samples.push_back(std::move(sample));
  return more;
}

/// Puts a program in front; the one used longest ago goes where there are too many. The bytes that it takes more.
int64_t ProgramTable::add_symbolic(std::vector<SymbolicProgram> &all, SymbolicProgram made) {
  auto bytes_of = [](const SymbolicProgram &one) {
    return static_cast<int64_t>(one.compiled.bytes + one.expected.size() * sizeof(uint32_t));
  };
  int64_t more = bytes_of(made);
  if (all.size() == most_symbolic) {
    more -= bytes_of(all.back());
    all.pop_back();
  }
  all.insert(all.begin(), std::move(made));
  return more;
}

std::optional<Served> ProgramTable::generalize(const std::shared_ptr<Entry> &entry, const StaticProgram &program,
                                               std::string_view bytes, const ProgramCompiler &compiler) {
  std::vector<std::string> samples; // others may add some while the compiler works
  {
    std::lock_guard<std::mutex> lock(entry->mutex);
    for (const Sample &sample : entry->samples)
      if (sample.numbers != program.numbers && are_alike(program, sample.numbers))
        samples.push_back(sample.program);
    if (samples.empty() || entry->waits() || bytes.size() > sample_bytes)
      return std::nullopt;
  }
  std::vector<std::string_view> all(samples.begin(), samples.end());
  all.push_back(bytes);
  std::optional<SymbolicProgram> found = compiler.generalize(all, entry->options);
  std::optional<Served> served;
  if (found)
    served = instance_of(*found, program, Served::compiled_symbolic);
  if (!served) {
    std::lock_guard<std::mutex> lock(entry->mutex);
    ++entry->failures;
    entry->since_failure = 0;
    ++counts_.not_general;
    return std::nullopt;
  }
  ++counts_.compiled_symbolic;
  int64_t more = 0;
  {
    std::lock_guard<std::mutex> lock(entry->mutex);
    more += add_symbolic(entry->symbolic, std::move(*found));
    more += add_sample(entry->samples, {program.numbers, std::string(bytes), {}});
  }
  note_bytes(entry, more);
  return served;
}

void ProgramTable::keep_static(const std::shared_ptr<Entry> &entry, const StaticProgram &program,
                               std::string_view bytes, const TableExecutable &made) {
  int64_t more = 0;
  if (bytes.size() <= sample_bytes) {
    std::lock_guard<std::mutex> lock(entry->mutex);
    ++entry->since_failure;
    more = add_sample(entry->samples, {program.numbers, std::string(bytes), made});
  }
  note_bytes(entry, more);
}

size_t ProgramTable::bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

void ProgramTable::clear() {
  std::list<std::shared_ptr<Entry>> forgotten; // destroyed without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  entries_.clear();
  forgotten.swap(order_);
  bytes_ = 0;
}

} // namespace disc::pjrt
