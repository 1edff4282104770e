#include "transports/libfabric/active_messages.h"

#include "transports/shm/atomics.h"

namespace shmemctl::fabric {

namespace {

std::uint64_t execute_word(std::byte* word, const Message& request) {
  if (request.word_bytes >= 4)
    return execute_atomic(word, {request.op, request.word_bytes, request.operand, request.compare});
  copy_to_shared(word, &request.operand, request.word_bytes); // a put of a 2-byte word
  return 0;
}

} // namespace

Message Target::execute(const Message& request) const {
  Message reply;
  reply.kind = MessageKind::reply;
  reply.from_pe = static_cast<std::uint32_t>(pe_);
  reply.operation = request.operation;
  reply.generation = request.generation;
  reply.region = request.from_pe; // see receiver()
  const RegionView& region = memory_.region(request.region);
  const bool fits = region.base && request.offset_bytes < region.size_bytes &&
                    region.size_bytes - request.offset_bytes >= request.word_bytes &&
                    request.offset_bytes % request.word_bytes == 0;
  if (fits)
    reply.operand = execute_word(region.base + request.offset_bytes, request);
  else
    reply.refused = 1;
  return reply;
}

std::optional<Message> Target::on_request(const Message& request) {
  if (request.kind == MessageKind::atomic || request.writes == 0)
    return execute(request);
  const auto key = std::pair(static_cast<int>(request.from_pe), request.sequence);
  counted_[key].signal = request;
  return finish_if_all(key);
}

std::optional<Message> Target::on_payload(std::uint64_t immediate_data) {
  const auto sender = immediates_.decode(immediate_data);
  if (!sender)
    return std::nullopt;
  const auto key = std::pair(sender->pe, sender->sequence);
  ++counted_[key].arrived;
  return finish_if_all(key);
}

std::optional<Message> Target::finish_if_all(std::pair<int, std::uint32_t> key) {
  const auto found = counted_.find(key);
  if (!found->second.signal || found->second.arrived < found->second.signal->writes)
    return std::nullopt;
  const Message reply = execute(*found->second.signal);
  counted_.erase(found);
  return reply;
}

} // namespace shmemctl::fabric
