// The description of a job, which precedes its results.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "reports/json_view.h"
#include "reports/networks.h"
#include "reports/report.h"
#include "reports/text.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

constexpr int widest = 100, indent = 11;
constexpr std::size_t max_named = 8;

std::string line(const std::string& name, const std::string& text) {
  if (text.empty())
    return "";
  const std::string label =
      "  " + name + std::string(static_cast<std::size_t>(indent) - 2 - name.size(), ' ');
  return wrapped(label + text, widest, indent) + "\n";
}

/// "a, b, c and 5 more"
std::string some_of(const std::vector<std::string>& words) {
  if (words.size() <= max_named)
    return join(words, ", ");
  const std::vector<std::string> first(words.begin(),
                                       words.begin() + static_cast<std::ptrdiff_t>(max_named));
  return join(first, ", ") + " and " + std::to_string(words.size() - max_named) + " more";
}

/// The word, in quotes if a shell would split it.
std::string quoted(const std::string& word) {
  const std::string special = " \t\n\"'\\$&|;<>()*?[]{}#~!`";
  if (!word.empty() && word.find_first_of(special) == std::string::npos)
    return word;
  std::string out = "'";
  for (const char c : word)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string command_text(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const std::string& word : command)
    words.push_back(quoted(safe_text(word)));
  return join(words, " ");
}

std::string hosts_text(const Report& report) {
  std::vector<std::string> names;
  if (report.hosts.is_array())
    for (const json& host : report.hosts)
      names.push_back(view::text(host, "name", "?"));
  return some_of(names);
}

/// "PE 0 on CPU 0, PE 1 on CPU 1, pinned by bench"
std::string pinning_text(const Report& report) {
  if (!report.measurement)
    return "";
  std::vector<std::string> words, by;
  for (const PinRow& row : report.measurement->pinning) {
    const bool one = row.cpus.find_first_of(",-") == std::string::npos;
    words.push_back("PE " + std::to_string(row.pe) + " on CPU" + (one ? " " : "s ") +
                    safe_text(row.cpus));
    const std::string who = row.by == "nobody" ? "not pinned" : "pinned by " + safe_text(row.by);
    if (std::find(by.begin(), by.end(), who) == by.end())
      by.push_back(who);
  }
  return words.empty() ? "" : some_of(words) + ", " + join(by, ", ");
}

/// "NVIDIA H100 (PE 0 to 7)", by model.
std::string gpus_text(const std::vector<std::string>& gpu_by_pe) {
  std::vector<std::string> words;
  for (std::size_t first = 0; first < gpu_by_pe.size();) {
    std::size_t end = first + 1;
    while (end < gpu_by_pe.size() && gpu_by_pe[end] == gpu_by_pe[first])
      ++end;
    if (!gpu_by_pe[first].empty())
      words.push_back(safe_text(gpu_by_pe[first]) + " (PE " + std::to_string(first) +
                      (end - first > 1 ? " to " + std::to_string(end - 1) : "") + ")");
    first = end;
  }
  return some_of(words);
}

std::string job_words(const Report& report) {
  const Job& job = report.job;
  std::string text = counted(static_cast<std::size_t>(job.pes), "PE") + " on " +
                     counted(static_cast<std::size_t>(job.nodes), "node");
  if (const std::string hosts = hosts_text(report); !hosts.empty())
    text += " (" + hosts + ")";
  if (job.launcher != "none")
    text += ", started by " + safe_text(job.launcher);
  if (job.bootstrap != "none")
    text += ", bootstrap " + safe_text(job.bootstrap);
  return text;
}

/// A line for each group of node pairs with the same links.
std::string network_lines(const Report& report) {
  constexpr std::size_t max_lines = 4;
  const std::vector<std::string> names = node_names_of(report.hosts);
  std::string lines;
  for (std::size_t i = 0; i < report.networks.size() && i < max_lines; ++i) {
    const NetworkRow& row = report.networks[i];
    const std::string links = links_text(row);
    lines +=
        line(i == 0 ? "network" : "", between_text(row, names) + " by " + safe_text(row.transport) +
                                          (links.empty() ? "" : " " + links));
  }
  if (report.networks.size() > max_lines)
    lines += line("", "and " + std::to_string(report.networks.size() - max_lines) + " more");
  return lines;
}

} // namespace

std::string job_text(const Report& report, const std::vector<std::string>& gpu_by_pe,
                     const TextStyle& style, const std::string& path) {
  const ToolInfo& tool = report.tool;
  std::string title = "shmemctl " + safe_text(tool.version);
  if (!tool.git_revision.empty())
    title += " (" + safe_text(tool.git_revision) +
             (tool.git_dirty.value_or(false) ? ", dirty" : "") + ")";
  if (!report.started_at.empty())
    title += ", " + safe_text(report.started_at);
  const std::vector<std::string>& command =
      report.job.command.empty() ? report.command : report.job.command;
  return coloured(title, Colour::bold, style) + "\n" + line("command", command_text(command)) +
         line("job", job_words(report)) + line("CPUs", pinning_text(report)) +
         line("GPUs", gpus_text(gpu_by_pe)) + line("path", safe_text(path)) +
         // In a job of two nodes, `path` already names the connection.
         (path.empty() || report.job.nodes > 2 ? network_lines(report) : "");
}

} // namespace shmemctl
