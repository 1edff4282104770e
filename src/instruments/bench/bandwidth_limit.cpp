// The limit of a bandwidth: of NIC ports, GPUs' links, or GPU memory. Limits follow from the node
// model's rates (GPU memory: the driver's); links between GPUs may also be measured by kernels.
#include "src/instruments/bench/bandwidth_limit.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "src/base/archive.h"
#include "src/base/units.h"
#include "src/instruments/bench/case_table.h"
#include "src/instruments/bench/cases/host_case.h"
#include "src/instruments/bench/statistics.h"
#include "src/instruments/bench/verification.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/pci_address.h"
#include "src/model/topo/pcie.h"
#include "src/model/topo/readers/sysfs_nics.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::bench {

namespace {

constexpr double bits_of_byte = 8;
/// A port counts as used if it moved at least a hundredth of the busiest port's bytes.
constexpr std::uint64_t min_share = 100;
/// Atomics, and puts of a word that travel as messages, are counted as operations with 0 bytes.
constexpr std::uint64_t bytes_of_operation = 8;

/// Devices without hardware, whose drivers report a rate that no link has.
bool is_emulated(const Nic& nic) {
  constexpr std::array<std::string_view, 6> drivers = {"rdma_rxe", "siw",  "virtio_net",
                                                       "virtio",   "veth", "tun"};
  return nic.virtual_device ||
         (nic.driver && std::find(drivers.begin(), drivers.end(), *nic.driver) != drivers.end());
}

std::uint64_t bytes_between(const NicTraffic& now, const std::vector<NicTraffic>& before) {
  std::uint64_t bytes = now.put_bytes + now.get_bytes, operations = now.operations;
  for (const NicTraffic& then : before)
    if (then.nic == now.nic) {
      bytes -= std::min(bytes, then.put_bytes + then.get_bytes);
      operations -= std::min(operations, then.operations);
    }
  return std::max(bytes, operations * bytes_of_operation);
}

} // namespace

std::optional<double> wire_rate_GBps(const Node& node, const HcaPort& nic, const Sysroot* sysroot) {
  for (const Nic& known : node.nics) {
    if (known.name != nic.device)
      continue;
    if (is_emulated(known))
      return std::nullopt;
    for (const NicPort& port : known.ports)
      if (port.number == nic.port && port.rate_Gbps && *port.rate_Gbps > 0)
        return *port.rate_Gbps / bits_of_byte;
    return std::nullopt;
  }
  if (const auto rate_Gbps = sysroot ? virtual_interface_Gbps(*sysroot, nic.device) : std::nullopt)
    return *rate_Gbps / bits_of_byte;
  return std::nullopt;
}

std::vector<PortUse> ports_used(const Node& node, const std::vector<NicTraffic>& before,
                                const std::vector<NicTraffic>& after, const Sysroot* sysroot) {
  std::uint64_t most = 0;
  for (const NicTraffic& now : after)
    most = std::max(most, bytes_between(now, before));
  std::vector<PortUse> used;
  for (const NicTraffic& now : after)
    if (const std::uint64_t bytes = bytes_between(now, before);
        bytes > 0 && bytes >= most / min_share)
      used.push_back({{}, now.nic, wire_rate_GBps(node, now.nic, sysroot)});
  return used;
}

void serialize(Archive& archive, PortUse& port) {
  archive(port.nic.device, port.nic.port, port.rate_GBps);
}

std::vector<PortUse> ports_of_host(std::vector<PortUse> ports, const std::string& host,
                                   std::uint64_t machine_id) {
  for (PortUse& port : ports) {
    port.host = host;
    port.machine_id = machine_id;
  }
  return ports;
}

void serialize(Archive& archive, LinkLimit& limit) {
  archive(limit.rate_GBps, limit.name, limit.links, limit.of_memory, limit.to_host);
}

void serialize(Archive& archive, GpuOfPe& gpu) {
  archive(gpu.pci_address, gpu.memory_GBps, gpu.between_gpus, gpu.in_host_memory, gpu.otherwise);
}

void serialize(Archive& archive, HostLink& link) {
  archive(link.pci_address, link.link);
}

bool leaves_machines(const Point& point, const std::vector<std::uint64_t>& machine_of) {
  const auto n_pes = static_cast<int>(machine_of.size());
  bool any = false;
  if (point.traffic == Traffic::collective) // the payload of a collective is not what a port moves
    return false;
  for (int pe = 0; pe < n_pes; ++pe)
    for (const int to : routes_of(point, pe, n_pes).to) {
      any = true;
      if (machine_of[static_cast<std::size_t>(pe)] == machine_of[static_cast<std::size_t>(to)])
        return false;
    }
  return any;
}

std::string why_no_wire(const Point& point, const std::vector<std::uint64_t>& machine_of) {
  const bool one_machine = std::set<std::uint64_t>(machine_of.begin(), machine_of.end()).size() < 2;
  if (point.traffic == Traffic::collective)
    return one_machine ? "no limit is known for a collective of the host on one machine: its "
                         "processors and its memory carry it"
                       : "no limit is known for a collective over a network: which bytes take "
                         "which port is its algorithm's choice";
  return one_machine ? "no limit is known for a transport between PEs of one machine: its "
                       "processors and its memory carry it, and no wire is in the way"
                     : "no limit is known for what partly stays on its machine";
}

std::optional<LinkLimit> link_limit(const std::vector<PortUse>& ports) {
  std::set<std::tuple<std::uint64_t, std::string, std::string, int>> seen;
  std::set<std::pair<std::uint64_t, std::string>> hosts;
  LinkLimit limit;
  for (const PortUse& port : ports) {
    if (!port.rate_GBps)
      return std::nullopt;
    if (!seen.insert({port.machine_id, port.host, port.nic.device, port.nic.port}).second)
      continue;
    hosts.insert({port.machine_id, port.host});
    limit.rate_GBps += *port.rate_GBps;
    limit.name = fmt::format("{}:{} on {}", port.nic.device, port.nic.port, port.host);
  }
  if (seen.empty())
    return std::nullopt;
  if (seen.size() > 1)
    limit.name = fmt::format("{} ports of {} {}", seen.size(), hosts.size(),
                             hosts.size() == 1 ? "host" : "hosts");
  limit.name += fmt::format(", {:g} Gb/s", limit.rate_GBps * bits_of_byte);
  return limit;
}

namespace {

/// Position in Node::gpus; -1 if the node has no such GPU.
int gpu_at(const Node& node, const std::string& pci_address) {
  const auto wanted = parse_pci_address(pci_address);
  for (std::size_t i = 0; wanted && i < node.gpus.size(); ++i) {
    const int pci = node.gpus[i].pci;
    if (pci >= 0 && node.pci[static_cast<std::size_t>(pci)].address == *wanted)
      return static_cast<int>(i);
  }
  return -1;
}

std::optional<LinkLimit> nvlink(const Gpu& gpu, int links) {
  for (const GpuLink& link : gpu.links)
    if (link.kind == GpuLinkKind::nvlink && link.bandwidth_GBps && *link.bandwidth_GBps > 0)
      return LinkLimit{links * *link.bandwidth_GBps,
                       fmt::format("NVLink, {} links of {:g} GB/s", links, *link.bandwidth_GBps),
                       links};
  return std::nullopt;
}

std::optional<LinkLimit> pcie(const Node& node, const Gpu& gpu) {
  const auto rate = pcie_rate(node.pci[static_cast<std::size_t>(gpu.pci)].link);
  if (!rate)
    return std::nullopt;
  return LinkLimit{rate->rate_GBps, rate->text};
}

bool is_switched(const Gpu& gpu) {
  return std::all_of(gpu.links.begin(), gpu.links.end(), [](const GpuLink& link) {
    return link.kind != GpuLinkKind::nvlink || link.target == LinkTarget::nvswitch;
  });
}

/// For each GPU, by its address, the GPUs that it sends to or receives from.
using Partners = std::map<std::string, std::set<std::string>>;

/// The traffic between the GPUs of a machine.
struct Flow {
  Partners to, from;
  std::map<std::string, double> memory_GBps; ///< memory rates of the GPUs that send
  bool stays = false, leaves = false;        ///< whether any bytes stay on, or leave, their GPU
  bool in_host_memory = false;

  void add(const GpuOfPe& own, const GpuOfPe& other) {
    to[own.pci_address].insert(other.pci_address);
    from[other.pci_address].insert(own.pci_address);
    memory_GBps[own.pci_address] = own.memory_GBps;
    in_host_memory = in_host_memory || own.in_host_memory;
    (own.pci_address == other.pci_address ? stays : leaves) = true;
  }
};

FoundLimit none(const std::string& what) {
  return {std::nullopt, "no limit is known for " + what};
}

/// Why no limit of GPUs applies to what `own` sends to `other`; "" if one may apply.
std::string why_not(const GpuOfPe& own, const GpuOfPe& other) {
  if (own.pci_address.empty())
    return none("PEs without a GPU").reason;
  if (other.machine_id != own.machine_id)
    return none("what goes to GPUs of another machine").reason;
  if (!own.between_gpus && !own.in_host_memory)
    return own.otherwise.empty() ? none("what takes a network").reason : own.otherwise;
  return "";
}

FoundLimit memory_limit(const Flow& flow) {
  double moved_GBps = 0;
  for (const auto& [gpu, rate_GBps] : flow.memory_GBps) {
    if (rate_GBps <= 0)
      return none("the memory of GPU " + gpu + ": the driver does not report its clock and width");
    moved_GBps += rate_GBps;
  }
  constexpr double passes = 2; // a read and a write
  LinkLimit limit;
  limit.rate_GBps = moved_GBps / passes;
  limit.of_memory = true;
  const std::size_t gpus = flow.memory_GBps.size();
  limit.name = fmt::format("memory of {}: {:.0f} GB/s by clock and width, half of it for payload "
                           "that is read and written",
                           gpus == 1 ? "the GPU" : std::to_string(gpus) + " GPUs", moved_GBps);
  return {limit, ""};
}

} // namespace

std::optional<LinkLimit> host_link(const Node& node, const std::string& pci_address) {
  const int at = gpu_at(node, pci_address);
  if (at < 0)
    return std::nullopt;
  const Gpu& gpu = node.gpus[static_cast<std::size_t>(at)];
  for (const GpuLink& link : gpu.links)
    if (link.kind == GpuLinkKind::c2c) { // then the GPU does not use PCIe
      if (!link.bandwidth_GBps || *link.bandwidth_GBps <= 0)
        return std::nullopt;
      return LinkLimit{
          link.count * *link.bandwidth_GBps,
          fmt::format("NVLink-C2C, {} links of {:g} GB/s", link.count, *link.bandwidth_GBps)};
    }
  return pcie(node, gpu);
}

namespace {

FoundLimit host_limit(const Node& node, const Flow& flow) {
  LinkLimit all;
  all.to_host = true;
  for (const auto& [gpu, others] : flow.to) {
    const auto link = host_link(node, gpu);
    if (!link)
      return none("the link of GPU " + gpu +
                  " to the host's memory, where the heap is: the node "
                  "model does not report its rate");
    all.rate_GBps += link->rate_GBps;
    all.name = link->name;
  }
  const std::size_t gpus = flow.to.size();
  all.name = fmt::format("{} to the host's memory: {:.0f} GB/s{} by the model",
                         gpus == 1 ? all.name : fmt::format("{} GPUs' {}", gpus, all.name),
                         all.rate_GBps, gpus == 1 ? "" : " together");
  return {all, ""};
}

/// The limit of the links of all these GPUs together.
std::optional<LinkLimit> together(const Node& node, const Partners& partners) {
  LinkLimit all;
  for (const auto& [gpu, others] : partners) {
    const auto link = gpu_links_limit(node, gpu, {others.begin(), others.end()});
    if (!link)
      return std::nullopt;
    all.rate_GBps += link->rate_GBps;
    all.name = link->name;
  }
  all.name = partners.size() == 1
                 ? fmt::format("{}: {:.0f} GB/s by the model", all.name, all.rate_GBps)
                 : fmt::format("{} GPUs' {}: {:.0f} GB/s together by the model", partners.size(),
                               all.name, all.rate_GBps);
  return all;
}

} // namespace

std::optional<LinkLimit> gpu_link(const Node& node, const std::string& from,
                                  const std::string& to) {
  const int left = gpu_at(node, from), right = gpu_at(node, to);
  if (left < 0 || right < 0 || left == right)
    return std::nullopt;
  const Distance apart = distance(node, left, right);
  if (!apart.path)
    return std::nullopt;
  const Gpu& sender = node.gpus[static_cast<std::size_t>(left)];
  if (*apart.path == PathClass::nvlink)
    return nvlink(sender, apart.links);
  const auto out = pcie(node, sender);
  const auto in = pcie(node, node.gpus[static_cast<std::size_t>(right)]);
  if (!out || !in)
    return std::nullopt;
  return out->rate_GBps <= in->rate_GBps ? out : in;
}

std::optional<LinkLimit> gpu_links_limit(const Node& node, const std::string& gpu,
                                         const std::vector<std::string>& others) {
  std::optional<LinkLimit> link;
  for (const std::string& other : others) {
    link = gpu_link(node, gpu, other);
    if (!link ||
        (others.size() > 1 && !is_switched(node.gpus[static_cast<std::size_t>(gpu_at(node, gpu))])))
      return std::nullopt;
  }
  return link;
}

namespace {

/// The limit of all GPUs that send, or of all that receive if that is less.
FoundLimit links_limit(const Node& node, const Flow& flow) {
  const auto out = together(node, flow.to), in = together(node, flow.from);
  if (!out || !in)
    return none("the links between these GPUs: the node model does not report their rate, or they "
                "are linked one to one");
  return {out->rate_GBps <= in->rate_GBps ? out : in, ""};
}

} // namespace

std::vector<int> gpu_numbers(const std::vector<GpuOfPe>& by_pe) {
  std::vector<int> numbers;
  std::map<std::pair<std::uint64_t, std::string>, int> known;
  for (const GpuOfPe& place : by_pe)
    numbers.push_back(
        known
            .emplace(std::pair{place.machine_id, place.pci_address}, static_cast<int>(known.size()))
            .first->second);
  return numbers;
}

FoundLimit gpu_link_limit(const Node& node, const Point& point, const std::vector<GpuOfPe>& by_pe) {
  if (point.traffic == Traffic::collective)
    return none("a collective of which it is not known how many bytes it moves");
  const auto n_pes = static_cast<int>(by_pe.size());
  Flow flow;
  for (int pe = 0; pe < n_pes; ++pe)
    for (const int to : routes_of(point, pe, n_pes).to) {
      const GpuOfPe& own = by_pe[static_cast<std::size_t>(pe)];
      const GpuOfPe& other = by_pe[static_cast<std::size_t>(to)];
      if (const std::string reason = why_not(own, other); !reason.empty())
        return {std::nullopt, reason};
      flow.add(own, other);
    }
  if (flow.to.empty())
    return none("a point at which nobody sends");
  if (flow.in_host_memory)
    return host_limit(node, flow);
  if (flow.stays && flow.leaves)
    return none("what partly stays on its GPU and partly leaves it");
  return flow.stays ? memory_limit(flow) : links_limit(node, flow);
}

FoundLimit gpu_collective_limit(const Node& node, const LeastTraffic& traffic,
                                const std::vector<GpuOfPe>& by_pe) {
  const std::vector<int> gpus = gpu_numbers(by_pe);
  const bool one_gpu = std::all_of(gpus.begin(), gpus.end(), [](int gpu) { return gpu == 0; });
  Flow flow;
  for (std::size_t from = 0; from < by_pe.size(); ++from)
    for (std::size_t to = 0; to < by_pe.size(); ++to) {
      if (const std::string reason = why_not(by_pe[from], by_pe[to]); !reason.empty())
        return {std::nullopt, reason};
      const bool crosses = gpus[from] != gpus[to] && (!traffic.from_root || gpus[from] == 0);
      if (by_pe[from].in_host_memory || one_gpu || crosses)
        flow.add(by_pe[from], by_pe[to]);
    }
  FoundLimit found;
  const char* counted = "has to cross it";
  if (flow.in_host_memory) {
    found = host_limit(node, flow);
    counted = "has to cross it in the fuller direction";
  } else if (!flow.leaves) {
    found = memory_limit(flow);
    counted = "has to be read and written, halved";
  } else {
    found = links_limit(node, flow);
  }
  if (found.limit)
    found.limit->name += std::string("; the share counts the least that ") + counted;
  return found;
}

FoundLimit host_links_limit(const std::vector<HostLink>& by_pe, Direction direction) {
  std::set<std::pair<std::uint64_t, std::string>> gpus;
  LinkLimit all;
  all.to_host = true;
  for (const HostLink& own : by_pe) {
    if (!own.link)
      return none("the link of GPU " + own.pci_address +
                  " to the host's memory: the node model does not report its rate");
    if (!gpus.insert({own.machine_id, own.pci_address}).second)
      continue;
    all.rate_GBps += own.link->rate_GBps;
    all.name = own.link->name;
  }
  if (gpus.empty())
    return none("a point at which nobody copies");
  if (direction == Direction::bi)
    all.rate_GBps *= 2;
  all.name =
      fmt::format("{} to the host's memory{}: {:.0f} GB/s{} by the model",
                  gpus.size() == 1 ? all.name : fmt::format("{} GPUs' {}", gpus.size(), all.name),
                  direction == Direction::bi ? ", both ways" : "", all.rate_GBps,
                  gpus.size() == 1 ? "" : " together");
  return {all, ""};
}

double limited_bytes(const LeastTraffic& traffic, const LinkLimit& limit) {
  if (limit.of_memory)
    return (traffic.loaded + traffic.stored) / 2;
  return limit.to_host ? std::max(traffic.loaded, traffic.stored) : traffic.between_gpus;
}

namespace {

constexpr std::size_t sent_bytes = std::size_t{32} << 20; ///< bytes that a PE sends in one round
constexpr std::uint64_t rounds = 8; ///< rounds in one launch, which takes 0.7 ms
constexpr int launches = 5;
constexpr int threads_of_block = 1024;
constexpr std::uint64_t seed = 7;
constexpr std::size_t page_bytes = 4096;

Point point_of(const Point& like, int n_pes, int blocks) {
  Point point;
  point.traffic = like.traffic;
  point.direction = like.direction;
  point.first_pe = like.first_pe;
  point.second_pe = like.second_pe;
  const auto peers = static_cast<std::size_t>(peers_of_a_sender(point, n_pes));
  point.size_bytes = sent_bytes / peers / page_bytes * page_bytes;
  point.launch = {Initiator::gpu, MemoryKind::gpu,  CallScope::block,
                  blocks,         threads_of_block, false};
  return point;
}

/// Makes the case "put", which stores, or "get", which loads.
std::unique_ptr<Case> make_case(const char* name, const Point& point) {
  return choose_cases(gpu_cases(), {name}).front().make(point);
}

std::string own_reason(Runtime& runtime, const Point& point) {
  PeGpu& gpu = *runtime.gpu();
  if (gpu.info().pes_on_device > 1)
    return "PEs share a GPU, and take turns on it";
  if (gpu.info().heap_kind == "host")
    return "the heap is memory of the host";
  if (!gpu.job().all_mapped)
    return "a PE's GPU memory is not mapped";
  return make_case("put", point)->cannot_run(runtime);
}

/// The reason of the first PE that has one.
std::string reason_of_all(Runtime& runtime, const std::string& own) {
  for (const std::string& text : runtime.gather_text(own))
    if (!text.empty())
      return text;
  return "";
}

/// The rate of this PE; 0 if it sends nothing. std::nullopt on all PEs if verification fails on
/// any.
std::optional<double> rate_of(const char* name, Arena& arena) {
  Runtime& runtime = arena.runtime;
  const std::unique_ptr<Case> body = make_case(name, arena.point);
  runtime.gpu()->fill(arena.memory, 0, arena.size_bytes);
  runtime.collectives().barrier(team_world);
  body->prepare(arena);
  std::vector<double> rates;
  for (std::uint64_t launch = 0; launch <= launches; ++launch) {
    runtime.collectives().barrier(team_world);
    body->iterate(launch * rounds, rounds);
    if (launch > 0) // the first launch starts with cold caches
      rates.push_back(static_cast<double>(body->bytes_per_iteration() * rounds) /
                      std::max(body->last_duration_ns().value_or(0), 1.0));
  }
  const Verification verification = verify_point(runtime, *body, (launches + 1) * rounds);
  if (verification.verified != Verified::passed)
    return std::nullopt;
  return body->measures() ? median(rates) : 0;
}

LinkMeasurement measure_in(Arena& arena) {
  MeasuredLink link;
  link.blocks = arena.point.launch.ctas;
  link.threads = arena.point.launch.threads;
  link.message_bytes = arena.point.size_bytes;
  link.traffic = to_string(arena.point.traffic);
  if (arena.point.direction == Direction::bi)
    link.traffic += ", both ways";
  for (const auto& [name, rates] :
       {std::pair{"put", &link.stores_GBps}, {"get", &link.loads_GBps}}) {
    const std::optional<double> rate = rate_of(name, arena);
    if (!rate) // the same on all PEs
      return {std::nullopt, "wrong data arrived in the measurement"};
    *rates = arena.runtime.gather_values(*rate, "link rate");
  }
  return {link, ""};
}

/// Collective: measures the links between GPUs for the traffic of `like`.
LinkMeasurement measure_link(Runtime& runtime, const Point& like) {
  if (!runtime.gpu())
    return {std::nullopt, "there are no GPUs"};
  if (runtime.n_pes() < 2 || like.traffic == Traffic::collective)
    return {std::nullopt, "nothing goes from one PE to another"};
  PeGpu& gpu = *runtime.gpu();
  const Point point = point_of(like, runtime.n_pes(), gpu.info().multiprocessors);
  if (const std::string reason = reason_of_all(runtime, own_reason(runtime, point));
      !reason.empty())
    return {std::nullopt, reason};
  const std::size_t size_bytes = make_case("put", point)->bytes_needed(runtime, point);
  auto* const memory = static_cast<std::byte*>(gpu.allocate(size_bytes, page_bytes));
  if (!memory) // on all PEs alike
    return {std::nullopt, "the heap has no room for it"};
  Arena arena{runtime, point, memory, size_bytes, seed};
  LinkMeasurement measured = measure_in(arena);
  gpu.free(memory);
  return measured;
}

} // namespace

double MeasuredLink::limit_GBps(std::size_t pe) const {
  return std::max(stores_GBps.at(pe), loads_GBps.at(pe));
}

std::string MeasuredLink::conditions(std::size_t pe) const {
  return fmt::format("{}, {} blocks of {} threads, messages of {}, {}",
                     stores_GBps.at(pe) >= loads_GBps.at(pe) ? "stores" : "loads", blocks, threads,
                     format_size_bytes(message_bytes), traffic);
}

std::optional<LinkLimit> limit_of(const LinkMeasurement& measured,
                                  const std::optional<LinkLimit>& model) {
  if (!measured.link)
    return model;
  LinkLimit limit;
  std::size_t sender = 0;
  for (std::size_t pe = 0; pe < measured.link->stores_GBps.size(); ++pe)
    if (const double rate_GBps = measured.link->limit_GBps(pe); rate_GBps > 0) {
      limit.rate_GBps += rate_GBps;
      sender = pe;
    }
  if (limit.rate_GBps <= 0)
    return model;
  limit.links = model ? model->links : 0;
  limit.name = fmt::format("{:.0f} GB/s measured ({}){}", limit.rate_GBps,
                           measured.link->conditions(sender), model ? "; " + model->name : "");
  return limit;
}

const LinkMeasurement& LinkMeter::of(const Point& like) {
  const bool pair = like.traffic == Traffic::pair;
  const Pattern pattern{like.traffic, like.direction, pair ? like.first_pe : 0,
                        pair ? like.second_pe : 0};
  const auto known = known_.find(pattern);
  if (known != known_.end())
    return known->second;
  return known_.emplace(pattern, measure_link(runtime_, like)).first->second;
}

namespace {

GpuOfPe own_gpu(Runtime& runtime, const Point& point) {
  if (!runtime.gpu())
    return {0, "", 0, false, false, "no limit is known for PEs without a GPU"};
  const GpuInfo& info = runtime.gpu()->info();
  const GpuPath path = path_of(runtime, point);
  return {0,
          info.pci_address,
          info.memory_GBps,
          path.between_gpus,
          path.in_host_memory,
          path.otherwise};
}

const char* text_of(DevicePath path) {
  switch (path) {
  case DevicePath::proxy:
    return "no limit is known for the proxy's way to a PE of the same machine: a thread of the "
           "host and the host's memory carry it, and no wire is in the way";
  case DevicePath::ibgda:
    return "no limit is known for the way through a NIC (ibgda) to a PE of the same machine: no "
           "wire is in the way";
  default:
    return "no limit is known for a PE that kernels do not reach";
  }
}

/// The point whose measured links a collective is compared with: all-to-all, or a pair if only the
/// root has to send.
Point measured_like(const Point& point, const LeastTraffic& traffic) {
  Point like = point;
  like.traffic = traffic.from_root ? Traffic::pair : Traffic::all_to_all;
  return like;
}

/// Collective: each PE's link to its host, which only PEs of that machine know.
std::vector<HostLink> gather_host_links(Runtime& runtime) {
  HostLink own;
  if (runtime.gpu())
    own.pci_address = runtime.gpu()->info().pci_address;
  own.link = host_link(runtime.node(), own.pci_address);
  std::vector<HostLink> links = runtime.gather_values(own, "GPU's link to the host");
  for (std::size_t pe = 0; pe < links.size(); ++pe)
    links[pe].machine_id = runtime.placement().hosts.at(pe).machine_id;
  return links;
}

} // namespace

GpuPath path_of(Runtime& runtime, const Point& point) {
  GpuPath path;
  PeGpu* const gpu = runtime.gpu();
  if (!gpu) {
    path.otherwise = "no limit is known for PEs without a GPU";
    return path;
  }
  Point moves = point;
  if (point.traffic == Traffic::collective)
    moves.traffic = Traffic::all_to_all;
  for (const int pe : routes_of(moves, runtime.pe(), runtime.n_pes()).to)
    if (const DevicePath by = gpu->paths_by_pe().at(static_cast<std::size_t>(pe)).path;
        by != DevicePath::load_store) {
      path.otherwise = text_of(by);
      return path;
    }
  const bool of_host = gpu->info().heap_kind == "host";
  if (of_host && point.launch.initiator == Initiator::host)
    path.otherwise = "no limit is known for what the host's processors copy in a heap of host "
                     "memory";
  else
    (of_host ? path.in_host_memory : path.between_gpus) = true;
  return path;
}

GpuLimit gpu_limit_of(Runtime& runtime, const Point& point, LinkMeter* links, const Case* body) {
  if (point.traffic == Traffic::local)
    return {true, host_links_limit(gather_host_links(runtime), point.direction), 0};
  std::vector<GpuOfPe> places = runtime.gather_values(own_gpu(runtime, point), "GPU");
  for (std::size_t pe = 0; pe < places.size(); ++pe)
    places[pe].machine_id = runtime.placement().hosts.at(pe).machine_id;
  GpuLimit limit;
  limit.on_gpus = std::all_of(places.begin(), places.end(), [](const GpuOfPe& place) {
    return place.between_gpus || place.in_host_memory;
  });
  std::optional<LeastTraffic> traffic;
  if (point.traffic == Traffic::collective && body)
    traffic = body->min_traffic(gpu_numbers(places));
  limit.found = traffic ? gpu_collective_limit(runtime.node(), *traffic, places)
                        : gpu_link_limit(runtime.node(), point, places);
  std::optional<LinkLimit>& found = limit.found.limit;
  if (found && !found->of_memory && !found->to_host && links &&
      point.launch.initiator == Initiator::gpu)
    found = limit_of(links->of(traffic ? measured_like(point, *traffic) : point), found);
  if (found && traffic)
    limit.collective_bytes = limited_bytes(*traffic, *found) / runtime.n_pes();
  return limit;
}

} // namespace shmemctl::bench
