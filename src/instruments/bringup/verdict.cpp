#include "src/instruments/bringup/verdict.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <tuple>

#include "src/base/archive.h"

namespace shmemctl {

namespace {

/// With at most 200 bytes of note each, these failures stay far below 1 MiB.
constexpr std::size_t max_details = 256;
constexpr int max_matrix_pes = 32;
constexpr int max_matrix_nodes = 64;

auto order(const PairFailure& failure) {
  return std::tie(failure.transport, failure.source, failure.target, failure.op, failure.size_bytes,
                  failure.offset_bytes, failure.note, failure.expected, failure.found);
}

/// Whether both PEs of the failure are PEs of this job.
bool is_of_job(const PairFailure& failure, int n_pes) {
  return failure.source >= 0 && failure.source < n_pes && failure.target >= 0 &&
         failure.target < n_pes;
}

/// Ordered from best to worst.
enum class Cell { self, verified, unreached, wrong };
char mark(Cell cell) {
  switch (cell) {
  case Cell::self:
    return '-';
  case Cell::verified:
    return '+';
  case Cell::unreached:
    return '.';
  case Cell::wrong:
    return 'x';
  }
  return '.';
}

using Cells = std::vector<std::vector<Cell>>;

Cells cells_of(const BringupVerdict& verdict, int transport) {
  const auto count = static_cast<std::size_t>(verdict.n_pes);
  const TransportReach& reach = verdict.transports[static_cast<std::size_t>(transport)];
  Cells cells(count, std::vector<Cell>(count, Cell::verified));
  for (int source = 0; source < verdict.n_pes; ++source)
    for (int target = 0; target < verdict.n_pes; ++target)
      if (reach.from(source, target) == 0)
        cells[static_cast<std::size_t>(source)][static_cast<std::size_t>(target)] =
            source == target ? Cell::self : Cell::unreached;
  for (const PairFailure& failure : verdict.failures)
    if (failure.transport == transport)
      cells[static_cast<std::size_t>(failure.source)][static_cast<std::size_t>(failure.target)] =
          Cell::wrong;
  return cells;
}

Cells collapsed(const Cells& cells, const std::vector<int>& node_of) {
  const auto nodes =
      static_cast<std::size_t>(*std::max_element(node_of.begin(), node_of.end())) + 1;
  Cells by_node(nodes, std::vector<Cell>(nodes, Cell::self));
  for (std::size_t source = 0; source < cells.size(); ++source)
    for (std::size_t target = 0; target < cells.size(); ++target) {
      Cell& cell = by_node[static_cast<std::size_t>(node_of[source])]
                          [static_cast<std::size_t>(node_of[target])];
      cell = std::max(cell, cells[source][target]);
    }
  return by_node;
}

std::string draw(const Cells& cells, const std::string& what) {
  const std::size_t width = std::to_string(cells.size() - 1).size() + 1;
  const std::size_t row_width = what.size() + width;
  std::string out = fmt::format("  {:>{}}", "", row_width);
  for (std::size_t target = 0; target < cells.size(); ++target)
    out += fmt::format("{:>{}}", target, width);
  out += '\n';
  for (std::size_t source = 0; source < cells.size(); ++source) {
    out += fmt::format("  {}{:>{}}", what, source, width);
    for (const Cell cell : cells[source])
      out += fmt::format("{:>{}}", mark(cell), width);
    out += '\n';
  }
  return out;
}

} // namespace

void serialize(Archive& archive, PairFailure& failure) {
  archive(failure.transport);
  archive.choice(failure.op, static_cast<PairOp>(pair_ops - 1));
  archive(failure.source, failure.target, failure.size_bytes, failure.offset_bytes,
          failure.expected, failure.found, failure.note);
}

std::string failures_message(const std::vector<PairFailure>& failures) {
  std::vector<PairFailure> kept;
  std::set<std::tuple<int, PairOp, int, int>> seen;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    PairFailure failure = failures[i];
    const bool is_new =
        seen.emplace(failure.transport, failure.op, failure.source, failure.target).second;
    if (i >= max_details) {
      if (!is_new)
        continue;
      failure.offset_bytes = 0;
      failure.expected = failure.found = "";
      failure.note = "";
    }
    failure.note = printable(failure.note);
    kept.push_back(std::move(failure));
  }
  return to_bytes(kept);
}

std::vector<PairFailure> merge_failures(const std::vector<std::string>& messages) {
  std::vector<PairFailure> all;
  for (std::size_t pe = 0; pe < messages.size(); ++pe)
    for (PairFailure& failure :
         value_of_pe<std::vector<PairFailure>>(messages[pe], pe, "verdict")) {
      if (!is_of_job(failure, static_cast<int>(messages.size())))
        throw malformed_message(pe, "verdict");
      all.push_back(std::move(failure));
    }
  std::sort(all.begin(), all.end(),
            [](const PairFailure& a, const PairFailure& b) { return order(a) < order(b); });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

namespace {

/// What the target is for the caller.
const char* preposition(PairOp op) {
  switch (op) {
  case PairOp::get:
    return "from";
  case PairOp::put:
  case PairOp::put_signal:
    return "to";
  case PairOp::fetch_add:
  case PairOp::compare_swap:
    return "at";
  }
  return "at";
}

} // namespace

std::string describe(const PairFailure& failure, const std::string& transport_name) {
  // `source` calls the operation, and is not where a get reads.
  std::string text = fmt::format(
      "{}{} by PE {} {} PE {}, transport {}", to_string(failure.op),
      failure.size_bytes > 0 ? fmt::format(" of {} bytes", failure.size_bytes) : std::string(),
      failure.source, preposition(failure.op), failure.target, transport_name);
  if (!failure.expected.empty())
    text += fmt::format(": at offset {} expected {}, found {}", failure.offset_bytes,
                        failure.expected, failure.found);
  else if (!failure.found.empty())
    text += fmt::format(": found {}", failure.found);
  return failure.note.empty() ? text : text + " (" + failure.note + ")";
}

std::vector<PePair> failed_pairs(const BringupVerdict& verdict, int transport, PairOp op) {
  std::set<PePair> pairs;
  for (const PairFailure& failure : verdict.failures)
    if (failure.transport == transport && failure.op == op)
      pairs.emplace(failure.source, failure.target);
  return {pairs.begin(), pairs.end()};
}

std::size_t checkable_pairs(const TransportReach& transport, PairOp op) {
  return transport.count_pairs(needed_capability(op));
}

std::string matrix_text(const BringupVerdict& verdict, int transport,
                        const std::vector<int>& node_of) {
  Cells cells = cells_of(verdict, transport);
  if (verdict.n_pes <= max_matrix_pes)
    return draw(cells, "PE");
  cells = collapsed(cells, node_of);
  if (cells.size() <= max_matrix_nodes)
    return draw(cells, "node");
  return fmt::format("  {} nodes: too many to draw; see the findings\n", cells.size());
}

} // namespace shmemctl
