// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mpi_transport.h"

#include <algorithm>
#include <cstring>

namespace disc {

namespace {

constexpr int kNoticeTag = static_cast<int>(Transport::kTags);

/// A notice, and whose it is.
struct NoticeMessage {
  int64_t process;
  int64_t notice;
  char text[1008];
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
    : Transport(process, static_cast<size_t>(processes)), mpi_(MpiLibrary::instance()), processes_(processes) {
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
    notify(Notice::closes, "");
}

void MpiTransport::notify(Notice notice, const std::string &text) noexcept {
  for (int64_t other = 0; other < processes_; ++other) {
    if (other == process_)
      continue;
    try {
      notices_.push_back(send(other, kNoticeTag, sizeof(NoticeMessage), [&](char *to) {
        NoticeMessage message{.process = process_, .notice = static_cast<int64_t>(notice), .text = {}};
        text.copy(message.text, sizeof message.text - 1);
        std::memcpy(to, &message, sizeof message);
      }));
    } catch (const std::exception &) {
      // The other process is gone, or there is no memory: its own waiting ends in another way.
    }
  }
}

void MpiTransport::look() {
  int flag = 0;
  mpi_.check(mpi_.iprobe(mpi_.any_source, kNoticeTag, comm_, &flag, mpi_.status_ignore));
  if (!flag)
    return;
  NoticeMessage message;
  mpi_.check(mpi_.recv(&message, sizeof message, mpi_.byte, mpi_.any_source, kNoticeTag, comm_, mpi_.status_ignore));
  take(message.process, Notice{message.notice}, std::string(message.text, strnlen(message.text, sizeof message.text)));
}

} // namespace disc
