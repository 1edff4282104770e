// The members of a Runtime and the functions of its phases.
#pragma once

#include <optional>

#include "src/runtime/buffers.h"
#include "src/runtime/gpu/gpu_runtime.h"
#include "src/runtime/memory/local_peers.h"
#include "src/runtime/memory/symmetric_region.h"
#include "src/runtime/proxy/proxy.h"
#include "src/runtime/runtime.h"
#include "src/runtime/state_block.h"
#include "src/runtime/transport_choice.h"

namespace shmemctl {

/// The pairs of PEs that neither a transport nor those before it in the list reach. The same on all
/// PEs.
struct ReachGap {
  std::uint64_t pairs = 0;
  std::string reason; ///< why the first of these pairs is not reached
};

class GpuDirectTransport;
class StagedTransport;

struct Runtime::Impl {
  explicit Impl(RuntimeRequest request);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Runs all phases; on an Error undoes them and throws it with PE, host and phase.
  void start();
  /// A deadline for one step from now on.
  Deadline deadline() const { return Deadline::after(std::chrono::duration<double>(timeout_s)); }
  std::size_t count() const { return static_cast<std::size_t>(bootstrap->size()); }
  /// By PE: the transport in use; nullptr: none. Includes the redirection of load/store atomics
  /// through a NIC (RoutedAtomics).
  std::vector<Transport*> transports_by_pe() const;
  /// A barrier of the whole job: over RMA if all PEs are reachable, else over the bootstrap; in a
  /// degraded job, of the survivors.
  void barrier();
  /// Publishes the heap's new size to transports and state after it has grown. The state has its
  /// own lock, because teams change it too, without holding `mutex`.
  void refresh_heap();
  /// The error with PE, host and phase.
  Error named(const Error& error) const;
  /// Announces the error with PE, host and phase, and throws it. If another PE's failure is already
  /// known, throws that failure instead.
  [[noreturn]] void raise(const Error& error);
  /// Announces and throws the error that this PE was started with (RuntimeRequest::problem), or
  /// that hold_problem() has stored.
  [[noreturn]] void raise_problem();
  /// Runs `step`, which must not be collective. If it throws an Error after the bootstrap and
  /// before the failure detector runs, the Error is stored for raise_problem(): if it were thrown
  /// at once, the other PEs would see a lost PE and could not learn the cause.
  template <class Step>
  void hold_problem(Step&& step) {
    try {
      step();
    } catch (const Error& error) {
      if (!bootstrap || failure_detector)
        throw;
      if (request.problem)
        return;
      request.problem = named(error);
      problem_phase = phases.current();
    }
  }
  /// Runs `step`; if it throws an Error, raises it (raise()).
  template <class Step>
  void announcing(Step&& step) {
    try {
      step();
    } catch (const Error& error) {
      raise(error);
    }
  }

  RuntimeRequest request;
  const Options& options;
  double timeout_s;
  std::string launcher;
  std::string problem_phase; ///< phase in which RuntimeRequest::problem arose

  // What the phases create, mostly in their order; destroyed in reverse.
  HostIdentity identity;
  CpuSet cpus_at_start;                        ///< CPUs of the thread that made the runtime
  std::unique_ptr<HeapBacking> static_backing; ///< backing of `static_data`
  std::unique_ptr<StaticDataRegion> static_data;
  /// The bootstrap of the launched job, if this world is one of several worlds in it.
  std::unique_ptr<Bootstrap> parent_bootstrap;
  std::unique_ptr<Bootstrap> bootstrap;
  Placement placement;
  Secret secret{};
  std::unique_ptr<FailureDetector> failure_detector;
  std::unique_ptr<Failure> ended_by; ///< the job's failure, for undo_bootstrap()
  JobHealth nobody;
  Node node;
  MappingRequest wanted_mapping;
  Mapping mapping;
  std::vector<int> shared_pes; ///< PEs whose memory is mapped here, by slot, ascending
  std::unique_ptr<LocalPeers> local_peers;
  std::unique_ptr<HeapBacking> backing; ///< backing of the three regions below
  std::unique_ptr<SymmetricRegion> internal;
  std::unique_ptr<SymmetricRegion> staging; ///< buffers through which `staged` sends
  std::unique_ptr<SymmetricRegion> heap_region;
  std::unique_ptr<SymmetricHeap> heap;
  std::vector<TransportEntry> transports;
  std::vector<int> transport_index_by_pe;
  bool all_reachable = true;
  RemoteChoice remote_choice;
  /// By transport: its replacement if atomics must go through a NIC, else nullptr.
  std::vector<std::unique_ptr<Transport>> routed;
  std::string no_gpu_reason = "the command uses no GPU"; ///< "" if the job has a GPU
  std::unique_ptr<GpuRuntime> gpu;                       ///< nullptr: see no_gpu_reason
  /// For operations on GPU memory that this PE's host starts.
  std::vector<std::unique_ptr<Transport>> gpu_transports;
  StagedTransport* staged = nullptr; ///< one of `gpu_transports`; nullptr if it is not needed
  /// One of `gpu_transports`, on top of a network transport; nullptr if NICs do not access GPU
  /// memory.
  GpuDirectTransport* gpu_direct = nullptr;
  std::optional<std::size_t> gpu_network; ///< index in `transports` of that network transport
  std::string gpu_memory_path;            ///< as in DeviceNetworkInputs
  /// The transport to whose queues kernels post operations on GPU memory; nullptr if they cannot,
  /// or need no network. ibgda_gpu_reason says why they cannot, or else how the NIC accesses GPU
  /// memory; "" if they need no network.
  ibgda::IbgdaTransport* ibgda_gpu = nullptr;
  std::string ibgda_gpu_reason;
  std::unique_ptr<Proxy> proxy; ///< nullptr until a proxy is requested
  std::unique_ptr<Rma> rma;
  std::unique_ptr<Buffers> buffers;
  std::unique_ptr<StateBlock> state;
  std::unique_ptr<Teams> teams;
  std::unique_ptr<Collectives> collectives;
  std::unique_ptr<DegradedJob> degraded; ///< nullptr: the loss of a PE ends the job
  TeamId rail_team = invalid_team;
  std::mutex mutex;           ///< guards allocate(), free(), proxy(), gather functions and GpuHooks
  std::mutex bootstrap_mutex; ///< serialises calls of the bootstraps after the phases
  Phases phases;              ///< last: its undo steps use everything above
  TransportSetup transport_setup();

private:
  void run(const char* name, void (Impl::*enter)(), void (Impl::*undo)() = nullptr);

  void enter_options();
  void enter_static_data();
  void undo_static_data();
  void enter_bootstrap();
  void undo_bootstrap();
  void enter_hosts();
  void enter_failure_detector();
  void undo_failure_detector();
  void enter_placement();
  void enter_devices();
  void enter_heap();
  void undo_heap();
  void enter_transports();
  void undo_transports();
  void enter_transport_map();
  // Collective: the functions from ask_reach() to find_remote_advice().
  void ask_reach(TransportEntry& entry);
  TransportEntry try_transport(const std::string& name);
  TransportEntry choose_remote();
  ReachGap gap_of(const TransportEntry& entry);
  std::string find_remote_advice();
  /// Assigns the transport at this index to the PEs that it reaches and that have none yet.
  void assign_transport(std::size_t index);
  void enter_nics();
  void enter_connections();
  void route_atomics();
  void enter_gpu();
  void undo_gpu();
  std::unique_ptr<OpenedGpu> open_my_gpu(std::string& why) const;
  GpuHooks gpu_hooks();
  /// By PE: the transport for operations on GPU memory that this PE's host initiates; nullptr:
  /// none. Collective.
  std::vector<Transport*> make_gpu_transports();
  /// Whether any PE cannot map the GPU memory of some PE that it reaches, or DEVICE_PATH requires
  /// a network; false with DEVICE_PATH=p2p. Collective.
  bool need_gpu_network(const RegionView& heap_view);
  /// Collective: decides whether NICs access the GPUs' memory, and which transport's NICs.
  void choose_gpu_network(const RegionView& heap_view);
  /// Collective: makes `staged`.
  void make_staged();
  void make_gpu_direct();
  /// Collective: decides whether kernels post operations on GPU memory to an HCA's queues.
  void choose_ibgda_gpu();
  std::string why_no_ibgda_gpu(ibgda::IbgdaTransport& ibgda);
  /// By PE: the transport that carries staged transfers.
  std::vector<Transport*> staging_transports() const;
  ibgda::IbgdaTransport* wanted_ibgda() const;
  DeviceMemoryUser& gpu_memory_user() const;
  DeviceNetworkInputs gpu_network_inputs();
  /// The transports to which a region is published.
  std::vector<Transport*> transports_of(int region) const;
  void make_buffers();
  void enter_state();
  void undo_state();
  void enter_teams();
  void undo_teams();
  void enter_barrier();

  void gather_hosts();
  RegionView view(int region, const SymmetricRegion& part) const;
  RegionView static_view() const;
  /// Collective: registers the region with this PE's transports, exchanges the keys, then sets the
  /// region in `rma` and `state`.
  void publish(const RegionView& region);
  Agreement make_agreement();
  void require_one_program();
  HostBackingOptions backing_options() const;
  int choose_heap_node() const;
  void make_rail_teams();
  [[noreturn]] void raise_unreachable(int pe) const;
};

} // namespace shmemctl
