// Random machines with random settings: the printed fixes, all applied at once, fix their findings
// and cause no new ones.
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "src/base/text.h"
#include "src/model/topo/mapping/ports.h"
#include "tests/support/printed_lines.h"
#include "tests/support/random_case.h"
#include "tests/unit/model/topo/advice/mapping_requests.h"

namespace shmemctl {

namespace {

using test::has_lines;
using test::PrintedLines;
using test::RandomCase;

bool is_left(const Finding& finding, const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(), [&finding](const Finding& other) {
    return other.id == finding.id && other.subject == finding.subject &&
           (other.severity >= Severity::warning || finding.severity == Severity::info);
  });
}

bool is_known(const Finding& finding, const Findings& before) {
  return std::any_of(before.begin(), before.end(), [&finding](const Finding& other) {
    return other.id == finding.id && other.subject == finding.subject &&
           other.severity >= finding.severity;
  });
}

Findings findings_of(const Node& node, const MappingRequest& request) {
  return check_mapping(node, map_nics(node, request));
}

MappingRequest with_all_fixes(const MappingRequest& request, const Findings& findings) {
  PrintedLines lines;
  for (const Finding& finding : findings)
    if (has_lines(finding))
      lines.read(finding.fix);
  return lines.change().applied_to(request);
}

std::string settings_text(const MappingRequest& request) {
  const NvshmemSettings& settings = request.nvshmem;
  return to_string(settings.version) + " world " + to_string(request.world) + " policy " +
         to_string(request.policy) + " transport " +
         std::to_string(static_cast<int>(settings.transport)) + " unknown \"" +
         settings.unknown_transport + "\" HCA_LIST " + settings.hca_list.value_or("(none)") +
         " HCA_PE_MAPPING " + settings.hca_pe_mapping.value_or("(none)") + " HCA_PREFIX " +
         settings.hca_prefix.value_or("(none)") +
         (settings.enable_nic_pe_mapping ? " pinned" : "") +
         (settings.ibgda_multi_port ? " multi-port" : "") + " ranks " +
         std::to_string(request.nvshmem_per_pe.size());
}

std::string text_of(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += std::string("\n  ") + to_string(finding.severity) + " " + finding.id + " [" +
            finding.subject + "] " + finding.message + "\n    fix: " + finding.fix;
  return text;
}

} // namespace

TEST(FixesProperty, AllPrintedFixesTogetherHealAndBreakNothing) {
  std::mt19937_64 random(20261125);
  int fixed = 0;
  for (int round = 0; round < 1500 && !HasFailure(); ++round) {
    RandomCase generator(random);
    const Node node = generator.node();
    const MappingRequest request = generator.request(node);
    const Findings before = findings_of(node, request);
    const MappingRequest changed = with_all_fixes(request, before);
    const Findings after = findings_of(node, changed);
    const std::string where = "round " + std::to_string(round) + ": " + settings_text(request) +
                              text_of(before) + "\nafter: " + settings_text(changed) +
                              text_of(after);
    for (const Finding& finding : before) {
      if (!has_lines(finding))
        continue;
      ++fixed;
      EXPECT_FALSE(is_left(finding, after)) << finding.id << " is left\n" << where;
    }
    for (const Finding& finding : after) {
      if (finding.severity >= Severity::warning) {
        EXPECT_TRUE(is_known(finding, before)) << finding.id << " is new\n" << where;
      }
    }
    // An error that remains after a second round is one that no environment line can fix.
    const MappingRequest again = with_all_fixes(changed, after);
    for (const Finding& finding : findings_of(node, again)) {
      if (finding.severity == Severity::error) {
        EXPECT_FALSE(has_lines(finding)) << finding.id << " could still be fixed\n" << where;
      }
    }
  }
  EXPECT_GT(fixed, 500);
}

namespace {

/// A machine and the settings of a job on it: an operator changes both by what is printed.
struct Job {
  Node node;
  MappingRequest request;

  Findings findings() const {
    Findings all = check_node(node);
    const Findings mapping = findings_of(node, request);
    all.insert(all.end(), mapping.begin(), mapping.end());
    return all;
  }
};

/// All environment lines, and all commands that bring an interface up; what needs a hand at the
/// machine stays as it is.
Job after_pasting(Job job, const Findings& findings) {
  job.request = with_all_fixes(job.request, findings);
  for (const Finding& finding : findings)
    for (const std::string& command : PrintedLines::commands(finding.fix)) {
      const std::vector<std::string> words = PrintedLines::shell_words(command);
      if (!starts_with(command, "ip link set dev ") || words.size() < 6)
        continue;
      for (Nic& nic : job.node.nics)
        for (NicPort& port : nic.ports)
          if (port.netdev && *port.netdev == words[4])
            port.state = known(PortState::active, "brought up");
    }
  return job;
}

/// Settings that a user could try without knowing how the tool searches: each choice of a transport
/// with each choice of a prefix and of a list.
std::vector<MappingRequest> attempts(const Node& node, const MappingRequest& request) {
  std::vector<MappingRequest> found;
  std::set<std::string> prefixes;
  for (const Nic& nic : node.nics)
    prefixes.insert(nic.name.substr(0, 4));
  std::vector<NvshmemSettings> transports = {request.nvshmem};
  NvshmemSettings other = request.nvshmem;
  const bool ibgda = other.transport == NvshmemTransport::ibgda;
  // A transport that works is the user's choice: only others are replaced.
  if (other.proxy_transport == NvshmemTransport::none ||
      other.proxy_transport == NvshmemTransport::ibdevx) {
    other.unknown_transport.clear();
    other.proxy_transport = NvshmemTransport::ibrc;
    other.transport = ibgda ? NvshmemTransport::ibgda : NvshmemTransport::ibrc;
    transports.push_back(other);
  }
  if (ibgda && request.world == World::node) {
    other.transport = other.proxy_transport;
    transports.push_back(other);
  }
  for (NvshmemSettings settings : transports) {
    settings.hca_list.reset();
    settings.hca_pe_mapping.reset();
    settings.enable_nic_pe_mapping = false;
    std::vector<std::optional<std::string>> choices = {settings.hca_prefix, std::nullopt};
    choices.insert(choices.end(), prefixes.begin(), prefixes.end());
    for (const std::optional<std::string>& prefix : choices) {
      settings.hca_prefix = prefix;
      MappingRequest attempt = request;
      attempt.nvshmem_per_pe.clear();
      attempt.nvshmem = settings;
      found.push_back(attempt);
      std::string others;
      for (const RatedPort& rated : port_roles(node))
        if (rated.role != PortRole::compute)
          others += "," + node.nics[static_cast<std::size_t>(rated.port.nic)].name;
      if (!others.empty()) {
        attempt.nvshmem.hca_list = "^" + others.substr(1);
        found.push_back(attempt);
      }
      attempt.nvshmem = settings;
      const Mapping optimal = map_nics(node, optimal_request(attempt));
      attempt.nvshmem_per_pe.assign(request.gpus.size(), settings);
      for (std::size_t pe = 0; pe < optimal.pes.size(); ++pe)
        if (!optimal.pes[pe].nics.empty())
          attempt.nvshmem_per_pe[pe].hca_list =
              node.nics[static_cast<std::size_t>(optimal.pes[pe].nics[0].nic)].name + ":" +
              std::to_string(optimal.pes[pe].nics[0].port);
      found.push_back(attempt);
    }
  }
  return found;
}

/// NICs that the user excludes by name: no fix may use them.
std::set<std::string> excluded_by_user(const Job& job) {
  std::set<std::string> names;
  const std::string list = job.request.nvshmem.hca_list.value_or("");
  if (!list.empty() && list[0] == '^')
    for (const std::string& entry : split(list.substr(1), ','))
      names.insert(entry.substr(0, entry.find(':')));
  return names;
}

bool uses_any(const Job& job, const MappingRequest& request, const std::set<std::string>& names) {
  const Mapping mapping = map_nics(job.node, request);
  return std::any_of(mapping.pes.begin(), mapping.pes.end(), [&](const PeMapping& pe) {
    return std::any_of(pe.nics.begin(), pe.nics.end(), [&](const NicUse& use) {
      return names.count(job.node.nics[static_cast<std::size_t>(use.nic)].name) > 0;
    });
  });
}

/// Settings that leave no error and bring no warning; "" if none of the attempts does.
std::string mended_by(const Job& job) {
  const Findings before = findings_of(job.node, job.request);
  const std::set<std::string> excluded = excluded_by_user(job);
  for (const MappingRequest& attempt : attempts(job.node, job.request)) {
    if (uses_any(job, attempt, excluded))
      continue;
    const Findings after = findings_of(job.node, attempt);
    const bool mended = std::all_of(after.begin(), after.end(), [&](const Finding& finding) {
      return finding.severity == Severity::info ||
             (finding.severity == Severity::warning && is_known(finding, before));
    });
    if (mended)
      return settings_text(attempt);
  }
  return "";
}

} // namespace

TEST(FixesProperty, AfterTwoRoundsNoErrorIsLeftThatSomebodyCouldMend) {
  std::mt19937_64 random(20261126);
  int mended = 0;
  for (int round = 0; round < 1000 && !HasFailure(); ++round) {
    RandomCase generator(random);
    const Node node = generator.node();
    Job job{node, generator.request(node)};
    const bool named = std::none_of(node.nics.begin(), node.nics.end(),
                                    [](const Nic& nic) { return nic.unnamed; });
    if (job.request.policy != Policy::nvshmem || node.hidden_nics > 0 || !named)
      continue;
    const Job as_given = job;
    const Findings before = job.findings();
    for (int times = 0; times < 2; ++times)
      job = after_pasting(job, job.findings());
    const Findings after = job.findings();
    mended += has_error(before) && !has_error(after) ? 1 : 0;
    const std::string where = "round " + std::to_string(round) + ": " +
                              settings_text(as_given.request) + text_of(before) +
                              "\nafter: " + settings_text(job.request) + text_of(after);
    for (const Finding& finding : after) {
      EXPECT_EQ(finding.fix.find("ip link set dev"), std::string::npos) << where;
    }
    if (!has_error(findings_of(job.node, job.request)))
      continue;
    const std::string by = mended_by(job);
    EXPECT_EQ(by, "") << "these settings leave no error\n" << where;
  }
  EXPECT_GT(mended, 150);
}

/// Printing no fixes would satisfy both rules: require some.
TEST(FixesProperty, MostErrorsThatSettingsMadeAreFixed) {
  std::mt19937_64 random(7);
  int errors = 0;
  int with_lines = 0;
  for (int round = 0; round < 600; ++round) {
    RandomCase generator(random);
    const Node node = generator.node();
    const MappingRequest request = generator.request(node);
    MappingRequest untouched = request;
    untouched.nvshmem = NvshmemSettings{};
    untouched.nvshmem.version = request.nvshmem.version;
    if (has_error(findings_of(node, untouched)))
      continue; // not because of the settings alone
    for (const Finding& finding : findings_of(node, request)) {
      errors += finding.severity == Severity::error ? 1 : 0;
      with_lines += finding.severity == Severity::error && has_lines(finding) ? 1 : 0;
    }
  }
  EXPECT_GT(errors, 100);
  EXPECT_GE(with_lines, errors * 95 / 100) << with_lines << " of " << errors;
}

} // namespace shmemctl
