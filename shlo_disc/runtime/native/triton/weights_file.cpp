// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "triton/weights_file.h"

#include "triton/errors.h"
#include "triton/model_config.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace disc::triton {

namespace {

/// A file's bytes, mapped.
class MappedFile {
public:
  explicit MappedFile(const std::string &path) {
    int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (descriptor < 0 || fstat(descriptor, &status) != 0)
      fail(path, descriptor);
    size_ = static_cast<size_t>(status.st_size);
    if (size_ > 0)
      address_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address_ == MAP_FAILED)
      fail(path, descriptor);
    close(descriptor);
  }
  ~MappedFile() {
    if (size_ > 0)
      munmap(address_, size_);
  }
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  char *begin() const { return static_cast<char *>(address_); }
  size_t size() const { return size_; }

private:
  [[noreturn]] static void fail(const std::string &path, int descriptor) {
    std::string why = std::strerror(errno);
    if (descriptor >= 0)
      close(descriptor);
    throw Failure(kNotFound, "the file of weights '" + path + "' cannot be read: " + why);
  }

  void *address_ = nullptr;
  size_t size_ = 0;
};

/// The bytes of an argument; 0 with a false second where a size is symbolic.
std::pair<size_t, bool> bytes_of(const disc_array_info &info) {
  size_t bytes = (info.type.bits + 7u) / 8u;
  for (size_t i = 0; i < info.rank; ++i)
    if (info.sizes[i] < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(info.sizes[i]), &bytes))
      return {0, false};
  return {bytes, true};
}

} // namespace

disc_program_t *bound_to_file(const disc_program_t *program, const std::string &path) {
  MappedFile file(path);
  std::vector<DLTensor> weights;
  size_t taken = 0;
  for (size_t count = disc_argument_count(program); weights.size() < count && taken < file.size();) {
    disc_array_info info{};
    info.struct_size = sizeof info;
    check(disc_describe_argument(program, weights.size(), &info));
    auto [bytes, is_known] = bytes_of(info);
    if (!is_known || bytes > file.size() - taken)
      break;
    weights.push_back({file.begin() + taken, {kDLCPU, 0}, static_cast<int32_t>(info.rank), info.type,
                       const_cast<int64_t *>(info.sizes), nullptr, 0});
    taken += bytes;
  }
  if (taken != file.size() || weights.empty())
    throw Failure(kInvalidArgument,
                  "the file of weights '" + path + "' has " + std::to_string(file.size()) +
                      " bytes, and is to have the elements of the program's first arguments: its first " +
                      std::to_string(weights.size()) + " have " + std::to_string(taken) +
                      " bytes, and the next one does not end with the file. Write the file as `shlo_disc export "
                      "--triton FOLDER --weights FILE` does");
  disc_program_t *bound = nullptr;
  check(disc_bind(program, weights.data(), weights.size(), &bound));
  return bound;
}

} // namespace disc::triton
