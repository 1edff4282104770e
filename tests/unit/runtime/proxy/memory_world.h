// Memory of a few PEs in one process, reached by the shm transport.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/job_health.h"
#include "transports/shm/shm.h"

namespace shmemctl::test {

class MemoryWorld {
public:
  explicit MemoryWorld(int n_pes, std::size_t bytes_each = 64 << 10)
      : n_pes_(n_pes), words_each_(bytes_each / 8),
        memory_(static_cast<std::size_t>(n_pes) * words_each_), shm_(make_shm_transport()) {
    shm_->set_region(region());
  }

  RegionView region() {
    RegionView view{1, reinterpret_cast<std::byte*>(memory_.data()), words_each_ * 8, {}};
    for (int pe = 0; pe < n_pes_; ++pe)
      view.mapped.push_back(reinterpret_cast<std::byte*>(&word(pe, 0)));
    return view;
  }
  Transport& shm() { return *shm_; }
  std::vector<Transport*> ways() {
    return std::vector<Transport*>(static_cast<std::size_t>(n_pes_), shm_.get());
  }
  RemoteAddress at(int pe, std::uint64_t offset_bytes) const { return {pe, 1, offset_bytes}; }
  std::uint64_t& word(int pe, std::uint64_t offset_bytes) {
    return memory_[static_cast<std::size_t>(pe) * words_each_ + offset_bytes / 8];
  }

  JobHealth health;

private:
  int n_pes_;
  std::size_t words_each_;
  std::vector<std::uint64_t> memory_;
  std::unique_ptr<Transport> shm_;
};

} // namespace shmemctl::test
