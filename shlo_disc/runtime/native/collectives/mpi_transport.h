// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages of MPI.
#pragma once

#include "mpi_library.h"
#include "transport.h"

namespace disc {

class MpiTransport : public Transport {
public:
  /// Connects with the other processes of a job, all of which have to call it with their numbers. MPI's processes have
  /// to be those of the job; what they do with MPI themselves is kept apart. Throws ExchangeFailure.
  MpiTransport(int64_t process, int64_t processes);
  ~MpiTransport() override;

  std::unique_ptr<Message> send(int64_t process, int64_t tag, size_t bytes,
                                const std::function<void(char *)> &fill) override;
  std::unique_ptr<Message> receive(int64_t process, int64_t tag, size_t bytes) override;

private:
  void close() noexcept override;
  void notify(Notice notice, const std::string &text) noexcept override;
  void look() override;

  const MpiLibrary &mpi_;
  const int64_t processes_;
  MpiLibrary::Handle comm_ = 0;
  std::vector<std::unique_ptr<Message>> notices_; // on their way to the others
};

} // namespace disc
