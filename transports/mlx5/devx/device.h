// An open device, and the objects of its QPs. Internal to this folder and its tests.
#pragma once

#include <memory>

#include "transports/mlx5/devx/commands.h"
#include "transports/mlx5/devx/functions.h"
#include "transports/verbs/device.h"

namespace shmemctl::mlx5 {

/// Closes an object with its closing function, whose result is ignored.
template <class Object, class Function>
struct DirectCloser {
  Function close = nullptr;
  void operator()(Object* object) const { close(object); }
};
template <class Object, class Function>
using DirectHandle = std::unique_ptr<Object, DirectCloser<Object, Function>>;

template <class Object, class Function>
DirectHandle<Object, Function> own_direct(Object* object, Function close) {
  return DirectHandle<Object, Function>(object, DirectCloser<Object, Function>{close});
}

using RegisteredQueue = DirectHandle<mlx5dv_devx_umem, decltype(DirectFunctions::umem_dereg)>;
using RegisterPage = DirectHandle<mlx5dv_devx_uar, decltype(DirectFunctions::free_uar)>;
using FirmwareObject = DirectHandle<mlx5dv_devx_obj, decltype(DirectFunctions::obj_destroy)>;
using EventChannel =
    DirectHandle<mlx5dv_devx_event_channel, decltype(DirectFunctions::destroy_event_channel)>;
using AddressHandle = DirectHandle<ibv_ah, decltype(DirectFunctions::destroy_ah)>;

/// Commands and small objects of one open device. Functions may throw Error (unavailable) that
/// names device, port and step, with the system's text and, for commands, the firmware's status.
class DirectDevice {
public:
  DirectDevice(std::shared_ptr<const verbs::Functions> verbs,
               std::shared_ptr<const DirectFunctions> direct, ibv_device* device, int port);

  verbs::Device& verbs() { return verbs_; }
  const DirectFunctions& direct() const { return *direct_; }
  const verbs::Port& port() const { return port_; }

  DeviceLimits limits() const;
  std::uint32_t protection_domain_number();
  std::uint32_t event_queue() const;
  /// @param dmabuf descriptor of the dma-buf; -1 for host memory
  RegisteredQueue register_queue(void* base, std::size_t size_bytes, int dmabuf) const;
  struct Doorbell {
    RegisterPage page;
    bool write_combining;
  };
  Doorbell doorbell_page() const;

  template <class Command>
  FirmwareObject create(const Command& command, Answer& answer, const char* step) const {
    return create(command.data(), command.size(), answer, step);
  }
  void modify(const FirmwareObject& object, const QpCommand& command, const char* step) const;
  /// The Ethernet address of the peer at the other end of a path. The kernel resolves it.
  std::array<std::uint8_t, 6> resolve(const rc::QpPath& path);

  [[noreturn]] void fail(const std::string& step, const std::string& message,
                         const std::string& fix) const;

private:
  FirmwareObject create(const void* command, std::size_t size_bytes, Answer& answer,
                        const char* step) const;
  CapsReply caps(std::uint16_t group, const char* what) const;
  [[noreturn]] void fail_command(const char* step, int error_number, const Answer& answer) const;

  std::shared_ptr<const DirectFunctions> direct_;
  verbs::Device verbs_;
  verbs::Port port_;
};

} // namespace shmemctl::mlx5
