// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mpi_transport.h"

#include <algorithm>
#include <cstring>

namespace disc {

namespace {

constexpr int kNoticeTag = static_cast<int>(Transport::kTags);

enum NoticeKind : int64_t { kCloses, kFails, kWaits, kGoesOn };

/// What a process tells the others of itself.
struct Notice {
  int64_t process;
  int64_t kind;
  char failure[1008]; // empty where it has none
};

/// MPI counts in `int`: large messages go in several parts.
class MpiMessage : public Message {
public:
  MpiMessage(const MpiLibrary &mpi, int64_t process, size_t bytes)
      : Message(process), mpi_(mpi), bytes_(bytes), contents_(new char[bytes]) {}

  ~MpiMessage() override {
    if (!requests_.empty())
      static_cast<void>(contents_.release()); // MPI may still use it
  }

  template <typename Start> void start(Start start) {
    constexpr size_t most = size_t{1} << 30;
    for (size_t begin = 0; begin < bytes_; begin += most) {
      requests_.push_back(0);
      int code = start(contents_.get() + begin, static_cast<int>(std::min(most, bytes_ - begin)), &requests_.back());
      if (code != 0)
        requests_.pop_back();
      mpi_.check(code);
    }
  }

  bool is_done() override {
    while (!requests_.empty()) {
      int flag = 0;
      mpi_.check(mpi_.test(&requests_.back(), &flag, mpi_.status_ignore));
      if (!flag)
        return false;
      requests_.pop_back();
    }
    return true;
  }

  char *contents() override { return contents_.get(); }

private:
  const MpiLibrary &mpi_;
  size_t bytes_;
  std::unique_ptr<char[]> contents_;
  std::vector<MpiLibrary::Handle> requests_;
};

} // namespace

MpiTransport::MpiTransport(int64_t process, int64_t processes)
    : mpi_(MpiLibrary::instance()), process_(process), processes_(processes), states_(static_cast<size_t>(processes)) {
  int size = 0;
  mpi_.check(mpi_.comm_size(mpi_.world, &size));
  if (size != processes)
    throw ExchangeFailure("MPI knows " + std::to_string(size) + " of the job's " + std::to_string(processes) +
                          " processes: start all of them with one mpiexec");
  mpi_.check(mpi_.comm_split(mpi_.world, 0, static_cast<int>(process), &comm_));
  mpi_.check(mpi_.comm_set_errhandler(comm_, mpi_.errors_return));
  enter();
}

std::unique_ptr<Message> MpiTransport::send(int64_t process, int64_t tag, size_t bytes,
                                            const std::function<void(char *)> &fill) {
  auto message = std::make_unique<MpiMessage>(mpi_, process, bytes);
  fill(message->contents());
  message->start([&](char *at, int count, MpiLibrary::Handle *request) {
    return mpi_.isend(at, count, mpi_.byte, static_cast<int>(process), static_cast<int>(tag), comm_, request);
  });
  return message;
}

std::unique_ptr<Message> MpiTransport::receive(int64_t process, int64_t tag, size_t bytes) {
  auto message = std::make_unique<MpiMessage>(mpi_, process, bytes);
  message->start([&](char *at, int count, MpiLibrary::Handle *request) {
    return mpi_.irecv(at, count, mpi_.byte, static_cast<int>(process), static_cast<int>(tag), comm_, request);
  });
  return message;
}

MpiTransport::~MpiTransport() {
  leave();
  close();
}

void MpiTransport::close() noexcept {
  std::lock_guard lock(mutex_);
  int finalized = 0;
  mpi_.finalized(&finalized);
  if (!finalized && !std::exchange(is_closed_, true))
    notify(kCloses, "");
}

void MpiTransport::notify(int64_t kind, const std::string &failure) noexcept {
  for (int64_t other = 0; other < processes_; ++other) {
    if (other == process_)
      continue;
    try {
      notices_.push_back(send(other, kNoticeTag, sizeof(Notice), [&](char *to) {
        Notice notice{.process = process_, .kind = kind, .failure = {}};
        failure.copy(notice.failure, sizeof notice.failure - 1);
        std::memcpy(to, &notice, sizeof notice);
      }));
    } catch (const std::exception &) {
      // The other process is gone, or there is no memory: its own waiting ends in another way.
    }
  }
}

void MpiTransport::fail(const std::string &why) noexcept {
  std::lock_guard lock(mutex_);
  if (states_.fail(process_, why))
    notify(kFails, why);
}

void MpiTransport::set_waiting(bool waits) noexcept {
  std::lock_guard lock(mutex_);
  if (states_.is_waiting(process_) == waits)
    return;
  states_.set_waiting(process_, waits);
  notify(waits ? kWaits : kGoesOn, "");
}

bool MpiTransport::is_waiting(int64_t process) {
  std::lock_guard lock(mutex_);
  return states_.is_waiting(process);
}

void MpiTransport::look_for_notices() {
  int flag = 0;
  mpi_.check(mpi_.iprobe(mpi_.any_source, kNoticeTag, comm_, &flag, mpi_.status_ignore));
  if (!flag)
    return;
  Notice notice;
  mpi_.check(mpi_.recv(&notice, sizeof notice, mpi_.byte, mpi_.any_source, kNoticeTag, comm_, mpi_.status_ignore));
  if (notice.kind == kCloses)
    states_.set_gone(notice.process, "has ended");
  else if (notice.kind != kFails)
    states_.set_waiting(notice.process, notice.kind == kWaits);
  else
    states_.fail(notice.process, std::string(notice.failure, strnlen(notice.failure, sizeof notice.failure)));
}

void MpiTransport::check() {
  std::lock_guard lock(mutex_);
  look_for_notices();
  states_.check();
}

void MpiTransport::set_gone(int64_t process, const std::string &how) {
  std::lock_guard lock(mutex_);
  states_.set_gone(process, how);
}

void MpiTransport::check_present(int64_t process) {
  std::lock_guard lock(mutex_);
  states_.check_present(process);
}

} // namespace disc
