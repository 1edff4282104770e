#include "src/instruments/bench/pinning.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <sched.h>
#include <set>
#include <utility>

#include "src/base/text.h"

namespace shmemctl::bench {

namespace {

constexpr const char* pin_fix = "pass --pin auto, --pin none, or one CPU for each PE of a node, "
                                "e.g. --pin 0,2,4,6";

/// A CPU set of the kernel, large enough for max_cpus.
class AffinityMask {
public:
  AffinityMask() : set_(CPU_ALLOC(max_cpus), [](cpu_set_t* set) { CPU_FREE(set); }) {
    CPU_ZERO_S(bytes(), set_.get());
  }
  static std::size_t bytes() { return CPU_ALLOC_SIZE(max_cpus); }
  cpu_set_t* get() const { return set_.get(); }
  void add(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), set_.get()); }
  bool has(int cpu) const {
    return CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes(), set_.get()) != 0;
  }

private:
  std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set_;
};

/// Binds the calling thread. Returns 0 or an errno.
int set_affinity(const CpuSet& cpus) {
  AffinityMask mask;
  for (const int cpu : cpus.cpus())
    mask.add(cpu);
  return ::sched_setaffinity(0, AffinityMask::bytes(), mask.get()) == 0 ? 0 : errno;
}

/// The PEs on that machine, in ascending order.
std::vector<std::size_t> neighbours(const std::vector<PinState>& states, std::uint64_t machine_id) {
  std::vector<std::size_t> pes;
  for (std::size_t pe = 0; pe < states.size(); ++pe)
    if (states[pe].machine_id == machine_id)
      pes.push_back(pe);
  return pes;
}

/// Whether the launcher has bound this PE to a single core of a machine that has several.
bool bound_to_one_core(const CpuSet& allowed, const CpuLayout& layout) {
  return std::any_of(layout.cores.begin(), layout.cores.end(), [&](const CpuSet& core) {
    return layout.cores.size() > 1 && intersection(core, allowed) == allowed;
  });
}

/// All PEs know the same states, so they throw the same error.
void require_list(const std::vector<PinState>& states, const PinChoice& choice) {
  std::map<std::uint64_t, std::size_t> rank;
  for (std::size_t pe = 0; pe < states.size(); ++pe) {
    const std::size_t local = rank[states[pe].machine_id]++;
    if (local >= choice.cpus.size())
      throw Error(ExitCode::usage, "--pin", "assign a CPU to each PE",
                  fmt::format("the list has {}, but the node of PE {} has at least {} PEs",
                              counted(choice.cpus.size(), "CPU"), pe, local + 1),
                  pin_fix)
          .on_all_pes();
    if (!states[pe].allowed.contains(choice.cpus[local]))
      throw Error(ExitCode::usage, "--pin", "assign a CPU to each PE",
                  fmt::format("PE {} may not use CPU {}, only {}", pe, choice.cpus[local],
                              format_cpulist(states[pe].allowed)),
                  pin_fix)
          .on_all_pes();
  }
}

} // namespace

CpuSet thread_affinity() {
  const AffinityMask mask;
  CpuSet cpus;
  if (::sched_getaffinity(0, AffinityMask::bytes(), mask.get()) == 0)
    for (int cpu = 0; cpu < max_cpus; ++cpu)
      if (mask.has(cpu))
        cpus.add(cpu);
  return cpus;
}

PinChoice parse_pin_choice(const std::string& text) {
  if (text == "auto")
    return {};
  if (text == "none")
    return {false, {}};
  const auto cpus = parse_pin_list(text);
  if (!cpus)
    throw Error(ExitCode::usage, "--pin " + printable(text), "", "not a CPU list", pin_fix)
        .on_all_pes();
  return {true, *cpus};
}

void serialize(Archive& archive, PinState& state) {
  std::string allowed = archive.reading() ? std::string() : format_cpulist(state.allowed);
  archive(state.machine_id, allowed, state.numa, state.cpu, state.by_launcher, state.problem);
  if (archive.reading()) {
    const std::optional<CpuSet> cpus = parse_cpulist(allowed);
    archive.require(cpus.has_value());
    state.allowed = cpus.value_or(CpuSet());
  }
}

Pinning::Pinning(Runtime& runtime, const PinChoice& choice, const Sysroot& sysroot)
    : before_(thread_affinity()) {
  const CpuLayout layout = read_cpu_layout(sysroot);
  const auto me = static_cast<std::size_t>(runtime.pe());
  const std::vector<PeHost>& hosts = runtime.placement().hosts;
  PinState own;
  own.machine_id = hosts[me].machine_id;
  own.allowed = before_;
  own.by_launcher = bound_to_one_core(before_, layout);
  if (const int cpu = ::sched_getcpu(); cpu >= 0)
    own.numa = layout.numa_of({cpu}).value_or(-1);
  std::vector<PinState> states = runtime.gather_values(own, "CPUs");

  const std::vector<std::size_t> local = neighbours(states, own.machine_id);
  const auto rank =
      static_cast<std::size_t>(std::find(local.begin(), local.end(), me) - local.begin());
  int target = -1;
  if (!choice.cpus.empty()) {
    require_list(states, choice);
    target = choice.cpus[rank];
    own.by_launcher = false;
  } else if (choice.wanted && !own.by_launcher) {
    std::vector<PinRequest> pin_requests;
    for (const std::size_t pe : local)
      pin_requests.push_back({states[pe].allowed, states[pe].numa});
    target = plan_cpus(pin_requests, layout)[rank];
  }
  if (target >= 0) {
    const int error = set_affinity({target});
    restore_ = error == 0;
    own.cpu = error == 0 ? target : -1;
    if (error != 0)
      own.problem = std::string("sched_setaffinity: ") + std::strerror(error);
  } else if (own.by_launcher) {
    own.cpu = before_.first();
  }
  cpu_ = own.cpu;
  states = runtime.gather_values(own, "CPUs");

  std::vector<PinRow> own_row(1);
  const CpuSet now = restore_ ? CpuSet{target} : before_;
  const auto chosen = runtime.gather_values(
      std::pair<std::string, int>(format_cpulist(now), layout.numa_of(now).value_or(-1)), "CPUs");
  std::vector<std::string> names;
  for (std::size_t pe = 0; pe < states.size(); ++pe) {
    PinRow& out = rows_.emplace_back();
    out.pe = static_cast<int>(pe);
    out.host = hosts[pe].host_name;
    names.push_back(out.host);
    out.cpus = chosen[pe].first;
    if (chosen[pe].second >= 0)
      out.numa = chosen[pe].second;
    out.by = states[pe].by_launcher ? "launcher" : states[pe].cpu >= 0 ? "bench" : "nobody";
  }
  findings_ = pin_findings(states, names, choice.wanted);
}

Pinning::~Pinning() {
  if (restore_)
    set_affinity(before_);
}

Findings pin_findings(const std::vector<PinState>& states, const std::vector<std::string>& hosts,
                      bool wanted) {
  Findings findings;
  struct Machine {
    CpuSet allowed;
    std::size_t pes = 0;
    std::map<int, int> pes_on; ///< by CPU: number of PEs that are pinned to it
    std::string host;
  };
  std::map<std::uint64_t, Machine> machines;
  std::vector<std::string> unpinned;
  std::string problem;
  for (std::size_t pe = 0; pe < states.size(); ++pe) {
    Machine& machine = machines[states[pe].machine_id];
    machine.allowed.add(states[pe].allowed);
    ++machine.pes;
    machine.host = hosts[pe];
    if (states[pe].cpu >= 0) {
      ++machine.pes_on[states[pe].cpu];
      continue;
    }
    unpinned.push_back(std::to_string(pe));
    if (problem.empty())
      problem = states[pe].problem;
  }
  for (const auto& [id, machine] : machines) {
    const std::size_t cpus = machine.allowed.cpus().size();
    int most = 0, where = -1;
    for (const auto& [cpu, pes] : machine.pes_on)
      if (pes > most) {
        most = pes;
        where = cpu;
      }
    if (machine.pes <= cpus && most <= 1)
      continue;
    const std::string what = machine.pes > cpus ? fmt::format("{} PEs share {} CPU{}", machine.pes,
                                                              cpus, cpus == 1 ? "" : "s")
                                                : fmt::format("{} PEs share CPU {}", most, where);
    findings.push_back({"bench-oversubscribed", Severity::warning, "host " + machine.host,
                        what + ": they wait for each other's time slices, and what is measured is "
                               "the scheduler",
                        machine.pes > cpus
                            ? "start at most " + counted(cpus, "PE") + " on this host"
                            : "bind each PE to a CPU of its own"});
  }
  if (unpinned.empty())
    return findings;
  std::string who = "PE " + unpinned.front();
  if (unpinned.size() > 1)
    who += fmt::format(" and {} more", unpinned.size() - 1);
  findings.push_back({"bench-unpinned", wanted ? Severity::warning : Severity::info, who,
                      "not bound to a CPU" + (problem.empty() ? "" : " (" + problem + ")") +
                          ": a move to another core shows as an outlier",
                      wanted ? "let the launcher bind PEs to cores" : "pass --pin auto"});
  return findings;
}

} // namespace shmemctl::bench
