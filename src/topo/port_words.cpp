#include "src/topo/port_words.h"

namespace shmemctl {

const char* to_string(PortState state) {
  switch (state) {
  case PortState::down:
    return "DOWN";
  case PortState::init:
    return "INIT";
  case PortState::armed:
    return "ARMED";
  case PortState::active:
    return "ACTIVE";
  }
  return "unknown";
}

const char* to_string(LinkLayer layer) {
  switch (layer) {
  case LinkLayer::infiniband:
    return "InfiniBand";
  case LinkLayer::ethernet:
    return "Ethernet";
  case LinkLayer::other:
    return "other";
  }
  return "unknown";
}

} // namespace shmemctl
