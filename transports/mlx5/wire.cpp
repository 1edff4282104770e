#include "transports/mlx5/wire.h"

#include "transports/rc/segment_key.h"

namespace shmemctl::mlx5 {

static void serialize(Archive& archive, Hello::Port& port) {
  archive.text(port.device, rc::max_text_bytes);
  archive(port.port);
}

void serialize(Archive& archive, Summary& summary) {
  archive.choice(summary.kind, Summary::Kind::emulated);
  archive.text(summary.reason, rc::max_text_bytes);
  archive(summary.ethernet);
  archive.text(summary.over, rc::max_text_bytes);
  archive(summary.network_namespace);
  archive.text(summary.below, rc::max_below_bytes);
  archive(summary.has_atomics);
}

void serialize(Archive& archive, Hello& hello) {
  archive.text(hello.host, rc::max_text_bytes);
  archive(hello.qp_sets, hello.ports);
  archive.require(hello.qp_sets >= 1 && hello.qp_sets <= wire_limits::qp_sets &&
                  !hello.ports.empty() && hello.ports.size() <= wire_limits::ports);
}

} // namespace shmemctl::mlx5
