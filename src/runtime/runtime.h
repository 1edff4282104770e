// The runtime of one PE: everything that initialisation sets up, in one object.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/abi/device_state.h"
#include "src/base/archive.h"
#include "src/base/error.h"
#include "src/model/topo/mapping/mapping.h"
#include "src/model/topo/node.h"
#include "src/runtime/bootstrap/select.h"
#include "src/runtime/collectives.h"
#include "src/runtime/degraded_job.h"
#include "src/runtime/failure_detector.h"
#include "src/runtime/identity.h"
#include "src/runtime/memory/symmetric_heap.h"
#include "src/runtime/phases.h"
#include "src/runtime/rma.h"
#include "src/runtime/teams.h"

namespace shmemctl {

class Buffers;
class PeGpu;
struct RemoteChoice;
class WordAtomics;

/// Whether a job uses GPUs: never; only if all its PEs have one; or always, which is an Error if
/// some PE has none. Must be the same on all PEs.
enum class GpuUse { none, if_available, required };

struct RuntimeRequest {
  const Options* options = nullptr; ///< must outlive the runtime
  Environment environment;
  BootstrapRequest bootstrap;     ///< its options and environment are replaced by the above
  bool share_static_data = false; ///< OpenSHMEM programs: globals are symmetric
  /// true: the bring-up fails if no transport reaches some pair of PEs; false: that is only visible
  /// in transport_index_by_pe() and remote_choice().
  bool require_reach = true;
  GpuUse gpu = GpuUse::none;
  /// Kernels of this binary will be launched: the bring-up fails if the job uses GPUs and some
  /// GPU's driver cannot run them. Must be the same on all PEs.
  bool kernels = false;
  /// CUDA's number of this PE's device; -1: the one that GPUS names, or else the machine's devices
  /// are assigned to its PEs in turn.
  int gpu_device = -1;
  /// Whether the heap of a GPU, if it is mapped in chunks, may grow beyond the default of
  /// SYMMETRIC_SIZE and beyond NVSHMEM's variable of that name: for programs written for NVSHMEM.
  bool gpu_heap_grows = false;
  /// For tests, whose GPUs run no kernels; nullptr: atomics are executed by a kernel.
  std::shared_ptr<WordAtomics> word_atomics = nullptr;
  /// For tests; if empty, the function make_transport() is used.
  std::function<std::unique_ptr<Transport>(const std::string& name, const TransportSetup& setup)>
      make_transport;
  /// Called before each phase (for a watchdog or a progress line).
  std::function<void(const std::string&)> announce;
  /// Called with the failure detector once it runs, and with nullptr before it is destroyed: for
  /// code that must tell the other PEs why this process exits. Runs on the thread that owns the
  /// runtime.
  std::function<void(FailureDetector*)> failure_detector_changed;
  /// Called once the hosts of all PEs are known: so far only the bootstrap connects the PEs.
  std::function<void(const Placement&)> hosts_known;
  /// For a job whose outputs end up in one place; either set on all its PEs or on none. One PE
  /// calls it (on any thread) to print the error that ends the job, before the Error is thrown;
  /// Error::printed() is then true. Empty: the caller prints, on every PE.
  std::function<void(const Error&)> print_error;
  /// This PE has failed before its bring-up: it joins the job only to notify the others, and then
  /// throws this error. The others learn of it as soon as the failure detector has started.
  std::optional<Error> problem;
};

/// One transport and its reach from this PE to every PE.
struct TransportEntry {
  std::unique_ptr<Transport> transport;
  std::vector<Reach> reach;      ///< by PE
  std::vector<std::string> info; ///< by PE: the result of its local_info()
};

class Proxy;

class Runtime {
public:
  /// Collective: runs the phases. If one fails, undoes those before it and throws Error, with PE,
  /// host and phase of the job's first failure (of this PE's if no failure detector runs yet).
  explicit Runtime(RuntimeRequest request);
  /// If finish() was not called, leaves at once without waiting for other PEs, which then see a
  /// lost PE unless fail() was called.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Collective: executes a barrier, says goodbye, and undoes all phases in reverse. Throws Error.
  void finish();
  /// Notifies the other PEs that this PE fails; the caller then destroys the runtime.
  /// @return whether a PE has printed the job's failure (RuntimeRequest::print_error), so that the
  ///         caller need not print `error`
  bool fail(const Error& error) noexcept;
  /// Tells the launcher, if it has an interface for it, that this process will exit without
  /// finish(); no effect if another thread uses the bootstrap. Takes at most 2 s. Thread safe.
  void leave() noexcept;

  int pe() const;
  int n_pes() const;
  const Placement& placement() const;
  const Bootstrap& bootstrap() const;
  const std::string& launcher() const; ///< "run", "mpirun", "srun", "none", ...
  const std::vector<PhaseTime>& phase_times() const;
  const std::vector<TransportEntry>& transports() const;
  /// By PE: index into transports() of the one in use; -1: none.
  const std::vector<int>& transport_index_by_pe() const;
  /// How the transport to other nodes was chosen.
  const RemoteChoice& remote_choice() const;
  const State& state() const; ///< StateBlock::master()
  /// The setup from which transports of this job are made; its options and health live as long as
  /// the runtime.
  TransportSetup transport_setup();
  FailureDetector& failure_detector();

  Rma& rma();
  Teams& teams();
  Collectives& collectives();
  SymmetricHeap& heap();
  /// The proxy whose threads execute requests of this process's threads; kernels have one of their
  /// own (docs/explanation/proxy.md). The first call starts it, and throws Error if that fails;
  /// finish() drains and stops it. Thread safe.
  Proxy& proxy();
  /// This PE's GPU; nullptr if the job uses none: see no_gpu_reason().
  PeGpu* gpu();
  /// Why the job uses no GPU, as one clause; "" if it does.
  const std::string& no_gpu_reason() const;
  /// Registered memory outside of the heap.
  Buffers& buffers();
  /// heap().allocate()/free() with the barrier that OpenSHMEM requires.
  void* allocate(std::size_t size_bytes, std::size_t alignment_bytes = 64);
  void free(void* address);

  /// With INIT_MODE=low-latency the team of the PEs that have this PE's local rank, one on each
  /// node; otherwise invalid_team.
  TeamId rail_team() const;
  /// The node's mapping, by the rules that `topo` shows; empty on a node without NICs.
  const Mapping& nics() const;
  const Node& node() const;

  /// Gathers one text of each PE at every PE (reports).
  std::vector<std::string> gather_text(const std::string& text);
  /// Gathers the texts on PE 0 only; returns nothing on other PEs. For texts that grow with the
  /// number of PEs.
  std::vector<std::string> gather_text_on_first(const std::string& text);
  /// Gathers one serialisable value of each PE at every PE. Not usable after allow_loss(), since a
  /// lost PE has no value. Throws malformed_message().
  /// @param what names the value in that error: "interference"
  template <class T>
  std::vector<T> gather_values(const T& own, const std::string& what) {
    const std::vector<std::string> messages = gather_text(to_bytes(own));
    std::vector<T> values;
    for (std::size_t pe = 0; pe < messages.size(); ++pe)
      values.push_back(value_of_pe<T>(messages[pe], pe, what));
    return values;
  }
  /// True with INIT_MODE=per-local-rank: this world is one of several worlds of the launched job.
  /// bootstrap() is then the bootstrap of the whole job, whose PE 0 reports for all worlds.
  bool is_part_of_job() const;
  /// As gather_text(), but from all PEs of the launched job, by their rank in it.
  std::vector<std::string> gather_text_of_job(const std::string& text);

  /// Collective, called at most once: from now on the job continues without PEs that die, are
  /// stopped or do not arrive, except PE 0 (src/runtime/degraded_job.h). After a loss, only
  /// barrier(), gather_text(), gather_text_on_first(), finish(), and without CHECK free() and (if
  /// the heap need not grow) allocate() still work among the survivors. Throws Error: usage if the
  /// job has more than DegradedJob::max_pes PEs; unavailable if the heap is full.
  void allow_loss();
  /// Collective: a barrier of all remaining PEs. If all PEs reach each other, also completes puts.
  void barrier();
  /// On PE 0 the PEs that the job has lost; empty on other PEs, and without allow_loss().
  std::vector<LostPe> lost() const;
  /// Whether the job has lost PE `pe`, or any PE; the same on all PEs after barrier().
  bool is_lost(int pe) const;
  bool any_pe_lost() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether a launcher started this process, so that the outputs of all PEs end up in one place. If
/// a job is started by hand, each PE may have its own terminal, and therefore prints by itself.
bool has_common_output(const Environment& environment);

/// For a process that fails before its bring-up, while the others may fail in the same way or wait
/// for it: joins the job, in steps of at most 10 s each, only to announce the error. Returns false
/// at once if the job has only one PE or no common output (has_common_output()).
/// @param command_line as for Options; an invalid bootstrap is replaced by the automatic one
/// @param print_error as in RuntimeRequest
/// @return whether a PE has printed this error
bool share_problem(const Environment& environment, std::map<std::string, std::string> command_line,
                   const Error& problem, const ErrorPrinter& print_error);

/// Bytes that this PE's transports have moved so far, by their own counters: for each transport one
/// element for each port that it uses, even if no traffic has gone through it.
std::vector<NicTraffic> traffic_of(Runtime& runtime);

/// The difference since `before`.
std::vector<NicTraffic> traffic_since(const std::vector<NicTraffic>& before,
                                      std::vector<NicTraffic> now);

} // namespace shmemctl
