// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Messages of MPI.
#pragma once

#include "mpi_library.h"
#include "transport.h"

#include <mutex>

namespace disc {

class MpiTransport : public Transport {
public:
  /// Connects with the other processes of a job, all of which have to call it with their numbers. MPI's processes have
  /// to be those of the job; what they do with MPI themselves is kept apart. Throws ExchangeFailure.
  MpiTransport(int64_t process, int64_t processes);
  ~MpiTransport() override;

  int64_t process() const override { return process_; }
  std::unique_ptr<Message> send(int64_t process, int64_t tag, size_t bytes,
                                const std::function<void(char *)> &fill) override;
  std::unique_ptr<Message> receive(int64_t process, int64_t tag, size_t bytes) override;
  void fail(const std::string &why) noexcept override;
  void check() override;
  void set_gone(int64_t process, const std::string &how) override;
  void check_present(int64_t process) override;
  void set_waiting(bool waits) noexcept override;
  bool is_waiting(int64_t process) override;

private:
  void close() noexcept override;
  void notify(int64_t kind, const std::string &failure) noexcept;
  void look_for_notices();

  const MpiLibrary &mpi_;
  const int64_t process_, processes_;
  MpiLibrary::Handle comm_ = 0;
  std::mutex mutex_;
  ProcessStates states_;
  bool is_closed_ = false;
  std::vector<std::unique_ptr<Message>> notices_; // on their way to the others
};

} // namespace disc
