// Merges what all PEs report about their GPUs.
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "reports/table.h"
#include "src/base/archive.h"
#include "src/base/text.h"
#include "src/instruments/bringup/gpu_pairs.h"
#include "transports/device_memory_user.h"

namespace shmemctl {

namespace {

constexpr const char* group = "gpu";
constexpr std::size_t max_named = 16; ///< devices, kinds or reasons in one sentence

struct SentGpu {
  int device = -1;
  std::string name, pci_address, heap_kind, heap_reason;
  std::vector<std::pair<std::string, std::string>> routes; ///< path and reason, by PE
};

void serialize(Archive& archive, SentGpu& gpu) {
  archive(gpu.device, gpu.name, gpu.pci_address, gpu.heap_kind, gpu.heap_reason, gpu.routes);
}

std::string joined(std::vector<std::string> words, const char* separator) {
  if (words.size() > max_named) {
    const std::size_t more = words.size() - max_named;
    words.resize(max_named);
    words.push_back("and " + std::to_string(more) + " more");
  }
  return join(words, separator);
}

CheckRow row_of(const char* id, const char* title, std::string reason, std::string evidence) {
  CheckRow row;
  row.id = id;
  row.title = title;
  row.group = group;
  row.status = "pass";
  row.reason = std::move(reason);
  row.evidence = std::move(evidence);
  return row;
}

CheckRow devices_row(const std::vector<SentGpu>& sent, const std::vector<PeHost>& hosts) {
  // By host name, machine and address. The name is first, because it orders the evidence of the
  // row.
  std::map<std::tuple<std::string, std::uint64_t, std::string>, std::vector<std::string>> pes;
  std::set<std::string> names;
  std::size_t most = 0;
  for (std::size_t pe = 0; pe < sent.size(); ++pe) {
    std::vector<std::string>& here =
        pes[{hosts[pe].host_name, hosts[pe].machine_id, sent[pe].pci_address}];
    here.push_back(std::to_string(pe));
    most = std::max(most, here.size());
    names.insert(sent[pe].name);
  }
  std::vector<std::string> devices;
  for (const auto& [device, list] : pes)
    devices.push_back(std::get<0>(device) + " " + std::get<2>(device) + ": PE " +
                      joined(list, ", "));
  std::string reason = counted(sent.size(), "PE") + " on " + counted(pes.size(), "GPU") + " (" +
                       joined({names.begin(), names.end()}, ", ") + ")";
  if (most > 1)
    reason += "; up to " + std::to_string(most) + " PEs share one, and their kernels take turns";
  return row_of(gpu_devices_row, "which GPU each PE has", std::move(reason), joined(devices, "; "));
}

CheckRow heap_row(const std::vector<SentGpu>& sent) {
  std::map<std::pair<std::string, std::string>, std::size_t> kinds;
  for (const SentGpu& gpu : sent)
    ++kinds[{gpu.heap_kind, gpu.heap_reason}];
  std::vector<std::string> parts;
  for (const auto& [kind, count] : kinds)
    parts.push_back(kind.first + " on " + counted(count, "PE") +
                    (kind.second.empty() ? "" : ": " + kind.second));
  return row_of("gpu-heap", "memory of the symmetric heap that kernels use", joined(parts, "; "),
                "SHMEMCTL_HEAP");
}

/// Whether the reason comes from a transport with NICs. Transports without NICs give as reason that
/// they access only host memory.
bool names_nics(const std::string& answers) {
  static constexpr std::string_view names[] = {"ibrc: ", "ibdevx: ", "ibgda: ", "libfabric: "};
  return std::any_of(std::begin(names), std::end(names), [&](std::string_view name) {
    const std::size_t begin = answers.find(name);
    if (begin == std::string::npos)
      return false;
    std::size_t end = answers.size(); // end of its clause
    for (const std::string_view other : names)
      end = std::min(end, answers.find(other, begin + name.size()));
    return answers.substr(begin, end - begin).find(host_memory_only) == std::string::npos;
  });
}

/// Adds a finding if the job has NICs but stages GPU memory nevertheless, with the NICs' reason.
/// Staging on request (GPUDIRECT=off) or without NICs is not a finding.
void add_staged(const std::string& reason, Findings& findings) {
  const std::string marker = "proxy over staged: ";
  const std::size_t at = reason.find(marker);
  if (at == std::string::npos || !names_nics(reason.substr(at + marker.size())))
    return;
  const std::string message =
      "no NIC reads or writes GPU memory itself, so transfers of it are copied "
      "through host memory: " +
      reason.substr(at + marker.size());
  const bool known = std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.message == message;
  });
  if (!known)
    findings.push_back({"gpu-memory-staged", Severity::warning, "NICs and GPUs", message,
                        "shmemctl doctor --only dma-buf,nvidia-peermem,gpudirect-rdma says what is "
                        "missing; if the copies are intended, set SHMEMCTL_GPUDIRECT=off"});
}

/// Adds which PEs kernels reach, and how. A PE itself is not counted.
void add_paths(const std::vector<SentGpu>& sent, GpuSummary& summary) {
  std::map<std::pair<std::string, std::string>, std::vector<PePair>> routes;
  std::vector<PePair> missing;
  std::size_t pairs = 0;
  for (std::size_t source = 0; source < sent.size(); ++source)
    for (std::size_t target = 0; target < sent.size(); ++target) {
      const auto& [path, reason] = sent[source].routes[target];
      const PePair pair(static_cast<int>(source), static_cast<int>(target));
      summary.connections.push_back(
          {kernels_name, pair.first, pair.second, path + (reason.empty() ? "" : ": " + reason)});
      if (source == target)
        continue;
      ++pairs;
      routes[{path, reason}].push_back(pair);
      if (path == "none")
        missing.push_back(pair);
    }
  std::vector<std::string> parts;
  for (const auto& each : routes)
    add_staged(each.first.second, summary.findings);
  for (const auto& [route, list] : routes)
    parts.push_back((route.first == "none" ? "not reached" : route.first) + ": " +
                    counted(list.size(), "pair") +
                    (route.second.empty() ? "" : " (" + route.second + ")"));
  CheckRow row =
      row_of("gpu-paths", "how kernels reach other PEs",
             fmt::format("kernels reach {} of {}", pairs - missing.size(), counted(pairs, "pair")),
             joined(parts, "; "));
  if (!missing.empty()) {
    const auto& [source, target] = missing.front();
    const std::string& why =
        sent[static_cast<std::size_t>(source)].routes[static_cast<std::size_t>(target)].second;
    row.status = "warning";
    row.fix =
        "set SHMEMCTL_DEVICE_PATH=auto, and choose a transport that reaches these PEs; shmemctl "
        "doctor --only gpu says what prevents peer access";
    summary.findings.push_back(
        {"gpu-pair-unreachable", Severity::warning, fmt::format("PE {} to PE {}", source, target),
         "kernels do not reach " + counted(missing.size(), "pair") +
             " of PEs: " + pair_list(missing) + (why.empty() ? "" : "; " + why),
         row.fix});
  }
  summary.rows.push_back(std::move(row));
}

} // namespace

std::string gpu_info_message(const GpuInfo& info, const std::vector<KernelPath>& routes) {
  SentGpu gpu{info.device, info.name, info.pci_address, info.heap_kind, info.heap_reason, {}};
  for (const KernelPath& route : routes)
    gpu.routes.emplace_back(to_string(route.path), route.reason);
  return to_bytes(gpu);
}

GpuSummary merge_gpu_infos(const std::vector<std::string>& messages,
                           const std::vector<PeHost>& hosts) {
  std::vector<SentGpu> sent;
  for (std::size_t pe = 0; pe < messages.size(); ++pe) {
    sent.push_back(value_of_pe<SentGpu>(messages[pe], pe, "GPU summary"));
    if (sent.back().routes.size() != messages.size())
      throw malformed_message(pe, "GPU summary");
  }
  GpuSummary summary;
  summary.rows = {devices_row(sent, hosts), heap_row(sent)};
  add_paths(sent, summary);
  return summary;
}

std::string gpu_rows_text(const std::vector<CheckRow>& rows) {
  std::string text;
  for (const CheckRow& row : rows)
    if (row.group == group)
      text += "  " + safe_text(row.id) + ": " + safe_text(row.reason) +
              (row.evidence.empty() ? "" : "\n    " + safe_text(row.evidence)) + "\n";
  return text.empty() ? "" : "GPUs\n" + text;
}

} // namespace shmemctl
