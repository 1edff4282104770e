// The transport ibrc over a given libibverbs; tests pass a fake one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/ibrc/connect.h"
#include "transports/ibrc/job_view.h"
#include "transports/ibrc/qp_set.h"
#include "transports/ibrc/settings.h"
#include "transports/rc/local_memory.h"
#include "transports/rc/qp_set_transport.h"
#include "transports/rc/remote_memory.h"
#include "transports/transport.h"
#include "transports/verbs/functions.h"

namespace shmemctl::ibrc {

class IbrcTransport final : public rc::QpSetTransport<QpSet> {
public:
  /// @param functions nullptr if the library cannot be used
  /// @param reason    why it cannot be used
  IbrcTransport(const TransportSetup& setup, std::shared_ptr<const verbs::Functions> functions,
                std::string reason);
  ~IbrcTransport() override { qp_sets_.clear(); }
  IbrcTransport(const IbrcTransport&) = delete;
  IbrcTransport& operator=(const IbrcTransport&) = delete;

  const char* name() const override { return "ibrc"; }
  std::string local_info() override;
  Reach reach(const PeerLocation& me, const PeerLocation& peer) const override;
  void use_nics(const std::vector<HcaPort>& nics) override;
  void connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
               const Deadline& deadline) override;
  std::string set_region(const RegionView& region) override;
  void set_keys(int region, const std::vector<std::string>& keys) override;
  DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>& memory, std::byte* base,
                                std::size_t size_bytes) override {
    return local_ ? local_->try_device_memory(memory, base, size_bytes) : unconnected_reach();
  }
  void set_device_region(int region, std::shared_ptr<const DeviceMemory> memory) override {
    if (local_)
      local_->set_device_region(region, std::move(memory));
  }
  void drop_device_region(int region) override {
    if (local_)
      local_->drop_device_region(region);
    remote_.drop(region);
  }
  void add_local(void* base, std::size_t size_bytes) override;
  void remove_local(void* base) override;

  void progress() override;
  bool atomics_coherent_with_cpu() const override;
  std::vector<NicTraffic> traffic() const override;
  std::string connection(int pe) const override;
  std::vector<NicPair> nics_to(int pe) const override;

  // For code that posts to the QPs itself (raw_writes.cpp).
  /// Why this transport cannot be used here; "" if it can.
  const std::string& unusable_reason() const { return reason_; }
  JobView& view() { return job_; }
  /// nullptr without connections.
  const rc::LocalMemory* local_memory() const { return local_.get(); }
  const rc::RemoteMemory& remote_memory() const { return remote_; }
  /// Throws Error (unavailable) without connections.
  const QpSet& first_qp_set() const { return qp_set(0); }

private:
  /// A port of a device that the survey has found.
  struct Found {
    std::size_t device = 0; ///< index in the survey's devices
    std::string device_name;
    AtomicsCapabilities atomics;
    verbs::Port port;
    std::vector<verbs::GidEntry> addresses; ///< candidates, best first
    std::string reason;                     ///< why the port cannot be used; "" if it can
  };

  void check_port_events();
  rc::Registration register_memory(std::byte* base, std::size_t size_bytes,
                                   const std::shared_ptr<const DeviceMemory>& gpu,
                                   const std::string& what) const;
  const Found& find(const HcaPort& wanted) const;
  /// Moves the devices of the chosen ports to the job, and closes the others.
  void open_chosen();
  Error cannot_use(const HcaPort& port, const std::string& why, const std::string& fix) const;
  Error no_listed_port() const;
  std::string names_of_ports() const;
  Summary summary() const;
  const std::string& reason() const override { return reason_; }
  const rc::Job& job() const override { return job_; }

  std::shared_ptr<const verbs::Functions> functions_;
  std::string reason_; ///< why this transport cannot be used here; "" if it can
  Options options_;
  Settings settings_;
  bool nics_wanted_ = false; ///< whether an option names NICs
  bool nics_given_ = false;  ///< whether use_nics() was called with NICs
  verbs::Survey survey_;
  std::vector<Found> found_;
  std::vector<std::size_t> chosen_; ///< indices into found_, best first
  JobView job_;
  std::unique_ptr<rc::LocalMemory> local_;
  rc::RemoteMemory remote_;
  std::unique_ptr<MessageService> service_; ///< nullptr unless CPUs execute atomics
  ConnectionTexts texts_;
  std::vector<std::vector<NicPair>> nics_; ///< NICs of the connections, by PE
};

} // namespace shmemctl::ibrc
