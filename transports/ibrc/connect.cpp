#include "transports/ibrc/connect.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "src/base/log.h"
#include "src/base/text.h"
#include "transports/ibrc/atomics_choice.h"
#include "transports/rc/connect.h"
#include "transports/verbs/status.h"

namespace shmemctl::ibrc {

namespace {

std::uint16_t wire_mtu(int mtu_bytes) {
  return static_cast<std::uint16_t>(std::clamp(mtu_bytes, 256, 4096));
}

AtomicsCapabilities capabilities_of(const JobView& job, const Settings& settings) {
  AtomicsCapabilities capabilities{settings.atomics, true,
                                   static_cast<std::uint32_t>(settings.receives)};
  for (const UsedDevice& used : job.devices) {
    capabilities.by_device =
        capabilities.by_device && used.device->attributes().atomic_cap != IBV_ATOMIC_NONE;
    capabilities.receives =
        std::min(capabilities.receives, verbs::max_shared_receives(*used.device));
  }
  return capabilities;
}

} // namespace

Hello Connector::hello() const {
  Hello hello;
  hello.host = job_.host;
  hello.wanted_mtu_bytes = static_cast<std::uint16_t>(settings_.mtu_bytes);
  hello.qp_sets = static_cast<std::uint8_t>(settings_.qp_sets);
  for (const auto& nic : job_.nics) {
    const verbs::Device& device = job_.device_of(*nic);
    const ibv_device_attr& attributes = device.attributes();
    Hello::Nic entry;
    entry.device = device.name();
    entry.port = static_cast<std::uint8_t>(nic->port.number);
    entry.ethernet = nic->port.ethernet;
    entry.grh_required = nic->port.grh_required;
    entry.lid = nic->port.lid;
    entry.mtu_bytes = wire_mtu(nic->port.mtu_bytes);
    entry.max_message_bytes = std::max<std::uint64_t>(nic->port.max_message_bytes, 1);
    entry.outstanding_reads = static_cast<std::uint8_t>(
        std::clamp(std::min(attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom), 1, 255));
    entry.orders_writes =
        settings_.write_order == WriteOrder::kept ||
        (settings_.write_order == WriteOrder::automatic && verbs::keeps_write_order(attributes));
    entry.addresses = verbs::addresses_of(nic->addresses);
    hello.nics.push_back(std::move(entry));
  }
  hello.atomics = capabilities_of(job_, settings_);
  return hello;
}

std::vector<std::unique_ptr<QpSet>> Connector::connect(const MakeService& make_service,
                                                       const MakeQpSet& make_qp_set,
                                                       Exchange& exchange) {
  local_ = hello();
  const std::vector<std::string> hellos = exchange.allgather(to_bytes(local_));
  plan(hellos);
  const bool messages = by_message(hellos);
  if (messages && !links_.empty())
    service_ = &make_service(message_room());
  std::vector<std::unique_ptr<QpSet>> qp_sets;
  try {
    for (int number = 0; number < settings_.qp_sets && !links_.empty(); ++number)
      qp_sets.push_back(make_qp_set(static_cast<std::size_t>(number), links_.size()));
    make_queue_pairs(qp_sets);
  } catch (const Error& error) { // errors of devices do not name the host and PE
    throw job_.here(error);
  }
  exchange_names(exchange);
  while (!attempt(exchange)) {
  }
  begin_sending();
  if (service_)
    service_->start(exchange);
  else if (messages)
    exchange.alltoall(std::vector<std::string>(hellos_.size())); // as the other PEs do in start()
  describe();
  return qp_sets;
}

void Connector::plan(const std::vector<std::string>& hellos) {
  hellos_ = rc::read_hellos<Hello>(
      job_, peers_, hellos, {settings_.qp_sets, "SHMEMCTL_IB_NUM_RC_PER_DEVICE to the same value"});
  for (const PeerLocation& peer : peers_) {
    const auto slot = static_cast<std::size_t>(peer.pe);
    for (PathPlan& path : plan_paths(local_, hellos_[slot], settings_, job_, peer.pe)) {
      Link link;
      link.pe = peer.pe;
      link.peer_lid = hellos_[slot].nics[path.peer_nic].lid;
      link.plan = std::move(path);
      links_.push_back(std::move(link));
    }
  }
}

bool Connector::by_message(const std::vector<std::string>& hellos) const {
  std::vector<NamedCapabilities> all;
  for (std::size_t pe = 0; pe < hellos.size(); ++pe)
    // PEs that this PE does not reach count too, since others reach them. PEs without NICs do not.
    if (const std::optional<Hello> hello = from_bytes<Hello>(hellos[pe]))
      all.push_back({hello->atomics,
                     fmt::format("PE {} on {}", pe, printable(hello->host, rc::max_text_bytes))});
  return atomics_by_message(all, job_.where());
}

MessageRoom Connector::message_room() const {
  MessageRoom room;
  room.qp_sets = settings_.qp_sets;
  room.own_credits = credits_of(local_.atomics.receives, job_.n_pes, settings_.qp_sets);
  room.credits.resize(hellos_.size());
  for (const PeerLocation& peer : peers_) {
    const auto slot = static_cast<std::size_t>(peer.pe);
    const std::uint32_t receives = hellos_[slot].atomics.receives;
    room.credits[slot] = credits_of(receives, job_.n_pes, settings_.qp_sets);
    if (room.credits[slot] == 0)
      throw Error(
          ExitCode::unavailable, job_.name_of(peer.pe), "send it messages",
          fmt::format("its SRQ holds {} receives, too few for {} PEs that send on {} QPs each",
                      receives, job_.n_pes, settings_.qp_sets),
          fmt::format(
              "set SHMEMCTL_SRQ_DEPTH to {} or more, or lower SHMEMCTL_IB_NUM_RC_PER_DEVICE",
              job_.n_pes * settings_.qp_sets),
          job_.where());
  }
  return room;
}

void Connector::make_queue_pairs(std::vector<std::unique_ptr<QpSet>>& qp_sets) {
  for (Link& link : links_)
    for (const auto& qp_set : qp_sets) {
      Endpoint& endpoint = qp_set->queues().add(link.pe, link.plan.nic, link.plan.peer_nic);
      add(link, endpoint);
      if (service_)
        service_->responder().add_source(job_.nics[link.plan.nic]->device_index,
                                         endpoint.queue_pair.number(), link.pe, qp_set->number());
    }
  for (std::size_t at = 0; service_ && at < links_.size(); ++at)
    if (at == 0 || links_[at].pe != links_[at - 1].pe)
      add(links_[at], service_->responder().add_peer(links_[at].pe, links_[at].plan.nic,
                                                     links_[at].plan.peer_nic));
}

bool Connector::orders_writes(const Link& link) const {
  return local_.nics[link.plan.nic].orders_writes &&
         hellos_[static_cast<std::size_t>(link.pe)].nics[link.plan.peer_nic].orders_writes;
}

void Connector::add(Link& link, Endpoint& endpoint) const {
  endpoint.orders_writes = orders_writes(link);
  endpoint.max_message_bytes = link.plan.max_message_bytes;
  endpoint.mtu_bytes = link.plan.mtu_bytes;
  endpoint.retry_seconds =
      verbs::retry_seconds(settings_.path.ack_timeout, settings_.path.retry_count);
  link.qp_sets.push_back(&endpoint);
  link.local.push_back({endpoint.queue_pair.number(), verbs::first_packet_number()});
}

void Connector::exchange_names(Exchange& exchange) {
  std::vector<rc::QpList<QpName>> local(hellos_.size());
  for (const Link& link : links_)
    local[static_cast<std::size_t>(link.pe)].push_back(link.local);
  const std::vector<rc::QpList<QpName>> remote = rc::exchange_qps(job_, exchange, peers_, local);
  for (std::size_t at = 0, path = 0; at < links_.size(); ++at) {
    Link& link = links_[at];
    path = at > 0 && link.pe == links_[at - 1].pe ? path + 1 : 0;
    link.remote = remote[static_cast<std::size_t>(link.pe)][path];
  }
}

rc::QpPath Connector::path_of(const Link& link, std::size_t qp_set) const {
  const Nic& nic = *job_.nics[link.plan.nic];
  rc::QpPath path;
  path.options = settings_.path;
  path.port = nic.port.number;
  path.global = link.plan.global;
  path.peer_lid = link.peer_lid;
  if (path.global) {
    const AddressPair& addresses = link.plan.addresses[link.attempt];
    path.source_gid_index = nic.addresses[addresses.local].index;
    path.peer_gid = addresses.remote;
  }
  path.mtu = static_cast<std::uint8_t>(verbs::mtu_code(link.plan.mtu_bytes));
  path.peer_qpn = link.remote[qp_set].number;
  path.first_psn = link.local[qp_set].first_packet;
  path.peer_first_psn = link.remote[qp_set].first_packet;
  path.outstanding_reads = link.plan.outstanding_reads;
  return path;
}

/// The change to RTR fails if the system finds no path to the peer's address.
void Connector::try_link(Link& link) {
  int error_number = 0;
  for (std::size_t qp_set = 0; qp_set < link.qp_sets.size() && error_number == 0; ++qp_set) {
    verbs::QueuePair& queue_pair = link.qp_sets[qp_set]->queue_pair;
    const rc::QpPath path = path_of(link, qp_set);
    const auto modify = [&](rc::QpState state) { return queue_pair.modify(state, path); };
    error_number = link.attempt > 0 ? modify(rc::QpState::reset) : 0;
    if (error_number == 0)
      error_number = rc::move_qp(rc::QpState::reset, rc::QpState::rtr, modify);
  }
  link.ready = error_number == 0;
  if (link.error_number == 0)
    link.error_number = error_number;
}

bool Connector::attempt(Exchange& exchange) {
  bool failed = false;
  for (Link& link : links_)
    if (!link.settled) {
      try_link(link);
      failed = failed || !link.ready;
    }
  std::vector<Attempt> local(hellos_.size(), Attempt{failed, {}});
  for (const Link& link : links_)
    local[static_cast<std::size_t>(link.pe)].paths.push_back(link.ready);
  std::vector<std::string> out;
  for (const Attempt& each : local)
    out.push_back(to_bytes(each));
  const std::vector<std::string> in = exchange.alltoall(out);
  bool done = true;
  std::vector<Attempt> remote;
  for (std::size_t pe = 0; pe < in.size(); ++pe) {
    std::optional<Attempt> decoded = from_bytes<Attempt>(in[pe]);
    if (!decoded || decoded->paths.size() != local[pe].paths.size())
      throw job_.malformed(static_cast<int>(pe), "the state of its connections");
    done = done && !decoded->failed_somewhere;
    remote.push_back(std::move(*decoded));
  }
  for (std::size_t at = 0, path = 0; at < links_.size(); ++at) {
    path = at > 0 && links_[at].pe == links_[at - 1].pe ? path + 1 : 0;
    settle(links_[at], remote[static_cast<std::size_t>(links_[at].pe)].paths[path] != 0);
  }
  return done;
}

void Connector::settle(Link& link, bool peer_ready) {
  if (link.settled)
    return;
  link.settled = link.ready && peer_ready;
  if (link.settled)
    return;
  if (!link.plan.global || link.attempt + 1 >= link.plan.addresses.size())
    throw no_path(link);
  ++link.attempt;
  const auto kind = [&](std::size_t attempt) {
    return verbs::to_string(link.plan.addresses[attempt].kind);
  };
  log(LogLevel::info, "ibrc",
      fmt::format("no way to {} by {}: {} is tried", job_.name_of(link.pe), kind(link.attempt - 1),
                  kind(link.attempt)));
}

Error Connector::no_path(const Link& link) const {
  const Nic& nic = *job_.nics[link.plan.nic];
  const Hello::Nic& remote = hellos_[static_cast<std::size_t>(link.pe)].nics[link.plan.peer_nic];
  std::string message =
      link.error_number != 0 ? std::strerror(link.error_number) : "that PE has no path to this one";
  std::string fix = "check both ports with ibv_devinfo, and the subnet manager";
  if (link.plan.global && nic.port.ethernet) {
    std::vector<std::string> tried;
    for (const AddressPair& pair : link.plan.addresses)
      tried.push_back(fmt::format("{} and {}", verbs::gid_text(nic.addresses[pair.local].raw),
                                  verbs::gid_text(pair.remote)));
    message += ": no path between " + join(tried, ", nor between ");
    fix = "check that the addresses reach each other (ip route get, ping), or choose others with "
          "SHMEMCTL_IB_GID_INDEX (--ib-gid-index) or SHMEMCTL_IB_ADDR_RANGE";
  }
  return {ExitCode::unavailable,
          job_.name_of(link.pe) + ", port " + rc::port_name(remote.device, remote.port),
          "connect",
          message,
          fix,
          job_.where(nic)};
}

void Connector::begin_sending() {
  for (const Link& link : links_)
    for (std::size_t qp_set = 0; qp_set < link.qp_sets.size(); ++qp_set) {
      verbs::QueuePair& queue_pair = link.qp_sets[qp_set]->queue_pair;
      const rc::QpPath path = path_of(link, qp_set);
      if (const int error_number =
              rc::move_qp(rc::QpState::rtr, rc::QpState::rts,
                          [&](rc::QpState state) { return queue_pair.modify(state, path); });
          error_number != 0)
        throw Error(ExitCode::unavailable, job_.name_of(link.pe), "move the local QP to RTS",
                    std::strerror(error_number), "check the kernel log: dmesg",
                    job_.where(*job_.nics[link.plan.nic]));
    }
}

void Connector::describe() {
  texts_.resize(hellos_.size());
  nics_.resize(hellos_.size());
  for (const Link& link : links_) {
    const auto slot = static_cast<std::size_t>(link.pe);
    const std::string kind = link.plan.global
                                 ? verbs::to_string(link.plan.addresses[link.attempt].kind)
                                 : verbs::to_string(verbs::GidKind::infiniband);
    const Hello::Nic& local = local_.nics[link.plan.nic];
    const Hello::Nic& remote = hellos_[slot].nics[link.plan.peer_nic];
    nics_[slot].push_back({{local.device, local.port}, {remote.device, remote.port}});
    std::string& text = texts_[slot];
    text += (text.empty() ? "" : "; ") +
            fmt::format("{} -> {}, {} QPs, {}, MTU {}", rc::port_name(local.device, local.port),
                        rc::port_name(remote.device, remote.port), link.qp_sets.size(), kind,
                        link.plan.mtu_bytes);
    if (!orders_writes(link))
      text += service_ ? ", signals wait for completions" : ", signals after fenced atomics";
  }
  for (const PeerLocation& peer : peers_)
    if (service_)
      texts_[static_cast<std::size_t>(peer.pe)] += ", atomics by message";
}

} // namespace shmemctl::ibrc
