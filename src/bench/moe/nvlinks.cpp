#include "src/bench/moe/nvlinks.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace shmemctl::moe {

namespace {

using nlohmann::json;

void put_directions(json& object, const Fact<std::uint64_t>& out, const Fact<std::uint64_t>& in) {
  put_count(object, "out_bytes", out);
  put_count(object, "in_bytes", in);
}

Fact<std::uint64_t> count_from(const json& object, const char* key) {
  const json& value = object.at(key);
  return value.is_null()
             ? unknown<std::uint64_t>(object.at(std::string(key) + "_reason").get<std::string>())
             : known(value.get<std::uint64_t>(), "NVML");
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

json traffic_json(const NvlinkTraffic& traffic) {
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

NvlinkTraffic nvlink_traffic_from(const json& object) {
  NvlinkTraffic traffic;
  traffic.out_bytes = count_from(object, "out_bytes");
  traffic.in_bytes = count_from(object, "in_bytes");
  for (const json& link : object.at("links"))
    traffic.links.push_back({link.at("link").get<unsigned>(), count_from(link, "out_bytes"),
                             count_from(link, "in_bytes")});
  return traffic;
}

json nvlinks_json(const std::vector<NvlinkUse>& all) {
  json items = json::array();
  for (const NvlinkUse& use : all) {
    json item = traffic_json(use.counted);
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
