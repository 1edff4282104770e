// Devices that behave like real ones of the mlx5 family, in this process: keys are known to a
// fabric between them, not to the process that posts.
#pragma once

#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "tests/support/hidden_memory.h"
#include "tests/support/placement.h"
#include "transports/mlx5/emulated/emulated_hca.h"
#include "transports/mlx5/emulated/executor.h"
#include "transports/mlx5/settings.h"

namespace shmemctl::test {

/// The memory that the devices of a job have registered, and the devices that can reach it.
class FakeFabric {
public:
  struct Port {
    std::string device;
    int port = 1;
    bool ethernet = true;
    std::string unfit;
    bool has_atomics = true;
  };
  explicit FakeFabric(std::vector<Port> ports) : ports_(std::move(ports)) {}

  /// Settings whose real devices are these; none in processes that were forked off.
  mlx5::Settings use(mlx5::Settings settings) {
    settings.list_devices = [this](std::string& why) {
      std::vector<std::string> names;
      for (const Port& port : ports_)
        if (::getpid() == process_ && (names.empty() || names.back() != port.device))
          names.push_back(port.device);
      if (names.empty())
        why = "fake devices belong to one process";
      return names;
    };
    settings.open_device = [this](const std::string& device, int number) {
      for (const Port& port : ports_)
        if (port.device == device && port.port == number)
          return open(port);
      throw Error(ExitCode::unavailable, "an mlx5 device", "open", "no such device",
                  "look at the names", {{}, {}, device, number});
    };
    return settings;
  }

private:
  class FabricExecutor final : public mlx5::Executor {
  public:
    FabricExecutor(FakeFabric& fabric, std::uint64_t device) : fabric_(fabric), device_(device) {}
    mlx5::Outcome check(const mlx5::RaddrSegment& remote, std::uint64_t size_bytes,
                        unsigned access) const override {
      const std::lock_guard lock(fabric_.mutex_);
      return fabric_.memory_[device_].check(remote, size_bytes, access);
    }
    mlx5::Outcome write(const mlx5::RaddrSegment& remote, std::span<const mlx5::BytePiece> pieces,
                        std::uint64_t size_bytes) override {
      const std::lock_guard lock(fabric_.mutex_);
      return fabric_.memory_[device_].write(remote, pieces, size_bytes);
    }
    mlx5::Outcome read(const mlx5::RaddrSegment& remote, std::span<const mlx5::BytePiece> pieces,
                       std::uint64_t size_bytes) override {
      const std::lock_guard lock(fabric_.mutex_);
      return fabric_.memory_[device_].read(remote, pieces, size_bytes);
    }
    mlx5::Outcome atomic(const mlx5::RaddrSegment& remote, const mlx5::AtomicFields& fields,
                         std::uint64_t& old) override {
      const std::lock_guard lock(fabric_.mutex_);
      return fabric_.memory_[device_].atomic(remote, fields, old);
    }

  private:
    FakeFabric& fabric_;
    std::uint64_t device_;
  };

  class Memory final : public mlx5::HcaMemory {
  public:
    Memory(FakeFabric& fabric, std::uint64_t device, std::unique_ptr<mlx5::HcaMemory> memory,
           std::string method)
        : fabric_(fabric), device_(device), memory_(std::move(memory)), method_(std::move(method)) {
      tell(window());
    }
    ~Memory() override {
      mlx5::KeyWindow gone = window();
      gone.size_bytes = 0;
      tell(gone);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::uint32_t lkey() const override { return memory_->lkey(); }
    std::uint32_t rkey() const override { return memory_->rkey(); }
    std::string method() const override { return method_; }

  private:
    const mlx5::KeyWindow& window() const {
      return static_cast<const mlx5::EmulatedMemory&>(*memory_).window();
    }
    void tell(const mlx5::KeyWindow& told) {
      const std::lock_guard lock(fabric_.mutex_);
      fabric_.memory_[device_].add(told);
    }
    FakeFabric& fabric_;
    std::uint64_t device_;
    std::unique_ptr<mlx5::HcaMemory> memory_;
    std::string method_;
  };

  class Hca final : public mlx5::Hca {
  public:
    Hca(FakeFabric& fabric, const Port& port, std::uint64_t device)
        : fabric_(fabric), device_(device), emulated_(options(fabric, port, device)),
          info_(emulated_.info()) {
      info_.device = port.device;
      info_.port = port.port;
      info_.emulated = false;
      info_.ethernet = port.ethernet;
      info_.unfit = port.unfit;
    }
    const mlx5::HcaInfo& info() const override { return info_; }
    std::unique_ptr<mlx5::HcaMemory> register_memory(const mlx5::MemoryRequest& request) override {
      const auto* const hidden = dynamic_cast<const HiddenMemory*>(request.gpu.get());
      if (!hidden)
        return std::make_unique<Memory>(fabric_, device_, emulated_.register_memory(request), "");
      if (!hidden->refusal.empty())
        throw Error(ExitCode::unavailable, "GPU memory", "register", hidden->refusal, "none",
                    {{}, {}, info_.device, info_.port});
      return std::make_unique<Memory>(
          fabric_, device_,
          emulated_.register_mapped({request.base, request.size_bytes, request.access},
                                    hidden->reach(static_cast<std::byte*>(request.base))),
          "dma-buf");
    }
    std::unique_ptr<mlx5::HcaQp> create_queue(const mlx5::QpOptions& options) override {
      return emulated_.create_queue(options);
    }

  private:
    /// As real devices, they promise no order of WRITEs.
    static mlx5::EmulatedHcaOptions options(FakeFabric& fabric, const Port& port,
                                            std::uint64_t device) {
      mlx5::EmulatedHcaOptions made;
      made.order.placement = any_placement() ? mlx5::Placement::any : mlx5::Placement::ordered;
      made.order.claim = mlx5::EmulatedOrder::Claim::none;
      made.order.has_atomics = port.has_atomics;
      made.device_id = device;
      made.path_to_peer = [&fabric](const mlx5::PeerInfo& peer) {
        return std::make_shared<FabricExecutor>(fabric, peer.device_id);
      };
      return made;
    }
    FakeFabric& fabric_;
    std::uint64_t device_;
    mlx5::EmulatedHca emulated_;
    mlx5::HcaInfo info_;
  };

  std::unique_ptr<mlx5::Hca> open(const Port& port) {
    std::uint64_t device = 0;
    {
      const std::lock_guard lock(mutex_);
      device = ++opened_;
    }
    return std::make_unique<Hca>(*this, port, device);
  }

  const pid_t process_ = ::getpid();
  const std::vector<Port> ports_;
  std::mutex mutex_;
  std::uint64_t opened_ = 0;
  std::map<std::uint64_t, mlx5::MappedExecutor> memory_; ///< by device
};

} // namespace shmemctl::test
