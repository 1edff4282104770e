#include "src/model/sim/limit.h"

#include <fmt/format.h>
#include <map>
#include <vector>

#include "src/base/text.h"

namespace shmemctl::sim {

namespace {

/// The two directions of one kind of link.
struct Family {
  Resource away, back;
  const char* away_word;
  const char* back_word;
  const char* each;   ///< "every NIC"
  const char* plural; ///< "NICs"
};

constexpr Family families[] = {
    {Resource::nic_out, Resource::nic_in, "out", "in", "every NIC", "NICs"},
    {Resource::uplink, Resource::downlink, "up", "down", "every leaf switch", "leaf switches"},
    {Resource::gpu_out, Resource::gpu_in, "out", "in", "the GPU links of every rank",
     "ranks' GPU links"}};

/// How many links of this kind the group has.
std::size_t number_of(const Loads& loads, const Family& family) {
  switch (family.away) {
  case Resource::uplink:
    return loads.up.size();
  case Resource::gpu_out:
    return loads.link_out.size();
  default:
    break;
  }
  const Group& group = loads.group();
  std::size_t nics = 0;
  for (std::size_t i = 0; i < loads.out.size(); ++i) {
    const Port& port = group.cluster->ports[i % group.cluster->ports.size()];
    nics += port.on_fabric || loads.out[i] > 0 || loads.in[i] > 0;
  }
  return nics;
}

/// The directions in which a link is busy longest.
struct Directions {
  bool away = false, back = false;

  std::string text(const Family& family) const {
    if (away && back)
      return fmt::format("{} and {}", family.away_word, family.back_word);
    return away ? family.away_word : family.back_word;
  }
};

std::string family_text(const Loads& loads, const Family& family,
                        const std::vector<Bottleneck>& slowest) {
  constexpr std::size_t max_named = 2; // a sender and its receiver
  std::map<int, Directions> links;
  Directions of_all;
  for (const Bottleneck& one : slowest) {
    const bool away = one.resource == family.away, back = one.resource == family.back;
    if (!away && !back)
      continue;
    for (Directions* directions : {&links[one.index], &of_all}) {
      directions->away = directions->away || away;
      directions->back = directions->back || back;
    }
  }
  const auto name_of = [&](int link) {
    const std::string name = loads.name_of(family.away, static_cast<std::size_t>(link));
    return name.substr(0, name.rfind(' ')); // without its direction
  };
  const std::size_t all = number_of(loads, family);
  if (links.size() > 1 && links.size() == all)
    return fmt::format("{} ({})", family.each, of_all.text(family));
  if (links.size() > max_named)
    return fmt::format("{} of {} {} ({})", links.size(), all, family.plural, of_all.text(family));
  std::vector<std::string> names;
  for (const auto& [link, directions] : links)
    names.push_back(name_of(link) + " " + directions.text(family));
  return join(names, " and ");
}

} // namespace

std::string limit_name(const Loads& loads, const Bottleneck& slowest) {
  const std::vector<Bottleneck> alike = loads.as_slow_as((1 - same_within) * slowest.time_us);
  std::vector<std::string> texts;
  for (const Family& family : families)
    if (std::string text = family_text(loads, family, alike); !text.empty())
      texts.push_back(std::move(text));
  return join(texts, " and ");
}

} // namespace shmemctl::sim
