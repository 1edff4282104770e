#include "transports/ucx/ucx.h"

#if __has_include(<ucp/api/ucp.h>)

#include "transports/ucx/transport.h"

namespace shmemctl {

namespace {

ucp_atomic_op_t ucx_operation(AtomicOp op) {
  switch (op) {
  case AtomicOp::fetch:
  case AtomicOp::add:
    return UCP_ATOMIC_OP_ADD;
  case AtomicOp::set:
  case AtomicOp::swap:
    return UCP_ATOMIC_OP_SWAP;
  case AtomicOp::compare_swap:
    return UCP_ATOMIC_OP_CSWAP;
  case AtomicOp::bit_and:
    return UCP_ATOMIC_OP_AND;
  case AtomicOp::bit_or:
    return UCP_ATOMIC_OP_OR;
  case AtomicOp::bit_xor:
    return UCP_ATOMIC_OP_XOR;
  }
  return UCP_ATOMIC_OP_LAST;
}

/// UCX compares with the first operand, and takes the value to store from where the reply goes.
void fill(UcxOperands& operands, const AtomicRequest& request) {
  operands.operand = request.op == AtomicOp::fetch          ? 0
                     : request.op == AtomicOp::compare_swap ? request.compare
                                                            : request.operand;
  operands.reply = request.operand;
}

} // namespace

void UcxTransport::on_atomic_done(void* request, ucs_status_t status, void* user) {
  auto& operands = *static_cast<UcxOperands*>(user);
  UcxIssued& issued = *operands.issued;
  issued.spare.push_back(&operands);
  count_end(issued, status);
  if (request != operands.end_of_request())
    issued.worker->api().request_free(request);
}

UcxOperands& UcxTransport::operands(UcxIssued& issued) {
  if (issued.spare.empty()) {
    issued.operands.push_back({&issued});
    return issued.operands.back();
  }
  UcxOperands& taken = *issued.spare.back();
  issued.spare.pop_back();
  return taken;
}

std::uint64_t UcxTransport::fetch(Turn& turn, const RemoteAddress& target,
                                  const AtomicRequest& request) {
  const UcxTarget place = turn.worker.target(turn.peer, target);
  ++turn.peer.traffic.operations;
  UcxOperands& values = operands(turn.issued);
  fill(values, request);
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
  how.datatype = ucp_dt_make_contig(request.size_bytes);
  how.reply_buffer = &values.reply;
  // A wait that throws leaves the operands to UCX, which may still write the reply.
  finish(turn, api_->atomic_op_nbx(turn.peer.endpoint, ucx_operation(request.op), &values.operand,
                                   1, place.address, place.key, &how));
  turn.issued.spare.push_back(&values);
  return request.size_bytes == 4 ? static_cast<std::uint32_t>(values.reply) : values.reply;
}

std::uint64_t UcxTransport::fetch_bits(Turn& turn, const RemoteAddress& target,
                                       const AtomicRequest& request) {
  const auto changed = [&](std::uint64_t value) {
    return request.op == AtomicOp::bit_and  ? value & request.operand
           : request.op == AtomicOp::bit_or ? value | request.operand
                                            : value ^ request.operand;
  };
  std::uint64_t seen = fetch(turn, target, {AtomicOp::fetch, request.size_bytes});
  for (;;) {
    const std::uint64_t old =
        fetch(turn, target, {AtomicOp::compare_swap, request.size_bytes, changed(seen), seen});
    if (old == seen)
      return old;
    seen = old;
  }
}

void UcxTransport::post(Turn& turn, const RemoteAddress& target, const AtomicRequest& request) {
  const UcxTarget place = turn.worker.target(turn.peer, target);
  ++turn.peer.traffic.operations;
  turn.issued.mark(target.pe);
  UcxOperands& values = operands(turn.issued);
  fill(values, request);
  const ucp_atomic_op_t op = ucx_operation(request.op);
  ucp_request_param_t how = reported_to(turn.issued);
  // Otherwise UCX would not say when it is done with the operand.
  how.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  how.cb.send = on_atomic_done;
  how.user_data = &values;
  how.datatype = ucp_dt_make_contig(request.size_bytes);
  if (op == UCP_ATOMIC_OP_SWAP || op == UCP_ATOMIC_OP_CSWAP) {
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER; // UCX has them only with a reply
    how.reply_buffer = &values.reply;
  } else {
    // UCX 1.13 leaves the completion of these as the request's last user had it, and calls it if
    // the endpoint fails while they wait to be sent. In a request of zeros it finds none.
    values.request.assign(request_bytes_, std::byte{0});
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_REQUEST;
    how.request = values.end_of_request();
  }
  leave(turn, api_->atomic_op_nbx(turn.peer.endpoint, op, &values.operand, 1, place.address,
                                  place.key, &how));
}

std::uint64_t UcxTransport::atomic(int context, const RemoteAddress& target,
                                   const AtomicRequest& request) {
  Turn turn = begin(context, target.pe, "atomic operation on");
  // In UCX 1.13 as Debian 12 compiled it, these leave the operand out where memory is shared.
  const bool bits = request.op == AtomicOp::bit_and || request.op == AtomicOp::bit_or ||
                    request.op == AtomicOp::bit_xor;
  if (bits && turn.peer.in_memory)
    return fetch_bits(turn, target, request);
  if (request.op != AtomicOp::set)
    return fetch(turn, target, request);
  post(turn, target, request);
  return 0;
}

void UcxTransport::post_atomic(int context, const RemoteAddress& target,
                               const AtomicRequest& request) {
  if (request.op == AtomicOp::fetch)
    return;
  Turn turn = begin(context, target.pe, "atomic operation on");
  post(turn, target, request);
}

} // namespace shmemctl

#endif
