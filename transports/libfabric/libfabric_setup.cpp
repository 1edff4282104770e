// How the transport comes to be: provider, devices, addresses, keys.
#include <algorithm>
#include <unistd.h>

#include "src/base/service_thread.h"
#include "transports/host_memory_only.h"
#include "transports/libfabric/libfabric.h"
#include "transports/libfabric/libfabric_transport.h"

namespace shmemctl::fabric {

namespace {

/// Asking for FI_HMEM makes a provider look for CUDA, and may change what it offers.
bool wants_gpu_memory(const Options& options) {
  const std::string heap = options.text("HEAP");
  return options.text("GPUDIRECT") != "off" && heap != "host" && heap != "none" &&
         ::access("/dev/nvidiactl", F_OK) == 0;
}

} // namespace

LibfabricTransport::LibfabricTransport(const TransportSetup& setup)
    : setup_(setup), immediates_(setup.n_pes), failures_(setup.n_pes), memory_(setup.n_pes) {
  const Options& options = *setup.options;
  find_provider({options.text("LIBFABRIC_LIBRARY"), options.text("LIBFABRIC_PROVIDER"),
                 options.text("LIBFABRIC_PROFILE"), options.text("LIBFABRIC_INTERFACE"),
                 setup.n_pes, wants_gpu_memory(options)},
                provider_, problem_);
}

LibfabricTransport::~LibfabricTransport() {
  stop_serving();
  // Memory that is bound to an endpoint goes before it, other memory when nothing uses it any more.
  for (const auto& rail : rails_)
    if (!rail->endpoint().promises().endpoint_registration)
      rail->close();
}

std::string LibfabricTransport::local_info() {
  if (!problem_.reason.empty())
    return to_text(LocalInfo{problem_.reason + "; " + problem_.fix, {}, {}, 0, false});
  const Device& device = provider_.devices.front();
  return to_text(LocalInfo{
      {}, provider_.name, provider_.profile.name, device.address_format, device.loopback});
}

Reach LibfabricTransport::reach(const PeerPlace& me, const PeerPlace& peer) const {
  const LocalInfo mine = read_local_info(me.transport_info);
  const LocalInfo theirs = read_local_info(peer.transport_info);
  if (!mine.problem.empty())
    return {0, mine.problem};
  const std::string whom = "PE " + std::to_string(peer.pe);
  if (!theirs.problem.empty())
    return {0, "on " + whom + ": " + theirs.problem};
  if (mine.provider != theirs.provider || mine.profile != theirs.profile)
    return {0, "the provider here is " + mine.provider + " with the rules of " + mine.profile +
                   ", that of " + whom + " is " + theirs.provider + " with those of " +
                   theirs.profile};
  if (mine.address_format != theirs.address_format)
    return {0, "its addresses and those of " + whom + " are of different kinds (IPv4, IPv6)"};
  if (mine.loopback != theirs.loopback || (mine.loopback && me.machine_id != peer.machine_id))
    return {0, "a loopback interface is used, which reaches its own machine only: name another "
               "with --libfabric-interface"};
  return {can_put | can_get | can_atomics | can_put_signal,
          "libfabric's " + mine.provider + " with the rules of " + mine.profile};
}

void LibfabricTransport::use_nics(const std::vector<HcaPort>& nics) {
  chosen_.clear();
  for (const HcaPort& nic : nics) {
    const auto found =
        std::find_if(provider_.devices.begin(), provider_.devices.end(),
                     [&](const Device& device) { return device.name == nic.device; });
    if (found != provider_.devices.end())
      chosen_.push_back(*found);
    else if (provider_.devices.front().address_format != FI_SOCKADDR_IN &&
             provider_.devices.front().address_format != FI_SOCKADDR_IN6)
      throw Error(ExitCode::unavailable, "device " + nic.device, "use",
                  "libfabric's provider " + provider_.name + " does not have it",
                  "choose a device that fi_info -p \"" + provider_.name + "\" lists");
  }
  // Interfaces of the kernel have names of their own: what is meant for another kind of NIC does
  // not concern them.
}

std::vector<EndpointName> LibfabricTransport::my_endpoints() const {
  std::vector<EndpointName> names;
  for (const auto& rail : rails_)
    names.push_back({rail->endpoint().device(), rail->endpoint().address()});
  return names;
}

void LibfabricTransport::connect(const std::vector<PeerPlace>& peers, Exchange& exchange,
                                 const Deadline&) {
  if (chosen_.empty())
    chosen_.push_back(provider_.devices.front());
  const auto on_failure = [this](int pe, ContextState* context, const Error& error) {
    failures_.add(pe, context, error);
  };
  std::vector<const Endpoint*> endpoints;
  for (const Device& device : chosen_)
    for (int i = 0; i < provider_.profile.endpoints && rails_.size() < max_endpoints; ++i) {
      rails_.push_back(
          std::make_unique<Rail>(provider_, device, setup_, memory_, immediates_, on_failure));
      rails_.back()->post_receives();
    }
  learn_peers(peers, exchange.allgather(to_text(my_endpoints())));
  for (const auto& rail : rails_)
    endpoints.push_back(&rail->endpoint());
  memory_.use(endpoints);
  native_atomics_ = !provider_.profile.staged_atomics && endpoints.front()->has_all_atomics();
  service_ = start_service_thread("libfabric", [this] { serve(); });
}

void LibfabricTransport::learn_peers(const std::vector<PeerPlace>& peers,
                                     const std::vector<std::string>& texts) {
  std::vector<std::vector<EndpointName>> all(texts.size());
  std::size_t common = rails_.size();
  for (const PeerPlace& peer : peers) {
    const auto pe = static_cast<std::size_t>(peer.pe);
    const auto endpoints = read_endpoints(texts[pe]);
    if (!endpoints || endpoints->empty())
      throw Error(ExitCode::unavailable, "PE " + std::to_string(peer.pe), "read its endpoints",
                  "it sent none", "run the same version of shmemctl on all hosts");
    all[pe] = *endpoints;
    common = std::min(common, endpoints->size());
  }
  // Each endpoint speaks to the one of the same number; who has more leaves them out.
  rails_.resize(common);
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    std::vector<EndpointName> names(texts.size());
    for (const PeerPlace& peer : peers)
      names[static_cast<std::size_t>(peer.pe)] = all[static_cast<std::size_t>(peer.pe)][i];
    rails_[i]->set_peers(std::move(names));
  }
}

DeviceReach LibfabricTransport::try_device_memory(const std::shared_ptr<const DeviceMemory>& memory,
                                                  std::byte* base, std::size_t size_bytes) {
  if (!problem_.reason.empty())
    return {"", problem_.reason};
  if (rails_.empty())
    return {"", "this PE is not connected"};
  const std::string name = "libfabric's " + provider_.name;
  if (!provider_.profile.may_reach_gpus)
    return {"", name + " " + host_memory_only};
  const std::string wanted = setup_.options->text("GPUDIRECT");
  if (wanted != "auto")
    return {"", "GPUDIRECT=" + wanted + " is set, and " + name + " chooses the way itself"};
  for (const auto& rail : rails_)
    if (!rail->endpoint().promises().gpu_memory)
      return {"", rail->endpoint().device() + ": " + name + " offers no FI_HMEM"};
  try {
    memory_.try_register(base, size_bytes, *memory);
  } catch (const Error& error) {
    return {"", error.where().device + ": " + name + ": " + error.system_message()};
  }
  return {"FI_HMEM", ""};
}

std::string LibfabricTransport::set_region(const RegionView& region) {
  return memory_.set_region(region);
}

void LibfabricTransport::set_keys(int region, const std::vector<std::string>& keys) {
  memory_.set_keys(region, keys);
}

void LibfabricTransport::add_local(void* base, std::size_t size_bytes) {
  if (size_bytes > 0)
    memory_.add_local(base, size_bytes);
}

void LibfabricTransport::remove_local(void* base) {
  memory_.remove_local(base);
}

bool LibfabricTransport::atomics_meet_cpu() const {
  return !native_atomics_ || provider_.profile.provider_atomics_by_cpu;
}

std::vector<NicTraffic> LibfabricTransport::traffic() const {
  std::vector<NicTraffic> all;
  for (const auto& rail : rails_) {
    const HcaPort nic{rail->endpoint().device(), 1};
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const NicTraffic& known) { return known.nic == nic; });
    if (found == all.end())
      found = all.insert(all.end(), NicTraffic{nic});
    found->put_bytes += rail->traffic().put_bytes.load(std::memory_order_relaxed);
    found->get_bytes += rail->traffic().get_bytes.load(std::memory_order_relaxed);
    found->operations += rail->traffic().operations.load(std::memory_order_relaxed);
  }
  return all;
}

std::string LibfabricTransport::connection(int pe) const {
  if (pe == setup_.pe || rails_.empty())
    return {};
  std::string text;
  for (const auto& rail : rails_) {
    const EndpointName& peer = rail->peer(pe);
    if (peer.address.empty())
      return {};
    text += (text.empty() ? "" : ", ") + rail->endpoint().device() + " -> " + peer.device + " (" +
            rail->endpoint().readable(peer.address) + ")";
  }
  return text + ", " + provider_.name + ", rules of " + provider_.profile.name;
}

} // namespace shmemctl::fabric

namespace shmemctl {

std::unique_ptr<Transport> make_libfabric_transport(const TransportSetup& setup) {
  return std::make_unique<fabric::LibfabricTransport>(setup);
}

} // namespace shmemctl
