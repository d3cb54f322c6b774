// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "processes.h"

#include "collectives/mpi_transport.h"
#include "collectives/spanning_run.h"
#include "collectives/tcp_transport.h"
#include "compile.h"
#include "cuda/gpu_device.h"
#include "device.h"
#include "error.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>

namespace disc::pjrt {

namespace {

constexpr std::chrono::minutes kOthersCome(5); // as for XLA's own clients
constexpr int kMostNodes = 1 << 20;
constexpr int kMostPrograms = std::numeric_limits<int>::max();
constexpr int kMostMicroseconds = 10'000'000;
constexpr int kInterpretedMicroseconds = 500; // less than a framework's own part of a call that compiles

/// What clients have that are created without an option: the number in a variable of the environment, else `otherwise`.
int number_of_environment(const char *variable, int otherwise) {
  const char *said = std::getenv(variable);
  std::string_view text = said ? said : "";
  if (text.empty())
    return otherwise;
  int number = -1;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || number < 0)
    fail_argument(std::string(variable) + " is a number, 0 or more, not '" + std::string(text) + "'");
  return number;
}

int checked_number(const PJRT_NamedValue &value, int64_t least, int64_t most) {
  std::string_view name(value.name, value.name_size);
  if (value.type != PJRT_NamedValue_kInt64 || value.int64_value < least || value.int64_value > most)
    fail_argument("the option " + std::string(name) + " is a number from " + std::to_string(least) + " to " +
                  std::to_string(most));
  return static_cast<int>(value.int64_value);
}

/// The framework's store, with the errors of its functions as exceptions.
class KeyValueStore {
public:
  explicit KeyValueStore(const PJRT_Client_Create_Args &args) : args_(args) {
    if (!args.kv_get_callback || !args.kv_put_callback)
      fail_argument("a client with num_nodes > 1 needs the callbacks kv_get_callback and kv_put_callback");
  }

  void put(const std::string &key, const std::string &value) const {
    PJRT_KeyValuePutCallback_Args args{};
    args.struct_size = sizeof args;
    lend(key, args.key, args.key_size);
    lend(value, args.value, args.value_size);
    args.callback_error = &make_error_;
    args.user_arg = args_.kv_put_user_arg;
    check(args_.kv_put_callback(&args));
  }

  /// Waits for the key to come.
  std::string get(const std::string &key) const {
    PJRT_KeyValueGetCallback_Args args{};
    args.struct_size = sizeof args;
    lend(key, args.key, args.key_size);
    args.timeout_in_ms = static_cast<int32_t>(std::chrono::milliseconds(kOthersCome).count());
    args.callback_error = &make_error_;
    args.user_arg = args_.kv_get_user_arg;
    check(args_.kv_get_callback(&args));
    std::string value(args.value, args.value_size);
    if (args.value_deleter_callback)
      args.value_deleter_callback(args.value);
    return value;
  }

private:
  static void lend(const std::string &text, const char *&data, size_t &size) {
    data = text.data();
    size = text.size();
  }

  static PJRT_Error *make_error(PJRT_Error_Code code, const char *message, size_t size) {
    return new PJRT_Error(code, message ? std::string(message, size) : std::string());
  }

  static void check(PJRT_Error *error) {
    if (!error)
      return;
    Failure failure(error->code, "the store of keys and values: " + error->message);
    delete error;
    throw failure;
  }

  const PJRT_Client_Create_Args &args_;
  mutable PJRT_CallbackError make_error_ = make_error;
};

std::vector<GpuDescription> described(const std::vector<int> &gpus) {
  std::vector<GpuDescription> found;
  for (int ordinal : gpus) {
    std::shared_ptr<Device> device = gpu_device(ordinal);
    const cuda::GpuFacts &facts = dynamic_cast<const cuda::GpuDevice &>(*device).gpu()->facts();
    found.push_back({facts.name, std::to_string(facts.major) + "." + std::to_string(facts.minor)});
  }
  return found;
}

/// What a process tells the others: how many devices it has, each with its name and compute capability if they are GPUs,
/// where it is found by TCP, and, if so, why it cannot exchange by MPI, or at all.
struct Introduction {
  int device_count;
  std::vector<GpuDescription> gpus;
  std::string place, without_mpi, obstacle;

  std::string text() const {
    std::string devices = std::to_string(device_count);
    for (const GpuDescription &gpu : gpus)
      devices += "\t" + one_line(gpu.name) + "\t" + gpu.compute_capability;
    return devices + "\n" + place + "\n" + one_line(without_mpi) + "\n" + one_line(obstacle);
  }

  static Introduction of(const std::string &text) {
    std::vector<std::string> lines = split(text, '\n'), devices = split(lines.front(), '\t');
    int64_t count = 0;
    const std::string &first = devices.front();
    auto [end, code] = std::from_chars(first.data(), first.data() + first.size(), count);
    bool has_gpus = devices.size() > 1;
    if (lines.size() != 4 || code != std::errc() || end != first.data() + first.size() ||
        (has_gpus && static_cast<int64_t>(devices.size()) != 2 * count + 1))
      fail_argument("another process of the job has another version of shlo_disc");
    Introduction found{checked_device_count(count), {}, lines[1], lines[2], lines[3]};
    for (size_t i = 1; i < devices.size(); i += 2)
      found.gpus.push_back({devices[i], devices[i + 1]});
    return found;
  }

private:
  static std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts(1);
    for (char letter : text)
      if (letter == separator)
        parts.emplace_back();
      else
        parts.back() += letter;
    return parts;
  }

  static std::string one_line(std::string text) {
    std::ranges::replace(text, '\n', ' ');
    std::ranges::replace(text, '\t', ' ');
    return text;
  }
};

/// Frameworks may make a client after another; the store keeps what was said for the first ones.
int clients_before(const std::string &platform, int node) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, int> clients;
  std::lock_guard lock(mutex);
  return clients[{platform, node}]++;
}

std::string why_without_mpi(const ClientOptions &options) {
  if (!options.mpi_failure.empty())
    return options.mpi_failure;
  try {
    const MpiLibrary &mpi = MpiLibrary::instance();
    int size = 0;
    mpi.check(mpi.comm_size(mpi.world, &size));
    return size == options.num_nodes ? "" : "MPI knows " + std::to_string(size) + " of the job's processes";
  } catch (const ExchangeFailure &failure) {
    return failure.what();
  }
}

/// Waits for the other processes at an address, unless there is an obstacle to any exchange.
std::optional<TcpListener> introduce(const ClientOptions &options, Introduction &own) {
  own.device_count = options.device_count;
  own.without_mpi = why_without_mpi(options);
  if (options.device_count > SpanningRun::kDevices) {
    own.obstacle = "there are more than " + std::to_string(SpanningRun::kDevices) + " devices in a process";
    return std::nullopt;
  }
  try {
    if (options.address.empty())
      throw ExchangeFailure("nothing says at which address the other processes find this one: give the option address, under JAX "
                            "the variable SHLO_DISC_EXCHANGE_ADDRESS");
    TcpListener listener(options.address);
    own.place = listener.place();
    return listener;
  } catch (const ExchangeFailure &failure) {
    own.obstacle = own.without_mpi.empty() ? "" : own.without_mpi + "; " + failure.what();
    return std::nullopt;
  }
}

std::string text_of(const PJRT_NamedValue &value) {
  return given_text(value.string_value, value.value_size, "create_options.string_value");
}

std::vector<int> numbers_of(const PJRT_NamedValue &value) {
  std::span<const int64_t> numbers = given(value.int64_array_value, value.value_size, "create_options.int64_array_value");
  return {numbers.begin(), numbers.end()};
}

} // namespace

int checked_device_count(int64_t count) {
  constexpr int64_t most = 4096;
  if (count < 1 || count > most)
    fail_argument("the option device_count is a number from 1 to " + std::to_string(most) + ", not " +
                  std::to_string(count));
  return static_cast<int>(count);
}

ClientOptions::ClientOptions(const PJRT_NamedValue *first, size_t count)
    : max_programs(number_of_environment("SHLO_DISC_MAX_PROGRAMS", 0)),
      interpreted_microseconds(
          number_of_environment("SHLO_DISC_INTERPRETED_MICROSECONDS", kInterpretedMicroseconds)) {
  std::span<const PJRT_NamedValue> values = given(first, count, "create_options");
  for (size_t i = 0; i < count; ++i) {
    std::string name = given_text(values[i].name, values[i].name_size, "create_options.name");
    if (name == "device_count" && values[i].type == PJRT_NamedValue_kInt64)
      device_count = checked_device_count(values[i].int64_value);
    else if (name == "gpus" && values[i].type == PJRT_NamedValue_kInt64List)
      gpus = numbers_of(values[i]);
    else if (name == "node_id")
      node_id = checked_number(values[i], 0, kMostNodes - 1);
    else if (name == "num_nodes")
      num_nodes = checked_number(values[i], 1, kMostNodes);
    else if (name == "collective_timeout_seconds")
      collective_timeout = std::chrono::seconds(checked_number(values[i], 1, std::numeric_limits<int>::max()));
    else if (name == "mpi_failure" && values[i].type == PJRT_NamedValue_kString)
      mpi_failure = text_of(values[i]);
    else if (name == "address" && values[i].type == PJRT_NamedValue_kString)
      address = text_of(values[i]);
    else if (name == "trusts_programs")
      trusts_programs = checked_number(values[i], 0, 1) == 1;
    else if (name == "asynchronous")
      is_asynchronous = checked_number(values[i], 0, 1) == 1;
    else if (name == "max_programs")
      max_programs = checked_number(values[i], 0, kMostPrograms);
    else if (name == "interpreted_microseconds")
      interpreted_microseconds = checked_number(values[i], 0, kMostMicroseconds);
    else if (name == "compiler" && values[i].type == PJRT_NamedValue_kString)
      compiler = text_of(values[i]);
    else if (name == "compile_seconds")
      compile_limit = std::chrono::seconds(checked_number(values[i], 0, std::numeric_limits<int>::max()));
    else if (name == "blas" && values[i].type == PJRT_NamedValue_kString)
      blas = text_of(values[i]);
    else if (name == "trust")
      trust = values[i].type == PJRT_NamedValue_kBool ? values[i].bool_value : checked_number(values[i], 0, 1) == 1;
    else if (name != "partition_index") // of machines that share a fast network, which makes no difference here
      fail_argument("'" + name + "' is no option of a client, or its value has another type; the options "
                    "are device_count, gpus, node_id, num_nodes, collective_timeout_seconds, mpi_failure, address, trusts_programs, trust, "
                    "asynchronous, max_programs, interpreted_microseconds, compiler, compile_seconds and blas");
  }
  if (!gpus.empty())
    device_count = checked_device_count(static_cast<int64_t>(gpus.size()));
  if (node_id >= num_nodes)
    fail_argument("the option node_id is " + std::to_string(node_id) + ", and there are " + std::to_string(num_nodes) +
                  " nodes");
}

Processes join(const ClientOptions &options, const PJRT_Client_Create_Args &args) {
  Processes processes{.index = options.node_id, .device_counts = {}, .gpus = {}, .transport = nullptr, .obstacle = {},
                      .collective_timeout = options.collective_timeout};
  if (options.num_nodes == 1) {
    processes.device_counts = {options.device_count};
    processes.gpus = {described(options.gpus)};
    return processes;
  }
  KeyValueStore store(args);
  std::string platform = options.gpus.empty() ? kPlatformName : kGpuPlatformName;
  std::string prefix =
      platform + "/client " + std::to_string(clients_before(platform, options.node_id)) + "/process ";
  Introduction own{};
  own.gpus = described(options.gpus);
  std::optional<TcpListener> listener = introduce(options, own);
  store.put(prefix + std::to_string(options.node_id), own.text());
  bool has_mpi = true;
  std::vector<std::string> places;
  for (int node = 0; node < options.num_nodes; ++node) {
    Introduction found = Introduction::of(store.get(prefix + std::to_string(node)));
    processes.device_counts.push_back(found.device_count);
    processes.gpus.push_back(std::move(found.gpus));
    has_mpi = has_mpi && found.without_mpi.empty();
    places.push_back(found.place);
    if (processes.obstacle.empty() && !found.obstacle.empty())
      processes.obstacle = "process " + std::to_string(node) + ": " + found.obstacle;
  }
  if (!processes.obstacle.empty())
    return processes;
  try {
    if (has_mpi)
      processes.transport = std::make_shared<MpiTransport>(options.node_id, options.num_nodes);
    else if (listener)
      processes.transport = std::make_shared<TcpTransport>(*std::move(listener), options.node_id, places, kOthersCome);
  } catch (const ExchangeFailure &failure) {
    processes.obstacle = failure.what();
  }
  if (!processes.transport && processes.obstacle.empty())
    processes.obstacle = "this process cannot be found by the others";
  return processes;
}

} // namespace disc::pjrt
