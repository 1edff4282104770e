// The implementation of ibdevx and ibgda, except for their settings and ibgda's functions for
// kernels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transports/mlx5/devices.h"
#include "transports/mlx5/qp_set.h"
#include "transports/mlx5/settings.h"
#include "transports/mlx5/table_builder.h"
#include "transports/rc/local_memory.h"
#include "transports/rc/qp_set_transport.h"
#include "transports/rc/remote_memory.h"
#include "transports/rc/segment_key.h"
#include "transports/region_table.h"
#include "transports/transport.h"

namespace shmemctl::mlx5 {

class Mlx5Transport : public rc::QpSetTransport<QpSet> {
public:
  Mlx5Transport(const TransportSetup& setup, const Settings& settings);
  ~Mlx5Transport() override;
  Mlx5Transport(const Mlx5Transport&) = delete;
  Mlx5Transport& operator=(const Mlx5Transport&) = delete;

  const char* name() const override { return settings_.name; }
  std::string local_info() override;
  Reach reach(const PeerLocation& me, const PeerLocation& peer) const override;
  void use_nics(const std::vector<HcaPort>& nics) override { devices_.use_nics(nics); }
  void connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
               const Deadline& deadline) override;
  std::string set_region(const RegionView& region) override;
  void set_keys(int region, const std::vector<std::string>& keys) override;
  void add_local(void* base, std::size_t size_bytes) override;
  void remove_local(void* base) override;

  void progress() override;
  bool atomics_coherent_with_cpu() const override;
  std::vector<NicTraffic> traffic() const override;
  std::string connection(int pe) const override;
  /// For an emulated HCA, the ports of the transport that carries its data, since it has none
  /// itself.
  std::vector<NicPair> nics_to(int pe) const override;

  // GPU memory.
  DeviceReach try_device_memory(const std::shared_ptr<const DeviceMemory>& memory, std::byte* base,
                                std::size_t size_bytes) override;
  void set_device_region(int region, std::shared_ptr<const DeviceMemory> memory) override;
  void drop_device_region(int region) override;
  bool is_emulated() const { return devices_.emulated(); }
  bool is_connected() const { return local_ != nullptr; }
  /// The transport that the emulated HCA executes its operations on; nullptr if it accesses mapped
  /// memory, or if the HCA is real.
  Transport* carrier() const { return devices_.below(); }
  /// Sets the transport for operations of an emulated HCA on regions of GPU memory, since that HCA
  /// itself accesses host memory only. The transport must accept local memory of any kind. Must be
  /// called before such regions are set; valid until the last of them is dropped.
  /// @param context context of `path` for this use only; the thread that drives the HCA uses it
  void use_for_gpu_memory(Transport& path, int context);

  /// The queue table for kernels, with all keys known so far and the buffers added by add_local().
  /// The addresses of its queues are valid as long as this transport exists.
  TableImage queue_table() const;

protected:
  const Settings& settings() const { return settings_; }

private:
  const std::string& reason() const override { return devices_.reason(); }
  const rc::Job& job() const override { return job_; }
  std::string abilities_text(int pe) const;
  void set_gpu_path(Transport* path, int context);
  rc::Registration register_memory(std::byte* base, std::size_t size_bytes,
                                   const std::shared_ptr<const DeviceMemory>& gpu,
                                   const std::string& what) const;
  /// Tells the emulated HCAs which memory a peer's rkeys refer to. With real HCAs, the peer's HCA
  /// looks them up.
  void open_windows(int pe, int region, const rc::SegmentKey& key);
  /// The transport below; nullptr if there is none, or if the region is GPU memory.
  Transport* carrier_of(int region) const;
  std::byte* mapped_at(int pe, int region, std::uint64_t offset_bytes) const;

  const Settings settings_;
  JobView job_;
  std::string info_; ///< result of local_info()
  Summary summary_;
  mutable Devices devices_; // destroyed after the QPs; owns the executors and the transport below
  std::unique_ptr<rc::LocalMemory> local_;
  rc::RemoteMemory remote_;
  RegionTable regions_;
  std::vector<std::string> texts_;
  std::vector<std::vector<NicPair>> nics_; ///< NICs of the connections, by PE
};

} // namespace shmemctl::mlx5
