// Copies of an agent whose requests come through a library's sockets.
#pragma once

#include <memory>
#include <utility>

#include "transports/staged/staged.h"

namespace shmemctl::test {

/// Hands on to other copies. ThreadSanitizer does not see that the library orders the agent behind
/// the peer that asked; tsan.supp names this file, so that agents over memory stay checked.
class CopiesBehindALibrary final : public CopyEngine {
public:
  explicit CopiesBehindALibrary(std::shared_ptr<CopyEngine> copies) : copies_(std::move(copies)) {}

  void copy(int context, void* to, const void* from, std::size_t size_bytes) override {
    copies_->copy(context, to, from, size_bytes);
  }
  void store_word(int context, void* to, std::uint64_t value) override {
    copies_->store_word(context, to, value);
  }
  void start_atomic(int context, void* word, const AtomicRequest& request) override {
    copies_->start_atomic(context, word, request);
  }
  std::uint64_t atomic(int context, void* word, const AtomicRequest& request) override {
    return copies_->atomic(context, word, request);
  }
  void finish(int context) override { copies_->finish(context); }

private:
  std::shared_ptr<CopyEngine> copies_;
};

} // namespace shmemctl::test
