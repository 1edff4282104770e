// Random machines with random settings: the printed fixes, all applied at once, fix their findings
// and cause no new ones.
#include <map>
#include <random>
#include <regex>

#include <gtest/gtest.h>

#include "src/base/text.h"
#include "src/model/topo/advice/env_fix.h"
#include "src/model/topo/mapping/ports.h"
#include "tests/support/random_node.h"
#include "tests/unit/model/topo/advice/mapping_requests.h"

namespace shmemctl {

namespace {

/// Reads the lines that fixes print, as a shell would; nothing else.
class PrintedLines {
public:
  void read(const std::string& text) {
    for (const std::string& command : commands(text)) {
      const std::vector<std::string> words = shell_words(command);
      ASSERT_FALSE(words.empty()) << text;
      if (words[0] == "unset")
        for (std::size_t i = 1; i < words.size(); ++i)
          put(words[i], {});
      else if (words[0] == "export")
        for (std::size_t i = 1; i < words.size(); ++i)
          read_export(words[i]);
      else
        read_array(command);
    }
  }

  EnvChange change() const {
    EnvChange change;
    for (const auto& [variable, values] : variables_) {
      if (values.empty())
        change.unset(variable);
      else
        change.set_per_rank(variable, values);
    }
    return change;
  }

private:
  /// Split at "; " outside of quotes.
  static std::vector<std::string> commands(const std::string& text) {
    std::vector<std::string> found(1);
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      quoted = quoted != (text[i] == '\'');
      if (!quoted && text.compare(i, 2, "; ") == 0) {
        found.emplace_back();
        ++i;
      } else {
        found.back() += text[i];
      }
    }
    return found;
  }
  static std::vector<std::string> shell_words(const std::string& text) {
    std::vector<std::string> found(1);
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\'')
        quoted = !quoted;
      else if (text[i] == '\\' && !quoted && i + 1 < text.size())
        found.back() += text[++i];
      else if (text[i] == ' ' && !quoted)
        found.emplace_back();
      else
        found.back() += text[i];
    }
    return found;
  }
  void read_export(const std::string& word) {
    const std::size_t equals = word.find('=');
    ASSERT_NE(equals, std::string::npos) << word;
    const std::string value = word.substr(equals + 1);
    if (starts_with(value, "${by_rank["))
      put(word.substr(0, equals), by_rank_);
    else
      put(word.substr(0, equals), {value});
  }
  void read_array(const std::string& command) {
    ASSERT_TRUE(starts_with(command, "by_rank=(") && command.back() == ')') << command;
    by_rank_ = shell_words(command.substr(9, command.size() - 10));
  }
  void put(const std::string& variable, const std::vector<std::string>& values) {
    const auto [known, is_new] = variables_.try_emplace(variable, values);
    EXPECT_TRUE(is_new || known->second == values) << variable << " has two values in the fixes";
  }

  std::map<std::string, std::vector<std::string>> variables_; ///< no value: unset
  std::vector<std::string> by_rank_;
};

/// Environment lines; other fixes need a person.
bool has_lines(const Finding& finding) {
  return starts_with(finding.fix, "export ") || starts_with(finding.fix, "unset ") ||
         starts_with(finding.fix, "by_rank=");
}

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

class RandomCase {
public:
  explicit RandomCase(std::mt19937_64& random) : random_(random) {}

  Node node() {
    switch (below(4)) {
    case 0:
      return test::random_node(random_);
    case 1:
      return tree();
    default:
      return matrix();
    }
  }

  MappingRequest request(const Node& node) {
    MappingRequest request;
    request.world = pick<World>({World::node, World::node, World::deepep_ht, World::deepep_ll});
    if (one_in(8))
      request.policy = pick<Policy>({Policy::nccl, Policy::optimal});
    const int pes = one_in(3) ? 1 + below(9) : -1;
    request.gpus = assign_gpus(node, pes, {});
    NvshmemSettings& settings = request.nvshmem;
    settings.version = pick<NvshmemVersion>({{1, 1, 3},
                                             {2, 2, 1},
                                             {2, 4, 1},
                                             {2, 10, 1},
                                             {3, 3, 20},
                                             {3, 4, 5},
                                             {3, 5, 1},
                                             {3, 6, 5},
                                             {3, 7, 0},
                                             {9, 9, 9}});
    if (one_in(3))
      settings.transport = NvshmemTransport::ibgda;
    if (one_in(6)) {
      settings.unknown_transport = pick<std::string>({"ibgda", "IBGDA", "ibrcc", "x"});
      settings.proxy_transport = NvshmemTransport::none;
      if (settings.transport != NvshmemTransport::ibgda)
        settings.transport = NvshmemTransport::none;
    } else if (one_in(6)) {
      settings.proxy_transport =
          pick<NvshmemTransport>({NvshmemTransport::none, NvshmemTransport::ibdevx,
                                  NvshmemTransport::ucx, NvshmemTransport::libfabric});
      if (settings.transport != NvshmemTransport::ibgda)
        settings.transport = settings.proxy_transport;
    }
    settings.ibgda_multi_port = one_in(4);
    settings.enable_nic_pe_mapping = one_in(2);
    if (one_in(3))
      settings.hca_list = (one_in(3) ? "^" : "") + list(node, false);
    if (one_in(3))
      settings.hca_pe_mapping = list(node, true);
    if (one_in(4))
      settings.hca_prefix = pick<std::string>({"mlx5", "ibp", "^smi", "x", "roce", "^mlx5"});
    return request;
  }

private:
  int below(int limit) {
    return static_cast<int>(random_() % static_cast<std::uint64_t>(limit < 1 ? 1 : limit));
  }
  bool one_in(int n) { return below(n) == 0; }
  template <class T>
  T pick(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(below(static_cast<int>(items.size())))];
  }

  std::string nic_name(int number) {
    return pick<std::string>({"mlx5_", "mlx5_", "ibp", "rocep", "rdmap"}) + std::to_string(number);
  }

  Node tree() {
    NodeBuilder builder = NodeBuilder::hgx(1 + below(4), 1 + below(2), 1 + below(2));
    for (int extra = below(3); extra > 0; --extra)
      builder.nic_at_root(
          builder.host_bridge(below(2)), "mlx5_9" + std::to_string(extra),
          {{1, PortState::active, one_in(2) ? LinkLayer::ethernet : LinkLayer::infiniband,
            one_in(2) ? 25.0 : 400.0}});
    if (one_in(3))
      for (Nic& nic : builder.node.nics)
        nic.name = "ibp" + nic.name.substr(5) + "s0";
    if (one_in(3))
      builder.node.nics[0].ports[0].state = known(PortState::down, "random");
    return builder.node;
  }

  Node matrix() {
    const int gpus = 1 + below(6);
    const int nics = 1 + below(6);
    const bool one_kind = !one_in(3);
    const std::string kind = nic_name(0);
    std::vector<std::string> names;
    for (int i = 0; i < nics; ++i)
      names.push_back(one_kind ? kind.substr(0, kind.size() - 1) + std::to_string(i) : nic_name(i));
    std::vector<std::vector<std::string>> rows(static_cast<std::size_t>(gpus));
    for (auto& row : rows)
      for (int i = 0; i < nics; ++i)
        row.push_back(pick<std::string>({"PIX", "PXB", "NODE", "NODE", "SYS", "SYS", "SYS"}));
    return NodeBuilder::from_matrix(names, rows);
  }

  std::string list(const Node& node, bool counts) {
    std::vector<std::string> entries;
    for (int left = 1 + below(6); left > 0; --left) {
      std::string entry = node.nics.empty() ? "mlx5_0" : pick(node.nics).name;
      if (one_in(8))
        entry = pick<std::string>({"mlx5_99", " " + entry, "mlx_0", "", "x;y'z", entry + "9"});
      if (one_in(2))
        entry += pick<std::string>({":1", ":1", ":2", ":0", ":", ":x"});
      if (counts && one_in(2))
        entry += pick<std::string>({":1", ":2", ":0", ":x", "::2"});
      entries.push_back(entry);
    }
    return join(entries, ",");
  }

  std::mt19937_64& random_;
};

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
