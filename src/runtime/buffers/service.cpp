#include "src/runtime/buffers/service.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/service_thread.h"
#include "src/runtime/memory/process_vm_copy.h"

namespace shmemctl::buffers {

namespace {

/// If there is no free descriptor for a new connection, the listener is ignored for this time,
/// because polling it would use a whole core.
constexpr auto deaf_time = std::chrono::milliseconds(100);

/// The index of a file among the descriptors; adds it if it is new.
std::uint64_t number_of(int descriptor, std::vector<int>& descriptors) {
  const auto found = std::find(descriptors.begin(), descriptors.end(), descriptor);
  const auto number = static_cast<std::uint64_t>(found - descriptors.begin());
  if (found == descriptors.end())
    descriptors.push_back(descriptor);
  return number;
}

} // namespace

BufferService::BufferService(const JobSecret& secret, int pe, std::vector<int> users,
                             BufferPool& pool, RegistrationTable& table, ServiceCallbacks callbacks)
    : secret_(secret), pe_(pe), users_(std::move(users)), pool_(pool), table_(table),
      callbacks_(std::move(callbacks)), listener_(packet_socket()),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), connected_(users_.size()) {
  const SocketAddress address = SocketAddress::abstract_unix(socket_name(secret, pe));
  if (!wake_ || ::bind(listener_.get(), address.raw(), address.length()) != 0 ||
      ::listen(listener_.get(), static_cast<int>(users_.size() + max_unidentified)) != 0)
    throw system_error(
        "socket for registered buffers", "open", errno,
        "use a kernel and container that allow abstract Unix sockets, and start each PE once");
}

void BufferService::wake() noexcept {
  const std::uint64_t one = 1;
  // The write can only fail if the eventfd's counter is full, and then the thread wakes anyway.
  [[maybe_unused]] const ssize_t ignored = ::write(wake_.get(), &one, sizeof one);
}

void BufferService::poll(int timeout_ms) {
  // poll() ignores a descriptor of -1.
  std::vector<pollfd> events = {{wake_.get(), POLLIN, 0},
                                {deaf_until_.passed() ? listener_.get() : -1, POLLIN, 0}};
  for (const Link& link : links_)
    events.push_back({link.socket.get(), POLLIN, 0});
  if (::poll(events.data(), events.size(), timeout_ms) <= 0)
    return;
  std::uint64_t count = 0;
  if (events[0].revents != 0) [[maybe_unused]]
    const ssize_t ignored = ::read(wake_.get(), &count, sizeof count);
  auto link = links_.begin();
  for (std::size_t at = 2; at < events.size(); ++at) {
    const auto current = link++;
    if (events[at].revents == 0 || serve_safely(*current))
      continue;
    end(*current);
    links_.erase(current);
  }
  if (events[1].revents != 0)
    accept_links();
}

void BufferService::accept_links() {
  while (true) {
    FileDescriptor socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE)
        deaf_until_ = Deadline::after(deaf_time);
      return;
    }
    // If there are too many unidentified connections, the oldest of them is dropped.
    const auto stranger = [](const Link& link) { return link.user == nobody; };
    if (static_cast<std::size_t>(std::count_if(links_.begin(), links_.end(), stranger)) ==
        max_unidentified)
      links_.erase(std::find_if(links_.begin(), links_.end(), stranger));
    links_.push_back({std::move(socket), nobody});
  }
}

bool BufferService::serve_safely(Link& link) {
  try {
    return serve(link);
  } catch (const std::exception& error) { // no memory
    log(LogLevel::warning, "memory", std::string("registered buffers: ") + error.what());
    return false;
  }
}

bool BufferService::serve(Link& link) {
  const Packet packet = receive_packet(link.socket.get());
  if (packet.state != Packet::State::here)
    return packet.state == Packet::State::none;
  const auto request = decode_request(packet.bytes.data(), packet.bytes.size(), secret_);
  if (!request || request->to_pe != static_cast<std::uint32_t>(pe_))
    return false;
  if (link.user == nobody)
    return greet(link, *request);
  Files files;
  const Response out = response(link, *request, files);
  return reply(link, out, files.descriptors);
}

bool BufferService::greet(Link& link, const Request& request) {
  const auto found = std::find(users_.begin(), users_.end(), static_cast<int>(request.from_pe));
  const auto user = static_cast<std::size_t>(found - users_.begin());
  if (request.kind != RequestKind::hello || found == users_.end() || connected(user))
    return false;
  link.user = user;
  connected_[user].store(true, std::memory_order_release);
  Response welcome;
  welcome.sequence = request.sequence;
  welcome.shape = table_.shape();
  return reply(link, welcome, {table_.descriptor()});
}

Response BufferService::response(const Link& link, const Request& request, Files& files) {
  Response response;
  response.sequence = request.sequence;
  try {
    if (request.kind == RequestKind::open)
      describe(link.user, request, response, files);
    else if (request.kind == RequestKind::stage)
      table_.commit_stage(static_cast<std::uint32_t>(link.user));
    else if (request.kind == RequestKind::close)
      callbacks_.forget(users_[link.user], request.handle);
    else
      copy(link.user, request, response);
  } catch (const Error& error) {
    response.outcome = error.code() == ExitCode::usage ? Outcome::refused : Outcome::failed;
    response.reason = error.message();
    response.fix = error.fix();
    files.descriptors.clear();
    response.parts.clear();
  }
  return response;
}

void BufferService::describe(std::size_t user, const Request& request, Response& response,
                             Files& files) {
  const RegisteredBuffer buffer = pool_.get(request.handle);
  response.address = buffer.extent.address;
  response.size_bytes = buffer.extent.size_bytes;
  response.page_gap_bytes = buffer.extent.page_gap_bytes();
  response.writable = buffer.writable;
  response.reason = buffer.reason;
  if (buffer.gpu)
    return describe_gpu(user, buffer, response, files);
  if (!buffer.shareable)
    return;
  files.pieces = pool_.export_pages(request.handle).pieces;
  if (files.pieces.size() > max_parts) {
    response.reason = "it consists of more pieces of shared memory than one message holds";
    return;
  }
  for (const SharedPiece& piece : files.pieces)
    response.parts.push_back({number_of(piece.file->descriptor.get(), files.descriptors),
                              piece.offset_bytes, piece.pages.size_bytes()});
}

void BufferService::require_not_gone(const RegisteredBuffer& buffer) const {
  const std::string gone = callbacks_.gpu->why_gone(
      *buffer.gpu, reinterpret_cast<const void*>(buffer.extent.address), buffer.extent.size_bytes);
  if (!gone.empty())
    throw Error(ExitCode::unavailable,
                text_of(buffer.extent.address, buffer.extent.size_bytes).text, "use", gone,
                "unregister a buffer before freeing its memory");
}

/// The requester holds an OperationGuard until its mapping is in its cache, so that remove(), which
/// waits for that, finds all openers here.
void BufferService::describe_gpu(std::size_t user, const RegisteredBuffer& buffer,
                                 Response& response, Files& files) {
  require_not_gone(buffer);
  const GpuShare& share = *buffer.gpu;
  files.share = buffer.gpu;
  response.memory = share.memory;
  response.device = share.device;
  response.handle = share.handle;
  response.page_gap_bytes = buffer.extent.address - share.pieces.front().begin;
  for (std::size_t at = 0; at < share.files.size(); ++at) {
    files.descriptors.push_back(share.files[at].get());
    response.parts.push_back({at, 0, share.pieces[at].size_bytes});
  }
  if (share.memory == BufferMemory::gpu_unshared)
    return;
  const std::lock_guard lock(openers_mutex_);
  openers_[buffer.handle.generation].insert(user);
}

std::set<std::size_t> BufferService::take_openers(const BufferHandle& handle) {
  const std::lock_guard lock(openers_mutex_);
  const auto found = openers_.find(handle.generation);
  if (found == openers_.end())
    return {};
  std::set<std::size_t> users = std::move(found->second);
  openers_.erase(found);
  return users;
}

/// Copies between GPU memory and the staging area, which the copy engine can access like any host
/// memory.
void BufferService::copy_gpu(std::size_t user, const RegisteredBuffer& buffer,
                             const Request& request) {
  require_not_gone(buffer);
  std::byte* const stage = table_.stage(static_cast<std::uint32_t>(user));
  auto* const memory = reinterpret_cast<std::byte*>(buffer.extent.address + request.offset_bytes);
  if (request.kind == RequestKind::put)
    callbacks_.gpu->copy(memory, stage, request.size_bytes);
  else
    callbacks_.gpu->copy(stage, memory, request.size_bytes);
}

/// Copies between the buffer and the staging area by system calls, so that memory that the program
/// has freed meanwhile causes an error instead of the end of this PE.
void BufferService::copy(std::size_t user, const Request& request, Response& response) {
  const RegisteredBuffer buffer = pool_.get(request.handle);
  require_inside(request.offset_bytes, request.size_bytes, buffer.extent.size_bytes);
  require_inside(0, request.size_bytes, table_.shape().staging_bytes);
  if (buffer.gpu)
    return copy_gpu(user, buffer, request);
  const bool put = request.kind == RequestKind::put;
  const std::uint64_t stage = table_.stage_offset_bytes(static_cast<std::uint32_t>(user));
  auto* memory = reinterpret_cast<void*>(buffer.extent.address + request.offset_bytes);
  int error = put && !buffer.writable ? EACCES : 0;
  if (error == 0)
    error = put ? read_from_file(table_.descriptor(), stage, memory, request.size_bytes)
                : write_to_file(table_.descriptor(), stage, memory, request.size_bytes);
  if (error == 0)
    return;
  response.outcome = Outcome::failed;
  response.reason =
      error == EFAULT ? "its memory was freed while it was registered" : std::strerror(error);
}

bool BufferService::reply(const Link& link, const Response& response,
                          const std::vector<int>& descriptors) {
  Response counted = response;
  counted.descriptors = static_cast<std::uint32_t>(descriptors.size());
  int error = 0;
  // Only one request of a link is in flight at a time, so the response fits into the socket's
  // queue.
  if (send_packet(link.socket.get(), encode(counted, secret_), descriptors, error))
    return true;
  if (error != ETOOMANYREFS && error != EMFILE)
    return false;
  counted.descriptors = 0;
  counted.parts.clear();
  counted.reason = "too many descriptors are in flight";
  return send_packet(link.socket.get(), encode(counted, secret_), {}, error);
}

void BufferService::end(const Link& link) {
  if (link.user != nobody)
    connected_[link.user].store(false, std::memory_order_release);
}

namespace {
constexpr int poll_interval_ms = 100;
}

BufferServer::BufferServer(const TableShape& shape, const char* backing_kind,
                           const JobSecret& secret, int pe, std::vector<int> users,
                           BufferPool& pool, ServiceCallbacks callbacks)
    : table_(std::make_shared<RegistrationTable>(shape, backing_kind)),
      service_(secret, pe, std::move(users), pool, *table_, std::move(callbacks)) {
  thread_ = start_service_thread("buffers", [this] {
    while (!stop_.load(std::memory_order_acquire))
      service_.poll(poll_interval_ms);
  });
}

BufferServer::~BufferServer() {
  stop_.store(true, std::memory_order_release);
  service_.wake();
  thread_.join();
}

} // namespace shmemctl::buffers
