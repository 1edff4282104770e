#include "src/runtime/memory/local_peers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include "src/base/archive.h"
#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/runtime/memory/siphash.h"

namespace shmemctl {

namespace {

constexpr std::uint32_t magic = 0x314d4853; // "SHM1"

} // namespace

void serialize(Archive& archive, PeerMessage& message) {
  std::uint32_t number = magic, flags = message.has_descriptor ? 1 : 0;
  archive(number, flags, message.from_pe, message.to_pe, message.sequence);
  archive.require(number == magic && flags <= 1);
  if (archive.reading())
    message.has_descriptor = flags == 1;
}

PeerDatagram encode(const PeerMessage& message, const JobSecret& secret) {
  std::string bytes = to_bytes(message);
  bytes += to_bytes(siphash(secret, bytes.data(), bytes.size()));
  PeerDatagram datagram{};
  std::memcpy(datagram.data(), bytes.data(), std::min(bytes.size(), datagram.size()));
  return datagram;
}

std::optional<PeerMessage> decode(const void* data, std::size_t size_bytes,
                                  const JobSecret& secret) {
  constexpr std::size_t signature_bytes = sizeof(std::uint64_t);
  if (size_bytes != sizeof(PeerDatagram))
    return std::nullopt;
  const std::string_view bytes(static_cast<const char*>(data), size_bytes);
  const std::string_view text = bytes.substr(0, size_bytes - signature_bytes);
  if (from_bytes<std::uint64_t>(bytes.substr(text.size())) !=
      siphash(secret, text.data(), text.size()))
    return std::nullopt;
  return from_bytes<PeerMessage>(text);
}

std::string peer_socket_name(const JobSecret& secret, int pe) {
  const std::string about = fmt::format("socket name of PE {}", pe);
  return fmt::format("shmemctl-{:016x}", siphash(secret, about.data(), about.size()));
}

namespace {

constexpr const char* exchange_subject = "exchange of memory handles on this node";
constexpr int check_interval_ms = 50;
/// A queue contains about ten datagrams. A pass may read many times that, but is bounded, so that
/// an endless flood does not block it.
constexpr int datagrams_per_pass = 256;
constexpr int max_pe_names = 4;

struct UnixAddress {
  sockaddr_un raw{};
  socklen_t length = 0;

  explicit UnixAddress(const std::string& abstract_name) {
    raw.sun_family = AF_UNIX;
    const std::size_t size_bytes = std::min(abstract_name.size(), sizeof raw.sun_path - 1);
    std::memcpy(raw.sun_path + 1, abstract_name.data(), size_bytes);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size_bytes);
  }
};

/// The contents of one datagram. Owns all its descriptors, expected or not.
struct Received {
  std::optional<PeerMessage> message;
  std::vector<FileDescriptor> descriptors;
};

std::vector<FileDescriptor> take_descriptors(msghdr& header) {
  std::vector<FileDescriptor> taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
      continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t at = 0; at < count; ++at) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at * sizeof(int), sizeof descriptor);
      taken.emplace_back(descriptor);
    }
  }
  return taken;
}

class UnixPeers final : public LocalPeers {
public:
  UnixPeers(const JobSecret& secret, std::vector<int> pes, int my_slot, WaitCheck check)
      : secret_(secret), pes_(std::move(pes)), my_slot_(my_slot), check_(std::move(check)),
        current_(pes_.size()), early_(pes_.size()) {
    for (const int pe : pes_)
      addresses_.emplace_back(peer_socket_name(secret_, pe));
    if (slots() > 1)
      bind_socket();
  }

  int slots() const override { return static_cast<int>(pes_.size()); }
  int my_slot() const override { return my_slot_; }

  std::vector<FileDescriptor> exchange(int descriptor, const Deadline& deadline) override {
    if (slots() == 1)
      return std::vector<FileDescriptor>(1);
    if (failed_)
      throw Error(ExitCode::unavailable, exchange_subject, "continue", "an earlier call has failed",
                  "check the first error");
    failed_ = true;
    try {
      send_and_receive(descriptor, deadline);
    } catch (...) {
      current_.clear();
      early_.clear();
      throw;
    }
    failed_ = false;
    ++sequence_;
    std::vector<FileDescriptor> theirs;
    for (Arrival& arrival : current_)
      theirs.push_back(std::move(std::exchange(arrival, Arrival{}).descriptor));
    return theirs;
  }

private:
  struct Arrival {
    bool here = false;
    FileDescriptor descriptor;
  };

  void bind_socket() {
    socket_ = FileDescriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_)
      throw system_error("Unix datagram socket", "create", errno,
                         "raise the limit of open files: ulimit -n");
    const UnixAddress& own = addresses_[static_cast<std::size_t>(my_slot_)];
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own.raw), own.length) == 0)
      return;
    const int error = errno;
    const int pe = pes_[static_cast<std::size_t>(my_slot_)];
    if (error == EADDRINUSE)
      throw Error(ExitCode::unavailable, exchange_subject, "join",
                  "another process is already PE " + std::to_string(pe) + " of this job",
                  "start each PE once, with a unique rank");
    throw system_error("Unix datagram socket", "bind", error,
                       "use a kernel and container that allow abstract Unix sockets");
  }

  void send_and_receive(int descriptor, const Deadline& deadline) {
    std::vector<std::size_t> unsent;
    // Every PE begins with the next PE, so that not all PEs fill the same queue at once.
    for (std::size_t step = 1; step < pes_.size(); ++step)
      unsent.push_back((static_cast<std::size_t>(my_slot_) + step) % pes_.size());
    std::size_t missing = unsent.size() - take_early();
    int pause_ms = 1;
    Deadline next_check = deadline.at_most(std::chrono::milliseconds(check_interval_ms));
    while (true) {
      const std::size_t before = unsent.size() + missing;
      const bool more_to_read = receive(missing);
      send(unsent, descriptor);
      if (unsent.empty() && missing == 0)
        return;
      if (check_ && next_check.passed()) {
        check_();
        next_check = deadline.at_most(std::chrono::milliseconds(check_interval_ms));
      }
      if (deadline.passed())
        throw_deadline(unsent);
      if (more_to_read)
        continue;
      // poll() on this socket reports no event when a peer's full queue has room again, so try
      // again soon.
      pause_ms = unsent.size() + missing < before ? 1 : std::min(2 * pause_ms, 10);
      wait(deadline.poll_ms(unsent.empty() ? check_interval_ms : pause_ms));
    }
  }

  /// Takes the messages that arrived during the previous exchange: peers may be one exchange ahead,
  /// never two. Returns their number.
  std::size_t take_early() {
    std::size_t taken = 0;
    for (std::size_t slot = 0; slot < early_.size(); ++slot) {
      taken += early_[slot].here ? 1 : 0;
      current_[slot] = std::exchange(early_[slot], Arrival{});
    }
    return taken;
  }

  /// Reads the messages that have arrived; returns true if there may be more.
  bool receive(std::size_t& missing) {
    for (int count = 0; count < datagrams_per_pass; ++count) {
      std::optional<Received> received = receive_one();
      if (!received)
        return false;
      if (received->message && accept(*received))
        --missing;
    }
    return true;
  }

  std::optional<Received> receive_one() {
    PeerDatagram datagram;
    iovec piece{datagram.data(), datagram.size()};
    alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t size_bytes;
    do
      size_bytes = ::recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
    while (size_bytes < 0 && errno == EINTR);
    if (size_bytes < 0) {
      if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
        return std::nullopt;
      throw system_error(exchange_subject, "receive", errno,
                         "run again; if it persists, report it as a bug in shmemctl");
    }
    Received received;
    received.descriptors = take_descriptors(header);
    // With MSG_TRUNC this is the size that was sent, so that a message that is too long is
    // detected.
    received.message = decode(datagram.data(), static_cast<std::size_t>(size_bytes), secret_);
    if (received.message && received.message->has_descriptor && received.descriptors.empty())
      throw Error(ExitCode::unavailable, "PE " + std::to_string(received.message->from_pe),
                  "receive its memory", "too many open files",
                  "raise the limit of open files: ulimit -n");
    return received;
  }

  /// Stores a message of the current or next exchange; returns true if it is the first message of
  /// its sender in the current exchange.
  bool accept(Received& received) {
    const PeerMessage& message = *received.message;
    const auto slot = static_cast<std::size_t>(
        std::find(pes_.begin(), pes_.end(), static_cast<int>(message.from_pe)) - pes_.begin());
    if (slot >= pes_.size() || slot == static_cast<std::size_t>(my_slot_) ||
        message.to_pe != static_cast<std::uint32_t>(pes_[static_cast<std::size_t>(my_slot_)]) ||
        received.descriptors.size() != (message.has_descriptor ? 1u : 0u))
      return false;
    if (message.sequence != sequence_ && message.sequence != sequence_ + 1)
      return false;
    Arrival& arrival = (message.sequence == sequence_ ? current_ : early_)[slot];
    if (arrival.here)
      return false;
    arrival.here = true;
    if (message.has_descriptor)
      arrival.descriptor = std::move(received.descriptors.front());
    return message.sequence == sequence_;
  }

  void send(std::vector<std::size_t>& unsent, int descriptor) {
    unsent.erase(std::remove_if(unsent.begin(), unsent.end(),
                                [&](std::size_t slot) { return send_one(slot, descriptor); }),
                 unsent.end());
  }

  /// Returns false if the message cannot be sent now.
  bool send_one(std::size_t slot, int descriptor) {
    PeerDatagram datagram =
        encode({static_cast<std::uint32_t>(pes_[static_cast<std::size_t>(my_slot_)]),
                static_cast<std::uint32_t>(pes_[slot]), sequence_, descriptor >= 0},
               secret_);
    iovec piece{datagram.data(), datagram.size()};
    alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
    msghdr header{};
    header.msg_name = &addresses_[slot].raw;
    header.msg_namelen = addresses_[slot].length;
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    if (descriptor >= 0) {
      header.msg_control = control;
      header.msg_controllen = sizeof control;
      cmsghdr* part = CMSG_FIRSTHDR(&header);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
    }
    if (::sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
      return true;
    switch (errno) {
    case EAGAIN:       // the peer's queue is full
    case ECONNREFUSED: // the peer has not arrived yet
    case EPERM:        // the name belongs to a socket that accepts one sender only
    case ETOOMANYREFS: // too many descriptors of this user are in flight
    case ENOBUFS:
    case ENOMEM:
    case EINTR:
      return false;
    default:
      throw system_error(exchange_subject, "send to PE " + std::to_string(pes_[slot]), errno,
                         "run again; if it persists, report it as a bug in shmemctl");
    }
  }

  void wait(int timeout_ms) const {
    pollfd event{socket_.get(), POLLIN, 0};
    ::poll(&event, 1, timeout_ms);
  }

  /// The Error names the PEs that sent nothing; if there are none, those that this PE could not
  /// send to.
  [[noreturn]] void throw_deadline(const std::vector<std::size_t>& unsent) const {
    std::vector<std::string> names;
    for (std::size_t slot = 0; slot < pes_.size(); ++slot)
      if (slot != static_cast<std::size_t>(my_slot_) && !current_[slot].here)
        names.push_back(std::to_string(pes_[slot]));
    if (names.empty())
      for (const std::size_t slot : unsent)
        names.push_back(std::to_string(pes_[slot]));
    const std::size_t count = names.size();
    if (count > max_pe_names) {
      names.resize(max_pe_names);
      names.push_back(fmt::format("and {} more", count - max_pe_names));
    }
    throw Error(ExitCode::deadline, exchange_subject, "finish",
                "timed out waiting for " +
                    fmt::format("PE{} {}", count == 1 ? "" : "s", join(names, ", ")),
                "check the output of those PEs, run all PEs of a node in one network namespace "
                "(container), or " +
                    raise_timeout());
  }

  JobSecret secret_;
  std::vector<int> pes_;
  int my_slot_;
  WaitCheck check_;
  std::vector<UnixAddress> addresses_;
  FileDescriptor socket_;
  std::uint64_t sequence_ = 0;
  bool failed_ = false; ///< after a failure, messages cannot be assigned to an exchange
  std::vector<Arrival> current_, early_;
};

} // namespace

std::unique_ptr<LocalPeers> make_local_peers(const std::array<std::uint8_t, 16>& secret,
                                             std::vector<int> pes, int my_slot, WaitCheck check) {
  return std::make_unique<UnixPeers>(secret, std::move(pes), my_slot, std::move(check));
}

namespace {

constexpr std::size_t max_handle_bytes = 64;
constexpr const char* no_handle = "none";
constexpr char digits[] = "0123456789abcdef";

std::string to_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

/// Returns "" if the text is not a handle.
std::string from_hex(const std::string& text) {
  if (text.size() % 2 != 0 || text.size() > 2 * max_handle_bytes)
    return "";
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const char* const high = std::strchr(digits, text[i]);
    const char* const low = std::strchr(digits, text[i + 1]);
    if (text[i] == 0 || text[i + 1] == 0 || !high || !low)
      return "";
    bytes += static_cast<char>((high - digits) << 4 | (low - digits));
  }
  return bytes;
}

class ExchangedHandles final : public LocalPeers {
public:
  ExchangedHandles(std::vector<int> pes, int my_slot,
                   std::function<std::vector<std::string>(const std::string&)> gather)
      : pes_(std::move(pes)), my_slot_(my_slot), gather_(std::move(gather)) {}

  int slots() const override { return static_cast<int>(pes_.size()); }
  int my_slot() const override { return my_slot_; }

  std::vector<FileDescriptor> exchange(int descriptor, const Deadline&) override {
    const std::vector<std::string> all =
        gather_(descriptor < 0 ? no_handle : to_hex(handle_in_file(descriptor)));
    std::vector<FileDescriptor> theirs(pes_.size());
    for (std::size_t slot = 0; slot < pes_.size(); ++slot) {
      const std::string& said = all.at(static_cast<std::size_t>(pes_[slot]));
      if (static_cast<int>(slot) == my_slot_ || said == no_handle)
        continue;
      const std::string handle = from_hex(said);
      if (handle.empty())
        throw Error(ExitCode::unavailable, "PE " + std::to_string(pes_[slot]),
                    "read its memory handle", "malformed message", "check the output of that PE");
      theirs[slot] = file_of_handle(handle);
    }
    return theirs;
  }

private:
  std::vector<int> pes_;
  int my_slot_;
  std::function<std::vector<std::string>(const std::string&)> gather_;
};

} // namespace

FileDescriptor file_of_handle(const std::string& bytes) {
  FileDescriptor file(::memfd_create("shmemctl-handle", MFD_CLOEXEC));
  if (!file ||
      ::pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(ExitCode::unavailable, "memory handle", "create a file for it",
                std::strerror(errno), "raise the limit of open files: ulimit -n");
  return file;
}

std::string handle_in_file(int file) {
  char bytes[max_handle_bytes + 1];
  const ssize_t count = ::pread(file, bytes, sizeof bytes, 0);
  return count > 0 && count <= static_cast<ssize_t>(max_handle_bytes)
             ? std::string(bytes, static_cast<std::size_t>(count))
             : "";
}

std::unique_ptr<LocalPeers>
make_gathered_peers(std::vector<int> pes, int my_slot,
                    std::function<std::vector<std::string>(const std::string&)> gather) {
  return std::make_unique<ExchangedHandles>(std::move(pes), my_slot, std::move(gather));
}

} // namespace shmemctl
