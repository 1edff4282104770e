// A fake mlx5 device behind libibverbs' and libmlx5's functions: it reads firmware commands, and
// the emulated HCA serves the queues that they create. One device at a time.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

#include "transports/mlx5/devx/commands.h"
#include "transports/mlx5/devx/devx_open.h"
#include "transports/mlx5/emulated/emulated_qp.h"
#include "transports/mlx5/emulated/executor.h"

/// The library's own type, of which only the address is used by others.
struct mlx5dv_devx_obj {
  std::uint32_t number = 0;
  bool is_queue_pair = false;
};

namespace shmemctl::test {

using namespace shmemctl::mlx5;

class FakeDevice {
public:
  FakeDevice() { current_ = this; }
  ~FakeDevice() {
    stop();
    current_ = nullptr;
  }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  // Its properties.
  bool ethernet = true;
  bool is_mlx5 = true, port_is_active = true;
  /// Which UAR pages it has. As with rdma-core, the plain uncached one is shared by all; two
  /// write-combining ones share a page of the system; dedicated ones each have a page, as long as
  /// there are any.
  bool has_uncached_page = true, has_gathering_pages = true;
  int dedicated_pages = 1000;
  std::size_t page_bytes = 4096; ///< page size of the system
  bool can_force_order = true;
  std::uint64_t operations = 15, sizes = 12, host_order = 1;
  std::vector<ibv_gid_entry> gids;
  /// The command that fails: its code, or 0.
  std::uint16_t failing_command = 0;
  std::string failing_call;
  bool has_dma_bufs = false; ///< its library has ibv_reg_dmabuf_mr
  /// Its library has mlx5dv_devx_umem_reg_ex, which takes no dma-buf, as before rdma-core 44.
  bool has_umem_reg_ex = false;

  // A record of its use.
  std::vector<std::uint16_t> commands;
  QpCommand init, receive, send;
  std::vector<std::string> open_objects; ///< in order of creation
  std::string closed;                    ///< in order of destruction
  std::shared_ptr<Executor> peer; ///< memory that its queues access; nullptr: this process's own
  KeyTable keys;
  struct {
    std::uint64_t offset_bytes = 0, size_bytes = 0, address = 0;
    int file = -1, access = 0;
  } dma_buf; ///< the last one

  DirectLibraries libraries();
  /// Serves the queues in a thread of its own, until stop().
  void serve();
  void stop();
  void raise_event(std::uint64_t event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
  }
  void add_gid(std::uint32_t index, std::uint32_t type, const std::array<std::uint8_t, 16>& raw) {
    ibv_gid_entry entry{};
    std::memcpy(entry.gid.raw, raw.data(), raw.size());
    entry.gid_index = index;
    entry.port_num = 1;
    entry.gid_type = type;
    gids.push_back(entry);
  }

private:
  static FakeDevice& now() { return *current_; }
  bool fails(const char* call) const {
    if (failing_call != call)
      return false;
    errno = EPERM;
    return true;
  }
  void end(const char* what) { closed += std::string(what) + " "; }
  struct Queue;
  int reply_caps(const void* in, void* out, std::size_t size_bytes) const;
  mlx5dv_devx_obj* create(const void* in, std::size_t size_bytes, void* out);
  int modify(const void* in, std::size_t size_bytes, void* out);
  void make_queue(Queue& queue, const QpCommand& command, std::uint32_t qpn);
  std::byte* registered(std::uint64_t id, std::uint64_t offset, std::size_t size_bytes);
  mlx5dv_devx_uar* allocate_page(std::uint32_t type);
  mlx5dv_devx_uar* add_register(std::byte* base, std::size_t offset);
  int refuse(void* out) const;

  inline static FakeDevice* current_ = nullptr;

  ibv_device device_{};
  ibv_context context_{};
  ibv_pd domain_{};
  ibv_ah address_{};
  mlx5_wqe_av vector_{};
  struct Page {
    mlx5dv_devx_uar uar{};
    std::unique_ptr<std::byte, void (*)(void*)> memory{nullptr, std::free};
  };
  struct Memory {
    mlx5dv_devx_umem umem{};
    std::byte* base = nullptr;
    std::size_t size_bytes = 0;
  };
  struct Queue {
    mlx5dv_devx_obj completions{}, queue{};
    CqCommand completions_command;
    int state = 0;
    std::unique_ptr<EmulatedQp> device;
  };
  std::list<Page> pages_;
  mlx5dv_devx_uar* shared_page_ = nullptr; ///< the plain uncached one
  std::byte* half_used_ = nullptr; ///< a page with room for another write-combining register
  std::list<Memory> memories_;
  std::list<Queue> queues_;
  std::list<mlx5dv_devx_event_channel> channels_;
  std::shared_ptr<MappedExecutor> own_memory_ = std::make_shared<MappedExecutor>();
  std::uint32_t next_key_ = 0x1000;
  std::vector<std::uint16_t> subscribed_;

  std::mutex mutex_;
  std::vector<std::uint64_t> events_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

} // namespace shmemctl::test
