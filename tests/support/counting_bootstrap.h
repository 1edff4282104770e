// A Bootstrap that counts what goes through another one.
#pragma once

#include <cstddef>

#include "src/runtime/bootstrap/bootstrap.h"

namespace shmemctl::test {

/// What this PE is given by the others, as the caller of a collective sees it: not what a
/// particular bootstrap sends for that.
class CountingBootstrap final : public Bootstrap {
public:
  explicit CountingBootstrap(Bootstrap& below)
      : Bootstrap(below.rank(), below.size()), below_(below) {}

  std::size_t received_bytes() const { return received_bytes_; }
  /// Collectives so far.
  std::size_t calls() const { return calls_; }

  const char* name() const override { return below_.name(); }
  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override {
    count(bytes_per_rank * (static_cast<std::size_t>(size()) - 1));
    below_.allgather(send, receive, bytes_per_rank, deadline);
  }
  void gather(const void* send, void* receive, std::size_t bytes_per_rank,
              const Deadline& deadline) override {
    count(rank() == 0 ? bytes_per_rank * (static_cast<std::size_t>(size()) - 1) : 0);
    below_.gather(send, receive, bytes_per_rank, deadline);
  }
  void alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                const Deadline& deadline) override {
    count(bytes_per_rank * (static_cast<std::size_t>(size()) - 1));
    below_.alltoall(send, receive, bytes_per_rank, deadline);
  }
  void barrier(const Deadline& deadline) override {
    count(0);
    below_.barrier(deadline);
  }
  void broadcast(void* data, std::size_t size_bytes, int root, const Deadline& deadline) override {
    count(root == rank() ? 0 : size_bytes);
    below_.broadcast(data, size_bytes, root, deadline);
  }
  Secret mix_secret(const Secret& said) const override { return below_.mix_secret(said); }
  void abort(ExitCode code, const std::string& message) noexcept override {
    below_.abort(code, message);
  }
  void finish(const Deadline& deadline) override { below_.finish(deadline); }

private:
  void count(std::size_t bytes) {
    ++calls_;
    received_bytes_ += bytes;
  }

  Bootstrap& below_;
  std::size_t received_bytes_ = 0, calls_ = 0;
};

} // namespace shmemctl::test
