#include "transports/libfabric/rail.h"
#include "transports/libfabric/failures.h"

#include <array>
#include <cstddef>
#include <cstring>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

namespace shmemctl::fabric {

static_assert(offsetof(Operation, provider_context) == 0);
static_assert(sizeof(Message) <= Operation::payload_bytes);

namespace {

/// Maximum number of completions per read of the CQ.
constexpr std::size_t batch = 16;

/// With FI_DELIVERY_COMPLETE, an operation is complete when its data have reached the target.
constexpr std::uint64_t completing = FI_COMPLETION | FI_DELIVERY_COMPLETE;

fi_datatype datatype(std::uint8_t size_bytes) {
  switch (size_bytes) {
  case 2:
    return FI_UINT16;
  case 4:
    return FI_UINT32;
  default:
    return FI_UINT64;
  }
}

const char* name_of(OperationKind kind) {
  switch (kind) {
  case OperationKind::write:
    return "write its memory";
  case OperationKind::read:
    return "read its memory";
  case OperationKind::atomic:
    return "perform an atomic operation";
  default:
    return "send it a message";
  }
}

} // namespace

Rail::Rail(const Provider& provider, const Device& device, const TransportSetup& setup,
           const MemoryMap& memory, const ImmediateSpace& immediates, OnFailure on_failure)
    : endpoint_(provider, device, setup.pe, setup.host_name), pool_(endpoint_),
      target_(memory, setup.pe, immediates), on_failure_(std::move(on_failure)),
      n_pes_(setup.n_pes) {}

void Rail::set_peers(std::vector<EndpointName> peers) {
  peers_ = std::move(peers);
  std::vector<std::string> addresses;
  for (const EndpointName& peer : peers_)
    addresses.push_back(peer.address);
  endpoint_.insert(addresses);
}

void Rail::post_receives() {
  const std::lock_guard lock(poll_mutex_);
  for (std::size_t i = 0; i < endpoint_.profile().receives; ++i)
    if (const long status = post_receive(*pool_.take(OperationKind::receive)); status != 0)
      throw endpoint_.error("post a receive buffer", endpoint_.library().error_text(status),
                            "set FI_LOG_LEVEL=warn to see why");
}

/// Returns libfabric's error, or 0; also 0 if there is no room now: then poll() posts the receive.
long Rail::post_receive(Operation& receive) {
  // Clears the buffer, so that a short message cannot be completed by an earlier message's bytes.
  std::memset(receive.payload, 0, sizeof(Message));
  receive.state.store(OperationState::in_flight, std::memory_order_release);
  const long status = fi_recv(endpoint_.handle(), receive.payload, Operation::payload_bytes,
                              pool_.descriptor(), FI_ADDR_UNSPEC, &receive.provider_context);
  if (status == -FI_EAGAIN)
    to_post_.push_back(&receive);
  return status == -FI_EAGAIN ? 0 : status;
}

long Rail::write(Operation& operation, const void* source, void* descriptor,
                 const RemotePart& target, std::uint64_t flags, const std::uint64_t* immediate) {
  const iovec local{const_cast<void*>(source), target.size_bytes};
  const fi_rma_iov remote{target.address, target.size_bytes, target.key};
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = endpoint_.peer(operation.pe);
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = &operation.provider_context;
  if (immediate) {
    message.data = *immediate;
    flags |= FI_REMOTE_CQ_DATA;
  }
  operation.size_bytes = target.size_bytes;
  operation.state.store(OperationState::in_flight, std::memory_order_release);
  const long status = fi_writemsg(endpoint_.handle(), &message, flags | completing);
  if (status == 0) {
    traffic_.put_bytes.fetch_add(target.size_bytes, std::memory_order_relaxed);
    traffic_.operations.fetch_add(1, std::memory_order_relaxed);
  }
  return status;
}

long Rail::read(Operation& operation, void* target, void* descriptor, const RemotePart& source) {
  const iovec local{target, source.size_bytes};
  const fi_rma_iov remote{source.address, source.size_bytes, source.key};
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = endpoint_.peer(operation.pe);
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = &operation.provider_context;
  operation.size_bytes = source.size_bytes;
  operation.state.store(OperationState::in_flight, std::memory_order_release);
  const long status = fi_readmsg(endpoint_.handle(), &message, FI_COMPLETION);
  if (status == 0) {
    traffic_.get_bytes.fetch_add(source.size_bytes, std::memory_order_relaxed);
    traffic_.operations.fetch_add(1, std::memory_order_relaxed);
  }
  return status;
}

long Rail::atomic(Operation& operation, const AtomicRequest& request, const RemotePart& target,
                  std::uint64_t flags) {
  AtomicOperands& words = operands_of(operation);
  words = {request.operand, request.compare, 0};
  void* descriptor = pool_.descriptor();
  const fi_ioc operand{&words.operand, 1}, compare{&words.compare, 1};
  fi_ioc result{&words.result, 1};
  const fi_rma_ioc remote{target.address, 1, target.key};
  fi_msg_atomic message{};
  message.msg_iov = &operand;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = endpoint_.peer(operation.pe);
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.datatype = datatype(request.size_bytes);
  message.op = provider_op(request.op);
  message.context = &operation.provider_context;
  operation.size_bytes = request.size_bytes;
  operation.state.store(OperationState::in_flight, std::memory_order_release);
  fid_ep* const endpoint = endpoint_.handle();
  flags |= completing;
  long status = 0;
  if (request.op == AtomicOp::compare_swap)
    status = fi_compare_atomicmsg(endpoint, &message, &compare, &descriptor, 1, &result,
                                  &descriptor, 1, flags);
  else if (operation.waited || request.op == AtomicOp::fetch || request.op == AtomicOp::swap)
    status = fi_fetch_atomicmsg(endpoint, &message, &result, &descriptor, 1, flags);
  else
    status = fi_atomicmsg(endpoint, &message, flags);
  if (status == 0)
    traffic_.operations.fetch_add(1, std::memory_order_relaxed);
  return status;
}

long Rail::send(Operation& operation) {
  operation.state.store(OperationState::in_flight, std::memory_order_release);
  const iovec local{operation.payload, sizeof(Message)};
  void* descriptor = pool_.descriptor();
  fi_msg message{};
  message.msg_iov = &local;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = endpoint_.peer(operation.pe);
  message.context = &operation.provider_context;
  const long status = fi_sendmsg(endpoint_.handle(), &message, FI_COMPLETION);
  if (status == 0)
    traffic_.operations.fetch_add(1, std::memory_order_relaxed);
  return status;
}

bool Rail::poll() {
  const std::unique_lock lock(poll_mutex_, std::try_to_lock);
  if (!lock)
    return false;
  bool busy = false;
  replies_.insert(replies_.end(), deferred_replies_.begin(), deferred_replies_.end());
  deferred_replies_.clear();
  if (send_replies())
    busy = true;
  std::array<fi_cq_data_entry, batch> entries;
  while (true) {
    const long count = fi_cq_read(endpoint_.queue(), entries.data(), batch);
    if (count > 0)
      take(entries.data(), static_cast<std::size_t>(count));
    else if (count == -FI_EAVAIL)
      take_error();
    else
      break;
    busy = true;
    if (count > 0 && count < static_cast<long>(batch))
      break;
  }
  for (std::size_t i = to_post_.size(); i > 0; --i) {
    Operation* receive = to_post_.back();
    to_post_.pop_back();
    post_receive(*receive);
  }
  // Also true if replies are deferred to the next poll, so that the caller polls again soon.
  return send_replies() || busy || !deferred_replies_.empty();
}

void Rail::take(const void* entries, std::size_t count) {
  if (endpoint_.profile().cq_format == FI_CQ_FORMAT_CONTEXT) {
    const auto* entry = static_cast<const fi_cq_entry*>(entries);
    for (std::size_t i = 0; i < count; ++i)
      complete(*static_cast<Operation*>(entry[i].op_context));
    return;
  }
  const auto* entry = static_cast<const fi_cq_data_entry*>(entries);
  for (std::size_t i = 0; i < count; ++i)
    if ((entry[i].flags & FI_REMOTE_CQ_DATA) != 0)
      answer(target_.on_payload(entry[i].data));
    else if (entry[i].op_context)
      complete(*static_cast<Operation*>(entry[i].op_context));
}

void Rail::complete(Operation& operation) {
  static_cast<void>(operation.state.load(std::memory_order_acquire)); // acquires the other members
  if (operation.kind == OperationKind::receive)
    return received(operation);
  if (--operation.events > 0)
    return;
  if (operation.copy_to)
    std::memcpy(operation.copy_to, operation.bounce ? operation.bounce : operation.payload,
                operation.size_bytes);
  finish(operation, OperationState::done);
}

void Rail::finish(Operation& operation, OperationState state) {
  ContextState* const context = operation.context;
  const bool is_atomic = operation.is_atomic;
  if (!operation.waited) {
    pool_.give(operation);
  } else {
    // After the exchange, the waiter may free the operation.
    if (operation.state.exchange(state, std::memory_order_acq_rel) == OperationState::abandoned)
      pool_.give(operation);
  }
  if (!context)
    return;
  if (is_atomic)
    context->pending_atomics.fetch_sub(1, std::memory_order_release);
  context->pending.fetch_sub(1, std::memory_order_release);
}

void Rail::received(Operation& receive) {
  const auto message = read_message(receive.payload, Operation::payload_bytes, n_pes_);
  post_receive(receive);
  if (!message)
    return;
  if (message->kind == MessageKind::reply)
    return on_reply(*message);
  const std::optional<Message> reply = target_.on_request(*message);
  // The reply to a put of a word is deferred: only a fence or a quiet waits for it, whereas this PE
  // may be waiting for the word itself.
  if (reply && message->kind == MessageKind::atomic && message->op == AtomicOp::set)
    deferred_replies_.push_back(*reply);
  else
    answer(reply);
}

void Rail::on_reply(const Message& reply) {
  Operation* const operation = pool_.at(reply.operation);
  if (!operation || operation->state.load(std::memory_order_acquire) == OperationState::idle ||
      operation->kind != OperationKind::request || operation->generation != reply.generation ||
      operation->pe != static_cast<int>(reply.from_pe))
    return;
  operation->answer = reply.operand;
  if (reply.refused != 0)
    fail(*operation, "the address is outside that PE's memory, or not aligned to the word's size",
         "use symmetric memory of that PE, at a multiple of the word's size");
  else
    complete(*operation);
}

void Rail::answer(const std::optional<Message>& reply) {
  if (reply)
    replies_.push_back(*reply);
}

bool Rail::send_replies() {
  bool sent = false;
  while (!replies_.empty()) {
    Operation* const operation = pool_.take(OperationKind::reply);
    if (!operation)
      break;
    operation->pe = Target::receiver(replies_.front());
    std::memcpy(operation->payload, &replies_.front(), sizeof(Message));
    const long status = send(*operation);
    if (status != 0)
      pool_.give(*operation);
    if (status == -FI_EAGAIN)
      break;
    replies_.pop_front(); // after an error too: a peer that has ended does not wait
    sent = true;
  }
  return sent;
}

void Rail::take_error() {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(endpoint_.queue(), &entry, 0) != 1 || !entry.op_context)
    return;
  std::string text = endpoint_.library().error_text(entry.err);
  const char* const own =
      fi_cq_strerror(endpoint_.queue(), entry.prov_errno, entry.err_data, nullptr, 0);
  if (own && *own)
    text += std::string(" (provider: ") + own + ")";
  auto& operation = *static_cast<Operation*>(entry.op_context);
  static_cast<void>(operation.state.load(std::memory_order_acquire));
  if (operation.kind != OperationKind::receive)
    fail(operation, text);
  else if (entry.err != FI_ECANCELED)
    post_receive(operation);
}

void Rail::fail(Operation& operation, const std::string& text, const std::string& fix) {
  if (operation.kind != OperationKind::reply)
    on_failure_(operation.pe, operation.context,
                failure(name_of(operation.kind), operation.pe, text, fix));
  finish(operation, OperationState::failed);
}

Error Rail::failure(const char* attempted, int pe, const std::string& text,
                    const std::string& fix) const {
  const EndpointName& name = peer(pe);
  Error error = endpoint_.error(attempted, "", "");
  const std::string of_network = "check that PE " + std::to_string(pe) +
                                 " still runs, and that its host is reachable at that address";
  return {ExitCode::unavailable,
          "PE " + std::to_string(pe) + " at " + endpoint_.readable(name.address) + " (" +
              name.device + ")",
          attempted_on_peer(attempted),
          "libfabric's " + endpoint_.provider() + ": " + text,
          fix.empty() ? of_network : fix,
          error.where()};
}

} // namespace shmemctl::fabric
