#include "transports/mlx5/connect.h"

#include <fmt/format.h>

#include "transports/rc/connect.h"

namespace shmemctl::mlx5 {

Hello Connector::hello() const {
  Hello hello;
  hello.host = job_.host;
  hello.qp_sets = static_cast<std::uint8_t>(settings_.all_qp_sets());
  for (const Port& port : job_.ports)
    hello.ports.push_back({port.info().device, static_cast<std::uint8_t>(port.info().port)});
  return hello;
}

void Connector::make_queues(const PeerLocation& peer) {
  const std::vector<rc::PortPair> paths =
      rc::pair_ports(job_.ports.size(), hellos_[static_cast<std::size_t>(peer.pe)].ports.size());
  for (std::size_t number = 0; number < paths.size(); ++number)
    for (const std::unique_ptr<QpSet>& qp_set : qp_sets_) {
      std::unique_ptr<QueueMemory> memory;
      if (settings_.allocates_queues)
        memory = std::make_unique<QueueMemory>(settings_.queue);
      qp_set->add(peer.pe,
                  std::make_unique<Endpoint>(job_,
                                             rc::EndpointPath{peer.pe, number, paths[number].port,
                                                              paths[number].peer_port},
                                             settings_.queue, std::move(memory)));
    }
}

void Connector::connect(Exchange& exchange) {
  const std::vector<std::string> hellos =
      exchange.allgather(peers_.empty() ? std::string() : to_bytes(hello()));
  hellos_ = rc::read_hellos<Hello>(job_, peers_, hellos,
                                   {settings_.all_qp_sets(), settings_.qp_count_options});
  std::vector<rc::QpList<PeerInfo>> local(static_cast<std::size_t>(job_.n_pes));
  for (const PeerLocation& peer : peers_) {
    make_queues(peer);
    for (std::size_t path = 0; path < qp_sets_[0]->paths_to(peer.pe); ++path) {
      std::vector<PeerInfo>& qps = local[static_cast<std::size_t>(peer.pe)].emplace_back();
      for (const std::unique_ptr<QpSet>& qp_set : qp_sets_)
        qps.push_back(qp_set->endpoint(peer.pe, path).queue().local());
    }
  }
  const std::vector<rc::QpList<PeerInfo>> remote = rc::exchange_qps(job_, exchange, peers_, local);
  for (const PeerLocation& peer : peers_)
    for (std::size_t path = 0; path < qp_sets_[0]->paths_to(peer.pe); ++path)
      for (std::size_t number = 0; number < qp_sets_.size(); ++number)
        qp_sets_[number]
            ->endpoint(peer.pe, path)
            .queue()
            .connect(remote[static_cast<std::size_t>(peer.pe)][path][number]);
  exchange.allgather({}); // a barrier: no PE sends before all QPs are ready
}

std::vector<std::string> Connector::texts() const {
  std::vector<std::string> texts(static_cast<std::size_t>(job_.n_pes));
  const auto name_of = [](const Hello::Port& port) {
    return rc::port_name(port.device, port.port);
  };
  const std::vector<Hello::Port> local = hello().ports;
  for (const PeerLocation& peer : peers_) {
    const auto slot = static_cast<std::size_t>(peer.pe);
    const std::vector<Hello::Port>& remote = hellos_[slot].ports;
    std::string& text = texts[slot];
    const std::vector<rc::PortPair> paths = rc::pair_ports(local.size(), remote.size());
    for (const rc::PortPair& path : paths)
      text += fmt::format("{}{} -> {}", text.empty() ? "" : " + ", name_of(local[path.port]),
                          name_of(remote[path.peer_port]));
    text += fmt::format(", {} QPs", paths.size() * qp_sets_.size());
  }
  return texts;
}

std::vector<std::vector<NicPair>> Connector::nics() const {
  std::vector<std::vector<NicPair>> nics(static_cast<std::size_t>(job_.n_pes));
  const auto of = [](const Hello::Port& port) { return HcaPort{port.device, port.port}; };
  const std::vector<Hello::Port> local = hello().ports;
  for (const PeerLocation& peer : peers_) {
    const auto slot = static_cast<std::size_t>(peer.pe);
    const std::vector<Hello::Port>& remote = hellos_[slot].ports;
    for (const rc::PortPair& path : rc::pair_ports(local.size(), remote.size()))
      nics[slot].push_back({of(local[path.port]), of(remote[path.peer_port])});
  }
  return nics;
}

} // namespace shmemctl::mlx5
