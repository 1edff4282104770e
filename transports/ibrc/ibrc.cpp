#include "transports/ibrc/ibrc.h"

#include <algorithm>
#include <fmt/format.h>

#include "src/base/text.h"
#include "transports/ibrc/atomics_choice.h"
#include "transports/ibrc/ibrc_transport.h"

namespace shmemctl {

namespace ibrc {

namespace {

constexpr unsigned calls_per_poll = 4096;
constexpr const char* address_fix =
    "give the port's interface an address (ip address add), or change SHMEMCTL_IB_GID_INDEX, "
    "SHMEMCTL_IB_ADDR_FAMILY, SHMEMCTL_IB_ADDR_RANGE or SHMEMCTL_IB_ROCE_VERSION_NUM";

/// "RoCE v2 IPv4, InfiniBand": the kinds of GID of all ports.
std::string kinds_of(const std::vector<Summary::Port>& ports) {
  std::vector<std::string> names;
  for (int kind = 0; kind < verbs::gid_kinds; ++kind)
    for (const Summary::Port& port : ports)
      if ((port.gid_kinds >> kind & 1) != 0) {
        names.emplace_back(verbs::to_string(static_cast<verbs::GidKind>(kind)));
        break;
      }
  return names.empty() ? "none with an address" : join(names, ", ");
}

AtomicsCapabilities capabilities_of(const verbs::Device& device, const Settings& settings) {
  return {
      settings.atomics, device.attributes().atomic_cap != IBV_ATOMIC_NONE,
      std::min(static_cast<std::uint32_t>(settings.receives), verbs::max_shared_receives(device))};
}

} // namespace

IbrcTransport::IbrcTransport(const TransportSetup& setup,
                             std::shared_ptr<const verbs::Functions> functions, std::string reason)
    : functions_(std::move(functions)), reason_(std::move(reason)),
      options_(setup.options ? *setup.options : Options({})), settings_(read_settings(options_)),
      job_(setup) {
  for (const char* list : {"HCA_LIST", "HCA_PE_MAPPING"})
    nics_wanted_ = nics_wanted_ || (setup.options && !setup.options->text(list).empty());
  if (!functions_)
    return;
  survey_ = verbs::survey(functions_);
  reason_ = survey_.reason();
  if (reason_.empty())
    check_port_events();
}

void IbrcTransport::check_port_events() {
  std::vector<std::string> reasons;
  for (std::size_t index = 0; index < survey_.devices.size(); ++index) {
    const verbs::Device& device = *survey_.devices[index];
    for (int number = 1; number <= device.port_count(); ++number) {
      Found found{index, device.name(), capabilities_of(device, settings_), device.port(number), {},
                  {}};
      found.addresses = verbs::gid_candidates(found.port.gids, settings_.gid);
      if (!found.port.active)
        found.reason = "the port is " + found.port.state;
      else if (found.port.ethernet && found.addresses.empty())
        found.reason = verbs::no_gid_reason(found.port.gids, settings_.gid);
      if (found.reason.empty() && chosen_.empty())
        chosen_ = {found_.size()}; // use_nics() may replace it
      reasons.push_back(fmt::format("{}:{}: {}", device.name(), number, found.reason));
      found_.push_back(std::move(found));
    }
  }
  if (chosen_.empty())
    reason_ = reasons.empty() ? "no device has a port" : join(reasons, "; ");
}

Summary IbrcTransport::summary() const {
  Summary summary;
  summary.reason = reason_;
  summary.atomics = {settings_.atomics, true, static_cast<std::uint32_t>(settings_.receives)};
  for (const Found& found : found_) {
    if (!found.reason.empty() || summary.ports.size() == wire_limits::ports)
      continue;
    summary.atomics.by_device = summary.atomics.by_device && found.atomics.by_device;
    summary.atomics.receives = std::min(summary.atomics.receives, found.atomics.receives);
    Summary::Port port{found.port.ethernet, 0};
    for (const verbs::GidEntry& gid : found.addresses)
      port.gid_kinds = static_cast<std::uint8_t>(port.gid_kinds |
                                                 1u << static_cast<unsigned>(verbs::kind_of(gid)));
    summary.ports.push_back(port);
  }
  return summary;
}

std::string IbrcTransport::local_info() {
  return to_bytes(summary());
}

Reach IbrcTransport::reach(const PeerLocation& me, const PeerLocation& peer) const {
  static_cast<void>(me);
  if (!reason_.empty())
    return {0, reason_};
  const std::optional<Summary> remote = from_bytes<Summary>(peer.transport_info);
  if (!remote)
    return {0, "that PE does not speak of ibrc, or of another version"};
  if (!remote->reason.empty())
    return {0, "there: " + printable(remote->reason, rc::max_text_bytes)};
  const Summary own = summary();
  const std::vector<Summary::Port>& local = own.ports;
  const auto connectable = [](const Summary::Port& left, const Summary::Port& right) {
    return left.ethernet == right.ethernet &&
           (!left.ethernet || (left.gid_kinds & right.gid_kinds) != 0);
  };
  bool any = false, ethernet = false;
  for (const Summary::Port& left : local)
    for (const Summary::Port& right : remote->ports)
      if (connectable(left, right)) {
        any = true;
        ethernet = left.ethernet;
      }
  if (!any)
    return {0, fmt::format("ports of different kinds: here {}, there {}; SHMEMCTL_IB_GID_INDEX "
                           "and SHMEMCTL_IB_ADDR_FAMILY choose RoCE addresses",
                           kinds_of(local), kinds_of(remote->ports))};
  const AtomicsMethod outlook = atomics_method(own.atomics, remote->atomics);
  const unsigned capabilities =
      can_put | can_get |
      (outlook == AtomicsMethod::none ? 0u : unsigned{can_atomics} | can_put_signal);
  const char* const words[] = {"", ", atomics by message", ", no atomics"};
  return {capabilities,
          std::string(ethernet ? "RoCE" : "InfiniBand") + words[static_cast<int>(outlook)]};
}

std::string IbrcTransport::names_of_ports() const {
  std::vector<std::string> names;
  for (const Found& found : found_)
    names.push_back(fmt::format("{}:{}", found.device_name, found.port.number));
  return names.empty() ? "none" : join(names, ", ");
}

Error IbrcTransport::cannot_use(const HcaPort& port, const std::string& why,
                                const std::string& fix) const {
  return {ExitCode::unavailable, "NIC", "use", why, fix, job_.where(port.device, port.port)};
}

const IbrcTransport::Found& IbrcTransport::find(const HcaPort& wanted) const {
  const auto found = std::find_if(found_.begin(), found_.end(), [&](const Found& each) {
    return each.device_name == wanted.device && each.port.number == wanted.port;
  });
  if (found == found_.end()) {
    const std::string other = "name an existing port in SHMEMCTL_HCA_LIST, or unset it";
    for (const verbs::LeftOut& left_out : survey_.left_out)
      if (left_out.device == wanted.device)
        throw cannot_use(wanted, left_out.reason, left_out.fix.empty() ? other : left_out.fix);
    throw cannot_use(wanted, "no such port; available are " + names_of_ports(), other);
  }
  if (!found->reason.empty())
    throw cannot_use(wanted, found->reason,
                     found->port.active ? address_fix
                                        : "bring the link up (check with ip link or ibstat), or "
                                          "exclude the port: SHMEMCTL_HCA_LIST=^" +
                                              wanted.device + ":" + std::to_string(wanted.port));
  return *found;
}

/// The mapping leaves out ports that are down. If the options list only such ports, the PE must not
/// use another port.
Error IbrcTransport::no_listed_port() const {
  std::vector<std::string> ports;
  for (const Found& found : found_)
    ports.push_back(
        fmt::format("{}:{} is {}", found.device_name, found.port.number, found.port.state));
  return {ExitCode::unavailable,
          "NICs of SHMEMCTL_HCA_LIST or SHMEMCTL_HCA_PE_MAPPING",
          "use",
          "none of them is present and up; ports of this host: " +
              (ports.empty() ? "none" : join(ports, ", ")),
          "bring the link up (ip link, ibstat), or name ports that are ACTIVE",
          job_.where()};
}

void IbrcTransport::use_nics(const std::vector<HcaPort>& nics) {
  if (!reason_.empty())
    return; // reaches no PE
  nics_given_ = !nics.empty();
  std::vector<std::size_t> chosen;
  for (const HcaPort& nic : nics) {
    const auto place = static_cast<std::size_t>(&find(nic) - found_.data());
    if (std::find(chosen.begin(), chosen.end(), place) == chosen.end())
      chosen.push_back(place);
  }
  if (chosen.size() > wire_limits::ports)
    chosen.resize(wire_limits::ports);
  if (!chosen.empty())
    chosen_ = std::move(chosen);
}

void IbrcTransport::open_chosen() {
  for (const std::size_t place : chosen_) {
    Found& found = found_[place];
    std::size_t index = 0;
    while (index < job_.devices.size() && job_.devices[index].device->name() != found.device_name)
      ++index;
    if (index == job_.devices.size()) {
      UsedDevice used;
      used.device = std::move(survey_.devices[found.device]);
      used.events = std::make_unique<verbs::AsyncEvents>(*used.device);
      job_.devices.push_back(std::move(used));
    }
    auto nic = std::make_unique<Nic>();
    nic->device_index = index;
    nic->port = found.port;
    nic->addresses = found.addresses;
    job_.nics.push_back(std::move(nic));
  }
  survey_.devices.clear();
}

void IbrcTransport::connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
                            const Deadline& deadline) {
  static_cast<void>(deadline); // the exchange has the deadline
  if (!peers.empty()) {
    if (nics_wanted_ && !nics_given_)
      throw no_listed_port();
    open_chosen();
    local_ = std::make_unique<rc::LocalMemory>(
        [this](auto&&... memory) { return register_memory(memory...); });
  }
  Connector connector(job_, settings_, peers);
  qp_sets_ = connector.connect(
      [&](MessageRoom room) -> MessageService& {
        service_ = std::make_unique<MessageService>(job_, std::move(room));
        return *service_;
      },
      [&](std::size_t number, std::size_t endpoints) {
        return std::make_unique<QpSet>(job_, *local_, remote_, number, endpoints, service_.get());
      },
      exchange);
  host_qp_sets_ = std::max<std::size_t>(qp_sets_.size(), 1);
  texts_ = connector.texts();
  nics_ = connector.nics();
}

/// Registers the memory with each device once, even if several of its ports are used.
rc::Registration IbrcTransport::register_memory(std::byte* base, std::size_t size_bytes,
                                                const std::shared_ptr<const DeviceMemory>& gpu,
                                                const std::string& what) const {
  rc::Registration registration;
  registration.begin = reinterpret_cast<std::uintptr_t>(base);
  registration.end = registration.begin + size_bytes;
  // Atomics of 4 bytes access the aligned 8 bytes around the word, which never cross a page.
  const std::uintptr_t first = registration.begin / 8 * 8, last = (registration.end + 7) / 8 * 8;
  const verbs::DeviceMemoryPaths paths =
      gpu ? verbs::paths_of(gpu, *functions_, options_) : verbs::DeviceMemoryPaths();
  std::vector<rc::Registration::Keys> by_device;
  for (const UsedDevice& each : job_.devices) {
    try {
      verbs::RegistrationMethod method = verbs::RegistrationMethod::plain;
      verbs::MemoryRegion region = verbs::register_memory(
          *each.device, reinterpret_cast<void*>(first), last - first,
          gpu ? verbs::MemoryKind::cuda : verbs::MemoryKind::host, paths, what, &method);
      by_device.push_back({region->lkey, region->rkey});
      registration.method = verbs::to_string(method);
      registration.handles.emplace_back(std::move(region));
    } catch (const Error& error) {
      throw job_.here(error);
    }
  }
  for (const auto& nic : job_.nics)
    registration.keys.push_back(by_device[nic->device_index]);
  return registration;
}

/// The message service does not get regions of GPU memory, since the CPU cannot execute atomics on
/// them.
std::string IbrcTransport::set_region(const RegionView& region) {
  if (service_ && !(local_ && local_->devices().has(region.region)))
    service_->set_region(region);
  return to_bytes(local_ ? local_->set_region(region) : rc::SegmentKey{});
}

void IbrcTransport::set_keys(int region, const std::vector<std::string>& keys) {
  if (qp_sets_.empty())
    return;
  std::vector<rc::SegmentKey> decoded(keys.size());
  for (std::size_t pe = 0; pe < keys.size(); ++pe)
    if (qp_sets_[0]->paths_to(static_cast<int>(pe)) > 0)
      decoded[pe] = read_key(static_cast<int>(pe), keys[pe], wire_limits::ports);
  remote_.add(region, decoded);
}

void IbrcTransport::add_local(void* base, std::size_t size_bytes) {
  if (local_)
    local_->add(base, size_bytes);
}

void IbrcTransport::remove_local(void* base) {
  if (local_)
    local_->remove(base);
}

/// Calls of progress() make messages be executed sooner, and failures be detected earlier.
void IbrcTransport::progress() {
  const unsigned call = poll_qp_sets();
  if (call % calls_between_polls == 0 && service_)
    service_->serve();
  if (call % calls_per_poll == 0)
    for (const UsedDevice& used : job_.devices)
      used.events->poll();
}

bool IbrcTransport::atomics_coherent_with_cpu() const {
  if (service_)
    return true;
  return !job_.devices.empty() &&
         std::all_of(job_.devices.begin(), job_.devices.end(), [](const UsedDevice& used) {
           return used.device->attributes().atomic_cap == IBV_ATOMIC_GLOB;
         });
}

std::vector<NicTraffic> IbrcTransport::traffic() const {
  std::vector<NicTraffic> all;
  for (const auto& nic : job_.nics)
    all.push_back({{job_.device_of(*nic).name(), nic->port.number},
                   nic->put_bytes.load(std::memory_order_relaxed),
                   nic->get_bytes.load(std::memory_order_relaxed),
                   nic->operations.load(std::memory_order_relaxed),
                   nic->long_bytes.load(std::memory_order_relaxed),
                   nic->long_ns.load(std::memory_order_relaxed)});
  return all;
}

std::string IbrcTransport::connection(int pe) const {
  const auto slot = static_cast<std::size_t>(pe);
  return slot < texts_.size() ? texts_[slot] : std::string();
}

std::vector<NicPair> IbrcTransport::nics_to(int pe) const {
  const auto slot = static_cast<std::size_t>(pe);
  return pe != job_.pe && slot < nics_.size() ? nics_[slot] : std::vector<NicPair>();
}

} // namespace ibrc

std::unique_ptr<Transport> make_ibrc_transport(const TransportSetup& setup) {
  const Options defaults({});
  const Options& options = setup.options ? *setup.options : defaults;
  const std::string file = options.text("VERBS_LIBRARY");
  std::string why;
  std::shared_ptr<const verbs::Functions> functions = verbs::load_functions(file, why);
  if (!functions)
    why = "no libibverbs: " + why;
  return std::make_unique<ibrc::IbrcTransport>(setup, std::move(functions), std::move(why));
}

} // namespace shmemctl
