#include "transports/mlx5/mlx5_transport.h"

#include <algorithm>

#include "transports/mlx5/connect.h"

namespace shmemctl::mlx5 {

Mlx5Transport::Mlx5Transport(const TransportSetup& setup, const Settings& settings)
    : settings_(settings), job_(setup), devices_(setup, settings_) {}

/// Destroys in this order: QPs, memory, HCAs, and then the transport that these execute on.
Mlx5Transport::~Mlx5Transport() {
  qp_sets_.clear();
  local_.reset();
  job_.ports.clear();
}

std::string Mlx5Transport::local_info() {
  summary_ = devices_.summary();
  return to_bytes(summary_);
}

Reach Mlx5Transport::reach(const PeerLocation& me, const PeerLocation& peer) const {
  return devices_.reach(summary_, me, peer);
}

void Mlx5Transport::connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
                            const Deadline& deadline) {
  if (Transport* below = devices_.below()) {
    std::vector<PeerLocation> below_peers = peers;
    for (PeerLocation& peer : below_peers)
      peer.transport_info = from_bytes<Summary>(peer.transport_info).value_or(Summary{}).below;
    below->connect(below_peers, exchange, deadline);
  }
  if (!peers.empty()) {
    devices_.open(job_);
    local_ = std::make_unique<rc::LocalMemory>(
        [this](auto&&... memory) { return register_memory(memory...); });
    host_qp_sets_ = static_cast<std::size_t>(settings_.qp_sets);
    for (int number = 0; number < settings_.all_qp_sets(); ++number)
      qp_sets_.push_back(
          std::make_unique<QpSet>(job_, *local_, remote_, static_cast<std::size_t>(number)));
  }
  Connector connector(job_, settings_, peers, qp_sets_);
  connector.connect(exchange);
  texts_ = connector.texts();
  nics_ = connector.nics();
}

TableImage Mlx5Transport::queue_table() const {
  if (qp_sets_.empty())
    throw_unconnected();
  TableBuilder builder(static_cast<std::uint32_t>(job_.n_pes),
                       static_cast<std::uint32_t>(qp_sets_.size()));
  for (int pe = 0; pe < job_.n_pes; ++pe) {
    const auto number = static_cast<std::uint32_t>(pe);
    std::vector<TableQp> queues;
    for (std::size_t path = 0; path < qp_sets_[0]->paths_to(pe); ++path)
      for (const std::unique_ptr<QpSet>& qp_set : qp_sets_) {
        Endpoint& endpoint = qp_set->endpoint(pe, path);
        const HcaQp& queue = endpoint.queue().hca_queue();
        queues.push_back({queue.view(), static_cast<std::uint32_t>(endpoint.port),
                          static_cast<std::uint32_t>(endpoint.peer_port), queue.abilities()});
      }
    builder.set_queues(number, std::move(queues));
    for (std::uint32_t region = 0; region < TableBuilder::n_regions; ++region)
      for (const rc::SegmentKey& key : remote_.segments(pe, static_cast<int>(region))) {
        RemoteSegment segment{key.offset_bytes, key.size_bytes, key.address, {}};
        std::copy(key.keys.begin(), key.keys.end(), segment.rkeys);
        builder.add_remote(number, region, segment);
      }
  }
  local_->for_each([&builder](const rc::Registration& registration) {
    LocalSegment segment{registration.begin, registration.end, {}};
    for (std::size_t port = 0; port < registration.keys.size(); ++port)
      segment.lkeys[port] = registration.lkey(port);
    builder.add_local(segment);
  });
  return builder.build();
}

// Memory.

rc::Registration Mlx5Transport::register_memory(std::byte* base, std::size_t size_bytes,
                                                const std::shared_ptr<const DeviceMemory>& gpu,
                                                const std::string& what) const {
  rc::Registration registration;
  registration.begin = reinterpret_cast<std::uint64_t>(base);
  registration.end = registration.begin + size_bytes;
  for (const Port& port : job_.ports) {
    try {
      std::unique_ptr<HcaMemory> memory =
          port.hca->register_memory({base, size_bytes, access_all, gpu});
      registration.keys.push_back({memory->lkey(), memory->rkey()});
      registration.method = memory->method();
      registration.handles.emplace_back(std::move(memory));
    } catch (const Error& error) {
      throw error.with_action(error.attempted() + " (" + what + ")").with_where(job_.where(port));
    }
  }
  return registration;
}

/// The transport below accesses host memory only.
Transport* Mlx5Transport::carrier_of(int region) const {
  return local_ && local_->devices().has(region) ? nullptr : devices_.below();
}

std::string Mlx5Transport::set_region(const RegionView& region) {
  rc::SegmentKey key;
  std::string below_key;
  if (Transport* below = carrier_of(region.region))
    below_key = below->set_region(region);
  regions_.set(region);
  if (local_)
    key = local_->set_region(region);
  key.below = std::move(below_key);
  return to_bytes(key);
}

void Mlx5Transport::set_keys(int region, const std::vector<std::string>& keys) {
  std::vector<rc::SegmentKey> decoded(keys.size());
  std::vector<std::string> below_keys(keys.size());
  for (std::size_t pe = 0; pe < keys.size(); ++pe) {
    decoded[pe] = read_key(static_cast<int>(pe), keys[pe], wire_limits::ports);
    below_keys[pe] = std::move(decoded[pe].below);
  }
  if (Transport* below = carrier_of(region); below && below->has_keys())
    below->set_keys(region, below_keys);
  if (qp_sets_.empty())
    return;
  for (std::size_t pe = 0; pe < keys.size(); ++pe) {
    if (qp_sets_[0]->paths_to(static_cast<int>(pe)) == 0)
      decoded[pe].size_bytes = 0; // adds nothing
    else if (decoded[pe].size_bytes > 0)
      open_windows(static_cast<int>(pe), region, decoded[pe]);
  }
  remote_.add(region, decoded);
}

void Mlx5Transport::open_windows(int pe, int region, const rc::SegmentKey& key) {
  for (std::size_t port = 0; devices_.emulated() && port < job_.ports.size(); ++port) {
    KeyWindow window;
    window.address = key.address;
    window.size_bytes = key.size_bytes;
    window.access = access_all;
    window.region = region;
    window.region_offset_bytes = key.offset_bytes;
    window.is_gpu = local_->devices().has(region);
    window.mapped =
        devices_.below() || window.is_gpu ? nullptr : mapped_at(pe, region, key.offset_bytes);
    const auto held = job_.ports[port].emulated->hold();
    for (std::size_t there = 0; there < key.keys.size(); ++there) {
      window.key = key.keys[there];
      devices_.paths(port).add(emulated_device_id(pe, there), window);
    }
  }
}

std::byte* Mlx5Transport::mapped_at(int pe, int region, std::uint64_t offset_bytes) const {
  const RegionView& view = regions_[static_cast<std::size_t>(region)];
  const auto slot = static_cast<std::size_t>(pe);
  std::byte* const base =
      pe == job_.pe ? view.base : (slot < view.mapped.size() ? view.mapped[slot] : nullptr);
  if (!base)
    throw Error(ExitCode::unavailable, job_.name_of(pe),
                "access its memory through the emulated HCA", "not mapped in this process",
                "set SHMEMCTL_EMULATED_HCA_OVER to libfabric, ucx or ibrc", job_.where());
  return base + offset_bytes;
}

void Mlx5Transport::add_local(void* base, std::size_t size_bytes) {
  if (Transport* below = devices_.below())
    below->add_local(base, size_bytes);
  if (local_)
    local_->add(base, size_bytes);
}

void Mlx5Transport::remove_local(void* base) {
  if (local_)
    local_->remove(base);
  if (Transport* below = devices_.below())
    below->remove_local(base);
}

// GPU memory.

DeviceReach Mlx5Transport::try_device_memory(const std::shared_ptr<const DeviceMemory>& memory,
                                             std::byte* base, std::size_t size_bytes) {
  if (devices_.emulated())
    return {"", std::string("the emulated HCA ") + host_memory_only};
  if (!local_)
    return unconnected_reach();
  return local_->try_device_memory(memory, base, size_bytes);
}

void Mlx5Transport::set_device_region(int region, std::shared_ptr<const DeviceMemory> memory) {
  if (local_)
    local_->set_device_region(region, std::move(memory));
}

void Mlx5Transport::drop_device_region(int region) {
  for (std::size_t port = 0; devices_.emulated() && port < job_.ports.size(); ++port) {
    const auto held = job_.ports[port].emulated->hold();
    devices_.paths(port).drop_gpu_region(region);
  }
  remote_.drop(region);
  if (local_)
    local_->drop_device_region(region);
  // The path may be destroyed after the last region.
  if (!local_ || local_->devices().empty())
    set_gpu_path(nullptr, 0);
}

void Mlx5Transport::use_for_gpu_memory(Transport& path, int context) {
  set_gpu_path(&path, context);
}

void Mlx5Transport::set_gpu_path(Transport* path, int context) {
  for (std::size_t port = 0; devices_.emulated() && port < job_.ports.size(); ++port) {
    const auto held = job_.ports[port].emulated->hold();
    devices_.paths(port).use_for_gpu(path, context);
  }
}

// Operations.

void Mlx5Transport::progress() {
  if (Transport* below = devices_.below())
    below->progress();
  poll_qp_sets();
}

// Description of the transport.

/// Atomics of an emulated HCA are as coherent as those of the transport that executes them. Atomics
/// of a real HCA are atomic only with each other.
bool Mlx5Transport::atomics_coherent_with_cpu() const {
  if (!devices_.emulated())
    return false;
  return !devices_.below() || devices_.below()->atomics_coherent_with_cpu();
}

std::vector<NicTraffic> Mlx5Transport::traffic() const {
  if (const Transport* below = devices_.below())
    return below->traffic();
  std::vector<NicTraffic> all;
  for (std::size_t port = 0; port < job_.ports.size(); ++port) {
    NicTraffic sum{{job_.ports[port].info().device, job_.ports[port].info().port}, 0, 0, 0};
    for (const std::unique_ptr<QpSet>& each : qp_sets_) {
      const NicTraffic part = each->traffic(port);
      sum.put_bytes += part.put_bytes;
      sum.get_bytes += part.get_bytes;
      sum.operations += part.operations;
    }
    all.push_back(sum);
  }
  return all;
}

/// A connection's method for signals and its atomics, as text; empty if the emulated HCA keeps the
/// order of WRITEs and has atomics of 4 and 8 bytes.
std::string Mlx5Transport::abilities_text(int pe) const {
  if (qp_sets_.empty() || qp_sets_[0]->paths_to(pe) == 0)
    return {};
  const QpCapabilities abilities = qp_sets_[0]->endpoint(pe, 0).queue().hca_queue().abilities();
  std::string text;
  switch (abilities.signals) {
  case SignalMethod::write:
    text = devices_.emulated() ? "" : ", order of WRITEs kept";
    break;
  case SignalMethod::atomic:
    text = ", signals by atomics";
    break;
  case SignalMethod::completion:
    text = ", signals wait for completions";
    break;
  }
  if (abilities.atomic_bytes == 0)
    return text + ", no atomics";
  return abilities.atomic_bytes == 8 ? text + ", no atomics of 4 bytes" : text;
}

std::string Mlx5Transport::connection(int pe) const {
  const auto slot = static_cast<std::size_t>(pe);
  if (slot >= texts_.size() || texts_[slot].empty())
    return {};
  std::string text = texts_[slot] + ", " + devices_.nature() + abilities_text(pe);
  if (const Transport* below = devices_.below())
    if (const std::string path = below->connection(pe); !path.empty())
      text += " (" + path + ")";
  return text;
}

std::vector<NicPair> Mlx5Transport::nics_to(int pe) const {
  if (const Transport* below = devices_.below())
    return below->nics_to(pe);
  const auto slot = static_cast<std::size_t>(pe);
  if (devices_.emulated() || pe == job_.pe || slot >= nics_.size())
    return {};
  return nics_[slot];
}

} // namespace shmemctl::mlx5
