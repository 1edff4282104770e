// The transport ibrc over a given libibverbs: tests pass a fake one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/device_memory_user.h"
#include "transports/ibrc/connect.h"
#include "transports/ibrc/job_view.h"
#include "transports/ibrc/qp_set.h"
#include "transports/ibrc/settings.h"
#include "transports/transport.h"
#include "transports/verbs/functions.h"

namespace shmemctl::ibrc {

class IbrcTransport final : public Transport, public DeviceMemoryUser {
public:
  /// @param functions nullptr if there are none
  /// @param reason    why there are none
  IbrcTransport(const TransportSetup& setup, std::shared_ptr<const verbs::Functions> functions,
                std::string reason);

  const char* name() const override { return "ibrc"; }
  std::string local_info() override;
  Reach reach(const PeerLocation& me, const PeerLocation& peer) const override;
  void use_nics(const std::vector<HcaPort>& nics) override;
  void connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
               const Deadline& deadline) override;
  bool has_keys() const override { return true; }
  std::string set_region(const RegionView& region) override;
  void set_keys(int region, const std::vector<std::string>& keys) override;
  DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>& memory, std::byte* base,
                                std::size_t size_bytes) override {
    return local_ ? local_->try_device_memory(memory, base, size_bytes)
                  : DeviceReach{"", "it is not connected"};
  }
  void set_device_region(int region, std::shared_ptr<const DeviceMemory> memory) override {
    if (local_)
      local_->set_device_region(region, std::move(memory));
  }
  void drop_device_region(int region) override {
    if (local_)
      local_->drop_device_region(region);
  }
  void add_local(void* base, std::size_t size_bytes) override;
  void remove_local(void* base) override;

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override;
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override;
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override;
  void post_atomic(int context, const RemoteAddress& target, const AtomicRequest& request) override;
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override;
  void fence(int context) override;
  void quiet(int context) override;
  void progress() override;
  bool atomics_coherent_with_cpu() const override;
  std::vector<NicTraffic> traffic() const override;
  std::string connection(int pe) const override;

private:
  /// A port of a device that the survey has found.
  struct Found {
    std::size_t device = 0; ///< in the survey
    std::string device_name;
    AtomicsCapabilities atomics;
    verbs::Port port;
    std::vector<verbs::GidEntry> addresses; ///< candidates
    std::string reason;                     ///< why it cannot be used; "" if it can
  };

  void check_port_events();
  const Found& find(const HcaPort& wanted) const;
  /// From here on the devices of the chosen ports are the job's, and the others are closed.
  void open_chosen();
  Error cannot_use(const HcaPort& port, const std::string& why, const std::string& fix) const;
  Error no_listed_port() const;
  std::string names_of_ports() const;
  Summary summary() const;
  /// nullptr if this PE has no connections.
  QpSet* qp_set_of(int context) const;
  QpSet& qp_set(int context) const;

  std::shared_ptr<const verbs::Functions> functions_;
  std::string reason_; ///< why this transport cannot be used here; "" if it can
  Options options_;
  Settings settings_;
  bool nics_wanted_ = false; ///< an option names NICs
  bool nics_given_ = false;  ///< the mapping had some for this PE
  verbs::Survey survey_;
  std::vector<Found> found_;
  std::vector<std::size_t> chosen_; ///< indices into found_, best first
  JobView job_;
  std::unique_ptr<LocalMemory> local_;
  RemoteMemory remote_;
  std::unique_ptr<MessageService> service_;     ///< if atomics go by message
  std::vector<std::unique_ptr<QpSet>> qp_sets_; ///< destroyed before the memory that they use
  ConnectionTexts texts_;
  std::atomic<unsigned> progress_calls_{0};
};

} // namespace shmemctl::ibrc
