// A QP of a real device. Internal to this folder and its tests.
#pragma once

#include "transports/mlx5/devx/device.h"

namespace shmemctl::mlx5 {

/// The state that the QPs of a port share. It must outlive them.
struct DirectPort {
  DirectPort(std::shared_ptr<const verbs::Functions> verbs,
             std::shared_ptr<const DirectFunctions> direct, ibv_device* ibv, int number,
             const verbs::GidRequest& request, WriteOrder order);

  DirectDevice device;
  verbs::GidRequest request;
  DeviceLimits limits;
  bool force_order;   ///< whether QPs are configured to keep the order of WRITEs
  bool orders_writes; ///< whether WRITEs are ordered: by force_order, or as IB_WRITE_ORDER says
};

class DevxQp final : public HcaQp {
public:
  DevxQp(DirectPort& port, const QpOptions& options);

  PeerInfo local() const override { return local_; }
  void connect(const PeerInfo& peer) override;
  const QpView& view() const override { return view_; }
  QpCapabilities abilities() const override { return abilities_; }
  std::optional<std::string> fatal_event() override;
  std::string detail(std::uint16_t) const override { return {}; }

private:
  struct PageMemory {
    void operator()(void* memory) const;
  };

  void* place(const QpOptions& options, std::size_t size_bytes);
  void make_objects(const QpOptions& options, void* base, std::size_t size_bytes);
  void listen();
  void subscribe(const FirmwareObject& object, std::uint16_t event, std::uint64_t cookie);
  verbs::GidPair gids_for(const PeerInfo& peer) const;
  void move_to(rc::QpState state, const WirePath& path);

  DirectPort& port_;
  const rc::PathOptions path_;
  std::vector<verbs::GidEntry> gids_; ///< GIDs of local_.gids
  // Created in this order, and closed in reverse order.
  std::unique_ptr<void, PageMemory> memory_;
  RegisteredQueue registered_;
  DirectDevice::Doorbell doorbell_;
  FirmwareObject completion_queue_, queue_pair_;
  EventChannel events_;
  QpView view_{};
  PeerInfo local_;
  QpCapabilities abilities_;
};

} // namespace shmemctl::mlx5
