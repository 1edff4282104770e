// PMIx, opened at run time. Only functions that every version exports are used, and structures are
// filled here: the header's macros call functions that some versions do not export.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "src/base/dynamic_library.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/bootstrap/blocking_calls.h"
#include "src/runtime/bootstrap/kvs_bootstrap.h"
#include "src/runtime/bootstrap/pmix_abi.h"
#include "src/runtime/bootstrap/select.h"

namespace shmemctl {

namespace {

constexpr std::size_t value_bytes = std::size_t{1} << 20;
constexpr std::uint32_t max_pmix_size = 1 << 20;
/// How long a process that ends with an error waits in its last fence.
constexpr std::chrono::seconds last_fence_time{1};
constexpr const char* without_pmix =
    "install libpmix2 or name it with SHMEMCTL_PMIX_LIBRARY, or choose another SHMEMCTL_BOOTSTRAP";

/// The functions; plain pointers into a library that stays loaded.
struct PmixLibrary {
  std::string file;
  pmix::Init* init = nullptr;
  pmix::Finalize* finalize = nullptr;
  pmix::Abort* abort = nullptr;
  pmix::Put* put = nullptr;
  pmix::Commit* commit = nullptr;
  pmix::Fence* fence = nullptr;
  pmix::Get* get = nullptr;
  pmix::ErrorString* error_string = nullptr;
};

template <class Function>
void load(const DynamicLibrary& library, Function*& function, const char* symbol) {
  function = library.function<Function>(symbol);
  if (function == nullptr)
    throw Error(ExitCode::unavailable, library.file(), "use",
                std::string("missing symbol ") + symbol, without_pmix);
}

/// Throws Error if the version is below 3 (values are shorter there) or unknown. Its text is, for
/// example, "OpenPMIx 4.2.2 ..." or "PMIx 3.1.5".
void require_version(const DynamicLibrary& library) {
  pmix::GetVersion* get_version = nullptr;
  load(library, get_version, "PMIx_Get_version");
  const std::string text = get_version();
  const std::size_t digit = text.find_first_of("0123456789");
  const auto major = digit == std::string::npos
                         ? std::nullopt
                         : parse_integer(text.substr(digit, text.find('.', digit) - digit));
  if (!major || *major < 3)
    throw Error(ExitCode::unavailable, library.file(), "use",
                "it is \"" + printable(text, 60) + "\"; version 3 or later is required",
                without_pmix);
}

PmixLibrary open_library(const std::string& name) {
  std::string why;
  const auto library = DynamicLibrary::open({name}, &why, {.stay_loaded = true});
  if (!library)
    throw Error(ExitCode::unavailable, name, "open", why, without_pmix);
  require_version(*library);
  PmixLibrary functions;
  functions.file = library->file();
  load(*library, functions.init, "PMIx_Init");
  load(*library, functions.finalize, "PMIx_Finalize");
  load(*library, functions.abort, "PMIx_Abort");
  load(*library, functions.put, "PMIx_Put");
  load(*library, functions.commit, "PMIx_Commit");
  load(*library, functions.fence, "PMIx_Fence");
  load(*library, functions.get, "PMIx_Get");
  load(*library, functions.error_string, "PMIx_Error_string");
  return functions;
}

/// Frees a value that the library allocated with malloc.
struct FreeValue {
  void operator()(pmix::Value* value) const {
    if (value->type == pmix::type_byte_object)
      std::free(value->data.bytes.bytes);
    std::free(value);
  }
};
using OwnedValue = std::unique_ptr<pmix::Value, FreeValue>;

/// PMIx keeps the keys of a process while another library of that process uses it, so each opening
/// uses different keys. The count is global, like the library's state.
unsigned count_opening() {
  static std::atomic<unsigned> openings{0};
  return openings.fetch_add(1, std::memory_order_relaxed);
}

/// PMIx calls have no reliable timeout (PMIX_TIMEOUT is up to the launcher), so a thread makes
/// them. A call owns what it touches, because it may be abandoned.
class PmixKvs final : public KeyValueStore {
public:
  PmixKvs(PmixLibrary library, const Deadline& deadline);
  ~PmixKvs() override;

  const char* name() const override { return "pmix"; }
  int rank() const override { return static_cast<int>(me_.rank); }
  int size() const override { return static_cast<int>(size_); }
  std::size_t max_key_bytes() const override { return pmix::max_key; }
  std::size_t max_value_bytes() const override { return value_bytes; }
  std::string key_prefix() const override { return "shmemctl-" + std::to_string(opening_) + "-"; }
  bool binary_values() const override { return true; }

  void put(const std::string& key, const std::string& value, const Deadline& deadline) override;
  void fence(const Deadline& deadline) override;
  std::optional<std::string> get(int rank, const std::string& key,
                                 const Deadline& deadline) override;
  void abort(ExitCode code, const std::string& message) noexcept override;
  void finish(const Deadline& deadline) override {
    left_ = true;
    run("PMIx_Finalize", -1, deadline,
        [finalize = library_.finalize] { return finalize(nullptr, 0); });
  }
  void leave(const Deadline& deadline) noexcept override;

private:
  using Call = std::function<pmix::Status()>;
  pmix::Status status_of(const char* step, int peer, const Deadline& deadline, Call call);
  /// Runs the call, and throws if the status is not success.
  void run(const char* step, int peer, const Deadline& deadline, Call call) {
    require_success(status_of(step, peer, deadline, std::move(call)), step);
  }
  void require_success(pmix::Status status, const char* step) const;
  /// Null if there is no such key.
  OwnedValue get_value(pmix::Rank rank, const std::string& key, const Deadline& deadline);
  void read_size(const Deadline& deadline);
  /// PMIx_Fence. The calls of all processes must agree on `collect`, or the fence fails.
  Call fence_call(bool collect) const;
  void take_part_in_last_fence(const Deadline& deadline);

  PmixLibrary library_;
  BlockingCalls calls_;
  std::shared_ptr<const pmix::Status> last_status_; ///< of the last call, which writes it
  bool in_fence_ = false; ///< that call is a PMIx_Fence that has failed or not returned
  bool left_ = false;     ///< the server was told that this process leaves or aborts
  pmix::Process me_{};
  std::uint32_t size_ = 0;
  unsigned opening_ = count_opening();
};

/// The job's health, for a wait that is known to be for one peer: the timeout error names it.
class HealthOfPeer final : public JobHealth {
public:
  HealthOfPeer(JobHealth& whole, int peer) : whole_(whole), peer_(peer) {}
  void check() const override { whole_.check(); }
  void give_up(const std::string& step, int) override { whole_.give_up(step, peer_); }

private:
  JobHealth& whole_;
  int peer_;
};

pmix::Status PmixKvs::status_of(const char* step, int peer, const Deadline& deadline, Call call) {
  const auto status = std::make_shared<pmix::Status>(pmix::success);
  last_status_ = status;
  HealthOfPeer health_of_peer(health(), peer);
  health().waiting_for(peer);
  calls_.run(
      step, [call = std::move(call), status] { *status = call(); }, deadline, health_of_peer);
  if (*status == pmix::error_timeout)
    health_of_peer.give_up(step, peer);
  health().waiting_for(-1);
  return *status;
}

void PmixKvs::require_success(pmix::Status status, const char* step) const {
  if (status == pmix::success)
    return;
  const char* words = library_.error_string(status);
  const std::string text = (words != nullptr ? printable(words, 60) : "error") + std::string(" (") +
                           std::to_string(status) + ")";
  if (status == pmix::error_partial_success) // status of a fence in which not all took part
    throw Error(ExitCode::unavailable, "PMIx", std::string("complete ") + step,
                "lost a PE: " + text, "check the output of the launcher and of the other PEs");
  if (status == pmix::error_lost_connection || status == pmix::error_unreachable)
    throw Error(ExitCode::unavailable, "PMIx", std::string("complete ") + step,
                "no reply from a PMIx server: " + text,
                "check the output of the launcher: it may have exited, or may not support PMIx "
                "(srun needs --mpi=pmix)");
  throw Error(ExitCode::unavailable, "PMIx", std::string("complete ") + step, text,
              "check the output of the launcher and of the other PEs");
}

PmixKvs::PmixKvs(PmixLibrary library, const Deadline& deadline) : library_(std::move(library)) {
  const auto me = std::make_shared<pmix::Process>();
  run("PMIx_Init", -1, deadline, [init = library_.init, me] { return init(me.get(), nullptr, 0); });
  me_ = *me;
  read_size(deadline);
  if (size_ < 1 || size_ > max_pmix_size || me_.rank >= size_)
    throw Error(ExitCode::unavailable, "PMIx server", "",
                "it reports rank " + std::to_string(me_.rank) + " of " + std::to_string(size_),
                "check the output of the launcher");
}

void PmixKvs::read_size(const Deadline& deadline) {
  const OwnedValue value = get_value(pmix::rank_wildcard, pmix::key_job_size, deadline);
  if (!value || value->type != pmix::type_uint32)
    throw Error(ExitCode::unavailable, "PMIx server", "get the size of the job",
                "no value returned", "choose another SHMEMCTL_BOOTSTRAP");
  size_ = value->data.uint32;
}

void PmixKvs::put(const std::string& key, const std::string& value, const Deadline& deadline) {
  run("PMIx_Put", -1, deadline, [put = library_.put, key, bytes = value]() mutable {
    pmix::Value object{};
    object.type = pmix::type_byte_object;
    object.data.bytes = {bytes.data(), bytes.size()};
    return put(pmix::scope_global, key.c_str(), &object);
  });
}

PmixKvs::Call PmixKvs::fence_call(bool collect) const {
  return [fence = library_.fence, collect] {
    pmix::Info info{};
    std::strncpy(info.key, pmix::key_collect_data, pmix::max_key);
    info.value.type = pmix::type_bool;
    info.value.data.flag = collect;
    return fence(nullptr, 0, &info, 1);
  };
}

void PmixKvs::fence(const Deadline& deadline) {
  run("PMIx_Commit", -1, deadline, library_.commit);
  in_fence_ = true;
  run("PMIx_Fence", -1, deadline, fence_call(true));
  in_fence_ = false;
}

/// If a process ends while others are in PMIx_Fence, the server of their node completes that fence
/// without it. OpenPMIx up to 6.1 completes it once more, with freed memory, for each process that
/// ends before the first completion has run: mpirun crashes, or hangs after the job. When a job
/// fails, its processes end almost together, so no process may end while a fence is open.
PmixKvs::~PmixKvs() {
  if (left_)
    return;
  try {
    take_part_in_last_fence(Deadline::after(last_fence_time));
  } catch (const std::exception& failure) {
    log(LogLevel::debug, "bootstrap", failure.what());
  }
}

/// The last fence of a job is the first one in which a process that ends takes part. As that
/// process does not collect and the others do, the fence fails on all of them, so that none enters
/// a further one. It succeeds if all processes end.
void PmixKvs::take_part_in_last_fence(const Deadline& deadline) {
  if (in_fence_) {
    if (calls_.abandoned() && !calls_.await_abandoned(deadline))
      return;
    if (*last_status_ != pmix::success)
      return;
  }
  BlockingCalls own_thread; // the thread of `calls_` may hang in a call
  JobHealth nobody;         // the job has failed already
  own_thread.run(
      "PMIx_Fence", [call = fence_call(false)] { call(); }, deadline, nobody);
}

OwnedValue PmixKvs::get_value(pmix::Rank rank, const std::string& key, const Deadline& deadline) {
  const auto value = std::make_shared<OwnedValue>();
  pmix::Process whose = me_;
  whose.rank = rank;
  const int peer = rank == pmix::rank_wildcard ? -1 : static_cast<int>(rank);
  const pmix::Status status =
      status_of("PMIx_Get", peer, deadline, [get = library_.get, whose, key, value] {
        pmix::Value* got = nullptr;
        const pmix::Status result = get(&whose, key.c_str(), nullptr, 0, &got);
        value->reset(got);
        return result;
      });
  if (status == pmix::error_not_found)
    return nullptr;
  require_success(status, "PMIx_Get");
  return std::move(*value);
}

std::optional<std::string> PmixKvs::get(int rank, const std::string& key,
                                        const Deadline& deadline) {
  const OwnedValue value = get_value(static_cast<pmix::Rank>(rank), key, deadline);
  if (!value || value->type != pmix::type_byte_object || value->data.bytes.bytes == nullptr)
    return std::nullopt;
  return std::string(value->data.bytes.bytes, value->data.bytes.size);
}

void PmixKvs::abort(ExitCode code, const std::string& message) noexcept {
  left_ = true;
  try {
    BlockingCalls own_thread; // the thread of `calls_` may hang in a call
    JobHealth nobody;         // the job is failing already
    own_thread.run(
        "PMIx_Abort",
        [abort = library_.abort, code, message] {
          abort(static_cast<int>(code), message.c_str(), nullptr, 0);
        },
        Deadline::after(std::chrono::seconds(2)), nobody);
  } catch (const std::exception& failure) {
    log(LogLevel::debug, "bootstrap", failure.what());
  }
}

void PmixKvs::leave(const Deadline& deadline) noexcept {
  left_ = true;
  try {
    BlockingCalls own_thread; // the thread of `calls_` may hang in a call
    JobHealth nobody;         // the job is ending already
    own_thread.run(
        "PMIx_Finalize", [finalize = library_.finalize] { finalize(nullptr, 0); }, deadline,
        nobody);
  } catch (const std::exception& failure) {
    log(LogLevel::debug, "bootstrap", failure.what());
  }
}

} // namespace

std::unique_ptr<Bootstrap> open_pmix(BootstrapRequest& request, const Deadline& deadline) {
  // If PMIX_NAMESPACE is not set, newer libraries start as a job of one process (a singleton).
  if (request.environment.find("PMIX_NAMESPACE") == request.environment.end())
    throw Error(ExitCode::unavailable, "PMIX_NAMESPACE", "",
                "not set: this process was not started by a launcher with PMIx",
                "start the job with mpirun or srun --mpi=pmix, or set SHMEMCTL_BOOTSTRAP=auto");
  auto kvs =
      std::make_unique<PmixKvs>(open_library(request.options->text("PMIX_LIBRARY")), deadline);
  return make_kvs_bootstrap(std::move(kvs), deadline);
}

} // namespace shmemctl
