// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lets the k-th allocation of a program's life fail, for every k: it must say AllocationError, write nothing, and leave no
// memory behind. argv: artifact of one f32 argument, "library" where it calls functions that may have written something
// before they find no memory or else "kernels", sizes of the argument.
#include "checks.h"

#include <atomic>
#include <cerrno>
#include <new>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

std::atomic<long> countdown{0}; // the allocation that fails when it is 1; 0: none
std::atomic<long> live{0};      // blocks of operator new

bool fails() { return countdown.load() > 0 && countdown.fetch_sub(1) == 1; }

void *take(size_t bytes) {
  void *address = fails() ? nullptr : std::malloc(bytes);
  live += address != nullptr;
  return address;
}

void give_back(void *address) {
  live -= address != nullptr;
  std::free(address);
}

} // namespace

// Those of the library, too, are these: an executable's functions come first.
void *operator new(size_t bytes) {
  if (void *address = take(bytes))
    return address;
  throw std::bad_alloc();
}
void *operator new(size_t bytes, const std::nothrow_t &) noexcept { return take(bytes); }
void *operator new[](size_t bytes) { return operator new(bytes); }
void *operator new[](size_t bytes, const std::nothrow_t &) noexcept { return take(bytes); }
void operator delete(void *address) noexcept { give_back(address); }
void operator delete(void *address, size_t) noexcept { give_back(address); }
void operator delete(void *address, const std::nothrow_t &) noexcept { give_back(address); }
void operator delete[](void *address) noexcept { give_back(address); }
void operator delete[](void *address, size_t) noexcept { give_back(address); }

extern "C" void *aligned_alloc(size_t alignment, size_t bytes) {
  void *address = nullptr;
  if (fails() || posix_memalign(&address, alignment, bytes) != 0)
    errno = ENOMEM;
  return address;
}

extern "C" void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (fails()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void *>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

namespace {

/// Whether a step of a life has succeeded. What it failed with must be the lack of memory.
bool succeeds(disc_error_t *error) {
  if (error == nullptr)
    return true;
  countdown = 0;
  if (std::strcmp(disc_error_kind(error), "AllocationError") != 0) {
    std::printf("%s: %s\n", disc_error_kind(error), disc_error_text(error));
    std::exit(1);
  }
  disc_free_error(error);
  return false;
}

/// Memory for the results of a plan, filled with a pattern.
struct Memory {
  explicit Memory(const disc_program_t *program, const disc_plan_t *plan) {
    bytes.resize(disc_result_count(program));
    for (size_t i = 0; i < bytes.size(); ++i) {
      disc_array_info info{};
      info.struct_size = sizeof info;
      CHECK_OK(disc_describe_result(program, i, &info));
      bytes[i].assign(static_cast<size_t>(disc_plan_result_bytes(plan, i)) + 1, '\x5a');
      tensors.push_back({bytes[i].data() + 1 % bytes[i].size(), {static_cast<decltype(DLDevice::device_type)>(1), 0},
                         static_cast<int32_t>(info.rank), info.type,
                         const_cast<int64_t *>(disc_plan_result_shape(plan, i)), nullptr, 0});
    }
  }
  bool is_untouched() const {
    for (const std::string &part : bytes)
      if (part.find_first_not_of('\x5a') != std::string::npos)
        return false;
    return true;
  }

  std::vector<std::string> bytes;
  std::vector<DLTensor> tensors;
};

bool calls_library = false;

/// The custom call "test.negate", of f32 in any shape.
const char *negate(const ShloDiscCall *call) {
  int64_t count = 1;
  for (int64_t i = 0; i < call->operands[0].rank; ++i)
    count *= call->operands[0].dims[i];
  for (int64_t i = 0; i < count; ++i)
    static_cast<float *>(call->results[0].data)[i] = -static_cast<const float *>(call->operands[0].data)[i];
  return nullptr;
}

bool run_planned(const disc_program_t *program, Array &argument) {
  disc_plan_t *plan = nullptr;
  disc_error_t *error = disc_plan(program, argument.sizes().data(), argument.sizes().size(), &plan);
  if (error != nullptr && std::strcmp(disc_error_kind(error), "ValueError") == 0) { // data-dependent sizes
    disc_free_error(error);
    return true;
  }
  if (!succeeds(error))
    return false;
  long left = countdown.exchange(0);
  Memory memory(program, plan);
  DLTensor tensor = argument.tensor();
  countdown = left;
  bool is_done = succeeds(disc_run(plan, &tensor, 1, memory.tensors.data(), memory.tensors.size()));
  CHECK(is_done ? !memory.is_untouched() : calls_library || memory.is_untouched());
  disc_free_plan(plan);
  return is_done;
}

bool call(const disc_program_t *program, Array &argument) {
  DLTensor tensor = argument.tensor();
  disc_results_t *results = nullptr;
  bool is_done = succeeds(disc_call(program, &tensor, 1, &results));
  CHECK(is_done == (results != nullptr));
  disc_free_results(results);
  return is_done;
}

bool call_bound(const disc_program_t *program, Array &argument) {
  DLTensor tensor = argument.tensor();
  disc_program_t *bound = nullptr;
  if (!succeeds(disc_bind(program, &tensor, 1, &bound)))
    return false;
  disc_results_t *results = nullptr;
  bool is_done = succeeds(disc_call(bound, nullptr, 0, &results));
  disc_free_results(results);
  disc_free_program(bound);
  return is_done;
}

/// Everything that a program does, until something fails.
bool live_once(const std::string &bytes, Array &argument, long k) {
  disc_load_options options = trusted(3);
  disc_program_t *program = nullptr;
  countdown = k;
  if (!succeeds(disc_load_bytes(bytes.data(), bytes.size(), &options, &program)))
    return false;
  bool is_done = run_planned(program, argument) && call(program, argument) && call_bound(program, argument);
  bool has_failed = countdown == 0;
  countdown = 0;
  if (!is_done) // it can be called again
    CHECK(call(program, argument));
  disc_free_program(program);
  return is_done && !has_failed;
}

} // namespace

int main(int argc, char **argv) {
  CHECK(argc >= 4);
  calls_library = std::strcmp(argv[2], "library") == 0;
  std::vector<int64_t> sizes;
  for (int i = 3; i < argc; ++i)
    sizes.push_back(std::atoll(argv[i]));
  std::string bytes = bytes_of(argv[1]);
  CHECK_OK(disc_register_custom_call("test.negate", negate));
  Array argument(sizes);
  for (int i = 0; i < 2; ++i) // what is made once in a process
    CHECK(live_once(bytes, argument, 1L << 40));
  long before = live, k = 1;
  for (; !live_once(bytes, argument, k); ++k)
    CHECK(live == before);
  CHECK(live == before);
  std::printf("%ld\n", k - 1);
  return k < 20;
}
