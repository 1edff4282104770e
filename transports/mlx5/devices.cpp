#include "transports/mlx5/devices.h"

#include <sys/stat.h>

#include "src/base/text.h"
#include "transports/registry.h"

namespace shmemctl::mlx5 {

namespace {

std::uint64_t network_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

/// Returns nullptr for shm: the emulated HCA itself accesses memory that is mapped here.
std::unique_ptr<Transport> make_below(const std::string& name, const TransportSetup& setup) {
  return name == "shm" ? nullptr : make_transport(name, setup);
}

} // namespace

Devices::Devices(const TransportSetup& setup, const Settings& settings)
    : settings_(settings), host_(setup.host_name), pe_(setup.pe) {
  std::string why;
  if (settings.may_be_real && find_real(why)) {
    kind_ = Summary::Kind::real;
    return;
  }
  if (settings.may_be_emulated) {
    choose_emulated(setup);
    return;
  }
  reason_ = "no mlx5 device on this node";
  if (!why.empty())
    reason_ += " (" + why + ")";
  reason_ += "; SHMEMCTL_MLX5_DEVICE=emulated selects the emulated HCA";
}

/// Chooses the first device that can be used; use_nics() may replace it.
bool Devices::find_real(std::string& why) {
  std::vector<std::string> reasons;
  for (const std::string& name : settings_.list_devices(why))
    try {
      chosen_.push_back(open_port({name, 1}));
      ethernet_ = chosen_.front()->info().ethernet;
      has_atomics_ = (chosen_.front()->info().atomic_bytes & 8) != 0;
      return true;
    } catch (const Error& error) {
      reasons.push_back(name + ": " + error.system_message());
    }
  if (!reasons.empty())
    why = join(reasons, "; ");
  else if (why == "there is no device of the mlx5 family")
    why.clear();
  return false;
}

std::unique_ptr<Hca> Devices::open_port(const HcaPort& port) const {
  std::unique_ptr<Hca> hca = settings_.open_device(port.device, port.port);
  const Where where{host_, pe_, port.device, port.port};
  if (const std::string& unfit = hca->info().unfit; !unfit.empty())
    throw Error(ExitCode::unavailable, "NIC", "use", unfit,
                "bring the link up (ip link, ibstat), choose another NIC with SHMEMCTL_HCA_LIST, "
                "or set SHMEMCTL_MLX5_DEVICE=emulated",
                where);
  if (const auto unfit = rc::unfit_option(settings_.queue.path, hca->info().ethernet))
    throw Error(ExitCode::unavailable, "NIC", "use", unfit->cause, unfit->fix, where);
  return hca;
}

void Devices::choose_emulated(const TransportSetup& setup) {
  kind_ = Summary::Kind::emulated;
  below_ = make_below(settings_.over, setup);
}

Summary Devices::summary() {
  Summary summary;
  summary.kind = kind_;
  summary.reason = reason_;
  summary.network_namespace = network_namespace();
  if (kind_ == Summary::Kind::real) {
    summary.ethernet = ethernet_;
    summary.has_atomics = has_atomics_;
  }
  if (kind_ == Summary::Kind::emulated)
    summary.over = settings_.over;
  if (below_)
    summary.below = below_->local_info();
  return summary;
}

Reach Devices::reach(const Summary& local, const PeerLocation& me, const PeerLocation& peer) const {
  if (kind_ == Summary::Kind::none)
    return {0, reason_};
  const std::optional<Summary> remote = from_bytes<Summary>(peer.transport_info);
  if (!remote)
    return {0, std::string("that PE sent no data for ") + settings_.name +
                   ", or data of another version"};
  if (remote->kind == Summary::Kind::none)
    return {0, "there: " + printable(remote->reason, rc::max_text_bytes)};
  constexpr unsigned all = can_put | can_get | can_atomics | can_put_signal;
  if (remote->kind != kind_)
    return {0, std::string(emulated() ? "the emulated HCA here, a real one there"
                                      : "a real HCA here, the emulated one there") +
                   "; set SHMEMCTL_MLX5_DEVICE to the same value on all PEs"};
  if (!emulated()) {
    if (remote->ethernet != local.ethernet)
      return {0, "one port is InfiniBand and the other Ethernet; SHMEMCTL_HCA_LIST chooses ports"};
    const bool atomics = local.has_atomics && remote->has_atomics;
    return {atomics ? all : all & ~unsigned{can_atomics},
            nature() + (atomics ? "" : ", no atomics of 8 bytes")};
  }
  if (remote->over != settings_.over)
    return {0, "the emulated HCA is over " + settings_.over + " here and over " +
                   printable(remote->over) +
                   " there; set SHMEMCTL_EMULATED_HCA_OVER to the same value on all PEs"};
  if (below_) {
    PeerLocation below_me = me, below_peer = peer;
    below_me.transport_info = local.below;
    below_peer.transport_info = remote->below;
    const Reach below = below_->reach(below_me, below_peer);
    return {below.capabilities & all, "emulated HCA over " + settings_.over +
                                          (below.reason.empty() ? "" : ": " + below.reason)};
  }
  constexpr const char* other_way =
      ": SHMEMCTL_EMULATED_HCA_OVER=libfabric, ucx or ibrc carries it there";
  if (me.machine_id != peer.machine_id)
    return {0, std::string("emulated HCA over shm, and on another machine") + other_way};
  if (me.node_id != peer.node_id)
    return {0, std::string("emulated HCA over shm, and on another virtual node") + other_way};
  if (local.network_namespace != remote->network_namespace)
    return {0, std::string("emulated HCA over shm, and in another network namespace, through which "
                           "no memory can be shared") +
                   other_way};
  return {all, nature()};
}

std::string Devices::nature() const {
  if (emulated())
    return "emulated HCA over " + settings_.over;
  return ethernet_ ? "RoCE" : "InfiniBand";
}

void Devices::use_nics(const std::vector<HcaPort>& nics) {
  if (below_)
    return below_->use_nics(nics);
  if (kind_ != Summary::Kind::real)
    return;
  std::vector<std::unique_ptr<Hca>> wanted;
  for (const HcaPort& nic : nics) {
    if (wanted.size() == wire_limits::ports || (!wanted.empty() && !settings_.all_ports))
      break;
    wanted.push_back(open_port(nic));
  }
  if (wanted.empty())
    return;
  ethernet_ = wanted.front()->info().ethernet;
  has_atomics_ = (wanted.front()->info().atomic_bytes & 8) != 0;
  chosen_ = std::move(wanted);
}

void Devices::open(JobView& job) {
  if (!emulated()) {
    for (std::unique_ptr<Hca>& hca : chosen_)
      job.ports.push_back({std::move(hca), nullptr});
    chosen_.clear();
    return;
  }
  for (std::size_t port = 0; port < static_cast<std::size_t>(settings_.emulated_devices); ++port) {
    paths_.push_back(std::make_shared<EmulatedPaths>(below_.get(), static_cast<int>(port)));
    std::unique_ptr<EmulatedHca> hca =
        make_emulated_hca(paths_.back(), job.pe, port, settings_.emulated_order);
    EmulatedHca* const device = hca.get();
    job.ports.push_back({std::move(hca), device});
  }
}

} // namespace shmemctl::mlx5
