#include "src/instruments/fabric/fabric.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "src/base/archive.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/bench/path.h"
#include "src/instruments/fabric/passes.h"

namespace shmemctl::fabric {

int JobMap::rails() const {
  int rails = 0;
  for (const Endpoint& endpoint : endpoints)
    rails = std::max(rails, endpoint.rail + 1);
  return rails;
}

JobMap map_of(const Placement& placement) {
  JobMap job;
  std::map<std::string, int> hosts_of_name;
  std::set<std::pair<std::uint64_t, std::uint64_t>> networks;
  for (const std::vector<int>& pes : placement.node_pes) {
    const PeHost& host = placement.hosts[static_cast<std::size_t>(pes.front())];
    job.hosts.push_back(host.host_name);
    ++hosts_of_name[host.host_name];
    networks.emplace(host.machine_id, host.network_namespace);
  }
  job.own_counters = networks.size() == job.hosts.size();
  // Machines that share a name are named as in the hotspots of the job (job_hosts()), where the
  // counters of a suspect's hosts are looked up by name.
  for (std::size_t node = 0; node < job.hosts.size(); ++node)
    if (hosts_of_name[job.hosts[node]] > 1)
      job.hosts[node] += job.own_counters
                             ? fmt::format(" (PE {})", placement.node_pes[node].front())
                             : fmt::format(" node {}", node);
  for (std::size_t pe = 0; pe < placement.hosts.size(); ++pe)
    job.endpoints.push_back({placement.node[pe], placement.local_pe[pe]});
  job.nics.resize(job.endpoints.size());
  job.transports.resize(job.endpoints.size());
  return job;
}

bool is_same(const Suspect& a, const Suspect& b) {
  return a.part == b.part && a.metric == b.metric && a.direction == b.direction &&
         a.hosts == b.hosts && a.rail == b.rail && a.source == b.source && a.target == b.target;
}

void add_verdicts(const std::vector<Suspect>& found, std::vector<Verdict>& to) {
  for (const Suspect& suspect : found) {
    const auto known = std::find_if(to.begin(), to.end(), [&](const Verdict& verdict) {
      return is_same(verdict.suspect, suspect);
    });
    if (known == to.end())
      to.push_back({suspect, 1});
    else
      *known = {suspect, known->runs + 1};
  }
}

namespace {

using Clock = std::chrono::steady_clock;

/// Maximum number of figures of all runs that PE 0 keeps in memory.
constexpr std::size_t max_figures = std::size_t{16} << 20;
/// A step is announced again after this time, so that its deadline covers one round and not all
/// rounds.
constexpr double announce_s = 0.25;
constexpr int runs_of_pattern = 2;

double elapsed_s(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What each PE reports about itself at the end.
struct PeFacts {
  std::string nics, transports;
};
void serialize(Archive& archive, PeFacts& facts) {
  archive(facts.nics, facts.transports);
}

class Run {
public:
  Run(Runtime& runtime, const Options& options, const Request& request, const Callbacks& callbacks)
      : runtime_(runtime), request_(request), callbacks_(callbacks), start_(Clock::now()),
        traffic_before_(traffic_of(runtime)) {
    result_.job = map_of(runtime.placement());
    require_hosts();
    schedule_.emplace(result_.job.endpoints, request.cross_rail);
    result_.rounds = schedule_->rounds();
    result_.cross_rail = request.cross_rail;
    result_.effort = effort_for(schedule_->rounds(),
                                request.quick ? quick_budget_s : default_budget_s, request.quick);
    callbacks_.say("allocating buffers");
    const int max_rounds = std::max(
        {schedule_->rounds(), static_cast<int>(max_second_rounds), PatternPlan::max_senders + 1});
    measurement_.emplace(runtime, options, result_.effort, max_rounds,
                         [this](int round, int rounds) { announce(round, rounds); });
  }

  Result measure() {
    do {
      ++result_.runs;
      measure_once();
    } while (goes_on());
    if (request_.patterns)
      for (const Pattern pattern : {Pattern::incast, Pattern::all_to_all})
        measure_pattern(pattern);
    gather_facts();
    result_.corrupt = measurement_->corrupt();
    result_.verified = measurement_->pairs_verified();
    result_.taken_s = elapsed_s(start_);
    measurement_->free();
    return std::move(result_);
  }

private:
  bool leads() const { return runtime_.pe() == 0; }

  void require_hosts() const {
    if (result_.job.hosts.size() < 2)
      throw Error(ExitCode::usage, "fabric", "",
                  fmt::format("it measures links between hosts, but all PEs are on one host ({})",
                              result_.job.hosts.front()),
                  "start PEs on several hosts (mpirun --host a,b; srun -N 2), or split this one: "
                  "shmemctl run -n 4 --nodes 2 fabric")
          .on_all_pes();
  }

  void step(const std::string& words) {
    step_ = words;
    announced_ = Clock::now();
    callbacks_.say(words);
  }
  void announce(int round, int rounds) {
    if (round > 0 && elapsed_s(announced_) < announce_s)
      return;
    announced_ = Clock::now();
    callbacks_.say(fmt::format("{}, round {} of {}", step_, round + 1, rounds));
  }

  void measure_once() {
    std::vector<std::vector<PairFigure>> passes;
    for (int pass = 0; pass < result_.effort.passes; ++pass) {
      step(fmt::format("measuring pairs of hosts{}{}",
                       result_.runs > 1 ? fmt::format(", run {}", result_.runs) : "",
                       result_.effort.passes > 1
                           ? fmt::format(", pass {} of {}", pass + 1, result_.effort.passes)
                           : ""));
      passes.push_back(
          measurement_->run([this](int pe, int round) { return schedule_->partner(pe, round); },
                            schedule_->rounds()));
    }
    step("measuring suspects again");
    if (!leads()) {
      measurement_->follow();
      return;
    }
    keep(medians_of(passes));
    judge(kept_.back());
    measurement_->end_leading();
    result_.taken_s = elapsed_s(start_);
    callbacks_.update(result_);
  }

  void keep(std::vector<PairFigure> figures) {
    kept_.push_back(std::move(figures));
    while (kept_.size() > 1 && kept_.size() * kept_.back().size() > max_figures)
      kept_.erase(kept_.begin());
    result_.figures = medians_of(kept_);
  }

  void judge(const std::vector<PairFigure>& figures) {
    const std::vector<Endpoint>& endpoints = result_.job.endpoints;
    Diagnosis found = diagnose(endpoints, figures, Metric::bandwidth, criteria_);
    result_.noise = found.noise;
    std::vector<Suspect> suspects = std::move(found.suspects);
    for (Suspect& suspect : diagnose(endpoints, figures, Metric::latency, criteria_).suspects)
      suspects.push_back(std::move(suspect));
    Confirmed confirmed = confirm(
        endpoints, std::move(suspects),
        [this](const std::vector<Round>& rounds) { return measurement_->lead(rounds); }, criteria_);
    add_verdicts(confirmed.slow, result_.slow);
    result_.transient.insert(result_.transient.end(), confirmed.transient.begin(),
                             confirmed.transient.end());
    result_.unconfirmed.insert(result_.unconfirmed.end(), confirmed.unconfirmed.begin(),
                               confirmed.unconfirmed.end());
    judge_losses(figures);
  }

  void judge_losses(const std::vector<PairFigure>& figures) {
    const std::vector<Endpoint>& endpoints = result_.job.endpoints;
    if (!result_.job.own_counters)
      return;
    for (const LossyHost& found : confirm_lossy(
             endpoints, find_lossy(endpoints, figures),
             [this](const std::vector<Round>& rounds) { return measurement_->lead(rounds); })) {
      const auto known =
          std::find_if(result_.lossy.begin(), result_.lossy.end(), [&](const LossVerdict& verdict) {
            return verdict.host.host == found.host && verdict.host.direction == found.direction;
          });
      if (known == result_.lossy.end())
        result_.lossy.push_back({found, 1});
      else
        *known = {found, known->runs + 1};
    }
  }

  /// Whether to start another run. PE 0 decides by its clock; the result is the same on all PEs.
  bool goes_on() {
    if (request_.soak_s <= 0)
      return false;
    const bool more = leads() && elapsed_s(start_) < request_.soak_s;
    return !runtime_.gather_text(more ? "more" : "").front().empty();
  }

  void measure_pattern(Pattern pattern) {
    const PatternPlan plan(result_.job.endpoints, pattern);
    std::vector<std::vector<PatternRate>> runs;
    for (int run = 0; run < runs_of_pattern; ++run) {
      step(fmt::format("measuring {}", to_string(pattern)));
      const std::vector<std::vector<double>> sent = measurement_->run_flows(
          [&plan](int pe, int round) { return plan.targets(pe, round); }, plan.rounds());
      runs.push_back(rates_of(plan, pattern, result_.job.endpoints.size(), sent));
    }
    result_.patterns.push_back({pattern, runs.back()});
    for (const SlowUnderLoad& slow : slow_under_load(pattern, runs))
      result_.slow_under_load.push_back(slow);
  }

  void gather_facts() {
    step("gathering NICs");
    PeFacts mine;
    std::set<std::string> nics, transports;
    for (const NicTraffic& traffic : traffic_since(traffic_before_, traffic_of(runtime_)))
      if (traffic.put_bytes > 0)
        nics.insert(bench::name_of(traffic.nic));
    for (int pe = 0; pe < runtime_.n_pes(); ++pe)
      if (result_.job.endpoints[static_cast<std::size_t>(pe)].host !=
          runtime_.placement().my_node())
        if (const int index = runtime_.transport_index_by_pe()[static_cast<std::size_t>(pe)];
            index >= 0)
          transports.insert(
              runtime_.transports()[static_cast<std::size_t>(index)].transport->name());
    mine.nics = join({nics.begin(), nics.end()}, ", ");
    mine.transports = join({transports.begin(), transports.end()}, ", ");
    const std::vector<PeFacts> facts = runtime_.gather_values(mine, "NICs");
    for (std::size_t pe = 0; pe < facts.size(); ++pe) {
      result_.job.nics[pe] = facts[pe].nics;
      result_.job.transports[pe] = facts[pe].transports;
    }
  }

  Runtime& runtime_;
  Request request_;
  const Callbacks& callbacks_;
  Clock::time_point start_, announced_;
  std::vector<NicTraffic> traffic_before_;
  Criteria criteria_;
  std::string step_;
  std::optional<Schedule> schedule_;
  std::optional<Measurement> measurement_;
  std::vector<std::vector<PairFigure>> kept_; ///< by run
  Result result_;
};

} // namespace

Result measure(Runtime& runtime, const Options& options, const Request& request,
               const Callbacks& callbacks) {
  return Run(runtime, options, request, callbacks).measure();
}

} // namespace shmemctl::fabric
