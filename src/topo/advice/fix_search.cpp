#include "src/topo/advice/fix_search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "src/topo/advice/mapping_plans.h"
#include "src/topo/mapping/ports.h"

namespace shmemctl {

namespace {

bool is_about_the_same(const Finding& left, const Finding& right) {
  return left.id == right.id && left.subject == right.subject;
}

bool matters(const Diagnosis& diagnosis) {
  return diagnosis.finding.severity >= Severity::warning;
}

class FixSearch {
public:
  FixSearch(const Node& node, const Mapping& mapping, const Mapping& optimal,
            const Diagnoses& before)
      : node_(node), request_(mapping.request), optimal_(optimal), before_(before) {
    after_.emplace("", before); // the mapping as it was given, whoever chose it
  }

  Findings run() {
    EnvChange plan = own_remedies();
    if (leaves_something(plan))
      plan = best_plan(plan);
    EnvChange all = plan;
    const std::map<const Diagnosis*, EnvChange> extras = remedies_of_information(all);
    Findings findings;
    for (const Diagnosis& diagnosis : before_) {
      Finding finding = diagnosis.finding;
      const auto extra = extras.find(&diagnosis);
      if (extra != extras.end())
        finding.fix = extra->second.text();
      else if (diagnosis.fixable() && heals(diagnosis, all))
        finding.fix = (heals(diagnosis, plan) ? plan : all).text();
      findings.push_back(std::move(finding));
    }
    return findings;
  }

private:
  /// What the model says of a job with this change.
  const Diagnoses& after(const EnvChange& change) {
    const std::string key = change.text();
    const auto known = after_.find(key);
    if (known != after_.end())
      return known->second;
    const MappingRequest request = change.applied_to(request_);
    const Mapping mapping = map_nics(node_, request);
    return after_.emplace(key, diagnose_mapping(node_, mapping, optimum_of(request))).first->second;
  }

  /// The optimum depends on the ports and on how many a PE uses, and on nothing else that a change
  /// can change.
  const Mapping& optimum_of(const MappingRequest& request) {
    const NvshmemSettings settings = settings_in(request.world, request.nvshmem);
    std::vector<std::pair<int, int>> left_out;
    for (const NicUse& use : ports_left_out(node_, request))
      left_out.emplace_back(use.nic, use.port);
    const bool several = settings.transport == NvshmemTransport::ibgda && settings.ibgda_multi_port;
    const auto key = std::pair(several, left_out);
    const auto known = optima_.find(key);
    if (known != optima_.end())
      return known->second;
    return optima_.emplace(key, map_nics(node_, optimal_request(request))).first->second;
  }

  /// An error that is left as information, such as a share that cannot be avoided, is healed.
  bool heals(const Diagnosis& diagnosis, const EnvChange& change) {
    const Diagnoses& left = after(change);
    return std::none_of(left.begin(), left.end(), [&](const Diagnosis& other) {
      return is_about_the_same(diagnosis.finding, other.finding) &&
             (matters(other) || !matters(diagnosis));
    });
  }

  bool breaks_nothing(const EnvChange& change) {
    const Diagnoses& left = after(change);
    return std::none_of(left.begin(), left.end(), [this](const Diagnosis& other) {
      return matters(other) &&
             std::none_of(before_.begin(), before_.end(), [&other](const Diagnosis& known) {
               return is_about_the_same(known.finding, other.finding) &&
                      known.finding.severity >= other.finding.severity;
             });
    });
  }

  bool leaves_something(const EnvChange& change) {
    return std::any_of(before_.begin(), before_.end(), [&](const Diagnosis& diagnosis) {
      return matters(diagnosis) && diagnosis.fixable() && !heals(diagnosis, change);
    });
  }

  /// Errors, then warnings.
  std::pair<int, int> left_by(const EnvChange& change) {
    std::pair<int, int> count{0, 0};
    for (const Diagnosis& diagnosis : after(change)) {
      count.first += diagnosis.finding.severity == Severity::error ? 1 : 0;
      count.second += diagnosis.finding.severity == Severity::warning ? 1 : 0;
    }
    return count;
  }

  /// The changes that the findings suggest themselves, one after the other. A later one may replace
  /// a variable of an earlier one, as long as what that healed stays healed.
  EnvChange own_remedies() {
    EnvChange plan;
    for (const Diagnosis& diagnosis : before_) {
      if (!matters(diagnosis) || heals(diagnosis, plan))
        continue;
      for (const EnvChange& remedy : diagnosis.remedies) {
        EnvChange next = plan;
        next.add(remedy);
        if (heals(diagnosis, next) && breaks_nothing(next) && left_by(next) < left_by(plan)) {
          plan = next;
          break;
        }
      }
    }
    return plan;
  }

  /// The first whole set of settings that leaves nothing, else the one that leaves least.
  EnvChange best_plan(EnvChange best) {
    for (const EnvChange& plan : mapping_plans(node_, request_, optimal_)) {
      if (left_by(plan) >= left_by(best) || !breaks_nothing(plan))
        continue;
      best = plan;
      if (!leaves_something(best))
        break;
    }
    return best;
  }

  /// Beside the plan, what heals findings of severity info without undoing anything of it.
  /// @param all the plan; what is found is added to it
  std::map<const Diagnosis*, EnvChange> remedies_of_information(EnvChange& all) {
    std::map<const Diagnosis*, EnvChange> extras;
    const auto left_by_plan = left_by(all);
    const bool plan_leaves = leaves_something(all);
    for (const Diagnosis& diagnosis : before_) {
      if (matters(diagnosis) || heals(diagnosis, all))
        continue;
      for (const EnvChange& remedy : diagnosis.remedies) {
        EnvChange next = all;
        next.add(remedy);
        if (all.contradicts(remedy) || !heals(diagnosis, next) || !breaks_nothing(next) ||
            left_by(next) > left_by_plan || (!plan_leaves && leaves_something(next)) ||
            !heals_all(extras, next))
          continue;
        extras.emplace(&diagnosis, remedy);
        all = next;
        break;
      }
    }
    return extras;
  }

  bool heals_all(const std::map<const Diagnosis*, EnvChange>& extras, const EnvChange& change) {
    return std::all_of(extras.begin(), extras.end(),
                       [&](const auto& extra) { return heals(*extra.first, change); });
  }

  const Node& node_;
  const MappingRequest& request_;
  const Mapping& optimal_;
  const Diagnoses& before_;
  std::map<std::string, Diagnoses> after_; ///< by the text of the change
  std::map<std::pair<bool, std::vector<std::pair<int, int>>>, Mapping> optima_;
};

} // namespace

Findings with_tried_fixes(const Node& node, const Mapping& mapping, const Mapping& optimal,
                          const Diagnoses& diagnoses) {
  return FixSearch(node, mapping, optimal, diagnoses).run();
}

} // namespace shmemctl
