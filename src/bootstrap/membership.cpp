#include "src/bootstrap/membership.h"

#include <algorithm>

#include "src/base/text.h"
#include "src/bootstrap/collectives.h"

namespace shmemctl {

namespace {
constexpr std::size_t max_listed = 8, max_addresses_passed_on = 4;
} // namespace

std::string list_ranks(const std::vector<int>& ranks, std::size_t total) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(ranks.size(), max_listed); ++i)
    parts.push_back(std::to_string(ranks[i]));
  std::string text = join(parts, ", ");
  if (total > parts.size())
    text += " and " + std::to_string(total - parts.size()) + " more";
  return text;
}

Membership::Answer Membership::contrary(const std::string& text, const std::string& fix) const {
  return {Verdict::contrary, {ExitCode::usage, -1, text, fix}};
}

Membership::Answer Membership::add(const Join& join) {
  const std::string its_size = std::to_string(join.size);
  if (join.size < 1 || join.size > max_pes)
    return contrary(join.who + " says that its job has " + its_size + " PEs",
                    "pass a number of PEs from 1 to " + std::to_string(max_pes));
  if (size_ == 0)
    size_ = join.size;
  if (join.rank < 0 || join.rank >= join.size)
    return contrary(join.who + " has rank " + std::to_string(join.rank) + " in a job of " +
                        its_size + " PEs",
                    "give every PE its own rank from 0 to " + std::to_string(join.size - 1));
  if (join.size != size_)
    return contrary((members_.empty() ? "another PE" : name(members_.begin()->first)) +
                        " says that the job has " + std::to_string(size_) + " PEs, and PE " +
                        std::to_string(join.rank) + " (" + join.who + ") says " + its_size,
                    "start all PEs with the same number of PEs, or give each job its own id");
  const auto [member, added] = members_.emplace(join.rank, join);
  if (!added && member->second.nonce == join.nonce)
    return {Verdict::again, {}};
  if (!added)
    return contrary("rank " + std::to_string(join.rank) +
                        " was given to two PEs: " + member->second.who + " and " + join.who,
                    "give every PE its own rank from 0 to " + std::to_string(join.size - 1));
  return {Verdict::welcome, {}};
}

std::string Membership::name(int rank) const {
  const auto member = members_.find(rank);
  const std::string who = member == members_.end() ? "" : " (" + member->second.who + ")";
  return "PE " + std::to_string(rank) + who;
}

std::string Membership::missing() const {
  std::vector<int> ranks;
  int next = 0;
  for (const auto& [rank, member] : members_) {
    for (; next < rank && ranks.size() < max_listed; ++next)
      ranks.push_back(next);
    next = rank + 1;
  }
  for (; next < size_ && ranks.size() < max_listed; ++next)
    ranks.push_back(next);
  const auto total = static_cast<std::size_t>(size_ - joined());
  return std::to_string(total) + " of " + std::to_string(size_) + " PEs " +
         (total == 1 ? "has" : "have") + " not joined: PE " + list_ranks(ranks, total);
}

Neighbours Membership::neighbours_of(int rank) const {
  Neighbours neighbours;
  for (int level = 0; level < levels_of(size_); ++level) {
    std::vector<std::string> addresses = members_.at(neighbour_forth(rank, size_, level)).addresses;
    addresses.resize(std::min(addresses.size(), max_addresses_passed_on));
    neighbours.addresses.push_back(std::move(addresses));
  }
  return neighbours;
}

} // namespace shmemctl
