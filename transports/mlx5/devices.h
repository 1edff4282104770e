// The devices of ibdevx and ibgda: real ones, the emulated HCA, or none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/mlx5/emulated/emulated_paths.h"
#include "transports/mlx5/job_view.h"
#include "transports/mlx5/settings.h"
#include "transports/mlx5/wire.h"
#include "transports/transport.h"

namespace shmemctl::mlx5 {

/// Finds the devices, and opens the ports that are used.
class Devices {
public:
  /// Does not throw if there is no device.
  Devices(const TransportSetup& setup, const Settings& settings);

  Summary summary();
  Reach reach(const Summary& local, const PeerLocation& me, const PeerLocation& peer) const;
  /// Throws Error (unavailable) for a port that cannot be used.
  void use_nics(const std::vector<HcaPort>& nics);
  /// Moves the chosen ports of real HCAs to the job, or creates its emulated HCAs and their paths.
  void open(JobView& job);

  bool emulated() const { return kind_ == Summary::Kind::emulated; }
  const std::string& reason() const { return reason_; }
  const std::string& over() const { return settings_.over; }
  /// The transport that the emulated HCA executes its operations on; nullptr if there is none.
  Transport* below() const { return below_.get(); }
  /// The paths of the emulated HCA of a port.
  EmulatedPaths& paths(std::size_t port) const { return *paths_[port]; }
  /// Describes the devices of a connection: "emulated HCA over shm".
  std::string nature() const;

private:
  bool find_real(std::string& why);
  void choose_emulated(const TransportSetup& setup);
  std::unique_ptr<Hca> open_port(const HcaPort& port) const;

  const Settings& settings_;
  std::string host_;
  int pe_;
  Summary::Kind kind_ = Summary::Kind::none;
  std::string reason_; ///< why there are no devices
  std::unique_ptr<Transport> below_;
  std::vector<std::unique_ptr<Hca>> chosen_; ///< real HCAs, best first
  bool ethernet_ = false;                    ///< whether the first chosen port is Ethernet
  bool has_atomics_ = true;                  ///< whether the first chosen HCA has 8-byte atomics
  std::vector<std::shared_ptr<EmulatedPaths>> paths_;
};

} // namespace shmemctl::mlx5
