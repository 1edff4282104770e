#include "src/instruments/bench/moe/links.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "reports/text.h"
#include "src/base/archive.h"
#include "src/base/sysroot.h"
#include "src/instruments/bench/path.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/runtime.h"

namespace shmemctl::moe {

namespace {

using nlohmann::json;

bool has(const GpuLinks& links, std::size_t rank) {
  return std::find(links.ranks.begin(), links.ranks.end(), static_cast<std::int32_t>(rank)) !=
         links.ranks.end();
}

/// The bytes that all ranks send between machines.
std::uint64_t bytes_between_machines(const Links& links, const Traffic& traffic) {
  const std::size_t n = links.machine_of.size();
  std::uint64_t bytes = 0;
  for (std::size_t from = 0; from < n; ++from)
    for (std::size_t to = 0; to < n; ++to)
      if (links.machine_of[from] != links.machine_of[to])
        bytes += traffic.moved_bytes[from * n + to];
  return bytes;
}

/// The rate in 10^9 bytes per second.
double rate_of(std::uint64_t bytes, double call_us) {
  return static_cast<double>(bytes) / call_us / 1e3;
}

json direction_json(const GpuLinks& links, const Traffic& traffic) {
  const LinkBytes bytes = bytes_over(links, traffic);
  json direction{{"out_bytes", bytes.out}, {"in_bytes", bytes.in}};
  if (const int count = links.limit.links; count > 0) {
    // Addresses are spread evenly over all links.
    direction["out_bytes_per_link"] = static_cast<double>(bytes.out) / count;
    direction["in_bytes_per_link"] = static_cast<double>(bytes.in) / count;
  }
  return direction;
}

/// The bytes that rows bring over a GPU's links in all calls of a point.
LinkBytes bytes_of_calls(const GpuLinks& links, const Traffic& dispatch, const Traffic& combine,
                         const CallCount& calls) {
  const LinkBytes there = bytes_over(links, dispatch), back = bytes_over(links, combine);
  return {there.out * calls.dispatches + back.out * calls.combines,
          there.in * calls.dispatches + back.in * calls.combines};
}

/// The address identifies a GPU, because GPUs with links are on one machine.
const GpuLinks* links_of(const Links& links, const NvlinkUse& use) {
  for (const GpuLinks& gpu : links.gpus)
    if (gpu.gpu == use.gpu)
      return &gpu;
  return nullptr;
}

json all_calls_json(const Links& links, const GpuLinks& gpu, const LinkBytes& rows) {
  json all{{"out_bytes", rows.out}, {"in_bytes", rows.in}};
  for (const NvlinkUse& use : links.nvlinks)
    if (links_of(links, use) == &gpu) {
      put_count(all, "counted_out_bytes", use.counted.out_bytes);
      put_count(all, "counted_in_bytes", use.counted.in_bytes);
    }
  return all;
}

double megabytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

/// One line for each GPU whose NVLink traffic was counted.
std::string counted_text(const Links& links, const Traffic& dispatch, const Traffic& combine,
                         const std::optional<CallCount>& calls) {
  std::string text;
  for (const NvlinkUse& use : links.nvlinks) {
    if (!use.counted.out_bytes || !use.counted.in_bytes)
      continue;
    text += fmt::format("NVLinks of GPU {} on {}: counted out {:.3f} MB and in {:.3f} MB over all "
                        "calls",
                        safe_text(use.gpu), safe_text(use.host), megabytes(*use.counted.out_bytes),
                        megabytes(*use.counted.in_bytes));
    if (const GpuLinks* gpu = links_of(links, use); gpu && calls) {
      const LinkBytes rows = bytes_of_calls(*gpu, dispatch, combine, *calls);
      text += fmt::format("; rows by the routing {:.3f} and {:.3f}", megabytes(rows.out),
                          megabytes(rows.in));
    }
    text += "\n";
  }
  return text;
}

std::vector<NicUse> nics_used(const std::vector<NicTraffic>& before,
                              const std::vector<NicTraffic>& after) {
  std::vector<NicUse> used;
  for (const NicTraffic& now : after) {
    std::uint64_t bytes = now.put_bytes + now.get_bytes;
    for (const NicTraffic& then : before)
      if (then.nic == now.nic)
        bytes -= std::min(bytes, then.put_bytes + then.get_bytes);
    if (bytes > 0)
      used.push_back({"", now.nic.device, now.nic.port, bytes});
  }
  return used;
}

void take_measured(const bench::MeasuredLink& measured, GpuLinks& links) {
  const auto pe = static_cast<std::size_t>(links.ranks.front());
  links.limit.rate_GBps = measured.limit_GBps(pe);
  links.basis = "measured (" + measured.conditions(pe) + ")";
  links.stores_GBps = measured.stores_GBps.at(pe);
  links.loads_GBps = measured.loads_GBps.at(pe);
}

/// " (ranks 2, 3)" if another machine of the job has the same name; otherwise "".
std::string ranks_if_ambiguous(const NicUse& nic, const std::vector<NicUse>& all) {
  const bool ambiguous = std::any_of(all.begin(), all.end(), [&nic](const NicUse& other) {
    return other.host == nic.host && other.machine_id != nic.machine_id;
  });
  if (!ambiguous)
    return "";
  return fmt::format(" (rank{} {})", nic.ranks.size() == 1 ? "" : "s", fmt::join(nic.ranks, ", "));
}

} // namespace

void add_use(const NicUse& use, std::vector<NicUse>& all) {
  for (NicUse& known : all)
    if (known.machine_id == use.machine_id && known.host == use.host &&
        known.device == use.device && known.port == use.port) {
      known.moved_bytes += use.moved_bytes;
      known.ranks.insert(known.ranks.end(), use.ranks.begin(), use.ranks.end());
      return;
    }
  all.push_back(use);
}

std::vector<GpuLinks> gpu_links(const Node& node, const std::vector<bench::GpuOfPe>& by_rank,
                                const bench::LinkMeasurement& measured) {
  std::vector<GpuLinks> all;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const bench::GpuOfPe& place = by_rank[rank];
    if (place.pci_address.empty() || place.machine_id != by_rank[0].machine_id)
      return {};
    const auto known = std::find_if(all.begin(), all.end(), [&](const GpuLinks& links) {
      return links.gpu == place.pci_address;
    });
    if (known != all.end()) {
      known->ranks.push_back(static_cast<std::int32_t>(rank));
      continue;
    }
    GpuLinks links;
    links.ranks = {static_cast<std::int32_t>(rank)};
    links.gpu = place.pci_address;
    all.push_back(std::move(links));
  }
  for (GpuLinks& links : all) {
    std::vector<std::string> others;
    for (const GpuLinks& other : all)
      if (other.gpu != links.gpu)
        others.push_back(other.gpu);
    const auto model = bench::gpu_links_limit(node, links.gpu, others);
    if (others.empty() || (!model && !measured.link))
      return {};
    links.limit = model.value_or(bench::LinkLimit{0, "links between the GPUs", 0});
    if (model)
      links.model_GBps = model->rate_GBps;
    links.basis = "by the model";
    if (measured.link)
      take_measured(*measured.link, links);
  }
  return all;
}

LinkBytes bytes_over(const GpuLinks& links, const Traffic& traffic) {
  const std::size_t n = traffic.sent_bytes.size();
  LinkBytes bytes;
  for (const std::int32_t rank : links.ranks)
    for (std::size_t other = 0; other < n; ++other) {
      if (has(links, other))
        continue;
      bytes.out += traffic.moved_bytes[static_cast<std::size_t>(rank) * n + other];
      bytes.in += traffic.moved_bytes[other * n + static_cast<std::size_t>(rank)];
    }
  return bytes;
}

std::optional<LinkShare> share_of(const Links& links, const Traffic& traffic, double call_us) {
  if (call_us <= 0)
    return std::nullopt;
  std::optional<LinkShare> busiest;
  for (const GpuLinks& gpu : links.gpus) {
    const LinkBytes bytes = bytes_over(gpu, traffic);
    const std::uint64_t most = std::max(bytes.out, bytes.in);
    const double fraction = rate_of(most, call_us) / gpu.limit.rate_GBps;
    if (most > 0 && (!busiest || fraction > busiest->fraction))
      busiest =
          LinkShare{fraction, fmt::format("{}: {:.0f} GB/s in each direction, GPU {}, {}",
                                          gpu.limit.name, gpu.limit.rate_GBps, gpu.gpu, gpu.basis)};
  }
  if (busiest || !links.ports)
    return busiest;
  const std::uint64_t bytes = bytes_between_machines(links, traffic);
  if (bytes == 0)
    return std::nullopt;
  return LinkShare{rate_of(bytes, call_us) / links.ports->rate_GBps, links.ports->name};
}

json links_json(const Links& links, const Traffic& dispatch, const Traffic& combine,
                const std::optional<CallCount>& calls) {
  json all = json::array();
  for (const GpuLinks& gpu : links.gpus) {
    json one{{"gpu", gpu.gpu},
             {"ranks", gpu.ranks},
             {"name", gpu.limit.name},
             {"rate_GBps", gpu.limit.rate_GBps},
             {"basis", gpu.basis},
             {"dispatch", direction_json(gpu, dispatch)},
             {"combine", direction_json(gpu, combine)}};
    if (calls)
      one["all_calls"] = all_calls_json(links, gpu, bytes_of_calls(gpu, dispatch, combine, *calls));
    if (gpu.model_GBps)
      one["model_GBps"] = *gpu.model_GBps;
    if (gpu.stores_GBps)
      one["stores_GBps"] = *gpu.stores_GBps;
    if (gpu.loads_GBps)
      one["loads_GBps"] = *gpu.loads_GBps;
    if (!links.unmeasured.empty())
      one["unmeasured_reason"] = links.unmeasured;
    all.push_back(std::move(one));
  }
  return all;
}

RowPath path_of(const Links& links) {
  RowPath path;
  path.transports = links.transports;
  std::set<std::string> nics;
  const bool by_network =
      !std::all_of(path.transports.begin(), path.transports.end(), bench::is_memory);
  for (const NicUse& nic : links.nics)
    if (by_network) // without a network, only barriers have used NICs
      nics.insert(bench::name_of({nic.device, nic.port}));
  path.nics.assign(nics.begin(), nics.end());
  return path;
}

json nics_json(const Links& links) {
  json all = json::array();
  for (const NicUse& nic : links.nics)
    all.push_back({{"host", nic.host},
                   {"device", nic.device},
                   {"port", nic.port},
                   {"moved_bytes", nic.moved_bytes},
                   {"ranks", nic.ranks}});
  return all;
}

std::string links_text(const Links& links, const Traffic& dispatch, const Traffic& combine,
                       const std::optional<CallCount>& calls) {
  std::string text;
  for (const GpuLinks& gpu : links.gpus) {
    const LinkBytes there = bytes_over(gpu, dispatch), back = bytes_over(gpu, combine);
    text += fmt::format("GPU {}, {}: {:.1f} GB/s {}; out {:.3f} MB and in {:.3f} MB a dispatch, "
                        "{:.3f} and {:.3f} a combine\n",
                        safe_text(gpu.gpu), safe_text(gpu.limit.name), gpu.limit.rate_GBps,
                        safe_text(gpu.basis), megabytes(there.out), megabytes(there.in),
                        megabytes(back.out), megabytes(back.in));
  }
  if (!links.gpus.empty() && !links.unmeasured.empty())
    text += "  links not measured: " + safe_text(links.unmeasured) + "\n";
  text += counted_text(links, dispatch, combine, calls);
  for (const NicUse& nic : links.nics)
    text += fmt::format("{}:{} on {}{}: {:.3f} MB over all calls\n", safe_text(nic.device),
                        nic.port, safe_text(nic.host), ranks_if_ambiguous(nic, links.nics),
                        megabytes(nic.moved_bytes));
  return text;
}

bool rows_stay_on_gpu_links(Runtime& runtime) {
  PeGpu* const gpu = runtime.gpu();
  return gpu && gpu->info().heap_kind != "host" && gpu->job().all_mapped;
}

LinkWatch::LinkWatch(Runtime& runtime, bool by_kernels, const bench::LinkMeasurement& measured,
                     const std::string& nvml_library)
    : runtime_(runtime), by_kernels_(by_kernels),
      on_gpu_links_(by_kernels && rows_stay_on_gpu_links(runtime)), measured_(measured),
      before_(traffic_of(runtime)) {
  if (by_kernels && runtime.gpu())
    nvlinks_.emplace(nvml_library, runtime.gpu()->info().pci_address);
}

/// What each PE sends to the others about a point.
struct LinkMessage {
  std::vector<std::string> transports;
  std::string gpu; ///< PCI address; "": none
  std::vector<bench::PortUse> ports;
  std::vector<NicUse> nics;             ///< without hosts and ranks, which the receiver knows
  std::optional<NvlinkTraffic> nvlinks; ///< nothing: not counted
};

static void serialize(Archive& archive, NicUse& use) {
  archive(use.device, use.port, use.moved_bytes);
}

static void serialize(Archive& archive, LinkMessage& message) {
  archive(message.transports, message.gpu, message.ports, message.nics, message.nvlinks);
}

Links LinkWatch::end() {
  const Sysroot sysroot;
  const std::vector<NicTraffic> after = traffic_of(runtime_);
  const std::vector<PeHost>& hosts = runtime_.placement().hosts;
  Links links;
  for (const PeHost& host : hosts)
    links.machine_of.push_back(host.machine_id);
  bench::Point all_ranks;
  all_ranks.traffic = bench::Traffic::all_to_all;
  if (by_kernels_)
    all_ranks.launch.memory = bench::MemoryKind::gpu;
  const LinkMessage own{
      bench::own_path(runtime_, all_ranks).transports,
      runtime_.gpu() ? runtime_.gpu()->info().pci_address : "",
      bench::ports_used(runtime_.node(), before_, after, &sysroot),
      nics_used(before_, after),
      nvlinks_ ? std::optional(nvlinks_->end()) : std::nullopt,
  };
  const std::vector<std::string> texts = runtime_.gather_text(to_bytes(own));
  std::vector<bench::GpuOfPe> gpus;
  std::vector<bench::PortUse> ports;
  std::set<std::string> transports;
  for (std::size_t pe = 0; pe < texts.size(); ++pe) {
    if (runtime_.is_lost(static_cast<int>(pe))) {
      gpus.push_back({links.machine_of[pe], ""}); // one entry for each PE
      continue;
    }
    const auto message = value_of_pe<LinkMessage>(texts[pe], pe, "links");
    transports.insert(message.transports.begin(), message.transports.end());
    gpus.push_back({links.machine_of[pe], message.gpu});
    for (bench::PortUse& port :
         bench::ports_of_host(message.ports, hosts[pe].host_name, hosts[pe].machine_id))
      ports.push_back(std::move(port));
    for (const NicUse& nic : message.nics)
      add_use({hosts[pe].host_name,
               nic.device,
               nic.port,
               nic.moved_bytes,
               hosts[pe].machine_id,
               {static_cast<std::int32_t>(pe)}},
              links.nics);
    if (message.nvlinks)
      add_nvlink_use({hosts[pe].host_name,
                      message.gpu,
                      {static_cast<std::int32_t>(pe)},
                      *message.nvlinks,
                      hosts[pe].machine_id},
                     links.nvlinks);
  }
  if (on_gpu_links_)
    links.gpus = gpu_links(runtime_.node(), gpus, measured_);
  links.transports.assign(transports.begin(), transports.end());
  links.unmeasured = measured_.reason;
  links.ports = bench::link_limit(ports);
  return links;
}

namespace {

using nlohmann::json;

void put_directions(json& object, const Fact<std::uint64_t>& out, const Fact<std::uint64_t>& in) {
  put_count(object, "out_bytes", out);
  put_count(object, "in_bytes", in);
}

/// The byte counts of an item of "nvlinks", in total and for each link.
json nvlinks_traffic_json(const NvlinkTraffic& traffic) {
  json links = json::array();
  for (const NvlinkTraffic::OfLink& one : traffic.links) {
    json link{{"link", one.link}};
    put_directions(link, one.out_bytes, one.in_bytes);
    links.push_back(std::move(link));
  }
  json object{{"links", std::move(links)}};
  put_directions(object, traffic.out_bytes, traffic.in_bytes);
  return object;
}

} // namespace

NvlinkWatch::NvlinkWatch(const std::string& nvml_library, std::string gpu)
    : gpu_(std::move(gpu)), nvml_(Nvml::open(nvml_library, why_not_)), before_(read()) {}

NvlinkTraffic NvlinkWatch::end() const {
  return nvlink_traffic(before_, read());
}

NvlinkCounters NvlinkWatch::read() const {
  if (nvml_)
    return nvml_->nvlink_counters(gpu_);
  NvlinkCounters none;
  none.problem = why_not_;
  return none;
}

void add_nvlink_use(const NvlinkUse& use, std::vector<NvlinkUse>& all) {
  const auto known = std::find_if(all.begin(), all.end(), [&use](const NvlinkUse& other) {
    return other.machine_id == use.machine_id && other.host == use.host && other.gpu == use.gpu;
  });
  if (known == all.end())
    all.push_back(use);
  else
    known->ranks.insert(known->ranks.end(), use.ranks.begin(), use.ranks.end());
}

void put_count(json& object, const std::string& key, const Fact<std::uint64_t>& count) {
  object[key] = nullptr;
  if (count)
    object[key] = *count;
  else
    object[key + "_reason"] = count.origin;
}

json nvlinks_json(const std::vector<NvlinkUse>& all) {
  json items = json::array();
  for (const NvlinkUse& use : all) {
    json item = nvlinks_traffic_json(use.counted);
    item["host"] = use.host;
    item["gpu"] = use.gpu;
    item["ranks"] = use.ranks;
    if (!use.counted.links.empty())
      item["resolution_bytes"] = use.counted.links.size() * nvlink_counter_step_bytes;
    items.push_back(std::move(item));
  }
  return items;
}

} // namespace shmemctl::moe
