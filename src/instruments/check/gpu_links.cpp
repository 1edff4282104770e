#include "src/instruments/check/gpu_links.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

#include "src/base/text.h"
#include "src/instruments/bench/bandwidth_limit.h"
#include "src/instruments/bench/statistics.h"
#include "src/model/topo/distance.h"

namespace shmemctl {

namespace {

/// A measured pair, and what the node model says about it.
struct Pair {
  const cuda::LinkSample* sample = nullptr;
  /// "GPU0", in PCI bus order; the PCI address if the GPU is not in the model.
  std::string source, target;
  std::string declared;             ///< "NV18"; "?" if unknown
  std::optional<PathClass> path;    ///< path class that `declared` stands for
  std::optional<double> median_us;  ///< median time of one copy
  std::optional<double> speed_GBps; ///< computed from the median
  /// The NVLink that joins them by the node model, with its rate.
  std::optional<bench::LinkLimit> nvlink;

  std::string text() const { return source + " -> " + target; }
};

std::optional<int> index_of(const Node& node, const std::string& address) {
  const std::optional<PciAddress> wanted = parse_pci_address(address);
  for (const Gpu& gpu : node.gpus)
    if (wanted && gpu.pci >= 0 && node.pci[static_cast<std::size_t>(gpu.pci)].address == *wanted)
      return gpu.index;
  return std::nullopt;
}

std::vector<Pair> pairs_of(const Node& node, const cuda::LinkSurvey& survey) {
  std::vector<Pair> pairs;
  for (const cuda::LinkSample& sample : survey.samples) {
    const std::string& source = survey.gpus.at(static_cast<std::size_t>(sample.source));
    const std::string& target = survey.gpus.at(static_cast<std::size_t>(sample.target));
    const std::optional<int> from = index_of(node, source), to = index_of(node, target);
    Pair pair;
    pair.sample = &sample;
    pair.source = from ? "GPU" + std::to_string(*from) : source;
    pair.target = to ? "GPU" + std::to_string(*to) : target;
    pair.declared = "?";
    if (from && to) {
      const Distance declared = distance(node, *from, *to);
      pair.declared = to_string(declared);
      pair.path = declared.path;
      if (declared.path == PathClass::nvlink)
        pair.nvlink = bench::gpu_link(node, source, target);
    }
    if (!sample.copy_us.empty()) {
      pair.median_us = bench::median(sample.copy_us);
      if (*pair.median_us > 0)
        pair.speed_GBps = static_cast<double>(survey.copy_bytes) / *pair.median_us * 1e-3;
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

/// "GPU0 -> GPU3 at 21.5 GB/s, GPU1 -> GPU3 at ..., and 4 more".
std::string list_of(const std::vector<std::string>& words) {
  constexpr std::size_t max_listed = 6;
  std::vector<std::string> first(
      words.begin(),
      words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), max_listed)));
  std::string text = join(first, ", ");
  if (words.size() > max_listed)
    text += ", and " + std::to_string(words.size() - max_listed) + " more";
  return text;
}

Finding slow_links(const std::string& declared, double median_GBps,
                   const std::vector<std::string>& slow) {
  return {"gpu-link-slow", Severity::warning, "GPUs at " + declared,
          fmt::format("{} {} below {:.0f}% of the {:.1f} GB/s that the median of pairs at {} "
                      "reaches: {}",
                      slow.size(), slow.size() == 1 ? "pair copies" : "pairs copy",
                      slow_link_share * 100, median_GBps, declared, list_of(slow)),
          "measure again while no other process uses the GPUs; then check nvidia-smi nvlink "
          "--errorcounters, and nvidia-smi -q -d PCIE for the width and generation of links"};
}

Finding below_declared(const std::string& declared, const std::vector<std::string>& slow) {
  return {"gpu-link-below-declared", Severity::warning, "GPUs at " + declared,
          fmt::format("{} {} below {:.0f}% of what the NVLink that is declared to join them "
                      "carries: {}",
                      slow.size(), slow.size() == 1 ? "pair copies" : "pairs copy",
                      declared_link_share * 100, list_of(slow)),
          "measure again while no other process uses the GPUs; then check with nvidia-smi nvlink "
          "--status, nvidia-smi topo -m and systemctl status nvidia-fabricmanager whether copies "
          "take PCIe instead"};
}

bool is_below_siblings(const Pair& pair, double median_GBps) {
  return pair.speed_GBps && *pair.speed_GBps < slow_link_share * median_GBps;
}

bool is_below_declared(const Pair& pair) {
  return pair.speed_GBps && pair.nvlink &&
         *pair.speed_GBps < declared_link_share * pair.nvlink->rate_GBps;
}

/// Compares each pair's speed with the median of the pairs at the same declared distance, and with
/// the rate of its declared NVLink. A pair that fails the first test is not reported again.
void judge_speeds(const std::vector<Pair>& pairs, Findings& findings) {
  std::map<std::string, std::vector<const Pair*>> by_declared;
  for (const Pair& pair : pairs)
    if (pair.speed_GBps && pair.path)
      by_declared[pair.declared].push_back(&pair);
  for (auto& [declared, siblings] : by_declared) {
    std::vector<double> speeds;
    for (const Pair* pair : siblings)
      speeds.push_back(*pair->speed_GBps);
    const double median = bench::median(speeds);
    std::sort(siblings.begin(), siblings.end(), [](const Pair* a, const Pair* b) {
      return std::tie(*a->speed_GBps, a->source, a->target) <
             std::tie(*b->speed_GBps, b->source, b->target);
    });
    std::vector<std::string> slow, below;
    for (const Pair* pair : siblings) {
      const std::string text = fmt::format("{} at {:.1f} GB/s", pair->text(), *pair->speed_GBps);
      if (is_below_siblings(*pair, median))
        slow.push_back(text);
      else if (is_below_declared(*pair))
        below.push_back(fmt::format("{} of {:.0f}", text, pair->nvlink->rate_GBps));
    }
    if (!slow.empty())
      findings.push_back(slow_links(declared, median, slow));
    if (!below.empty())
      findings.push_back(below_declared(declared, below));
  }
}

} // namespace

std::vector<ResultRow> link_rows(const Node& node, const cuda::LinkSurvey& survey) {
  std::vector<ResultRow> rows;
  for (const Pair& pair : pairs_of(node, survey)) {
    ResultRow row;
    row.case_name = "gpu-link";
    row.params = {{"source", pair.source},
                  {"target", pair.target},
                  {"declared", pair.declared},
                  {"size_bytes", survey.copy_bytes}};
    row.unit = "us";
    if (pair.sample->copy_us.empty()) {
      row.status = RowStatus::skip;
      row.reason = pair.sample->problem.empty() ? pair.sample->refused : pair.sample->problem;
    } else {
      row.stats = bench::stats_of(pair.sample->copy_us);
      row.samples = bench::kept_samples({pair.sample->copy_us});
      row.bandwidth_GBps = pair.speed_GBps;
      const bool intact = pair.sample->wrong.empty();
      row.verified = intact ? Verified::passed : Verified::failed;
      row.status = intact ? RowStatus::pass : RowStatus::fail;
      row.reason = pair.sample->wrong;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Findings judge_links(const Node& node, const cuda::LinkSurvey& survey) {
  const std::vector<Pair> pairs = pairs_of(node, survey);
  Findings findings;
  if (!survey.problem.empty())
    findings.push_back({"gpu-link-unmeasured", Severity::warning, "copies between GPUs",
                        "the links between GPUs could not be measured: " + survey.problem,
                        "run shmemctl doctor --only driver,gpu"});
  std::vector<std::string> corrupt, refused, unmeasured;
  for (const Pair& pair : pairs) {
    if (!pair.sample->wrong.empty())
      corrupt.push_back(pair.text() + " " + pair.sample->wrong);
    if (!pair.sample->problem.empty())
      unmeasured.push_back(pair.text() + ": " + pair.sample->problem);
    if (!pair.sample->refused.empty() && pair.path == PathClass::nvlink)
      refused.push_back(pair.text() + " (" + pair.declared + "): " + pair.sample->refused);
  }
  if (!corrupt.empty())
    findings.push_back(
        {"gpu-link-corrupt", Severity::error, "GPU memory over peer links",
         "bytes that one GPU copied to another one did not arrive: " + list_of(corrupt),
         "check nvidia-smi nvlink --errorcounters, and dmesg for Xid errors; "
         "see pcie-acs and iommu of shmemctl doctor"});
  if (!refused.empty())
    findings.push_back({"gpu-p2p-unavailable", Severity::error, "GPUs joined by NVLink",
                        "the driver does not let GPUs reach each other's memory that NVLink "
                        "joins: " +
                            list_of(refused),
                        "check nvidia-smi topo -p2p r and systemctl status nvidia-fabricmanager; "
                        "give a container all GPUs"});
  if (!unmeasured.empty())
    findings.push_back({"gpu-link-unmeasured", Severity::warning, "copies between GPUs",
                        "pairs of GPUs could not be measured: " + list_of(unmeasured),
                        "check with nvidia-smi which processes use the GPUs; run shmemctl doctor "
                        "--only driver,gpu"});
  judge_speeds(pairs, findings);
  return findings;
}

} // namespace shmemctl
