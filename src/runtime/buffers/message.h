// The requests and responses by which the PEs of a node access each other's registered buffers, and
// the Unix sockets that carry them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/archive.h"
#include "src/base/file_descriptor.h"
#include "src/base/socket.h"
#include "src/runtime/buffers/registration_table.h"
#include "src/runtime/memory/local_peers.h"

namespace shmemctl::buffers {

enum class RequestKind : std::uint32_t {
  hello, ///< identifies the sender; the response carries the registration table
  open,  ///< asks for access to a buffer; the response carries its files or handles
  stage, ///< asks the owner to allocate the sender's staging area
  put,   ///< asks to copy from the sender's staging area into the buffer
  get,   ///< asks to copy from the buffer into the sender's staging area
  close  ///< asks to unmap a buffer of the sender, whose memory may be freed soon
};

struct Request {
  RequestKind kind = RequestKind::hello;
  std::uint32_t from_pe = 0, to_pe = 0;
  std::uint64_t sequence = 0; ///< returned in the response
  BufferHandle handle = {};
  std::uint64_t offset_bytes = 0, size_bytes = 0;
};

enum class Outcome : std::uint32_t {
  done,
  refused, ///< an error of usage, e.g. the buffer is not, or no longer, registered, or does not
           ///< contain the range; `reason` says why
  failed,  ///< `reason` says why
};

/// A part of a buffer's pages: `size_bytes` from `offset_bytes` on in the file whose descriptor has
/// index `file` among those of the response.
struct FilePart {
  std::uint64_t file = 0, offset_bytes = 0, size_bytes = 0;
  bool operator==(const FilePart&) const = default;
};

struct Response {
  std::uint64_t sequence = 0;
  Outcome outcome = Outcome::done;
  std::uint32_t descriptors = 0; ///< number of descriptors sent with the message
  TableShape shape;              ///< in the response to hello: the shape of the registration table
  // In the response to open:
  std::uint64_t address = 0, size_bytes = 0, page_gap_bytes = 0;
  bool writable = false;
  BufferMemory memory = BufferMemory::host;
  std::vector<FilePart> parts; ///< host, gpu_descriptors: empty if not shareable, see `reason`.
                               ///< gpu_descriptors: whole allocations; the gap is in the first one
  std::string device, handle;  ///< as in GpuShare
  std::string reason;
  std::string fix; ///< of an outcome that is not `done`; may be empty
};

inline constexpr std::size_t max_parts = 64, max_reason_bytes = 400, max_message_bytes = 4096,
                             max_device_bytes = 64, max_handle_bytes = 128;

void serialize(Archive& archive, Request& request);
void serialize(Archive& archive, FilePart& part);
/// Texts are cut at the limits above.
void serialize(Archive& archive, Response& response);

/// The message as an archive, signed with the job's secret.
std::string encode(const Request& request, const JobSecret& secret);
std::string encode(const Response& response, const JobSecret& secret);
/// Nothing unless the data is one whole message signed with this secret. Any bytes are allowed.
std::optional<Request> decode_request(const void* data, std::size_t size_bytes,
                                      const JobSecret& secret);
std::optional<Response> decode_response(const void* data, std::size_t size_bytes,
                                        const JobSecret& secret);

/// The abstract name of a PE's service socket.
std::string socket_name(const JobSecret& secret, int pe);

// Whole messages with descriptors, over connected Unix sockets.

/// A socket of type SOCK_SEQPACKET, non-blocking and close-on-exec.
FileDescriptor packet_socket();

struct Packet {
  enum class State { none, here, ended } state = State::none;
  std::string bytes;
  std::vector<FileDescriptor> descriptors;
  bool descriptors_cut = false; ///< some were lost, because too many files are open
};
/// Receives one message if one has arrived. An error of the connection counts as its end.
Packet receive_packet(int socket);

/// Sends one message. Returns false if that is impossible, now or at all; `error` receives the
/// errno.
bool send_packet(int socket, const std::string& bytes, const std::vector<int>& descriptors,
                 int& error);

} // namespace shmemctl::buffers
