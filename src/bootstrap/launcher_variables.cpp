#include "src/bootstrap/launcher_variables.h"

#include <algorithm>
#include <arpa/inet.h>
#include <limits>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/bootstrap/select.h"

namespace shmemctl {

namespace {

bool has(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found != environment.end() && !found->second.empty();
}

[[noreturn]] void refuse_session(const std::string& text, const std::string& problem) {
  throw Error(ExitCode::usage, "BOOTSTRAP_UID_SESSION_ID=\"" + printable(text) + "\"", "", problem,
              "write it as host:port, 10.0.0.1:port or [fd00::1]:port");
}

} // namespace

const std::vector<LauncherVariables>& launcher_variables() {
  static const std::vector<LauncherVariables> table = {
      {"shmemctl run", local_variables::rank, local_variables::size},
      {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"a process manager", "PMI_RANK", "PMI_SIZE"},
      {"Slurm", "SLURM_PROCID", "SLURM_NTASKS"},
      {"torchrun", "RANK", "WORLD_SIZE"}};
  return table;
}

int number_of_variable(const Environment& environment, const std::string& name, int minimum) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty())
    throw Error(ExitCode::usage, name, "", "not set", "start the program with its launcher");
  const std::optional<long long> number = parse_integer(found->second);
  if (!number || *number < minimum || *number > std::numeric_limits<int>::max())
    throw Error(ExitCode::usage, name + "=\"" + printable(found->second) + "\"", "",
                "not a number of at least " + std::to_string(minimum),
                "check what the launcher sets, or unset it");
  return static_cast<int>(*number);
}

RankAndSize rank_and_size(const Options& options, const Environment& environment) {
  options.require_valid({"BOOTSTRAP_UID_RANK", "BOOTSTRAP_UID_SIZE"});
  const long long rank = options.integer("BOOTSTRAP_UID_RANK");
  const long long size = options.integer("BOOTSTRAP_UID_SIZE");
  if (rank >= 0 && size >= 0)
    return {static_cast<int>(rank), static_cast<int>(size),
            "BOOTSTRAP_UID_RANK and BOOTSTRAP_UID_SIZE"};
  if (rank >= 0 || size >= 0)
    throw Error(ExitCode::usage, rank >= 0 ? "BOOTSTRAP_UID_SIZE" : "BOOTSTRAP_UID_RANK", "",
                std::string("not set, but ") +
                    (rank >= 0 ? "BOOTSTRAP_UID_RANK" : "BOOTSTRAP_UID_SIZE") + " is",
                "set both, or neither to use the launcher's variables");
  std::vector<std::string> names;
  for (const LauncherVariables& pair : launcher_variables()) {
    if (has(environment, pair.rank) && has(environment, pair.size))
      return {number_of_variable(environment, pair.rank, 0),
              number_of_variable(environment, pair.size, 1),
              std::string(pair.rank) + " and " + pair.size};
    names.push_back(pair.rank);
  }
  throw Error(ExitCode::usage, "rank of this PE", "determine",
              "neither BOOTSTRAP_UID_RANK nor any of " + join(names, ", ") +
                  " is set together with its size",
              "set SHMEMCTL_BOOTSTRAP_UID_RANK and SHMEMCTL_BOOTSTRAP_UID_SIZE for each PE");
}

HostAndPort parse_session_id(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos)
    refuse_session(text, "no :port given");
  const std::optional<long long> port = parse_integer(std::string_view(text).substr(colon + 1));
  if (!port || *port < 1 || *port > 65535)
    refuse_session(text, "the port is not a number from 1 to 65535");
  HostAndPort parsed{text.substr(0, colon), static_cast<int>(*port), false};
  if (starts_with(parsed.host, "[")) {
    parsed.is_address = true;
    SocketAddress::parse(text);
    return parsed;
  }
  const auto legal = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  if (parsed.host.empty() || parsed.host.size() > 253 ||
      !std::all_of(parsed.host.begin(), parsed.host.end(), legal))
    refuse_session(text, "neither a host name nor an address before the port");
  in_addr ipv4{};
  parsed.is_address = inet_pton(AF_INET, parsed.host.c_str(), &ipv4) == 1;
  return parsed;
}

} // namespace shmemctl
