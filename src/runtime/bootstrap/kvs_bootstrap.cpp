#include "src/runtime/bootstrap/kvs_bootstrap.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "src/runtime/bootstrap/chunks.h"

namespace shmemctl {

namespace {

constexpr std::size_t header_bytes = 16;
constexpr int everyone = -1; ///< receiver of a message that is not for one PE

enum class Call : std::uint8_t { barrier = 1, allgather, alltoall, broadcast, gather };

const char* to_string(Call call) {
  switch (call) {
  case Call::barrier:
    return "barrier";
  case Call::allgather:
    return "allgather";
  case Call::alltoall:
    return "alltoall";
  case Call::broadcast:
    return "broadcast";
  case Call::gather:
    return "gather";
  }
  return "an unknown call";
}

/// Header of every payload, by which PEs detect that they disagree.
struct Header {
  std::uint64_t payload_bytes;
  std::uint32_t receiver;
  std::uint32_t call;
};
static_assert(sizeof(Header) == header_bytes);

class KvsBootstrap final : public Bootstrap {
public:
  KvsBootstrap(std::unique_ptr<KeyValueStore> kvs, const Deadline& deadline)
      : Bootstrap(kvs->rank(), kvs->size()), kvs_(std::move(kvs)), prefix_(kvs_->key_prefix()) {
    if (size() > 1)
      introduce(deadline);
  }

  const char* name() const override { return kvs_->name(); }
  void allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                 const Deadline& deadline) override;
  void gather(const void* send, void* receive, std::size_t bytes_per_rank,
              const Deadline& deadline) override;
  void alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                const Deadline& deadline) override;
  void barrier(const Deadline& deadline) override;
  void broadcast(void* data, std::size_t size_bytes, int root, const Deadline& deadline) override;
  void abort(ExitCode code, const std::string& message) noexcept override {
    kvs_->abort(code, message);
  }
  void finish(const Deadline& deadline) override {
    barrier(deadline);
    kvs_->finish(deadline);
  }
  void leave(const Deadline& deadline) noexcept override { kvs_->leave(deadline); }

private:
  void introduce(const Deadline& deadline);
  void check_hello(int of, const std::string& expected_start, const Deadline& deadline);
  void begin(Call call);
  void put(int receiver, const void* payload, std::size_t size_bytes, const Deadline& deadline);
  void get(int from, int receiver, void* payload, std::size_t size_bytes, const Deadline& deadline);
  std::string get_chunk(int from, int receiver, std::size_t chunk, std::size_t expected_bytes,
                        const Deadline& deadline);
  void check_header(int from, int receiver, const std::string& chunk, std::size_t size_bytes) const;
  std::string key(int from, int receiver, std::size_t chunk) const;
  std::size_t chunk_bytes() const;
  /// A process manager that loses a process refuses requests of the others. Then this throws the
  /// job's first failure, which names that process, or the refusal if no notice of it arrives.
  template <class Step>
  auto call_store(const Step& step) {
    try {
      return step();
    } catch (const Error& error) {
      if (error.code() == ExitCode::unavailable)
        health().await_cause(-1);
      throw;
    }
  }
  void fence(const Deadline& deadline) {
    call_store([&] { kvs_->fence(deadline); });
  }
  std::string subject() const { return std::string("bootstrap ") + name(); }
  [[noreturn]] void disagree(int with, const std::string& how) const;
  std::byte* block(void* blocks, int rank, std::size_t bytes_per_rank) const {
    return static_cast<std::byte*>(blocks) + static_cast<std::size_t>(rank) * bytes_per_rank;
  }
  const std::byte* block(const void* blocks, int rank, std::size_t bytes_per_rank) const {
    return static_cast<const std::byte*>(blocks) + static_cast<std::size_t>(rank) * bytes_per_rank;
  }

  std::unique_ptr<KeyValueStore> kvs_;
  std::string prefix_;
  std::uint64_t sequence_ = 0; ///< number of the collective that this PE is in, from 1
  Call call_ = Call::barrier;
};

std::string KvsBootstrap::key(int from, int receiver, std::size_t chunk) const {
  return prefix_ + std::to_string(sequence_) + "-" + std::to_string(from) + "-" +
         (receiver == everyone ? "all" : std::to_string(receiver)) + "-" + std::to_string(chunk);
}

/// Bytes of header and payload that fit into one value; a multiple of 3 for stores that get base64.
std::size_t KvsBootstrap::chunk_bytes() const {
  const std::size_t limit = kvs_->max_value_bytes();
  return kvs_->binary_values() ? limit : limit / 4 * 3;
}

void KvsBootstrap::introduce(const Deadline& deadline) {
  if (chunk_bytes() < 2 * header_bytes)
    throw Error(ExitCode::unavailable, subject(), "use",
                "the launcher limits a value to " + std::to_string(kvs_->max_value_bytes()) +
                    " bytes, which is too little",
                "choose another SHMEMCTL_BOOTSTRAP");
  std::random_device random;
  const std::string start = "shmemctl1/" + std::to_string(size()) + "/";
  const std::string own_hello = start + std::to_string(random()) + "/" + std::to_string(random());
  const std::string own_key = prefix_ + "hello-" + std::to_string(rank());
  call_store([&] { kvs_->put(own_key, own_hello, deadline); });
  fence(deadline);
  check_hello(rank(), own_hello, deadline);
  check_hello((rank() + 1) % size(), start, deadline);
}

void KvsBootstrap::check_hello(int of, const std::string& expected_start,
                               const Deadline& deadline) {
  const auto hello =
      call_store([&] { return kvs_->get(of, prefix_ + "hello-" + std::to_string(of), deadline); });
  const std::string whose = "PE " + std::to_string(of);
  if (!hello)
    throw Error(ExitCode::unavailable, subject(), "find " + whose,
                "not in the key-value space: the launcher gives each process a separate one",
                "use a launcher that serves one key-value space to all processes of the job (srun "
                "--mpi=pmi2, mpiexec.hydra), or SHMEMCTL_BOOTSTRAP=uid with a session id");
  if (hello->compare(0, expected_start.size(), expected_start) == 0)
    return;
  if (of == rank())
    throw Error(ExitCode::unavailable, subject(), "join as " + whose,
                "another process also has rank " + std::to_string(of),
                "remove PMI_RANK, PMI_SIZE and PMIX_RANK from job scripts: the launcher sets them");
  throw Error(ExitCode::unavailable, subject(), "read the greeting of " + whose,
              "it is \"" + printable(*hello, 40) + "\" instead of \"" + expected_start +
                  "\": that PE has another version of shmemctl, or another size of the job",
              "start all PEs with one launcher and the same version of shmemctl");
}

void KvsBootstrap::disagree(int with, const std::string& how) const {
  throw Error(ExitCode::unavailable, subject(),
              "complete " + std::string(to_string(call_)) + " (call " + std::to_string(sequence_) +
                  ")",
              "PE " + std::to_string(with) + " " + how,
              "start all PEs with the same program, version and options");
}

void KvsBootstrap::begin(Call call) {
  call_ = call;
  ++sequence_;
  kvs_->watch(&health());
}

void KvsBootstrap::put(int receiver, const void* payload, std::size_t size_bytes,
                       const Deadline& deadline) {
  const Header header{size_bytes, static_cast<std::uint32_t>(receiver),
                      static_cast<std::uint32_t>(call_)};
  const std::size_t first_bytes = std::min(size_bytes, chunk_bytes() - header_bytes);
  std::string chunk(header_bytes + first_bytes, '\0');
  std::memcpy(chunk.data(), &header, header_bytes);
  copy_bytes(chunk.data() + header_bytes, payload, first_bytes);
  std::size_t number = 0;
  const auto send = [&] {
    const std::string value = kvs_->binary_values() ? chunk : base64(chunk.data(), chunk.size());
    call_store([&] { kvs_->put(key(rank(), receiver, number++), value, deadline); });
  };
  send();
  for (std::size_t at = first_bytes; at < size_bytes; at += chunk.size()) {
    chunk.assign(static_cast<const char*>(payload) + at, std::min(chunk_bytes(), size_bytes - at));
    send();
  }
}

std::string KvsBootstrap::get_chunk(int from, int receiver, std::size_t chunk,
                                    std::size_t expected_bytes, const Deadline& deadline) {
  health().check();
  if (deadline.passed())
    health().give_up(to_string(call_), from);
  const auto value =
      call_store([&] { return kvs_->get(from, key(from, receiver, chunk), deadline); });
  if (!value) {
    health().await_cause(from);
    disagree(from, "put no value for this call: it is in another call");
  }
  const auto bytes = kvs_->binary_values() ? value : from_base64(*value);
  // A first chunk of an unexpected length is accepted here: its header tells the reason.
  if (!bytes || (bytes->size() != expected_bytes && (chunk > 0 || bytes->size() < header_bytes)))
    disagree(from, "put a malformed value");
  return *bytes;
}

void KvsBootstrap::check_header(int from, int receiver, const std::string& chunk,
                                std::size_t size_bytes) const {
  Header header{};
  std::memcpy(&header, chunk.data(), header_bytes);
  if (header.call != static_cast<std::uint32_t>(call_))
    disagree(from, std::string("is in ") + to_string(static_cast<Call>(header.call)));
  if (header.payload_bytes != size_bytes)
    disagree(from, "passes " + std::to_string(header.payload_bytes) + " bytes, this PE " +
                       std::to_string(size_bytes));
  if (header.receiver != static_cast<std::uint32_t>(receiver) ||
      chunk.size() != header_bytes + std::min(size_bytes, chunk_bytes() - header_bytes))
    disagree(from, "put a malformed value");
}

void KvsBootstrap::get(int from, int receiver, void* payload, std::size_t size_bytes,
                       const Deadline& deadline) {
  const std::size_t first_bytes = std::min(size_bytes, chunk_bytes() - header_bytes);
  const std::string first = get_chunk(from, receiver, 0, header_bytes + first_bytes, deadline);
  check_header(from, receiver, first, size_bytes);
  copy_bytes(payload, first.data() + header_bytes, first_bytes);
  std::size_t number = 1;
  for (std::size_t at = first_bytes; at < size_bytes;) {
    const std::size_t bytes = std::min(chunk_bytes(), size_bytes - at);
    const std::string chunk = get_chunk(from, receiver, number++, bytes, deadline);
    copy_bytes(static_cast<std::byte*>(payload) + at, chunk.data(), bytes);
    at += bytes;
  }
}

void KvsBootstrap::allgather(const void* send, void* receive, std::size_t bytes_per_rank,
                             const Deadline& deadline) {
  begin(Call::allgather);
  std::byte* own_block = block(receive, rank(), bytes_per_rank);
  if (own_block != send)
    copy_bytes(own_block, send, bytes_per_rank);
  if (size() == 1)
    return;
  put(everyone, own_block, bytes_per_rank, deadline);
  fence(deadline);
  // Each PE begins with its neighbour, so that they do not all ask for the same value at once.
  for (int step = 1; step < size(); ++step) {
    const int from = (rank() + step) % size();
    get(from, everyone, block(receive, from, bytes_per_rank), bytes_per_rank, deadline);
  }
}

void KvsBootstrap::gather(const void* send, void* receive, std::size_t bytes_per_rank,
                          const Deadline& deadline) {
  begin(Call::gather);
  if (rank() != 0)
    put(0, send, bytes_per_rank, deadline);
  else if (receive != send)
    copy_bytes(receive, send, bytes_per_rank);
  if (size() > 1)
    fence(deadline);
  for (int from = 1; rank() == 0 && from < size(); ++from)
    get(from, 0, block(receive, from, bytes_per_rank), bytes_per_rank, deadline);
}

void KvsBootstrap::alltoall(const void* send, void* receive, std::size_t bytes_per_rank,
                            const Deadline& deadline) {
  begin(Call::alltoall);
  copy_bytes(block(receive, rank(), bytes_per_rank), block(send, rank(), bytes_per_rank),
             bytes_per_rank);
  for (int step = 1; step < size(); ++step) {
    const int to = (rank() + step) % size();
    put(to, block(send, to, bytes_per_rank), bytes_per_rank, deadline);
  }
  if (size() > 1)
    fence(deadline);
  for (int step = 1; step < size(); ++step) {
    const int from = (rank() + step) % size();
    get(from, rank(), block(receive, from, bytes_per_rank), bytes_per_rank, deadline);
  }
}

void KvsBootstrap::barrier(const Deadline& deadline) {
  begin(Call::barrier);
  if (size() == 1)
    return;
  if (kvs_->fence_synchronizes()) {
    fence(deadline);
    return;
  }
  // PE 0 gets a value from every other PE, then every other PE gets one from PE 0.
  if (rank() != 0)
    put(0, nullptr, 0, deadline);
  fence(deadline);
  if (rank() == 0) {
    for (int from = 1; from < size(); ++from)
      get(from, 0, nullptr, 0, deadline);
    put(everyone, nullptr, 0, deadline);
  }
  fence(deadline);
  if (rank() != 0)
    get(0, everyone, nullptr, 0, deadline);
}

void KvsBootstrap::broadcast(void* data, std::size_t size_bytes, int root,
                             const Deadline& deadline) {
  begin(Call::broadcast);
  if (size() == 1)
    return;
  if (rank() == root)
    put(everyone, data, size_bytes, deadline);
  fence(deadline);
  if (rank() != root)
    get(root, everyone, data, size_bytes, deadline);
}

} // namespace

std::unique_ptr<Bootstrap> make_kvs_bootstrap(std::unique_ptr<KeyValueStore> kvs,
                                              const Deadline& deadline) {
  return std::make_unique<KvsBootstrap>(std::move(kvs), deadline);
}

namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t no_digit = 0xFF;

constexpr std::array<std::uint8_t, 256> digits = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(no_digit);
  for (std::size_t at = 0; at < alphabet.size(); ++at)
    table[static_cast<std::uint8_t>(alphabet[at])] = static_cast<std::uint8_t>(at);
  return table;
}();

} // namespace

std::string base64(const void* data, std::size_t size_bytes) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  std::string text;
  text.reserve(base64_length(size_bytes));
  std::uint32_t bits = 0;
  int count = 0;
  for (std::size_t at = 0; at < size_bytes; ++at) {
    bits = bits << 8 | bytes[at];
    for (count += 8; count >= 6; count -= 6)
      text += alphabet[bits >> (count - 6) & 63];
  }
  if (count > 0)
    text += alphabet[bits << (6 - count) & 63];
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 == 1)
    return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const std::uint8_t digit = digits[static_cast<std::uint8_t>(letter)];
    if (digit == no_digit)
      return std::nullopt;
    bits = bits << 6 | digit;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 255);
    }
  }
  const bool left_over = (bits & ((1U << count) - 1)) != 0;
  return left_over ? std::nullopt : std::optional(bytes);
}

} // namespace shmemctl
