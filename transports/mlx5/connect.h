// Creates and connects the QPs of all QP sets to all peers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/mlx5/job_view.h"
#include "transports/mlx5/qp_set.h"
#include "transports/mlx5/settings.h"
#include "transports/mlx5/wire.h"
#include "transports/transport.h"

namespace shmemctl::mlx5 {

/// connect() is collective. It throws Error (unavailable) that names the ports, Error (usage) if
/// PEs have options that give different numbers of QPs.
class Connector {
public:
  /// @param qp_sets the QP sets; empty if this PE has no connections
  Connector(JobView& job, const Settings& settings, const std::vector<PeerLocation>& peers,
            const std::vector<std::unique_ptr<QpSet>>& qp_sets)
      : job_(job), settings_(settings), peers_(peers), qp_sets_(qp_sets) {}

  void connect(Exchange& exchange);
  /// By PE: "emulated-mlx5:1 -> emulated-mlx5:1, 2 QPs"
  std::vector<std::string> texts() const;
  /// The ports of the connections, by PE.
  std::vector<std::vector<NicPair>> nics() const;

private:
  Hello hello() const;
  void make_queues(const PeerLocation& peer);

  JobView& job_;
  const Settings& settings_;
  const std::vector<PeerLocation>& peers_;
  const std::vector<std::unique_ptr<QpSet>>& qp_sets_;
  std::vector<Hello> hellos_; ///< by PE
};

} // namespace shmemctl::mlx5
