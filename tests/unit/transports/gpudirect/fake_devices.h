// A transport that records its calls, and memory of a GPU that counts flushes.
#pragma once

#include <string>
#include <vector>

#include "tests/support/no_transport.h"
#include "transports/device_memory_user.h"

namespace shmemctl::test {

using Log = std::vector<std::string>;

/// Writes "nic put 8", "agent quiet" and so on.
class Recording final : public NoTransport {
public:
  Recording(std::string name, Log& log) : name_(std::move(name)), log_(log) {}
  void put(int, const RemoteAddress&, const void*, std::size_t size_bytes, bool) override {
    say("put " + std::to_string(size_bytes));
  }
  void get(int, void*, const RemoteAddress&, std::size_t size_bytes, bool) override {
    say("get " + std::to_string(size_bytes));
  }
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest&) override {
    say("atomic");
    return 42;
  }
  void post_atomic(int, const RemoteAddress&, const AtomicRequest&) override { say("post_atomic"); }
  void put_signal(int, const RemoteAddress&, const void*, std::size_t size_bytes,
                  const RemoteAddress&, std::uint64_t, SignalOp op, bool) override {
    say((op == SignalOp::set ? "put_signal set " : "put_signal add ") + std::to_string(size_bytes));
  }
  void fence(int) override { say("fence"); }
  void quiet(int) override { say("quiet"); }
  std::string connection(int pe) const override { return "to " + std::to_string(pe); }

private:
  void say(const std::string& what) { log_.push_back(name_ + " " + what); }
  std::string name_;
  Log& log_;
};

class MadeUpMemory final : public DeviceMemory {
public:
  explicit MadeUpMemory(Log* log = nullptr) : log_(log) {}
  std::string unordered;
  std::string text() const override { return "GPU 0"; }
  std::string why_no_dma_buf() const override { return {}; }
  std::optional<DmaBuf> export_dma_buf(std::uintptr_t, std::size_t, std::string&) const override {
    return std::nullopt;
  }
  std::string why_unordered() const override { return unordered; }
  bool needs_flush() const override { return true; }
  void flush() const override {
    if (log_)
      log_->push_back("flush");
  }

private:
  Log* log_;
};

} // namespace shmemctl::test
