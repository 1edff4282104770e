#include "reports/networks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "reports/json_view.h"
#include "src/base/folded_names.h"
#include "src/base/json_values.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

using NodePair = std::pair<int, int>;
using Links = std::set<NetworkLink>;
/// The links of one node pair in one direction, by transport.
using LinksByTransport = std::map<std::string, Links>;

constexpr std::size_t max_network_rows = 50, max_links = 4;

/// Gives equal values the same number.
template <class T>
class Numbers {
public:
  int of(const T& value) {
    const auto found = number_.emplace(value, static_cast<int>(values_.size()));
    if (found.second)
      values_.push_back(value);
    return found.first->second;
  }
  const T& value(int number) const { return values_[static_cast<std::size_t>(number)]; }

private:
  std::map<T, int> number_;
  std::vector<T> values_;
};

NetworkLink mirrored(const NetworkLink& link) {
  return {link.second, link.first};
}

Links mirrored(const Links& links) {
  Links others;
  for (const NetworkLink& link : links)
    others.insert(mirrored(link));
  return others;
}

std::set<NetworkPort> ports_here(const Links& links) {
  std::set<NetworkPort> ports;
  for (const NetworkLink& link : links)
    ports.insert(link.first);
  return ports;
}

/// The links of one direction, completed by those of the other direction, which is possible if one
/// of the two sides uses a single port.
Links completed(const Links& links, const Links& back) {
  const bool known = std::all_of(links.begin(), links.end(), [](const NetworkLink& link) {
    return !link.second.device.empty();
  });
  const std::set<NetworkPort> here = ports_here(links), there = ports_here(back);
  if (known || there.empty() || (here.size() > 1 && there.size() > 1))
    return links;
  Links all;
  for (const NetworkPort& first : here)
    for (const NetworkPort& second : there)
      all.insert({first, second});
  return all;
}

/// Node pairs with the same links. If `both_ways`, the order of a pair does not matter.
struct NetworkGroup {
  std::string transport;
  Links links;
  bool both_ways = true;
  auto operator<=>(const NetworkGroup&) const = default;
};

/// A group that pairs belong to, and whether they belong to it in reverse order.
struct Membership {
  NetworkGroup group;
  bool turned = false;
};

/// The groups of pairs whose nodes reach each other by these links.
std::vector<Membership> memberships_of(const LinksByTransport& there,
                                       const LinksByTransport& back) {
  std::set<std::string> transports;
  for (const LinksByTransport* direction : {&there, &back})
    for (const auto& each : *direction)
      transports.insert(each.first);
  std::vector<Membership> all;
  for (const std::string& name : transports) {
    const auto forth_found = there.find(name), back_found = back.find(name);
    const Links none;
    const Links& said = forth_found == there.end() ? none : forth_found->second;
    const Links& answered = back_found == back.end() ? none : back_found->second;
    const Links forth = completed(said, answered), again = completed(answered, said);
    if (forth_found != there.end() && back_found != back.end() && mirrored(again) == forth) {
      const bool turned = again < forth; // the same one of the two orders for all pairs
      all.push_back({{name, turned ? again : forth, true}, turned});
      continue;
    }
    if (forth_found != there.end())
      all.push_back({{name, forth, false}, false});
    if (back_found != back.end())
      all.push_back({{name, again, false}, true});
  }
  return all;
}

/// Node numbers, ascending.
using Nodes = std::vector<int>;

struct Block {
  Nodes first, second;
  auto operator<=>(const Block&) const = default;
};

/// Combines sources with the same targets into one block.
/// @param pairs sorted, each once
/// @param closed adds each source to its own targets
std::vector<Block> blocks_of(const std::vector<NodePair>& pairs, bool closed) {
  std::map<Nodes, Nodes> sources; // by their targets
  for (std::size_t first = 0; first < pairs.size();) {
    const int source = pairs[first].first;
    Nodes targets;
    for (; first < pairs.size() && pairs[first].first == source; ++first)
      targets.push_back(pairs[first].second);
    if (closed)
      targets.insert(std::lower_bound(targets.begin(), targets.end(), source), source);
    sources[std::move(targets)].push_back(source);
  }
  std::vector<Block> blocks;
  for (const auto& [second, first] : sources)
    blocks.push_back({first, second});
  return blocks;
}

std::vector<Block> fewest_blocks(std::vector<NodePair> pairs) {
  std::sort(pairs.begin(), pairs.end());
  std::vector<Block> open = blocks_of(pairs, false), closed = blocks_of(pairs, true);
  return closed.size() < open.size() ? closed : open;
}

std::size_t common_nodes(const Block& block) {
  Nodes common;
  std::set_intersection(block.first.begin(), block.first.end(), block.second.begin(),
                        block.second.end(), std::back_inserter(common));
  return common.size();
}

/// Blocks of pairs whose order does not matter; each pair is in one block.
std::vector<Block> unordered_blocks(const std::vector<NodePair>& pairs) {
  std::vector<NodePair> both = pairs;
  for (const NodePair& pair : pairs)
    both.emplace_back(pair.second, pair.first);
  const std::vector<Block> all = fewest_blocks(std::move(both));
  const std::set<Block> known(all.begin(), all.end());
  std::vector<Block> once;
  for (const Block& block : all) {
    const bool within = block.first == block.second;
    if (!within && (common_nodes(block) > 0 || known.count({block.second, block.first}) == 0))
      // some block lacks its mirror image: each pair counts in one order
      return fewest_blocks(pairs);
    if (within || block.first < block.second)
      once.push_back(block);
  }
  return once;
}

/// Unordered pairs of different nodes in a block.
std::size_t pairs_in(const Block& block) {
  const std::size_t common = common_nodes(block);
  return block.first.size() * block.second.size() - common - common * (common - (common > 0)) / 2;
}

} // namespace

std::vector<NetworkRow> network_rows(const std::vector<NetworkUse>& uses, int n_nodes) {
  const auto n = static_cast<std::size_t>(std::max(n_nodes, 0));
  const auto is_node = [n](int node) { return node >= 0 && static_cast<std::size_t>(node) < n; };
  const auto index = [n](int from, int to) {
    return static_cast<std::size_t>(from) * n + static_cast<std::size_t>(to);
  };
  using TransportLinks = std::pair<std::string, Links>;
  Numbers<TransportLinks> single;
  std::vector<std::vector<int>> used(n * n); // by source and target: numbers in `single`
  for (const NetworkUse& use : uses) {
    if (!is_node(use.node))
      continue;
    const int number = single.of({use.transport, Links(use.links.begin(), use.links.end())});
    for (const int target : use.targets)
      if (is_node(target) && target != use.node)
        if (std::vector<int>& numbers = used[index(use.node, target)];
            std::find(numbers.begin(), numbers.end(), number) == numbers.end())
          numbers.push_back(number);
  }
  Numbers<std::vector<int>> several;
  std::map<NodePair, std::vector<NodePair>> alike; // by numbers of both directions
  for (int a = 0; a < n_nodes; ++a)
    for (int b = a + 1; b < n_nodes; ++b) {
      std::vector<int>&there = used[index(a, b)], &back = used[index(b, a)];
      std::sort(there.begin(), there.end());
      std::sort(back.begin(), back.end());
      if (!there.empty() || !back.empty())
        alike[{several.of(there), several.of(back)}].emplace_back(a, b);
    }
  const auto links_by_transport = [&](int number) {
    LinksByTransport all;
    for (const int each : several.value(number)) {
      const TransportLinks& one = single.value(each);
      all[one.first].insert(one.second.begin(), one.second.end());
    }
    return all;
  };
  std::map<NetworkGroup, std::vector<NodePair>> groups;
  for (const auto& [key, pairs] : alike) {
    for (const Membership& of :
         memberships_of(links_by_transport(key.first), links_by_transport(key.second))) {
      std::vector<NodePair>& members = groups[of.group];
      for (const NodePair& pair : pairs)
        members.push_back(of.turned ? NodePair(pair.second, pair.first) : pair);
    }
  }
  std::vector<NetworkRow> rows;
  for (const auto& [group, pairs] : groups) {
    const bool turns = group.both_ways && mirrored(group.links) == group.links;
    for (const Block& block : turns ? unordered_blocks(pairs) : fewest_blocks(pairs))
      rows.push_back({group.transport,
                      {group.links.begin(), group.links.end()},
                      block.first,
                      block.second,
                      group.both_ways,
                      pairs_in(block)});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const NetworkRow& a, const NetworkRow& b) {
    return std::tie(a.first, a.second) < std::tie(b.first, b.second);
  });
  return rows;
}

namespace {

json port_json(const NetworkPort& port) {
  return {{"device", port.device}, {"port", port.port}};
}

void put_port(const char* key, const NetworkPort& port, json& to) {
  if (!port.device.empty()) {
    to[key] = port_json(port);
    return;
  }
  to[key] = nullptr;
  to[std::string(key) + "_reason"] = "the transport does not report";
}

NetworkPort port_from(const json& link, const char* key) {
  const json& port = view::member(link, key);
  if (!port.is_object())
    return {};
  return {port.at("device").get<std::string>(), require_whole_number<int>(port.at("port"))};
}

std::vector<int> nodes_from(const json& list) {
  std::vector<int> nodes;
  for (const json& node : list)
    nodes.push_back(require_whole_number<int>(node));
  return nodes;
}

} // namespace

json to_json(const NetworkRow& row) {
  json links = json::array();
  for (const NetworkLink& link : row.links) {
    json object;
    put_port("first", link.first, object);
    put_port("second", link.second, object);
    links.push_back(std::move(object));
  }
  json object = {{"transport", row.transport}, {"links", std::move(links)},
                 {"first", row.first},         {"second", row.second},
                 {"pairs", row.pairs},         {"both_ways", row.both_ways}};
  if (row.run)
    object["run"] = *row.run;
  return object;
}

NetworkRow network_row_from_json(const json& object) {
  NetworkRow row;
  row.transport = object.at("transport").get<std::string>();
  for (const json& link : object.at("links"))
    row.links.push_back({port_from(link, "first"), port_from(link, "second")});
  row.first = nodes_from(object.at("first"));
  row.second = nodes_from(object.at("second"));
  row.pairs = require_whole_number<std::size_t>(object.at("pairs"));
  row.both_ways = object.at("both_ways").get<bool>();
  if (const json& run = view::member(object, "run"); !run.is_null())
    row.run = require_whole_number<int>(run);
  return row;
}

namespace {

/// "mlx5_0", "mlx5_1:2"
std::string name_of(const NetworkPort& port) {
  if (port.device.empty())
    return "?";
  return safe_text(port.device) + (port.port == 1 ? "" : ":" + std::to_string(port.port));
}

std::string folded_ports(const std::set<NetworkPort>& ports) {
  std::vector<std::string> names;
  for (const NetworkPort& port : ports)
    names.push_back(name_of(port));
  return fold_names(names);
}

} // namespace

std::string links_text(const NetworkRow& row) {
  if (row.links.empty())
    return "";
  const std::string arrow = row.both_ways ? " <-> " : " -> ";
  std::set<NetworkPort> first, second;
  bool same = true;
  for (const NetworkLink& link : row.links) {
    first.insert(link.first);
    second.insert(link.second);
    same = same && link.first == link.second;
  }
  const std::string sides = folded_ports(first) + arrow + folded_ports(second);
  const std::set<NetworkLink> different(row.links.begin(), row.links.end());
  const bool all = different.size() == first.size() * second.size();
  if (all && (first.size() == 1 || second.size() == 1))
    return sides;
  if (all)
    return sides + " (each with each)";
  if (same)
    return sides + " (each with its like)";
  std::vector<std::string> words;
  for (const NetworkLink& link : different)
    if (words.size() < max_links)
      words.push_back(name_of(link.first) + arrow + name_of(link.second));
  if (different.size() > max_links)
    words.push_back("and " + std::to_string(different.size() - max_links) + " more");
  return join(words, ", ");
}

namespace {

std::string nodes_text(const std::vector<int>& nodes, const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (const int node : nodes) {
    const auto at = static_cast<std::size_t>(node);
    words.push_back(node >= 0 && at < names.size() && !names[at].empty()
                        ? safe_text(names[at])
                        : "node " + std::to_string(node));
  }
  return fold_names(words);
}

} // namespace

std::string between_text(const NetworkRow& row, const std::vector<std::string>& node_names) {
  const std::string first = nodes_text(row.first, node_names);
  if (row.first == row.second)
    return "among " + first;
  return first + (row.both_ways ? " <-> " : " -> ") + nodes_text(row.second, node_names);
}

std::string networks_text(const std::vector<NetworkRow>& rows,
                          const std::vector<std::string>& node_names, const TextStyle& style) {
  if (rows.empty())
    return "";
  const bool merged = std::any_of(rows.begin(), rows.end(),
                                  [](const NetworkRow& row) { return row.run.has_value(); });
  std::vector<Column> columns = {
      {"between"}, {"pairs", Align::right}, {"transport"}, {"interfaces and NICs"}};
  if (merged)
    columns.insert(columns.begin(), {"run", Align::right});
  Table table(columns);
  const std::size_t shown = style.verbose ? rows.size() : std::min(rows.size(), max_network_rows);
  for (std::size_t i = 0; i < shown; ++i) {
    const NetworkRow& row = rows[i];
    const std::string links = links_text(row);
    std::vector<std::string> cells = {
        between_text(row, row.run ? std::vector<std::string>() : node_names),
        std::to_string(row.pairs), safe_text(row.transport), links.empty() ? "-" : links};
    if (merged)
      cells.insert(cells.begin(), row.run ? std::to_string(*row.run) : "");
    table.add(std::move(cells));
  }
  std::string text = table.text(style);
  if (shown < rows.size())
    text += "and " + std::to_string(rows.size() - shown) + " more: --verbose\n";
  return text;
}

namespace {

/// The names, each followed by the number of its node if several nodes have the name.
std::vector<std::string> distinct_node_names(std::vector<std::string> names) {
  std::map<std::string, int> count;
  for (const std::string& name : names)
    ++count[name];
  for (std::size_t node = 0; node < names.size(); ++node)
    if (!names[node].empty() && count[names[node]] > 1)
      names[node] += " node " + std::to_string(node);
  return names;
}

} // namespace

std::vector<std::string> node_names_of(const json& hosts) {
  constexpr double max_nodes = 1 << 20; // a report may contain any number
  std::vector<std::string> names;
  if (!hosts.is_array())
    return names;
  for (const json& host : hosts)
    for (const json& node : view::list(host, "nodes")) {
      if (!node.is_number_integer() || node.get<double>() < 0 || node.get<double>() >= max_nodes)
        continue;
      const auto at = node.get<std::size_t>();
      names.resize(std::max(names.size(), at + 1));
      names[at] = view::text(host, "name");
    }
  return distinct_node_names(std::move(names));
}

} // namespace shmemctl
