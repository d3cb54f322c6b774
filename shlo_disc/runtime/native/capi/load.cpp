// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "artifact/header.h"
#include "artifact/levels.h"
#include "artifact/sections.h"
#include "core/aligned.h"
#include "errors.h"
#include "objects.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace disc::capi {

namespace {

constexpr int64_t kCacheBytes = int64_t{1} << 30, kMemoBytes = int64_t{4} << 20;

/// The bytes of an artifact, and who holds them.
struct Bytes {
  std::shared_ptr<const char> data;
  size_t size = 0;

  std::string_view view() const { return {data.get(), size}; }
};

/// At a multiple of 64, where constants are used as they lie.
Bytes copied(const void *bytes, size_t size) {
  return {aligned_copy({static_cast<const char *>(bytes), size}), size};
}

Bytes borrowed(const void *bytes, size_t size) {
  return {std::shared_ptr<const char>(std::shared_ptr<void>(), static_cast<const char *>(bytes)), size};
}

[[noreturn]] void fail_file(const char *path, int number) {
  if (number == ENOMEM)
    throw std::bad_alloc();
  throw Failure("OSError", "[Errno " + std::to_string(number) + "] " + std::strerror(number) + ": '" + path + "'");
}

class File {
public:
  explicit File(const char *path) : path_(path), descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0)
      fail_file(path, errno);
  }
  ~File() { close(descriptor_); }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  Bytes map() const {
    struct stat status;
    if (fstat(descriptor_, &status) != 0)
      fail_file(path_, errno);
    if (!S_ISREG(status.st_mode))
      fail_file(path_, S_ISDIR(status.st_mode) ? EISDIR : EINVAL);
    auto size = static_cast<size_t>(status.st_size);
    if (size == 0)
      return {};
    void *address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (address == MAP_FAILED)
      fail_file(path_, errno);
    auto unmap = [size](const char *mapped) { munmap(const_cast<char *>(mapped), size); };
    return {std::shared_ptr<const char>(static_cast<const char *>(address), unmap), size};
  }

private:
  const char *path_;
  int descriptor_;
};

/// The caller's options, of whatever version, the others being 0.
disc_load_options known_options(const disc_load_options *given) {
  disc_load_options options{};
  if (given == nullptr)
    return options;
  check_struct_size(given->struct_size, "disc_load_options");
  std::memcpy(&options, given, std::min(given->struct_size, sizeof(options)));
  const char *bytes = reinterpret_cast<const char *>(given);
  for (size_t i = sizeof(options); i < given->struct_size; ++i)
    if (bytes[i] != 0)
      bad_value("struct_size of disc_load_options is " + std::to_string(given->struct_size) +
                ", and this library has " + std::to_string(sizeof(options)) +
                " bytes of options: the calling program was compiled with the header of a newer release, and sets an "
                "option that only that release has. Ship the library of that release, or leave the option 0; set "
                "struct_size to sizeof(disc_load_options)");
  const std::pair<const char *, int64_t> counts[] = {{"threads", options.threads},
                                                     {"memory_limit", options.memory_limit},
                                                     {"cache_limit", options.cache_limit},
                                                     {"memo_bytes", options.memo_bytes}};
  for (auto [name, value] : counts)
    if (value < 0)
      bad_value(std::string(name) + " of disc_load_options is " + std::to_string(value) + ", and must not be negative");
  if (options.threads > kMostThreads)
    bad_value("threads of disc_load_options is " + std::to_string(options.threads) + "; at most " + std::to_string(kMostThreads));
  return options;
}

std::shared_ptr<Device> device_of(const disc_load_options &options) {
  if (options.threads == 0 && options.memory_limit == 0 && options.cache_limit == 0)
    return default_device();
  return std::make_shared<Processors>(options.threads, options.memory_limit,
                                      options.cache_limit != 0 ? options.cache_limit : kCacheBytes, false);
}

std::unique_ptr<disc_program> load(const Bytes &bytes, const disc_load_options &options) {
  Sections sections = read_sections(bytes.view());
  std::vector<Json> headers = level_headers(sections);
  if (options.trust == 0)
    bad_artifact("the artifact holds native code from outside: set trust of disc_load_options if you know who made it");
  Level level = read_level(sections, headers, options.cpu != nullptr ? options.cpu : "");
  if (level.header.replicas > 1)
    bad_value("the program runs on " + std::to_string(level.header.replicas) + " devices, programs from C on one");
  auto loaded = std::make_shared<Loaded>();
  loaded->level = std::move(level.cpu);
  loaded->executable = std::make_shared<Executable>(
      device_of(options), std::move(level.header.program), ProgramCode{level.object, {}},
      ConstantBlock{level.constants.data(), static_cast<int64_t>(level.constants.size()), bytes.data, level.packed},
      options.memo_bytes != 0 ? options.memo_bytes : kMemoBytes, false);
  for (const ArraySpec &spec : loaded->program().arguments)
    loaded->arguments.emplace_back(spec, std::move(level.names[loaded->arguments.size()]));
  for (const ArraySpec &spec : loaded->program().results)
    loaded->results.emplace_back(spec);
  auto none = std::make_shared<Bound>();
  none->forms = loaded->executable->constant_forms();
  return std::make_unique<disc_program>(disc_program{std::move(loaded), std::move(none)});
}

} // namespace

} // namespace disc::capi

using namespace disc::capi;

disc_error_t *disc_load(const char *path, const disc_load_options *options, disc_program_t **program) {
  return guarded([&] {
    given(path, "disc_load: path");
    given(program, "disc_load: program");
    disc_load_options known = known_options(options);
    Bytes bytes = File(path).map();
    try {
      *program = load(bytes, known).release();
    } catch (disc::Error &error) {
      error.text_in_c += " (in the file '" + std::string(path) + "')";
      throw;
    }
  });
}

disc_error_t *disc_load_bytes(const void *bytes, size_t size, const disc_load_options *options,
                              disc_program_t **program) {
  return guarded([&] {
    given(static_cast<const char *>(bytes), size, "disc_load_bytes: bytes");
    given(program, "disc_load_bytes: program");
    disc_load_options known = known_options(options);
    *program = load(known.borrow != 0 ? borrowed(bytes, size) : copied(bytes, size), known).release();
  });
}

void disc_free_program(disc_program_t *program) { delete program; }
