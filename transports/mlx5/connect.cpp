#include "transports/mlx5/connect.h"

#include <algorithm>
#include <fmt/format.h>

namespace shmemctl::mlx5 {

namespace {

std::string port_name(const Hello::Port& port) {
  return fmt::format("{}:{}", printable(port.device), port.port);
}

} // namespace

std::vector<PathPlan> plan_paths(std::size_t ports, std::size_t peer_ports) {
  std::vector<PathPlan> rails;
  for (std::size_t i = 0; ports > 0 && peer_ports > 0 && i < std::max(ports, peer_ports); ++i)
    rails.push_back({i % ports, i % peer_ports});
  return rails;
}

Hello Connector::hello() const {
  Hello hello;
  hello.host = job_.host;
  hello.qp_sets = static_cast<std::uint8_t>(settings_.all_qp_sets());
  for (const Port& port : job_.ports)
    hello.ports.push_back({port.info().device, static_cast<std::uint8_t>(port.info().port)});
  return hello;
}

Error Connector::damaged(int pe) const {
  return {ExitCode::unavailable,
          job_.name_of(pe),
          "read its connection data",
          "malformed message",
          "run the same version of shmemctl on all hosts",
          job_.where()};
}

void Connector::exchange_hellos(Exchange& exchange) {
  const std::vector<std::string> texts =
      exchange.allgather(peers_.empty() ? std::string() : encode(hello()));
  hellos_.resize(texts.size());
  job_.peer_hosts.resize(texts.size());
  for (const PeerLocation& peer : peers_) {
    const auto slot = static_cast<std::size_t>(peer.pe);
    std::optional<Hello> theirs = decode_hello(texts[slot]);
    if (!theirs)
      throw damaged(peer.pe);
    job_.peer_hosts[slot] = printable(theirs->host, wire_limits::text_bytes);
    if (theirs->qp_sets != settings_.all_qp_sets())
      throw Error(ExitCode::usage, job_.name_of(peer.pe), "connect",
                  fmt::format("it creates {} QPs per peer, this PE {}", theirs->qp_sets,
                              settings_.all_qp_sets()),
                  fmt::format("set {} on all PEs", settings_.qp_count_options), job_.where());
    hellos_[slot] = std::move(*theirs);
  }
}

void Connector::make_queues(const PeerLocation& peer) {
  const std::vector<PathPlan> rails =
      plan_paths(job_.ports.size(), hellos_[static_cast<std::size_t>(peer.pe)].ports.size());
  for (std::size_t number = 0; number < rails.size(); ++number)
    for (const std::unique_ptr<QpSet>& qp_set : qp_sets_) {
      std::unique_ptr<QueueMemory> memory;
      if (settings_.allocates_queues)
        memory = std::make_unique<QueueMemory>(settings_.queue);
      qp_set->add(std::make_unique<Endpoint>(job_, peer.pe, number, rails[number].port,
                                             rails[number].peer_port, settings_.queue,
                                             std::move(memory)));
    }
}

void Connector::connect_queues(const PeerLocation& peer, const std::string& names) {
  const std::optional<QueueNames> theirs = decode_queue_names(names);
  const std::size_t rails = qp_sets_[0]->paths_to(peer.pe);
  if (!theirs || theirs->queues.size() != rails * qp_sets_.size())
    throw damaged(peer.pe);
  auto next = theirs->queues.begin();
  for (std::size_t number = 0; number < rails; ++number)
    for (const std::unique_ptr<QpSet>& qp_set : qp_sets_)
      qp_set->rail(peer.pe, number).queue().connect(PeerInfo::decode(*next++));
}

void Connector::connect(Exchange& exchange) {
  exchange_hellos(exchange);
  std::vector<std::string> names(static_cast<std::size_t>(job_.n_pes));
  for (const PeerLocation& peer : peers_) {
    make_queues(peer);
    QueueNames mine;
    for (std::size_t number = 0; number < qp_sets_[0]->paths_to(peer.pe); ++number)
      for (const std::unique_ptr<QpSet>& qp_set : qp_sets_)
        mine.queues.push_back(qp_set->rail(peer.pe, number).queue().local().encode());
    names[static_cast<std::size_t>(peer.pe)] = encode(mine);
  }
  const std::vector<std::string> theirs = exchange.alltoall(names);
  for (const PeerLocation& peer : peers_)
    connect_queues(peer, theirs[static_cast<std::size_t>(peer.pe)]);
  exchange.allgather({}); // both ends are ready before anybody sends
}

void Connector::fill(TableBuilder& table) const {
  for (const PeerLocation& peer : peers_) {
    std::vector<TableQp> queues;
    for (std::size_t number = 0; number < qp_sets_[0]->paths_to(peer.pe); ++number)
      for (const std::unique_ptr<QpSet>& qp_set : qp_sets_) {
        Endpoint& rail = qp_set->rail(peer.pe, number);
        queues.push_back({rail.queue().hca_queue().view(), static_cast<std::uint32_t>(rail.port()),
                          static_cast<std::uint32_t>(rail.peer_port()),
                          rail.queue().hca_queue().abilities()});
      }
    table.set_queues(static_cast<std::uint32_t>(peer.pe), std::move(queues));
  }
}

std::vector<std::string> Connector::texts() const {
  std::vector<std::string> texts(static_cast<std::size_t>(job_.n_pes));
  const std::vector<Hello::Port> mine = hello().ports;
  for (const PeerLocation& peer : peers_) {
    const auto slot = static_cast<std::size_t>(peer.pe);
    const std::vector<Hello::Port>& theirs = hellos_[slot].ports;
    std::string& text = texts[slot];
    const std::vector<PathPlan> rails = plan_paths(mine.size(), theirs.size());
    for (const PathPlan& rail : rails)
      text += fmt::format("{}{} -> {}", text.empty() ? "" : " + ", port_name(mine[rail.port]),
                          port_name(theirs[rail.peer_port]));
    text += fmt::format(", {} QPs", rails.size() * qp_sets_.size());
  }
  return texts;
}

} // namespace shmemctl::mlx5
