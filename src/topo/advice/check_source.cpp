// What the reader of a topology could not read, left out, mirrored or made up.
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "src/base/error.h"
#include "src/topo/advice/advice.h"
#include "src/topo/advice/checks.h"
#include "src/topo/advice/wording.h"
#include "src/topo/mapping/ports.h"

namespace shmemctl {

namespace {

/// More findings of one severity say less than the report's own list of notes.
constexpr std::size_t shown_notes = 6;

const char* const learn_names =
    "learn the devices' names first (ls /sys/class/infiniband on that host): a line with names "
    "that are not known would match no device";

/// How to get what a source lacks.
std::string better_source(const Node& node) {
  if (node.format == "nvidia-smi")
    return "give the whole output of nvidia-smi topo -m, or run shmemctl topo on that host";
  if (node.format == "nccl-xml")
    return "let NCCL write the file again there (NCCL_TOPO_DUMP_FILE), or run shmemctl topo on "
           "that host";
  if (node.format == "hwloc-xml" || node.format == "report")
    return "run shmemctl topo on that host: it asks the kernel and the GPU driver themselves";
  return "shmemctl doctor says what is missing";
}

std::string source_of(const Node& node) {
  return node.format.empty() ? "topology" : node.format;
}

bool is_file(const Node& node) {
  static constexpr std::array<std::string_view, 4> formats = {"nvidia-smi", "nccl-xml", "hwloc-xml",
                                                              "report"};
  return std::find(formats.begin(), formats.end(), node.format) != formats.end();
}

void report_notes(const Node& node, const std::vector<std::string>& notes, Severity severity,
                  Findings& to) {
  // The last one that is shown stands for the rest.
  const std::size_t shown = notes.size() > shown_notes ? shown_notes - 1 : notes.size();
  for (std::size_t i = 0; i < shown; ++i)
    to.push_back({"topology-incomplete", severity, source_of(node), printable(notes[i], 400),
                  better_source(node)});
  if (shown < notes.size())
    to.push_back({"topology-incomplete", severity, source_of(node),
                  std::to_string(notes.size() - shown) +
                      " more of what was read: the JSON report has all of them (topology)",
                  better_source(node)});
}

/// NICs that may be RDMA devices and whose names the source does not give.
std::vector<int> unnamed_nics(const Node& node) {
  std::vector<int> unnamed;
  for (std::size_t i = 0; i < node.nics.size(); ++i)
    if (node.nics[i].unnamed && node.nics[i].rdma.value.value_or(true))
      unnamed.push_back(static_cast<int>(i));
  return unnamed;
}

void report_unnamed(const Node& node, Findings& to) {
  const std::vector<int> unnamed = unnamed_nics(node);
  if (unnamed.empty())
    return;
  std::vector<std::string> labels;
  for (const int nic : unnamed)
    labels.push_back(nic_name(node, nic));
  const std::vector<NicUse> candidates = candidate_ports(node);
  const bool used = std::any_of(candidates.begin(), candidates.end(), [&node](const NicUse& use) {
    return node.nics[static_cast<std::size_t>(use.nic)].unnamed;
  });
  to.push_back({"nic-names-unknown", used ? Severity::warning : Severity::info,
                enumerate(labels, 8),
                "names unknown: the source does not name " + enumerate(labels, 8) +
                    ", so these are labels only; no list is judged against them, and no lines to "
                    "export name them",
                better_source(node)});
}

bool is_word_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// True if `text` has `word` with no letter, digit or _ beside it.
bool has_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word_letter(text[at - 1])) &&
        (end == text.size() || !is_word_letter(text[end])))
      return true;
  }
  return false;
}

} // namespace

Findings check_source(const Node& node) {
  Findings findings;
  report_notes(node, node.notes, Severity::warning, findings);
  report_notes(node, node.remarks, Severity::info, findings);
  if (is_file(node) && node.gpus.empty() && node.nics.empty())
    findings.push_back({"topology-incomplete", Severity::warning, source_of(node),
                        "no GPU and no NIC is recognised in this file: nothing can be said of it",
                        better_source(node)});
  report_unnamed(node, findings);
  return findings;
}

void withhold_unknown_names(const Node& node, Findings& findings) {
  const std::vector<int> unnamed = unnamed_nics(node);
  for (Finding& finding : findings) {
    const bool names_one = std::any_of(unnamed.begin(), unnamed.end(), [&](int nic) {
      return has_word(finding.fix, node.nics[static_cast<std::size_t>(nic)].name);
    });
    const bool prefix =
        !unnamed.empty() && finding.fix.find("NVSHMEM_HCA_PREFIX=") != std::string::npos;
    if (names_one || prefix)
      finding.fix = learn_names;
  }
}

} // namespace shmemctl
