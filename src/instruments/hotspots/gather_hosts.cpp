// Gathers the counters of a job's machines on PE 0: the format of the messages, and the collective
// calls that exchange them.
#include "src/instruments/hotspots/gather_hosts.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_values.h"
#include "src/instruments/hotspots/totals.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_bytes_of_all = std::size_t{16} << 20;
constexpr std::size_t min_bytes = 4096, max_bytes_of_one = std::size_t{1} << 20;

} // namespace

std::size_t max_part_bytes(int n_pes) {
  return std::clamp(max_bytes_of_all / static_cast<std::size_t>(std::max(n_pes, 1)), min_bytes,
                    max_bytes_of_one);
}

std::string with_totals(nlohmann::json object, const NodeTotals& totals, std::size_t max_bytes) {
  const std::size_t taken = json_line(object).size();
  object["totals"] =
      totals_json(totals, detail_within(totals, max_bytes - std::min(max_bytes, taken)));
  return json_line(object);
}

Error bad_part(const std::string& host) {
  return {ExitCode::unavailable, "NIC counters of " + host, "read", "malformed message from a PE",
          "run the same version of shmemctl on all hosts"};
}

std::string machine_text(const PeMachine& machine) {
  return std::to_string(machine.machine_id) + " " + machine.name;
}

std::vector<PeMachine> machines_from(const std::vector<std::string>& texts) {
  std::vector<PeMachine> machines;
  for (const std::string& text : texts) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    machines.push_back(
        {std::strtoull(text.c_str(), nullptr, 10), text.substr(std::min(blank + 1, text.size()))});
  }
  return machines;
}

namespace {

using nlohmann::json;

void read_part(const json& object, const std::string& host, GatheredHosts& all) {
  HostTotals totals{host, NodeTotals(std::vector<PortTotals>()), 0};
  totals.totals = totals_from_json(object.at("totals"), totals.left_out);
  for (const json& row : object.at("users")) {
    PortUser user;
    user.host = host;
    user.device = row.at(0);
    user.port = require_whole_number<std::uint16_t>(row.at(1));
    user.moved.pe = require_whole_number<int>(row.at(2));
    all.users.push_back(std::move(user));
  }
  all.hosts.push_back(std::move(totals));
}

} // namespace

std::string host_part_text(const HostPart& part, std::size_t max_bytes) {
  json object{{"users", json::array()}};
  for (const PortUser& user : part.users)
    object["users"].push_back({user.device, user.port, user.moved.pe});
  return with_totals(std::move(object), *part.totals, max_bytes);
}

void read_host_part(const std::string& text, const std::string& host, GatheredHosts& all) {
  try {
    read_part(from_json_line(text), host, all);
  } catch (const std::exception&) { // an error of the JSON library, or a number out of range
    throw bad_part(host);
  }
}

JobGathering::JobGathering(Bootstrap& bootstrap, const PeMachine& machine, const Deadline& deadline)
    : bootstrap_(bootstrap) {
  const auto machines = machines_from(allgather_text(bootstrap, machine_text(machine), deadline));
  hosts_ = job_hosts(machines);
  my_host_ = host_of_pes(hosts_, machines.size()).at(static_cast<std::size_t>(bootstrap.rank()));
}

GatheredHosts JobGathering::gather(const HostPart& part, const Deadline& deadline) {
  const std::vector<std::string> texts = gather_text(
      bootstrap_, leads() ? host_part_text(part, max_part_bytes(bootstrap_.size())) : "", deadline);
  GatheredHosts all;
  if (bootstrap_.rank() == 0)
    for (const JobHost& host : hosts_)
      read_host_part(texts[static_cast<std::size_t>(host.leader)], host.name, all);
  return all;
}

ExitCode JobGathering::agree(ExitCode code, const Deadline& deadline) {
  return allgather_value(bootstrap_, code, deadline).front();
}

} // namespace shmemctl
