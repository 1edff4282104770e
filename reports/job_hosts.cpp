#include "reports/job_hosts.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "src/base/json_values.h"

namespace shmemctl {

namespace {

using nlohmann::json;

constexpr std::size_t max_kinds = 16; ///< kinds of nodes besides that of the first host
constexpr std::size_t max_bytes = std::size_t{8} << 20;
constexpr std::size_t piece_bytes = std::size_t{128} << 10;

/// The first message of a leader: its host, and the length of the rest.
struct Introduction {
  json host;
  std::string kind;
  std::size_t size_bytes = 0;
};

std::optional<Introduction> introduction_from(const std::string& text) {
  const json object = try_from_json_line(text);
  if (!object.is_object() || !object.contains("host") || !object.at("host").is_object())
    return std::nullopt;
  try {
    return Introduction{object.at("host"), object.at("kind").get<std::string>(),
                        require_whole_number<std::size_t>(object.at("size_bytes"))};
  } catch (const std::exception&) { // an error of the JSON library, or a number out of range
    return std::nullopt;
  }
}

/// Hosts whose nodes are of one kind.
struct Kind {
  std::size_t first_host = 0;
  std::vector<std::size_t> hosts;
};

/// Kinds of nodes ordered by their first host; the first kind is that of `topology`.
std::vector<Kind> kinds_of(const std::vector<std::optional<Introduction>>& hosts) {
  std::vector<Kind> kinds;
  std::map<std::string, std::size_t> index;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    if (!hosts[host])
      continue;
    const auto found = index.emplace(hosts[host]->kind, kinds.size());
    if (found.second)
      kinds.push_back({host, {}});
    kinds[found.first->second].hosts.push_back(host);
  }
  return kinds;
}

/// Why topology and mapping of a kind are not sent; "" if they are.
/// @param index the number of the kind
std::string why_left_out(std::size_t index, std::size_t size_bytes) {
  if (index > max_kinds)
    return fmt::format("{} other kinds of nodes are in this report", max_kinds);
  if (size_bytes > max_bytes)
    return "it is larger than 8 MiB";
  return {};
}

std::string text_of_node(const HostDescription& description) {
  return json_line({{"topology", description.topology}, {"mapping", description.mapping}});
}

} // namespace

JobHosts gather_job_hosts(const std::vector<HostPes>& places, int pe,
                          const std::optional<HostDescription>& own, const GatherTexts& gather) {
  const std::string node = own ? text_of_node(*own) : std::string();
  const std::vector<std::string> texts = gather(
      own ? json_line({{"host", own->host}, {"kind", own->kind}, {"size_bytes", node.size()}})
          : std::string());
  std::vector<std::optional<Introduction>> hosts;
  for (const HostPes& place : places)
    hosts.push_back(introduction_from(texts.at(static_cast<std::size_t>(place.leader))));
  const std::vector<Kind> kinds = kinds_of(hosts);
  std::set<int> senders;
  std::size_t longest = 0;
  for (std::size_t i = 1; i < kinds.size(); ++i) {
    const std::size_t first = kinds[i].first_host;
    if (!why_left_out(i, hosts[first]->size_bytes).empty())
      continue;
    senders.insert(places[first].leader);
    longest = std::max(longest, hosts[first]->size_bytes);
  }
  std::map<int, std::string> nodes; // by sender
  for (std::size_t at = 0; at < longest; at += piece_bytes) {
    const bool sends = senders.count(pe) != 0 && at < node.size();
    const std::vector<std::string> pieces =
        gather(sends ? node.substr(at, piece_bytes) : std::string());
    for (const int sender : senders)
      if (pe == 0)
        nodes[sender] += pieces.at(static_cast<std::size_t>(sender));
  }
  JobHosts all;
  if (pe != 0)
    return all;
  for (const std::optional<Introduction>& host : hosts)
    if (host)
      all.hosts.push_back(host->host);
  for (std::size_t i = 1; i < kinds.size(); ++i) {
    const HostPes& leader = places[kinds[i].first_host];
    json entry = {{"nodes", json::array()}};
    for (const std::size_t host : kinds[i].hosts)
      for (const int number : places[host].nodes)
        entry["nodes"].push_back(number);
    const std::string why = why_left_out(i, hosts[kinds[i].first_host]->size_bytes);
    if (const json sent = try_from_json_line(nodes[leader.leader]);
        why.empty() && sent.contains("topology") && sent.contains("mapping")) {
      entry["topology"] = sent.at("topology");
      entry["mapping"] = sent.at("mapping");
    } else {
      entry["left_out"] = why.empty() ? "its host sent no topology" : why;
    }
    all.other_nodes.push_back(std::move(entry));
  }
  return all;
}

} // namespace shmemctl
