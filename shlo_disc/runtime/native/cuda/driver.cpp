// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "driver.h"

#include <algorithm>
#include <array>
#include <dlfcn.h>

namespace disc::cuda {

namespace {

/// The address of a function of the library. Throws Error(device) where an old one lacks it.
void *find(void *library, const char *name) {
  if (void *address = dlsym(library, name))
    return address;
  throw Error(ErrorKind::device, std::string("NVIDIA's driver is too old: it has no ") + name);
}

Driver loaded_driver() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(ErrorKind::device, "there is no GPU to run on: NVIDIA's driver (libcuda.so.1) is not installed; compile "
                                   "with target='cpu', or run where there is one");
  Driver driver;
#define DISC_CUDA_FIND(member, function, parameters)                                                                   \
  driver.member = reinterpret_cast<decltype(driver.member)>(find(library, #function));
  DISC_CUDA_FUNCTIONS(DISC_CUDA_FIND)
#undef DISC_CUDA_FIND
  if (Code code = driver.init(0); code != kSuccess)
    throw Error(ErrorKind::device, "there is no GPU to run on: " + driver.text_of(code));
  return driver;
}

} // namespace

const Driver &Driver::instance() {
  static const Driver driver = loaded_driver();
  return driver;
}

std::string Driver::text_of(Code code) const {
  const char *name = nullptr, *meaning = nullptr;
  if (error_name(code, &name) != kSuccess || !name)
    return "error " + std::to_string(code);
  if (error_string(code, &meaning) != kSuccess || !meaning)
    return name;
  return std::string(name) + " (" + meaning + ")";
}

void Driver::check(Code code, const std::string &what) const {
  if (code != kSuccess)
    throw Error(ErrorKind::device, "could not " + what + ": " + text_of(code));
}

bool is_sticky(Code code) {
  // Uncorrectable memory, an exception in a kernel, its time limit, a failed assertion, and errors of hardware.
  constexpr std::array<Code, 12> sticky{214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721};
  return std::ranges::find(sticky, code) != sticky.end();
}

} // namespace disc::cuda
